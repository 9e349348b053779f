package store

// Stats are a store's gauges and totals. They are read shard by shard, while others go on.
type Stats struct {
	Capacity   uint64 // bytes of all slots
	Backing    string
	Namespaces int // that have blocks
	Tokens     int // leases, reservations, pins and transfers
	Claims     int
	Pools      []PoolStats

	Hits, Misses     uint64 // of Acquire
	Committed        uint64
	Aborted          uint64 // reservations that were given up
	Coalesced        uint64 // second writers that were told to wait
	Duplicates       uint64 // writers of blocks that were there
	Displaced        uint64 // blocks that yielded to others
	Evicted          uint64 // blocks that were evicted because somebody asked
	ChecksumFailures uint64
	Full             uint64 // reservations that found no slot
}

// PoolStats are the slots of one size.
type PoolStats struct {
	BlockBytes  uint64
	Slots, Free int
	Published   int
	Filling     int
	Pinned      int // of the published ones
	Leased      int // of the published ones, without those that are pinned
	Waiting     int // of a block that is gone, until their last lease or transfer has ended
}

// Stats reads all counters.
func (s *Store) Stats() Stats {
	st := Stats{Backing: s.slab.backing, Namespaces: s.names.count(), Tokens: int(s.tokens.Load()), Pools: make([]PoolStats, len(s.pools))}
	for i := range s.pools {
		p := &s.pools[i]
		st.Capacity += p.block * uint64(p.count)
		p.mu.Lock()
		st.Pools[i] = PoolStats{BlockBytes: p.block, Slots: int(p.count), Free: len(p.free)}
		p.mu.Unlock()
	}
	claims := uint64(0)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		c := sh.count
		for j, t := range sh.tally {
			p := &st.Pools[j]
			p.Published += t.ready
			p.Filling += t.filling
			p.Pinned += t.pinned
			p.Leased += t.ready - t.pinned - len(sh.victims[j].items)
			p.Waiting += t.dead
		}
		sh.mu.Unlock()
		claims += c.claims
		st.Hits += c.hits
		st.Misses += c.misses
		st.Committed += c.commits
		st.Aborted += c.aborts
		st.Coalesced += c.coalesced
		st.Duplicates += c.exists
		st.Displaced += c.yields
		st.Evicted += c.evicted
		st.ChecksumFailures += c.corrupt
		st.Full += c.full
	}
	st.Claims = int(claims)
	return st
}

// Sweep ends the claims whose time is over. They do not count before that either; a
// store that has no reason to evict keeps them in its counters until it is called.
func (s *Store) Sweep() { s.expire() }
