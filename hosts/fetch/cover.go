package fetch

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Cover tells which source the live hint of a request names, and in named, which is as
// long as blocks, for each block whether the hint names it. False: there is no live hint.
func (s *Store) Cover(id hint.Identity, blocks []uint64, named []bool) (Source, bool) {
	clear(named)
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
	for i, b := range blocks {
		named[i] = s.secret.has(e.set.data, e.hashes.data[:8*e.count], b)
	}
	return e.source, true
}

// Fail marks a request whose live hint could not be carried out: it is not served
// remotely any more, unless a later hint of the same source comes. It tells whether
// there was such a hint.
func (s *Store) Fail(id hint.Identity, cause abi.Reason) bool {
	if !s.fits(&id) {
		return false
	}
	now := s.cfg.Now()
	hash, sh := s.locate(&id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := s.lookup(sh, hash, &id, sh.tick(now))
	if e == nil || e.state != live {
		return false
	}
	s.release(sh, e) // a failed hint is not read any more
	e.state, e.cause = failed, cause
	return true
}
