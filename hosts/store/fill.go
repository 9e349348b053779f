package store

import (
	"math"

	"github.com/kvrt/kvrt/internal/crc32c"
)

// Reserve takes a slot for a block of so many bytes. The caller fills block, all of it,
// and ends the reservation with [Store.Commit], [Store.CommitChecked],
// [Store.CommitSummed] or [Store.Abort].
//
// It refuses with ErrExists, a *FillingError, a *FullError, ErrTooLarge, ErrLeases,
// ErrNamespaces or ErrClosed.
func (s *Store) Reserve(namespace string, hash uint64, size int) (token uint64, block []byte, err error) {
	p := s.poolFor(size)
	if p < 0 || size <= 0 {
		return 0, nil, ErrTooLarge
	}
	ns, err := s.names.enter(namespace)
	if err != nil {
		return 0, nil, err
	}
	if !s.admit() {
		ns.blocks.Add(-1)
		return 0, nil, ErrLeases
	}
	sh, number := s.shardOf(ns.id, hash)
	n, token, err := s.reserve(sh, number, ns, hash, uint8(p), uint64(size))
	if err != nil {
		s.tokens.Add(-1)
		ns.blocks.Add(-1)
		return 0, nil, err
	}
	block = s.bytes(n, uint64(size))
	if sl := &s.slots[n]; sl.last != ns.id { // the slot is the reservation's alone
		if sl.last != 0 {
			clear(s.bytes(n, s.pools[p].block))
		}
		sl.last = ns.id
	}
	return token, block, nil
}

func (s *Store) reserve(sh *shard, number uint32, ns *namespace, hash uint64, pool uint8, size uint64) (n uint32, token uint64, err error) {
	k := key{ns.id, hash}
	sh.mu.Lock()
	err = s.vacant(sh, k)
	sh.mu.Unlock()
	if err != nil {
		return 0, 0, err
	}
	if n, err = s.take(sh, pool); err != nil {
		return 0, 0, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err = s.vacant(sh, k); err != nil {
		s.pools[pool].give(n)
		return 0, 0, err
	}
	sl := &s.slots[n]
	sl.ns, sl.hash, sl.length, sl.state, sl.prio = ns, hash, size, filling, 0
	sh.byKey[k] = n
	sh.tally[pool].filling++
	return n, sh.issue(number, writing, n, s.gens[n].Load()), nil
}

// vacant tells whether a block may be reserved.
func (s *Store) vacant(sh *shard, k key) error {
	if sh.closed {
		return ErrClosed
	}
	n, known := sh.byKey[k]
	if !known {
		return nil
	}
	sl := &s.slots[n]
	if sl.state == ready {
		sh.count.exists++
		return ErrExists
	}
	sh.count.coalesced++
	if sl.done == nil {
		sl.done = make(chan struct{})
	}
	return &FillingError{Done: sl.done}
}

// take finds a slot: a free one, or that of the block that is worth least.
func (s *Store) take(sh *shard, pool uint8) (uint32, error) {
	p := &s.pools[pool]
	for range 64 { // others may be faster, but not for ever
		if n, ok := p.take(); ok {
			return n, nil
		}
		s.expire()
		from, least := -1, uint64(math.MaxUint64)
		for i := range s.shards {
			if h := s.shards[i].heads[pool].Load(); h < least {
				from, least = i, h
			}
		}
		if from < 0 {
			break
		}
		if n, ok := s.evictLeast(&s.shards[from], pool); ok {
			return n, nil
		}
	}
	sh.mu.Lock()
	sh.count.full++
	sh.mu.Unlock()
	return 0, s.full(pool)
}

// evictLeast takes the slot of a shard's least block.
func (s *Store) evictLeast(sh *shard, pool uint8) (uint32, bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	q := &sh.victims[pool]
	if len(q.items) == 0 || sh.closed {
		return 0, false
	}
	n := q.items[0].slot
	s.unpublish(sh, n)
	sh.tally[pool].dead--
	sh.count.yields++
	s.vacate(n)
	return n, true
}

// full says who holds the slots of a pool.
func (s *Store) full(pool uint8) error {
	p := &s.pools[pool]
	e := &FullError{BlockBytes: p.block, Slots: int(p.count)}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		t := sh.tally[pool]
		e.Pinned += t.pinned
		e.Leased += t.ready - t.pinned - len(sh.victims[pool].items)
		e.Reserved += t.filling + t.dead
		sh.mu.Unlock()
	}
	return e
}

// Commit publishes a reserved block. It refuses with ErrInFlight while a transfer into
// the block is still in flight; the reservation goes on then.
func (s *Store) Commit(token uint64) error { return s.commit(token, 0, s.cfg.Checksum, false) }

// CommitChecked publishes a reserved block whose bytes have this CRC32C. When they have
// another the reservation has ended, and the error is ErrChecksum.
func (s *Store) CommitChecked(token uint64, sum uint32) error {
	return s.commit(token, sum, true, true)
}

// CommitSummed publishes a reserved block whose bytes have this CRC32C, as the caller has
// found out itself.
func (s *Store) CommitSummed(token uint64, sum uint32) error {
	return s.commit(token, sum, false, true)
}

func (s *Store) commit(tok uint64, given uint32, compute, known bool) error {
	sh, t := s.open(tok)
	if t == nil {
		return ErrToken
	}
	n := t.slot
	sl := &s.slots[n]
	switch {
	case t.kind != writing:
		sh.mu.Unlock()
		return ErrToken
	case sl.refs > 0:
		sh.mu.Unlock()
		return ErrInFlight
	}
	t.kind = finishing // from here on nobody else ends it, or begins a transfer
	length := sl.length
	sh.mu.Unlock()

	sum := given
	if compute {
		sum = Checksum(s.bytes(n, length))
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	defer s.tokens.Add(-1) // last: then Close may unmap
	sh.retire(tok)
	if known && sum != given {
		sh.count.corrupt++
		s.giveUp(sh, n)
		return ErrChecksum
	}
	sl.sum, sl.hasSum = sum, compute || known
	s.publish(sh, n)
	return nil
}

// publish shows a filled block.
func (s *Store) publish(sh *shard, n uint32) {
	sl := &s.slots[n]
	sl.state = ready
	s.gens[n].Add(1)
	t := &sh.tally[sl.pool]
	t.filling--
	t.ready++
	sh.count.commits++
	s.takeEffect(sh, n)
	s.rest(sh, n, true)
	if sl.done != nil {
		close(sl.done)
		sl.done = nil
	}
}

// Abort gives a reservation up: nobody ever sees the block, and who waits for it is
// told. While a transfer into the slot is in flight the slot stays out of use.
func (s *Store) Abort(token uint64) error {
	sh, t := s.open(token)
	if t == nil {
		return ErrToken
	}
	defer sh.mu.Unlock()
	if t.kind != writing {
		return ErrToken
	}
	n := t.slot
	sh.retire(token)
	s.giveUp(sh, n)
	s.tokens.Add(-1) // last: then Close may unmap
	return nil
}

func (s *Store) giveUp(sh *shard, n uint32) {
	sh.count.aborts++
	s.unpublish(sh, n)
	s.rest(sh, n, false)
}

// Checksum is the checksum of a block: CRC32C.
func Checksum(block []byte) uint32 { return crc32c.Checksum(block) }
