package fetch

import (
	"fmt"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Pending is a submit, discard or finish that has been checked and waits for the
// verdict on its action. Exactly one of Commit and Drop is called, once: the Pending
// is then reused. A second call panics with a [*Fault], unless the Pending has been
// handed out again meanwhile.
type Pending struct {
	store    *Store
	shard    *shard
	hash     uint64
	id       hint.Identity // its strings are views of key
	key      []byte
	op       state // live: a submit; else how the request ends
	noRetain bool
	ready    bool // neither committed nor dropped yet; under the shard's lock
	count    uint32
	size     int   // bytes that it counts for while it waits
	now      int64 // when the commit takes place; 0: when it is made
	source   Source
	hashes   *buf[byte] // nil when there is nothing to store
	own      bool       // fixed
	spare    *buf[byte] // of one that is own: for the next hint
	next     *Pending   // on the free list
}

// spareClass is the largest class of a buffer in reserve, 4 KiB: 512 hashes.
const spareClass = 6

// Prepare checks a submit and copies what it needs: the strings of id and hashes
// (little-endian u64, duplicates allowed) may be views of reused memory. It changes
// nothing that another call can see. On refusal the Pending is nil.
func (s *Store) Prepare(id hint.Identity, src Source, hashes []byte, noRetain bool) (*Pending, abi.Reason, string) {
	return s.prepareSubmit(nil, &id, src, hashes, noRetain)
}

// prepareSubmit is Prepare into a Pending of the caller's own, if that is not nil.
func (s *Store) prepareSubmit(own *Pending, id *hint.Identity, src Source, hashes []byte, noRetain bool) (*Pending, abi.Reason, string) {
	count := len(hashes) / 8
	switch {
	case count == 0 || len(hashes)%8 != 0:
		s.refusedInvalid.Add(1)
		return nil, abi.ReasonInvalidPayload, "a fetch hint needs at least one block hash, each of 8 bytes"
	case count > s.cfg.MaxHashes:
		return s.refuse("%d block hashes, and a fetch hint may have %d", count, s.cfg.MaxHashes)
	case int64(sizeOf(classOf(count))) > s.cfg.MaxBytes:
		return s.refuse("%d block hashes need more than the %d bytes of the hint store", count, s.cfg.MaxBytes)
	case len(id.Engine)+len(id.RequestID) > s.cfg.MaxIDBytes:
		return s.refuse("engine and request id have %d bytes, and may have %d", len(id.Engine)+len(id.RequestID), s.cfg.MaxIDBytes)
	}
	if id.RequestID == "" {
		return s.prepare(own, id, live, -1)
	}
	p, reason, detail := s.prepare(own, id, live, classOf(count))
	if p != nil {
		copy(p.hashes.data, hashes)
		p.count, p.source, p.noRetain = uint32(count), src, noRetain
	}
	return p, reason, detail
}

// PrepareDiscard is [Store.Discard] in two halves.
func (s *Store) PrepareDiscard(id hint.Identity) (*Pending, abi.Reason, string) {
	return s.prepareEnd(nil, &id, discarded)
}

// PrepareFinish is [Store.Finish] in two halves.
func (s *Store) PrepareFinish(id hint.Identity, wasAborted bool) (*Pending, abi.Reason, string) {
	return s.prepareEnd(nil, &id, finishState(wasAborted))
}

func (s *Store) prepareEnd(own *Pending, id *hint.Identity, op state) (*Pending, abi.Reason, string) {
	if !s.fits(id) {
		id = &hint.Identity{} // nothing can be there
	}
	return s.prepare(own, id, op, -1)
}

// prepare takes a Pending, with a buffer of the class unless that is negative.
func (s *Store) prepare(own *Pending, id *hint.Identity, op state, class int) (*Pending, abi.Reason, string) {
	hash, sh := s.locate(id)
	p := own
	if own == nil || class >= 0 && (own.spare == nil || own.spare.class != class) {
		var reason abi.Reason
		var detail string
		if p, reason, detail = s.take(sh, own, class); p == nil {
			return nil, reason, detail
		}
	} else if p.size = 0; class >= 0 {
		p.hashes, p.spare = p.spare, nil
	}
	p.ready = true
	p.shard, p.hash, p.op, p.now = sh, hash, op, 0
	p.key = append(append(p.key[:0], id.Engine...), id.RequestID...)
	p.id.Engine, p.id.RequestID = view(p.key[:len(id.Engine)]), view(p.key[len(id.Engine):])
	p.id.DPRank, p.id.Attempt, p.id.Leg = id.DPRank, id.Attempt, id.Leg
	return p, abi.ReasonNone, ""
}

// take is prepare's part under the shard's lock.
func (s *Store) take(sh *shard, p *Pending, class int) (*Pending, abi.Reason, string) {
	size := pendingOverhead
	if class >= 0 {
		size += sizeOf(class)
	}
	sh.mu.Lock()
	if sh.prepared+size > s.preparedLimit {
		sh.mu.Unlock()
		return s.refuse("fetch hints that wait for the verdict on their actions take more than %d bytes", s.preparedLimit)
	}
	sh.prepared += size
	if p == nil {
		if p = sh.takePending(); p == nil {
			p = &Pending{store: s, key: make([]byte, 0, 64)}
		}
	}
	p.size = size
	sh.hashes.put(p.spare) // of another size
	p.spare = nil
	if class >= 0 {
		p.hashes = sh.hashes.take(class)
	}
	sh.mu.Unlock()
	if class >= 0 && p.hashes == nil {
		p.hashes = newHashes(class)
	}
	return p, abi.ReasonNone, ""
}

// newOwn makes a Pending for a caller who keeps it.
func (s *Store) newOwn() *Pending {
	return &Pending{store: s, key: make([]byte, 0, 64), own: true}
}

// view is b as a string, without a copy: b must not change while the string is used.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (s *Store) refuse(format string, args ...any) (*Pending, abi.Reason, string) {
	s.refusedLimit.Add(1)
	return nil, abi.ReasonLimitExceeded, fmt.Sprintf(format, args...)
}

// Commit carries the effect out, or says why it cannot be.
func (p *Pending) Commit() (abi.Reason, string) {
	s, sh := p.store, p.shard
	now := p.now
	if now == 0 {
		now = s.cfg.Now()
	}
	if p.tells() {
		s.commit(sh, p, now, false) // an end is never refused
		p.tell()
		return abi.ReasonNone, ""
	}
	reason, detail := s.commit(sh, p, now, false)
	if reason == abi.ReasonLimitExceeded {
		s.reclaim(now)
		reason, detail = s.commit(sh, p, now, true)
	}
	return reason, detail
}

// tells is whether somebody wants to hear of the end of a request.
func (p *Pending) tells() bool {
	return p.op != live && p.id.RequestID != "" && p.store.cfg.Ended != nil
}

// tell tells of it, and gives p back, whose identity it is, after that.
func (p *Pending) tell() {
	defer func() {
		p.shard.mu.Lock()
		defer p.shard.mu.Unlock()
		p.shard.putPending(p)
	}()
	p.store.cfg.Ended(p.id)
}

// commit tries to carry the effect out and gives p back, except at a cap, unless this
// is the last try, and when its end is still to be told.
func (s *Store) commit(sh *shard, p *Pending, now int64, last bool) (reason abi.Reason, detail string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !last {
		p.use()
	}
	if p.id.RequestID == "" {
		if p.op == live {
			s.unkeyed.Add(1)
		}
		sh.putPending(p)
		return abi.ReasonNone, ""
	}
	now = sh.tick(now)
	s.sweep(sh, now, 4) // more than one commit can add, so that no backlog builds up
	if p.op == live {
		reason, detail = s.submit(sh, p, now)
	} else {
		s.endLocked(sh, p.hash, &p.id, p.op, now)
	}
	if reason == abi.ReasonLimitExceeded {
		if !last {
			return reason, detail
		}
		s.refusedLimit.Add(1)
	}
	if !p.tells() {
		sh.putPending(p)
	}
	return reason, detail
}

// Drop forgets the effect.
func (p *Pending) Drop() {
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	p.use()
	p.shard.putPending(p)
}

// use notes that p is committed or dropped. The shard is locked.
func (p *Pending) use() {
	if !p.ready {
		panic(&Fault{"a Pending was committed or dropped twice"})
	}
	p.ready = false
}

// submit is the store rule. The shard is locked.
func (s *Store) submit(sh *shard, p *Pending, now int64) (abi.Reason, string) {
	e := s.lookup(sh, p.hash, &p.id, now)
	switch {
	case e == nil:
		if !s.entries.take(&sh.entries, 1) {
			return abi.ReasonLimitExceeded, "the fetch hint store is full of requests"
		}
		if !s.resize(sh, 0, sizeOf(p.hashes.class)) {
			s.entries.give(&sh.entries, 1)
			return abi.ReasonLimitExceeded, storeFull
		}
		e = sh.takeEntry()
		e.hash, e.since, e.body = p.hash, now, sh.takeBody()
		e.setKey(&p.id)
		if p.own && p.hashes.class <= spareClass {
			p.spare = sh.hashes.take(p.hashes.class)
		}
		e.source = p.source
		sh.insert(e)
		sh.hints.push(e)
		sh.stats.submitted++
	case e.state >= finished:
		sh.stats.refusedFinished++
		return abi.ReasonRequestFinished, e.state.ended()
	case !e.source.Same(p.source):
		s.release(sh, e) // a failed hint is not read any more
		e.state, e.cause = failed, abi.ReasonConflictingSource
		sh.stats.conflicts++
		return abi.ReasonConflictingSource, "an earlier hint of this request names another source; that hint is failed too"
	default:
		if !s.resize(sh, e.size(), sizeOf(p.hashes.class)) {
			return abi.ReasonLimitExceeded, storeFull
		}
		sh.recycle(p, e.hashes)
		sh.sets.put(e.set)
		e.set, e.distinct = nil, 0
		sh.replaced++
	}
	e.state, e.cause, e.noRetain = live, abi.ReasonNone, p.noRetain
	e.count, e.hashes, p.hashes = p.count, p.hashes, nil
	return abi.ReasonNone, ""
}

const storeFull = "the fetch hint store is full of block hashes"

// resize counts a buffer in place of another one, if the cap allows.
func (s *Store) resize(sh *shard, from, to int) bool {
	if to > from {
		return s.bytes.take(&sh.bytes, int64(to-from))
	}
	if to < from {
		s.bytes.give(&sh.bytes, int64(from-to))
	}
	return true
}

// size is the bytes that an entry counts for.
func (e *entry) size() int {
	if e.hashes == nil {
		return 0
	}
	return sizeOf(e.hashes.class)
}

// ended says how a request ended.
func (st state) ended() string {
	switch st {
	case finished:
		return "the request has finished"
	case aborted:
		return "the request was aborted"
	}
	return "the hints of this request were discarded"
}

func (sh *shard) takePending() *Pending {
	p := sh.pending
	if p != nil {
		sh.pending, p.next = p.next, nil
		sh.pendLen--
	}
	return p
}

func (sh *shard) putPending(p *Pending) {
	if p.size > 0 {
		sh.prepared -= p.size
	}
	sh.recycle(p, p.hashes)
	p.hashes, p.source = nil, Source{}
	if !p.own && sh.pendLen < freeEntries {
		p.next, sh.pending = sh.pending, p
		sh.pendLen++
	}
}

// recycle takes a buffer that is of no use any more, in reserve for the next hint of p or
// for all hints of the shard.
func (sh *shard) recycle(p *Pending, b *buf[byte]) {
	if b != nil && p.own && p.spare == nil && b.class <= spareClass && b.pins == 0 {
		p.spare = b
		return
	}
	sh.hashes.put(b)
}
