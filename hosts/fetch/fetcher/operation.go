package fetcher

import (
	"context"
	"slices"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// An operation brings blocks from one source. done is closed at its real end; then the
// rest may be read.
type operation struct {
	done   chan struct{}
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

// fetch brings what is not here, in as many rounds as admission and the operations of
// others make necessary.
func (f *Fetcher) fetch(ctx context.Context, r *Request, status []peer.Status, any bool) (res Result, err error) {
	clear(status)
	places, named := make([]Place, len(r.Hashes)), make([]bool, len(r.Hashes))
	f.cfg.Local.Where(r.Namespace, r.Hashes, places)
	var missing []int
	for i, p := range places {
		if p == Ready {
			status[i] = peer.Success
			res.Here++
		} else {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return res, nil
	}
	src, ok := f.cfg.Hints.Cover(r.Identity, r.Hashes, named)
	if !ok || src.IsNull() {
		return res, ErrNoHint
	}
	if !any {
		if missing = slices.DeleteFunc(missing, func(i int) bool { return !named[i] }); len(missing) == 0 {
			return res, ErrIncomplete
		}
	}
	id := copyIdentity(r.Identity) // an operation may outlive the call
	for retried := false; len(missing) > 0; {
		var own *operation
		var waits []wait
		own, waits, err = f.start(id, r, src, missing)
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
			case st != peer.Failed:
				status[w.at] = st
				res.Fetched++
				if w.flight.op != own {
					others++
				}
			case w.flight.op != own:
				again = append(again, w.at) // it was another's source, or another's time
			}
		}
		if others > 0 {
			f.cfg.Outcomes.Fetched(id, others, 0)
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
		again = append(again, missing[len(waits):]...) // not admitted in this round
		if own == nil && len(again) > 0 {
			if retried {
				err = ErrIncomplete
				break
			}
			retried = true
		}
		missing = again
	}
	if err == nil && slices.Contains(status, peer.Failed) {
		return res, ErrIncomplete // blocks that the hint does not name
	}
	if err != nil && err != ErrBusy && err != ErrClosed {
		f.fail(id, err)
	}
	return res, err
}

// fail marks a request whose blocks did not all come.
func (f *Fetcher) fail(id hint.Identity, err error) {
	why := reasonOf(err)
	f.cfg.Hints.Fail(id, why)
	f.cfg.Outcomes.Fail(id, why)
}

func copyIdentity(id hint.Identity) hint.Identity {
	both := string(append(append(make([]byte, 0, len(id.Engine)+len(id.RequestID)), id.Engine...), id.RequestID...))
	id.Engine, id.RequestID = both[:len(id.Engine)], both[len(id.Engine):]
	return id
}

// start joins the operations that bring blocks of the list already, and begins one for
// as many of the others as are admitted. It returns a wait for each block of a prefix of
// the list; own is nil if nothing was left to begin.
func (f *Fetcher) start(id hint.Identity, r *Request, src fetch.Source, missing []int) (own *operation, waits []wait, err error) {
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
	fresh := 0
	for _, i := range missing {
		if _, ok := f.flights[key{namespace, r.Hashes[i]}]; !ok {
			fresh++
		}
	}
	admitted := f.tenants.take(tenant, min(fresh, peer.MaxBlocks), size)
	if n := f.peers.take(from, admitted, size); n < admitted {
		f.tenants.give(tenant, int64(admitted-n)*size)
		admitted = n
	}
	left := admitted
	for _, i := range missing {
		k := key{namespace, r.Hashes[i]}
		fl, ok := f.flights[k]
		if !ok {
			if left == 0 {
				break
			}
			left--
			if own == nil {
				own = &operation{done: make(chan struct{})}
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
			f.run(own, route, id, req)
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
func (f *Fetcher) run(op *operation, route *route, id hint.Identity, req *peer.Request) {
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
		f.cfg.Outcomes.Fetched(id, uint32(blocks), uint64(op.bytes))
	}
	if op.err != nil {
		f.incomplete.Add(1)
		f.fail(id, op.err)
	}
}

// land ends the flights of an operation and wakes who waits for it.
func (f *Fetcher) land(op *operation, namespace string) {
	f.mu.Lock()
	for _, h := range op.hashes {
		delete(f.flights, key{namespace, h})
	}
	f.mu.Unlock()
	close(op.done)
}
