package fetch

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Status is what the store knows of a request.
type Status struct {
	State     abi.FetchState
	Cause     abi.Reason // why it is failed
	Hashes    uint32     // distinct hashes of a live hint
	HasSource bool       // of a hint, live or failed; false: local storage only
	NoRetain  bool
	Submitted int64 // ns since 1970, of the first submit; 0 without a hint
	Expires   int64 // ns since 1970; 0 without a hint
}

// Status tells how a request stands.
func (s *Store) Status(id hint.Identity) Status {
	if !s.fits(&id) {
		return Status{}
	}
	now := s.cfg.Now()
	hash, sh := s.locate(&id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := s.query(sh, hash, &id, sh.tick(now))
	switch {
	case e == nil:
		return Status{}
	case e.state >= finished:
		return Status{State: abi.FetchStateFinished}
	}
	st := Status{
		State: abi.FetchStateLive, Cause: e.cause, Hashes: e.distinct, HasSource: !e.source.IsNull(), NoRetain: e.noRetain,
		Submitted: e.since, Expires: e.since + int64(s.cfg.TTL),
	}
	if e.state == failed {
		st.State = abi.FetchStateFailed
	}
	return st
}

// Lookup tells whether a request has a live hint that names a block, and the source
// of the hint. The order of the hashes does not matter to it.
func (s *Store) Lookup(id hint.Identity, block uint64) (Source, bool) {
	if !s.fits(&id) {
		return Source{}, false
	}
	now := s.cfg.Now()
	hash, sh := s.locate(&id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := s.query(sh, hash, &id, sh.tick(now))
	if e == nil || e.state != live {
		return Source{}, false
	}
	if !s.secret.has(e.set.data, e.hashes.data[:8*e.count], block) {
		return Source{}, false
	}
	return e.source, true
}

// AppendHashes appends the block hashes of a live hint to dst, in the sender's order
// and with its duplicates.
func (s *Store) AppendHashes(dst []uint64, id hint.Identity) []uint64 {
	if !s.fits(&id) {
		return dst
	}
	now := s.cfg.Now()
	hash, sh := s.locate(&id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := s.lookup(sh, hash, &id, sh.tick(now)); e != nil && e.state == live {
		for i := range e.count {
			dst = append(dst, hashAt(e.hashes.data, i))
		}
	}
	return dst
}

// query finds an entry, and sees to it that a live one has its set. The first query
// builds the set, outside the lock since a large hint takes a millisecond: the hashes
// are pinned meanwhile. Whoever comes second builds one too, and the first stays.
func (s *Store) query(sh *shard, hash uint64, id *hint.Identity, now int64) *entry {
	for {
		e := s.lookup(sh, hash, id, now)
		if e == nil || e.state != live || e.set != nil {
			return e
		}
		hashes, n := e.hashes, e.count
		set := sh.sets.take(hashes.class)
		hashes.pins++
		sh.mu.Unlock()
		if set == nil {
			set = newSlots(hashes.class)
		}
		distinct := s.secret.build(set.data, hashes.data[:8*n])
		sh.mu.Lock()
		hashes.pins--
		e = s.lookup(sh, hash, id, now)
		if e != nil && e.state == live && e.hashes == hashes && e.set == nil {
			e.set, e.distinct = set, distinct
		} else {
			sh.sets.put(set)
		}
		if hashes.detached {
			hashes.detached = false
			sh.hashes.put(hashes) // which waits again for queries that are left
		}
	}
}
