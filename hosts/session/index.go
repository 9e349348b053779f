package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Bounds that are not the operator's to choose.
const (
	MaxFrontiers = 64 // of one session over all workers; the oldest goes
	BytesPerNode = 64 // MaxNodes times this bounds the memory of nodes and hash table
)

// Config configures an Index. The zero value is usable.
type Config struct {
	Kind        abi.HashKind  // of the block hashes; default Engine
	MaxSessions int           // default 16,384; the least recently used goes
	MaxNodes    int           // default 2,097,152
	Grace       time.Duration // how long a node that nobody refers to is kept; default 5 s, below 0 not at all
	Now         func() int64  // ns, monotonic; default the machine's
}

func (c Config) withDefaults() Config {
	if c.Kind == abi.HashKindAbsent {
		c.Kind = abi.HashKindEngine
	}
	if c.MaxSessions <= 0 {
		c.MaxSessions = 16_384
	}
	if c.MaxNodes <= 0 {
		c.MaxNodes = 2 << 20
	}
	switch {
	case c.Grace == 0:
		c.Grace = 5 * time.Second
	case c.Grace < 0:
		c.Grace = 0
	}
	if c.Now == nil {
		start := time.Now()
		c.Now = func() int64 { return int64(time.Since(start)) }
	}
	return c
}

// What an event or a query may come to. An error about a block is a *ChainError.
var (
	ErrOff               = errors.New("the lineage index is off")
	ErrUnknownSession    = errors.New("the session is unknown")
	ErrUnknownAnchor     = errors.New("the anchor block is unknown")
	ErrUnknownParent     = errors.New("the parent block is unknown")
	ErrConflictingParent = errors.New("the block has another parent")
	ErrCyclicParent      = errors.New("the block would be its own ancestor")
	ErrHashKind          = errors.New("the hashes are not of the kind that the index holds")
	ErrOtherTenant       = errors.New("the session belongs to another tenant")
	ErrTooDeep           = errors.New("the session's paths are in too many pieces to be read")
	ErrFull              = errors.New("the index is full")
	ErrInvalid           = errors.New("the event lacks a worker or a session, or its session or tenant is too long")
)

// ChainError says which block broke a rule, and wraps the rule's error.
type ChainError struct {
	Rule  error
	Block uint64
}

func (e *ChainError) Error() string { return fmt.Sprintf("block %016x: %v", e.Block, e.Rule) }
func (e *ChainError) Unwrap() error { return e.Rule }

// Index is the lineage of the sessions of one routing partition. Queries take no lock
// that a writer holds for longer than one map operation, and see what was committed when
// they began; updates are made one at a time, in the order of their calls. A nil Index
// is one that is switched off.
type Index struct {
	cfg      Config
	steps    int // that a query may take
	sessions sessions
	table    table
	dir      directory
	counts   counters

	mu      sync.Mutex // of writers; all below is theirs
	workers map[hint.Worker]*binding
	lru     session // head of a ring: next is the most recently used
	queue   queue
	scratch scratch
	nodes   int
	bytes   int // of segments and their blocks
}

// scratch is what a writer needs for the length of one update.
type scratch struct {
	refs  []ref
	seen  []uint64 // a set of hashes, open addressing
	zero  bool     // the hash that is spelled 0 is in it
	sum   uint64   // what warm came to, so that it is not optimized away
	moved []*frontier
	stack []*segment
}

// New makes an index.
func New(cfg Config) *Index {
	x := &Index{cfg: cfg.withDefaults(), steps: pathSteps, workers: map[hint.Worker]*binding{}}
	x.table.seed = rand.Uint64()
	x.sessions.init()
	x.lru.next, x.lru.prev = &x.lru, &x.lru
	return x
}

// Kind is the kind of the hashes.
func (x *Index) Kind() abi.HashKind { return x.cfg.Kind }

// Stats are totals since the start, and the present size.
type Stats struct {
	Sessions, Nodes, Frontiers, Workers uint64
	Bytes                               uint64 // of nodes and their hash table
	Events                              uint64
	Moved                               uint64 // events that moved a frontier

	OtherTier, OtherGroup, NoSession uint64 // events that were passed over
	WrongKind, Invalid, OtherTenant  uint64
	UnknownParent, ConflictingParent uint64
	CyclicParent, Full               uint64
	EvictedSessions, LostFrontiers   uint64 // by the caps
}

type counters struct {
	sessions, nodes, frontiers, workers, bytes atomic.Uint64
	events, moved                              atomic.Uint64
	otherTier, otherGroup, noSession           atomic.Uint64
	wrongKind, invalid, otherTenant            atomic.Uint64
	unknown, conflicting, cyclic, full         atomic.Uint64
	evicted, lost                              atomic.Uint64
}

// Stats reads the counters, each by itself.
func (x *Index) Stats() Stats {
	c := &x.counts
	return Stats{
		Sessions: c.sessions.Load(), Nodes: c.nodes.Load(), Frontiers: c.frontiers.Load(), Workers: c.workers.Load(), Bytes: c.bytes.Load(),
		Events: c.events.Load(), Moved: c.moved.Load(),
		OtherTier: c.otherTier.Load(), OtherGroup: c.otherGroup.Load(), NoSession: c.noSession.Load(),
		WrongKind: c.wrongKind.Load(), Invalid: c.invalid.Load(), OtherTenant: c.otherTenant.Load(),
		UnknownParent: c.unknown.Load(), ConflictingParent: c.conflicting.Load(), CyclicParent: c.cyclic.Load(), Full: c.full.Load(),
		EvictedSessions: c.evicted.Load(), LostFrontiers: c.lost.Load(),
	}
}

// publish shows the sizes to readers of Stats.
func (x *Index) publish() {
	x.counts.nodes.Store(uint64(x.nodes))
	x.counts.workers.Store(uint64(len(x.workers)))
	x.counts.bytes.Store(uint64(x.memory()))
}

// memory is what nodes and hash table take.
func (x *Index) memory() int { return x.bytes + x.table.bytes + x.dir.bytes() }
