package fetch

import (
	"hash/maphash"
	"math/bits"
	"sync"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

type state uint8

const (
	live state = iota
	failed
	finished // a tombstone from here on
	aborted
	discarded
)

// An entry is what the store knows of one request: a hint, or that it has ended. There
// are more ends than a cache holds, and each comes and goes once for a request: so they
// take 64 bytes each, and keep of the identity that much of its hashes, under two
// secret seeds, that no two are taken for one.
type entry struct {
	hash  uint64 // of the identity
	check uint64 // its second hash; of an end only
	since int64  // first submit, or the end of the request
	prev  *entry // in its list, which is in the order of since
	next  *entry // in its list, or on the free list
	state state
	*body // nil from the end on
}

// body is the rest of a hint.
type body struct {
	key      []byte // engine, then request id; kept for reuse with the body
	engine   int    // length of the engine in key
	dpRank   uint32
	att      uint32
	leg      abi.Leg
	cause    abi.Reason // why it is failed
	noRetain bool
	count    uint32 // hashes, duplicates counted
	distinct uint32 // once set is there
	source   Source
	hashes   *buf[byte]   // nil unless live
	set      *buf[uint32] // nil before the first query
	free     *body        // on the free list
}

func (b *body) is(id *hint.Identity) bool {
	return b.dpRank == id.DPRank && b.att == id.Attempt && b.leg == id.Leg &&
		b.engine == len(id.Engine) && len(b.key) == b.engine+len(id.RequestID) &&
		string(b.key[:b.engine]) == id.Engine && string(b.key[b.engine:]) == id.RequestID
}

func (b *body) setKey(id *hint.Identity) {
	b.engine, b.dpRank, b.att, b.leg = len(id.Engine), id.DPRank, id.Attempt, id.Leg
	b.key = append(append(b.key[:0], id.Engine...), id.RequestID...)
}

// hasher is maphash.Comparable of an identity in a third of its time.
type hasher struct {
	seed maphash.Seed
	mul  uint64 // odd, and secret
}

func (h hasher) of(id *hint.Identity) uint64 {
	x := maphash.String(h.seed, id.RequestID)
	if id.Engine != "" {
		x ^= bits.RotateLeft64(maphash.String(h.seed, id.Engine), 32)
	}
	hi, lo := bits.Mul64(x^(uint64(id.DPRank)<<32|uint64(id.Attempt)), h.mul)
	return hi ^ lo ^ uint64(id.Leg)*0x9e3779b97f4a7c15 // over all bits
}

// list is a doubly linked list of entries, oldest first. Lifetimes are fixed at the
// start and equal for all entries of a list, so the head is what expires next.
type list struct {
	head, tail *entry
	oldest     int64 // since of the head, if there is one: the head itself may be in no cache
	len        int
}

func (l *list) push(e *entry) {
	e.prev, e.next = l.tail, nil
	if l.tail == nil {
		l.head, l.oldest = e, e.since
	} else {
		l.tail.next = e
	}
	l.tail = e
	l.len++
}

func (l *list) remove(e *entry) {
	if e.prev == nil {
		if l.head = e.next; l.head != nil {
			l.oldest = l.head.since
		}
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// slot is a place of the hash table; the hash beside the pointer spares most probes
// a cache miss.
type slot struct {
	hash uint64
	e    *entry
}

// A shard is a part of the store under one lock: a table with linear probing, the
// entries in the order of their age, and the free lists. Processors take turns with it,
// and what one has written costs the next a miss for each cache line: so what every hint
// writes lies in the first line, and what new ones write in the next three.
type shard struct {
	mu       sync.Mutex
	used     int
	table    []slot // a power of two
	last     int64  // the latest time seen
	replaced uint64 // counts
	prepared int    // bytes of hints between Prepare and Commit or Drop

	hints list
	tombs list

	stats   counters
	entries int64 // in hand of the store's budgets
	bytes   int64

	free    *entry
	freeLen int
	bodies  *body // free
	bodyLen int
	pending *Pending // free
	pendLen int
	second  hasher

	hashes pool[byte]
	sets   pool[uint32]
	_      [32]byte // shards lie side by side
}

// tick takes a reading of the clock, so that time in this shard never runs backwards.
func (sh *shard) tick(now int64) int64 {
	sh.last = max(sh.last, now)
	return sh.last
}

func (sh *shard) find(hash uint64, id *hint.Identity) *entry {
	if sh.used == 0 {
		return nil
	}
	mask := uint64(len(sh.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &sh.table[i]
		if s.e == nil {
			return nil
		}
		if s.hash == hash && sh.is(s.e, id) {
			return s.e
		}
	}
}

func (sh *shard) is(e *entry, id *hint.Identity) bool {
	if e.body != nil {
		return e.body.is(id)
	}
	return e.check == sh.second.of(id)
}

// insert adds an entry that is not there. The table grows at three quarters and
// never shrinks: the caps bound it.
func (sh *shard) insert(e *entry) {
	if 4*(sh.used+1) > 3*len(sh.table) {
		old := sh.table
		sh.table = make([]slot, max(16, 2*len(old)))
		for _, s := range old {
			if s.e != nil {
				sh.place(s)
			}
		}
	}
	sh.place(slot{e.hash, e})
	sh.used++
}

func (sh *shard) place(s slot) {
	mask := uint64(len(sh.table) - 1)
	i := s.hash & mask
	for sh.table[i].e != nil {
		i = (i + 1) & mask
	}
	sh.table[i] = s
}

// remove takes an entry out of the table and closes the gap: every entry of the run
// behind it that may move up does.
func (sh *shard) remove(e *entry) {
	mask := uint64(len(sh.table) - 1)
	gap := e.hash & mask
	for sh.table[gap].e != e {
		if sh.table[gap].e == nil {
			panic(&Fault{"an entry is missing from its table"})
		}
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; sh.table[i].e != nil; i = (i + 1) & mask {
		if home := sh.table[i].hash & mask; (i-home)&mask >= (i-gap)&mask {
			sh.table[gap] = sh.table[i]
			gap = i
		}
	}
	sh.table[gap] = slot{}
	sh.used--
}

func (sh *shard) takeEntry() *entry {
	e := sh.free
	if e == nil {
		return new(entry)
	}
	sh.free, e.next = e.next, nil
	sh.freeLen--
	return e
}

func (sh *shard) takeBody() *body {
	b := sh.bodies
	if b == nil {
		return &body{key: make([]byte, 0, 64)}
	}
	sh.bodies, b.free = b.free, nil
	sh.bodyLen--
	return b
}

// putBody takes the body of a hint whose buffers are released.
func (sh *shard) putBody(e *entry) {
	b := e.body
	e.body, b.source = nil, Source{}
	if sh.bodyLen >= freeEntries {
		return
	}
	b.free, sh.bodies = sh.bodies, b
	sh.bodyLen++
}

// putEntry takes an entry without a body.
func (sh *shard) putEntry(e *entry) {
	if sh.freeLen >= freeEntries {
		return
	}
	e.next, sh.free = sh.free, e
	sh.freeLen++
}
