package store

import (
	"sync"
	"sync/atomic"
)

// key is a block.
type key struct {
	ns   uint64
	hash uint64
}

// shard is the blocks of a part of all hashes. Its lock is held for a few steps, never
// while bytes are copied, summed or cleared, and never together with another shard's.
type shard struct {
	mu     sync.Mutex
	closed bool
	byKey  map[key]uint32 // filling and ready ones

	victims []queue         // by pool: ready slots that nobody uses, by priority and last use
	heads   []atomic.Uint64 // by pool: the least key of victims
	due     queue           // slots by when their priority changes of itself
	nextDue atomic.Uint64

	tokens []token
	unused int32 // first free token, -1: none

	tally []tally // by pool
	count counts
	_     [64]byte
}

// tally is how many slots are in a state.
type tally struct{ filling, ready, dead, pinned int }

// counts are totals.
type counts struct {
	hits, misses, coalesced, exists  uint64
	commits, aborts, evicted, yields uint64
	corrupt, claims, full            uint64
}

// token is a lease, a reservation, a pin or a transfer in flight.
type token struct {
	nonce uint32 // of its present use
	kind  uint8
	slot  uint32
	gen   uint64
	next  int32 // when free
}

// kinds of tokens.
const (
	unused    uint8 = iota
	reading         // a lease
	writing         // a reservation
	finishing       // a reservation that is being committed
	pinning
	moving // a transfer in flight
)

func (sh *shard) init(pools int, victims, due []uint32) {
	sh.byKey = map[key]uint32{}
	sh.victims = make([]queue, pools)
	sh.heads = make([]atomic.Uint64, pools)
	sh.tally = make([]tally, pools)
	for i := range sh.victims {
		sh.victims[i].where = victims
		sh.heads[i].Store(^uint64(0))
	}
	sh.due.where = due
	sh.nextDue.Store(^uint64(0))
	sh.unused = -1
}

// issue makes a token. The caller has counted it against the store's limit.
func (sh *shard) issue(number uint32, kind uint8, slot uint32, gen uint64) uint64 {
	i := sh.unused
	if i < 0 {
		i = int32(len(sh.tokens))
		sh.tokens = append(sh.tokens, token{})
	} else {
		sh.unused = sh.tokens[i].next
	}
	t := &sh.tokens[i]
	if t.nonce++; t.nonce == 0 {
		t.nonce = 1
	}
	t.kind, t.slot, t.gen = kind, slot, gen
	return uint64(t.nonce)<<32 | uint64(number)<<tokenBits | uint64(i)
}

// tokenBits is how many bits of a token number it within its shard. Above are the
// shard, and from bit 32 on the nonce.
const tokenBits = 27

// maxTokens is how many tokens may be out at once.
const maxTokens = 1 << tokenBits

// retire ends a token.
func (sh *shard) retire(tok uint64) {
	i := int32(tok & (maxTokens - 1))
	t := &sh.tokens[i]
	t.kind, t.next = unused, sh.unused
	sh.unused = i
}

// open locks the shard of a token and returns the token, or nil when it has ended.
func (s *Store) open(tok uint64) (*shard, *token) {
	number, i := uint32(tok)>>tokenBits, tok&(maxTokens-1)
	if number >= uint32(len(s.shards)) {
		return nil, nil
	}
	sh := &s.shards[number]
	sh.mu.Lock()
	if i < uint64(len(sh.tokens)) {
		if t := &sh.tokens[i]; t.kind != unused && t.nonce == uint32(tok>>32) {
			return sh, t
		}
	}
	sh.mu.Unlock()
	return nil, nil
}

// admit counts a token against the limit.
func (s *Store) admit() bool {
	if s.tokens.Add(1) > int64(s.cfg.MaxLeases) {
		s.tokens.Add(-1)
		return false
	}
	return true
}

// rest puts a slot that nobody uses any more where it belongs. last tells that it was
// used just now.
func (s *Store) rest(sh *shard, n uint32, last bool) {
	sl := &s.slots[n]
	if sl.refs > 0 {
		return
	}
	switch sl.state {
	case ready:
		if last {
			sl.tick = s.tick.Add(1)
		}
		sh.victims[sl.pool].set(n, rank(sl))
		sh.head(sl.pool)
	case dead:
		sh.tally[sl.pool].dead--
		s.release(n)
	}
}

// head publishes the least key of a pool's victims.
func (sh *shard) head(pool uint8) { sh.heads[pool].Store(sh.victims[pool].least()) }

// rank orders victims: the lowest priority, then the longest unused.
func rank(sl *slot) uint64 { return uint64(sl.prio)<<56 | sl.tick&(1<<56-1) }

// unpublish takes a block out of the index. The slot is dead, and goes on only when
// nobody uses it.
func (s *Store) unpublish(sh *shard, n uint32) {
	sl := &s.slots[n]
	delete(sh.byKey, key{sl.ns.id, sl.hash})
	t := &sh.tally[sl.pool]
	if sl.state == ready {
		t.ready--
		if sl.pins > 0 {
			t.pinned--
		}
	} else {
		t.filling--
	}
	if sh.victims[sl.pool].has(n) {
		sh.victims[sl.pool].remove(n)
		sh.head(sl.pool)
	}
	s.unclaim(sh, n)
	if sl.done != nil {
		close(sl.done)
		sl.done = nil
	}
	sl.state = dead
	t.dead++
}

// vacate takes a dead slot that nobody uses out of its shard. From here on it may be
// written to.
func (s *Store) vacate(n uint32) {
	sl := &s.slots[n]
	if g := &s.gens[n]; g.Load()&1 == 1 {
		g.Add(1)
	}
	sl.ns.blocks.Add(-1)
	sl.ns, sl.state, sl.hasSum = nil, free, false
}

// release vacates a dead slot that nobody uses and gives it back to its pool.
func (s *Store) release(n uint32) {
	s.vacate(n)
	s.pools[s.slots[n].pool].give(n)
}
