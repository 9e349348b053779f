package store

import (
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
)

// Store keeps blocks. Any number of goroutines may use it.
type Store struct {
	cfg   Config
	clock clock
	slab  *slab
	unpin func() error

	pools  []pool
	slots  []slot // of all pools, one after the other
	gens   []atomic.Uint64
	shards []shard
	seed   uint64

	names namespaces

	tick   atomic.Uint64 // of uses
	tokens atomic.Int64  // that are out

	closing sync.Mutex
	closed  bool
}

// pool is the slots of one size. A slot belongs to the pool while it is free, and to the
// shard of its block otherwise.
type pool struct {
	block uint64 // bytes of a slot
	first uint32 // slot
	count uint32
	base  uint64 // offset of the first slot in the slab

	mu   sync.Mutex
	free []uint32
}

// states of a slot.
const (
	free    uint8 = iota
	filling       // reserved; nobody sees the block
	ready         // published
	dead          // of a block that is gone, and still in use
)

// slot is a slot's bookkeeping, guarded by its shard's lock unless it is free.
type slot struct {
	ns     *namespace
	hash   uint64
	tick   uint64 // of the last use
	length uint64
	sum    uint32
	last   uint64 // namespace whose bytes lie here; 0: none
	refs   int32  // leases, pins and transfers
	pins   int32  // of them
	pool   uint8
	state  uint8
	prio   uint8
	hasSum bool
	claims *claims
	done   chan struct{} // closed when it is filled or given up; nil until somebody waits
}

// New takes the memory and makes an empty store.
func New(cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, clock: clock{now: cfg.Now}, seed: rand.Uint64()}
	s.pools = make([]pool, len(cfg.BlockBytes))
	n := uint32(0)
	for i, block := range cfg.BlockBytes {
		p := &s.pools[i]
		p.block, p.first = block, n
		p.count = uint32(cfg.Capacity / uint64(len(cfg.BlockBytes)) / block)
		n += p.count
	}
	end := (8*uint64(n) + pageSize - 1) &^ (pageSize - 1) // the generations
	for i := range s.pools {
		s.pools[i].base = end
		end += s.pools[i].block * uint64(s.pools[i].count)
	}
	if end > math.MaxInt {
		return nil, &CapacityError{Capacity: cfg.Capacity, BlockBytes: cfg.BlockBytes[0], Pools: len(s.pools)}
	}
	if s.slab, err = cfg.memory(int(end), cfg.HugePages); err != nil {
		return nil, err
	}
	if cfg.Pin != nil {
		if s.unpin, err = cfg.Pin(s.slab.mem); err != nil {
			_ = s.slab.free() // the first error is the one to tell
			return nil, err
		}
	}
	s.gens = s.slab.generations(int(n))
	s.prepare(n)
	return s, nil
}

// prepare makes the bookkeeping of n slots.
func (s *Store) prepare(n uint32) {
	s.slots = make([]slot, n)
	s.names.init(s.cfg.MaxNamespaces)
	for i := range s.pools {
		p := &s.pools[i]
		p.free = make([]uint32, p.count)
		for j := range p.free {
			p.free[j] = p.first + p.count - 1 - uint32(j) // the lowest is taken first
			s.slots[p.first+uint32(j)].pool = uint8(i)
		}
	}
	shards := 1
	for shards < maxShards && n >= slotsPerShard*uint32(2*shards) {
		shards *= 2
	}
	if s.cfg.shards > 0 {
		shards = s.cfg.shards
	}
	s.shards = make([]shard, shards)
	victims, due := make([]uint32, n), make([]uint32, n)
	for i := range s.shards {
		s.shards[i].init(len(s.pools), victims, due)
	}
}

// shardOf is the shard of a block, and its number.
func (s *Store) shardOf(ns, hash uint64) (*shard, uint32) {
	i := s.number(ns, hash)
	return &s.shards[i], i
}

// number mixes with a seed that no sender knows.
func (s *Store) number(ns, hash uint64) uint32 {
	h := (hash ^ s.seed ^ ns<<32) * 0x9e3779b97f4a7c15
	return uint32(h>>56) & uint32(len(s.shards)-1)
}

// bytes is the memory of a slot.
func (s *Store) bytes(n uint32, length uint64) []byte {
	p := &s.pools[s.slots[n].pool]
	at := p.base + uint64(n-p.first)*p.block
	return s.slab.mem[at : at+length : at+length]
}

// poolFor is the pool with the smallest slots that hold size bytes, or -1.
func (s *Store) poolFor(size int) int {
	for i := range s.pools {
		if uint64(size) <= s.pools[i].block {
			return i
		}
	}
	return -1
}

func (p *pool) take() (uint32, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return 0, false
	}
	n := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return n, true
}

func (p *pool) give(n uint32) {
	p.mu.Lock()
	p.free = append(p.free, n)
	p.mu.Unlock()
}

// Backing says what the memory is: "memfd", "memfd, 2 MiB pages", "anonymous memory" or
// "heap".
func (s *Store) Backing() string { return s.slab.backing }

// File is the slab as a file, which a process on this machine can map to read. Whoever has
// it can read the blocks of every namespace, and for ever: give it only to whom that may
// be shown. The store keeps the file; it is closed with the store.
func (s *Store) File() (*os.File, error) {
	if s.slab.file == nil {
		return nil, ErrNoFile
	}
	return s.slab.file, nil
}

// Close gives the memory back. It refuses with ErrBusy while tokens are out, whose owners
// or devices may be reading or writing it; what is new is refused from the first call on.
func (s *Store) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.closed = true
		sh.mu.Unlock()
	}
	if s.tokens.Load() != 0 {
		return ErrBusy
	}
	if s.unpin != nil {
		if err := s.unpin(); err != nil {
			return err
		}
	}
	s.closed = true
	return s.slab.free()
}
