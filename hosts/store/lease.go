package store

// Acquire leases a published block. Its bytes stay what they are until [Store.Release];
// do not write to them.
func (s *Store) Acquire(namespace string, hash uint64) (token uint64, block []byte, err error) {
	n, token, err := s.use(namespace, hash, reading)
	if err != nil {
		return 0, nil, err
	}
	return token, s.bytes(n, s.slots[n].length), nil
}

// Pin keeps a published block from being evicted, by anybody, until [Store.Release].
// Pins of one block add up.
func (s *Store) Pin(namespace string, hash uint64) (token uint64, err error) {
	_, token, err = s.use(namespace, hash, pinning)
	return token, err
}

func (s *Store) use(namespace string, hash uint64, kind uint8) (n uint32, token uint64, err error) {
	ns := s.names.find(namespace)
	if ns == nil {
		return 0, 0, s.unknown(hash, kind)
	}
	sh, number := s.shardOf(ns.id, hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return 0, 0, ErrClosed
	}
	n, known := sh.byKey[key{ns.id, hash}]
	if !known || s.slots[n].state != ready {
		if kind == reading {
			sh.count.misses++
		}
		return 0, 0, ErrNotFound
	}
	if !s.admit() {
		return 0, 0, ErrLeases
	}
	if kind == reading {
		sh.count.hits++
	}
	s.hold(sh, n, kind)
	return n, sh.issue(number, kind, n, s.gens[n].Load()), nil
}

// hold counts one more user of a slot.
func (s *Store) hold(sh *shard, n uint32, kind uint8) {
	sl := &s.slots[n]
	if sl.refs++; sh.victims[sl.pool].has(n) {
		sh.victims[sl.pool].remove(n)
		sh.head(sl.pool)
	}
	if kind == pinning {
		if sl.pins++; sl.pins == 1 {
			sh.tally[sl.pool].pinned++
		}
	}
}

// Transfer says that something reads from or writes to the block of a lease or
// reservation on its own, a device for instance, and returns a token of its own for that.
// Until it is released the slot is nobody else's, even when the lease or the reservation
// has ended: release it when the transfer has really come to its end, however that is,
// and not when a deadline has passed.
func (s *Store) Transfer(token uint64) (transfer uint64, err error) {
	sh, t := s.open(token)
	if t == nil {
		return 0, ErrToken
	}
	defer sh.mu.Unlock()
	switch {
	case t.kind != reading && t.kind != writing:
		return 0, ErrToken
	case !s.admit():
		return 0, ErrLeases
	}
	n, gen := t.slot, t.gen // issue may move t
	s.hold(sh, n, moving)
	return sh.issue(uint32(token)>>tokenBits, moving, n, gen), nil
}

// Release ends a lease, a pin or a transfer.
func (s *Store) Release(token uint64) error {
	sh, t := s.open(token)
	if t == nil {
		return ErrToken
	}
	defer sh.mu.Unlock()
	if t.kind != reading && t.kind != pinning && t.kind != moving {
		return ErrToken
	}
	n, kind := t.slot, t.kind
	sl := &s.slots[n]
	if kind == pinning {
		if sl.pins--; sl.pins == 0 && sl.state == ready {
			sh.tally[sl.pool].pinned--
		}
	}
	sl.refs--
	sh.retire(token)
	s.rest(sh, n, kind != pinning)
	s.tokens.Add(-1) // last: then Close may unmap
	return nil
}

// Info describes a leased block.
type Info struct {
	Slot       uint32
	Generation uint64 // odd while the block is published
	Length     uint64
	Sum        uint32 // CRC32C, if HasSum
	HasSum     bool
	// Offset is where the block begins in [Store.File], and GenerationOffset where its
	// slot's generation lies there: 8 bytes in the machine's order.
	Offset, GenerationOffset int64
}

// Describe tells where a leased block is.
func (s *Store) Describe(token uint64) (Info, error) {
	sh, t := s.open(token)
	if t == nil {
		return Info{}, ErrToken
	}
	defer sh.mu.Unlock()
	if t.kind != reading {
		return Info{}, ErrToken
	}
	return s.describe(t), nil
}

func (s *Store) describe(t *token) Info {
	sl := &s.slots[t.slot]
	p := &s.pools[sl.pool]
	return Info{
		Slot: t.slot, Generation: t.gen, Length: sl.length, Sum: sl.sum, HasSum: sl.hasSum,
		Offset: int64(p.base + uint64(t.slot-p.first)*p.block), GenerationOffset: 8 * int64(t.slot),
	}
}

// Generation is that of a leased block's slot now. It is the lease's own, whatever
// happens meanwhile; that it can be asked for lets a sender say so.
func (s *Store) Generation(token uint64) (uint64, error) {
	sh, t := s.open(token)
	if t == nil {
		return 0, ErrToken
	}
	defer sh.mu.Unlock()
	return s.gens[t.slot].Load(), nil
}

// Verify holds a leased block against its checksum, where it has one, and its slot
// against the lease. A block that fails is taken out of the store; the lease goes on.
func (s *Store) Verify(token uint64) error {
	sh, t := s.open(token)
	if t == nil {
		return ErrToken
	}
	if t.kind != reading {
		sh.mu.Unlock()
		return ErrToken
	}
	info := s.describe(t)
	sh.mu.Unlock()

	good := s.gens[info.Slot].Load() == info.Generation
	if good && info.HasSum {
		good = Checksum(s.bytes(info.Slot, info.Length)) == info.Sum
	}
	if good {
		return nil
	}
	sh, t = s.open(token)
	if t == nil {
		return ErrToken // released meanwhile
	}
	defer sh.mu.Unlock()
	if sl := &s.slots[t.slot]; sl.state == ready {
		sh.count.corrupt++
		s.unpublish(sh, t.slot)
	}
	return ErrChecksum
}

// unknown counts a miss in a namespace that has no blocks.
func (s *Store) unknown(hash uint64, kind uint8) error {
	sh, _ := s.shardOf(0, hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return ErrClosed
	}
	if kind == reading {
		sh.count.misses++
	}
	return ErrNotFound
}
