package fetcher

import (
	"cmp"
	"context"
	"slices"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// An operation brings blocks from one source. done is closed at its real end; then the
// rest may be read.
type operation struct {
	done   chan struct{}
	length int // of each block; 0: any
	hashes []uint64
	status []peer.Status
	bytes  int64
	err    error
}

// wait is a block of a call that some operation brings.
type wait struct {
	at     int // in the call's list
	flight flight
}

// news hears of the blocks that an operation brings for somebody.
type news interface {
	Fetched(blocks uint32, bytes uint64)
	Fail(why abi.Reason)
}

// hinted tells of the blocks of a request's hint: what did not come fails it.
type hinted struct {
	f  *Fetcher
	id hint.Identity // its own
}

func (h hinted) Fetched(blocks uint32, bytes uint64) { h.f.cfg.Outcomes.Fetched(h.id, blocks, bytes) }

func (h hinted) Fail(why abi.Reason) {
	h.f.cfg.Hints.Fail(h.id, why)
	h.f.cfg.Outcomes.Fail(h.id, why)
}

// gaps are the places in a call's list of blocks that can be brought, as they were when
// so many operations had ended.
type gaps struct {
	at    []int
	lands uint64
}

// here marks the blocks that are in the store and returns the others. The error says that
// there are some that cannot be brought.
func (f *Fetcher) here(r *Request, status []peer.Status, res *Result) (missing gaps, err error) {
	clear(status)
	f.mu.Lock()
	missing.lands = f.lands
	f.mu.Unlock()
	places := make([]Place, len(r.Hashes))
	f.cfg.Local.Where(r.Namespace, r.Hashes, r.BlockBytes, places)
	for i, p := range places {
		switch p {
		case Ready:
			status[i] = peer.Success
			res.Here++
		case Unfit:
			err = ErrLength
		default:
			missing.at = append(missing.at, i)
		}
	}
	return missing, err
}

// fetch brings what is not here and, unless any block will do, what the hint names.
func (f *Fetcher) fetch(ctx context.Context, r *Request, status []peer.Status, any bool) (res Result, err error) {
	missing, unfit := f.here(r, status, &res)
	if len(missing.at) == 0 {
		return res, unfit
	}
	named := make([]bool, len(r.Hashes))
	src, ok := f.cfg.Hints.Cover(r.Identity, r.Hashes, named)
	if !ok || src.IsNull() {
		return res, ErrNoHint
	}
	if !any {
		if missing.at = slices.DeleteFunc(missing.at, func(i int) bool { return !named[i] }); len(missing.at) == 0 {
			return res, ErrIncomplete
		}
	}
	id := copyIdentity(r.Identity) // an operation may outlive the call
	err = f.pull(ctx, r, src, missing, status, &res, hinted{f, id}, 1)
	if err == nil && unfit == nil && slices.Contains(status, peer.Failed) {
		return res, ErrIncomplete // blocks that the hint does not name
	}
	return res, cmp.Or(err, unfit)
}

// aheadShare is what part of a budget blocks may take that nobody waits for.
const aheadShare = 2

// Ahead brings blocks from a source that the caller names, whatever the hint of its
// request says, and leaves half of what a peer and a tenant may have under way to others.
// [ErrBusy] with no block under way is no failure: it may be tried again. r.Identity is
// not used.
func (f *Fetcher) Ahead(ctx context.Context, r *Request, src fetch.Source, fetched func(blocks uint32, bytes uint64)) (res Result, err error) {
	status := make([]peer.Status, len(r.Hashes))
	missing, unfit := f.here(r, status, &res)
	return res, cmp.Or(f.pull(ctx, r, src, missing, status, &res, told(fetched), aheadShare), unfit)
}

// told is news for a caller who is told of a failure by the result.
type told func(blocks uint32, bytes uint64)

func (t told) Fetched(blocks uint32, bytes uint64) { t(blocks, bytes) }
func (t told) Fail(abi.Reason)                     {}

// pull brings blocks in as many rounds as admission and the operations of others make
// necessary.
func (f *Fetcher) pull(ctx context.Context, r *Request, src fetch.Source, missing gaps, status []peer.Status, res *Result, to news, share int64) (err error) {
	theirs := error(ErrIncomplete) // why an operation of others failed
	var unfit error                // a block that one of others brought
	for retried := false; len(missing.at) > 0; {
		var own *operation
		var waits []wait
		own, waits, err = f.start(to, r, src, missing, share)
		if err != nil {
			break
		}
		var again []int
		others := uint32(0)
		for _, w := range waits {
			select {
			case <-w.flight.op.done:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			if err != nil {
				break
			}
			switch st := w.flight.op.status[w.flight.i]; {
			case st != peer.Failed && w.flight.op.length != r.BlockBytes && !f.fits(r, w.at):
				unfit = ErrLength
			case st != peer.Failed:
				status[w.at] = st
				res.Fetched++
				if w.flight.op != own {
					others++
				}
			case w.flight.op != own:
				again = append(again, w.at) // it was another's source, or another's time
				if w.flight.op.err != nil {
					theirs = w.flight.op.err
				}
			}
		}
		if others > 0 {
			to.Fetched(others, 0)
		}
		if err != nil {
			break
		}
		if own != nil {
			res.Bytes += own.bytes
			if err = own.err; err != nil {
				break
			}
		}
		again = append(again, missing.at[len(waits):]...) // not admitted in this round
		if own == nil && len(again) > 0 {
			if retried {
				err = theirs
				break
			}
			retried = true
		}
		missing.at = again
	}
	if err != nil && err != ErrBusy && err != ErrClosed {
		to.Fail(ReasonOf(err))
	}
	return cmp.Or(err, unfit)
}

// fits tells whether a block that others have brought has the length that is asked for.
func (f *Fetcher) fits(r *Request, i int) bool {
	var p [1]Place
	f.cfg.Local.Where(r.Namespace, r.Hashes[i:i+1], r.BlockBytes, p[:])
	return p[0] != Unfit
}

func copyIdentity(id hint.Identity) hint.Identity {
	both := string(append(append(make([]byte, 0, len(id.Engine)+len(id.RequestID)), id.Engine...), id.RequestID...))
	id.Engine, id.RequestID = both[:len(id.Engine)], both[len(id.Engine):]
	return id
}

// arrived is the flight of a block that an operation has brought, of any length.
func arrived() flight {
	op := &operation{done: make(chan struct{}), length: -1, status: []peer.Status{peer.Success}}
	close(op.done)
	return flight{op, 0}
}

// landed tells which of the missing blocks have come since it was looked, if any operation
// has ended: its flights are no longer there to be joined. f.mu is held, so that none ends
// meanwhile.
func (f *Fetcher) landed(r *Request, missing gaps) []bool {
	landed := make([]bool, len(missing.at))
	if missing.lands == f.lands {
		return landed
	}
	hashes := make([]uint64, len(missing.at))
	for n, i := range missing.at {
		hashes[n] = r.Hashes[i]
	}
	places := make([]Place, len(hashes))
	f.cfg.Local.Where(r.Namespace, hashes, r.BlockBytes, places)
	for n, p := range places {
		landed[n] = p == Ready || p == Unfit
	}
	return landed
}

// start joins the operations that bring blocks of the list already, and begins one for
// as many of the others as are admitted. It returns a wait for each block of a prefix of
// the list; own is nil if nothing was left to begin. It takes one share-th of a budget.
func (f *Fetcher) start(to news, r *Request, src fetch.Source, missing gaps, share int64) (own *operation, waits []wait, err error) {
	size := int64(r.BlockBytes)
	if size <= 0 {
		size = int64(f.cfg.BlockBytes)
	}
	route, err := f.reach(src)
	if err != nil {
		return nil, nil, err
	}
	namespace, tenant, from := string(r.Namespace), string(append([]byte{}, r.Tenant...)), src.String()

	f.mu.Lock()
	landed := f.landed(r, missing)
	fresh := 0
	for n, i := range missing.at {
		if _, ok := f.flights[key{namespace, r.Hashes[i]}]; !ok && !landed[n] {
			fresh++
		}
	}
	admitted := f.tenants.take(tenant, min(fresh, peer.MaxBlocks), size, share)
	if n := f.peers.take(from, admitted, size, share); n < admitted {
		f.tenants.give(tenant, int64(admitted-n)*size)
		admitted = n
	}
	left := admitted
	for n, i := range missing.at {
		k := key{namespace, r.Hashes[i]}
		fl, ok := f.flights[k]
		if !ok && landed[n] {
			fl, ok = arrived(), true
		}
		if !ok {
			if left == 0 {
				break
			}
			left--
			if own == nil {
				own = &operation{done: make(chan struct{}), length: r.BlockBytes}
			}
			fl = flight{own, len(own.hashes)}
			own.hashes = append(own.hashes, r.Hashes[i])
			f.flights[k] = fl
		} else if fl.op != own {
			f.coalesced.Add(1)
		}
		waits = append(waits, wait{i, fl})
	}
	closed := f.closed
	if own != nil && !closed {
		f.work.Add(1)
	}
	if own != nil && closed {
		for _, h := range own.hashes {
			delete(f.flights, key{namespace, h})
		}
	}
	f.mu.Unlock()

	give := func(n int) {
		f.tenants.give(tenant, int64(n)*size)
		f.peers.give(from, int64(n)*size)
	}
	give(left) // duplicates in the list
	switch {
	case closed:
		err = ErrClosed
	case len(waits) == 0:
		f.busy.Add(1)
		err = ErrBusy
	case own != nil:
		own.status = make([]peer.Status, len(own.hashes))
		req := &peer.Request{Namespace: []byte(namespace), Hashes: own.hashes, BlockBytes: r.BlockBytes, MaxBytes: int64(len(own.hashes)) * size}
		go func() {
			defer f.work.Done()
			f.run(own, route, from, to, req)
			f.leave(route)
			give(len(own.hashes))
			f.land(own, namespace)
		}()
		return own, waits, nil
	}
	f.leave(route)
	give(admitted - left)
	return nil, waits, err
}

// run pulls until everything is here or no more comes.
func (f *Fetcher) run(op *operation, route *route, from string, to news, req *peer.Request) {
	ctx, cancel := context.WithTimeout(f.ctx, f.cfg.OpTimeout)
	defer cancel()
	blocks := 0
	stop := peer.StopCredit // of this side, when the bytes of the request are used up
	for at := 0; at < len(op.hashes) && op.err == nil; {
		part := *req
		part.Hashes = op.hashes[at:]
		part.MaxBytes = req.MaxBytes - op.bytes
		if part.MaxBytes <= 0 {
			break
		}
		var res peer.Result
		res, op.err = route.client.Pull(ctx, &part, op.status[at:])
		f.note(from, route, &res, op.err)
		at += res.Blocks
		blocks += res.Blocks
		op.bytes += res.Bytes
		stop = res.Stop
		if op.err == nil && at < len(op.hashes) && (res.Blocks == 0 || res.Stop != peer.StopCredit) {
			break
		}
	}
	if op.err == nil && blocks < len(op.hashes) {
		op.err = &IncompleteError{stop}
	}
	if blocks > 0 {
		to.Fetched(uint32(blocks), uint64(op.bytes))
	}
	if op.err != nil {
		f.incomplete.Add(1)
		to.Fail(ReasonOf(op.err))
	}
}

// land ends the flights of an operation and wakes who waits for it.
func (f *Fetcher) land(op *operation, namespace string) {
	f.mu.Lock()
	f.lands++
	for _, h := range op.hashes {
		delete(f.flights, key{namespace, h})
	}
	f.mu.Unlock()
	close(op.done)
}
