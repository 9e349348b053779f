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
	next     *Pending   // on the free list
}

// Prepare checks a submit and copies what it needs: the strings of id and hashes
// (little-endian u64, duplicates allowed) may be views of reused memory. It changes
// nothing that another call can see. On refusal the Pending is nil.
func (s *Store) Prepare(id hint.Identity, src Source, hashes []byte, noRetain bool) (*Pending, abi.Reason, string) {
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
		return s.prepare(&id, live, -1)
	}
	p, reason, detail := s.prepare(&id, live, classOf(count))
	if p != nil {
		copy(p.hashes.data, hashes)
		p.count, p.source, p.noRetain = uint32(count), src, noRetain
	}
	return p, reason, detail
}

// PrepareDiscard is [Store.Discard] in two halves.
func (s *Store) PrepareDiscard(id hint.Identity) (*Pending, abi.Reason, string) {
	return s.prepareEnd(&id, discarded)
}

// PrepareFinish is [Store.Finish] in two halves.
func (s *Store) PrepareFinish(id hint.Identity, wasAborted bool) (*Pending, abi.Reason, string) {
	return s.prepareEnd(&id, finishState(wasAborted))
}

func (s *Store) prepareEnd(id *hint.Identity, op state) (*Pending, abi.Reason, string) {
	if !s.fits(id) {
		id = &hint.Identity{} // nothing can be there
	}
	return s.prepare(id, op, -1)
}

// prepare takes a Pending, with a buffer of the class unless that is negative.
func (s *Store) prepare(id *hint.Identity, op state, class int) (*Pending, abi.Reason, string) {
	size := pendingOverhead
	if class >= 0 {
		size += sizeOf(class)
	}
	hash, sh := s.locate(id)
	sh.mu.Lock()
	if sh.prepared+size > s.preparedLimit {
		sh.mu.Unlock()
		return s.refuse("fetch hints that wait for the verdict on their actions take more than %d bytes", s.preparedLimit)
	}
	sh.prepared += size
	p := sh.takePending()
	if p == nil {
		p = &Pending{store: s, shard: sh, key: make([]byte, 0, 64)}
	}
	p.ready = true
	var b *buf[byte]
	if class >= 0 {
		b = sh.hashes.take(class)
	}
	sh.mu.Unlock()

	if b == nil && class >= 0 {
		b = newHashes(class)
	}
	p.hash, p.op, p.size, p.now, p.hashes = hash, op, size, 0, b
	p.key = append(append(p.key[:0], id.Engine...), id.RequestID...)
	p.id.Engine, p.id.RequestID = view(p.key[:len(id.Engine)]), view(p.key[len(id.Engine):])
	p.id.DPRank, p.id.Attempt, p.id.Leg = id.DPRank, id.Attempt, id.Leg
	return p, abi.ReasonNone, ""
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
		sh.hashes.put(e.hashes)
		sh.sets.put(e.set)
		e.set, e.distinct = nil, 0
		sh.stats.replaced++
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
	s.bytes.give(&sh.bytes, int64(from-to))
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
	sh.prepared -= p.size
	sh.hashes.put(p.hashes)
	p.hashes, p.source = nil, Source{}
	if sh.pendLen < freeEntries {
		p.next, sh.pending = sh.pending, p
		sh.pendLen++
	}
}
