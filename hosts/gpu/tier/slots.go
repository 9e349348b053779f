package tier

import (
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// table is which block lies in which slot. It is guarded by the tier's lock.
type table struct {
	spaces map[string]*space
	slots  []slot
	free   []int32
	// Ready slots that nobody uses are a ring through oldest, the one used longest ago
	// first; oldest is -1 when there is none.
	oldest  int32
	filling int
	leased  int // slots that are in use, and ready
}

// space is the blocks of a namespace.
type space struct {
	name string
	at   map[uint64]int32
}

type slot struct {
	space      *space
	hash       uint64
	length     uint64
	generation uint64 // odd while a block is published in it
	call       uint64 // that used it last
	refs       int32
	state      uint8
	before     int32
	after      int32
}

// states of a slot
const (
	free uint8 = iota
	filling
	ready
	dead // of a lost device
)

func (t *table) init(n int) {
	t.spaces, t.slots, t.free, t.oldest = make(map[string]*space), make([]slot, n), make([]int32, n), -1
	for i := range t.free {
		t.free[i] = int32(n - 1 - i) // the lowest is taken first
	}
}

// find is the slot of a block, or -1.
func (t *table) find(namespace string, hash uint64) int32 {
	if s := t.spaces[namespace]; s != nil {
		if i, ok := s.at[hash]; ok {
			return i
		}
	}
	return -1
}

// take gives a block a slot to be filled: a free one, or that of the block that was used
// longest ago, unless this very call has used it. It is -1 when there is none.
func (t *table) take(namespace string, hash, length, call uint64) (i int32, evicted bool) {
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if i = t.oldest; i < 0 || t.slots[i].call == call {
			return -1, false
		}
		t.unlink(i)
		t.forget(i)
		t.slots[i].generation++ // before it is written to
		evicted = true
	}
	sp := t.spaces[namespace]
	if sp == nil {
		sp = &space{strings.Clone(namespace), make(map[uint64]int32)}
		t.spaces[sp.name] = sp
	}
	sp.at[hash] = i
	s := &t.slots[i]
	s.space, s.hash, s.length, s.call, s.state, s.refs = sp, hash, length, call, filling, 1
	t.filling++
	return i, evicted
}

// forget takes a slot's block out of the index.
func (t *table) forget(i int32) {
	s := &t.slots[i]
	delete(s.space.at, s.hash)
	if len(s.space.at) == 0 {
		delete(t.spaces, s.space.name)
	}
	s.space = nil
}

// evict lets go of a block that nobody uses; false when there is none.
func (t *table) evict(sp *space, hash uint64) bool {
	i, ok := sp.at[hash]
	s := &t.slots[i]
	if !ok || s.state != ready || s.refs > 0 {
		return false
	}
	t.unlink(i)
	t.forget(i)
	s.generation++
	s.state = free
	t.free = append(t.free, i)
	return true
}

// filled publishes a slot's block.
func (t *table) filled(i int32) {
	s := &t.slots[i]
	s.state, s.refs = ready, 0
	s.generation++
	t.filling--
	t.link(i)
}

// abandon gives up a slot that was to be filled. One of a lost device is never used again.
func (t *table) abandon(i int32, lost bool) {
	t.forget(i)
	t.filling--
	s := &t.slots[i]
	if s.refs = 0; lost {
		s.state = dead
		return
	}
	s.state = free
	t.free = append(t.free, i)
}

// hold keeps a ready slot from being evicted.
func (t *table) hold(i int32) {
	s := &t.slots[i]
	if s.refs++; s.refs == 1 {
		t.unlink(i)
		t.leased++
	}
}

func (t *table) drop(i int32) {
	s := &t.slots[i]
	if s.refs--; s.refs == 0 {
		t.link(i)
		t.leased--
	}
}

// used makes a slot the one that was used last.
func (t *table) used(i int32, call uint64) {
	s := &t.slots[i]
	if s.call = call; s.state == ready && s.refs == 0 {
		t.unlink(i)
		t.link(i)
	}
}

// link puts a slot at the ring's end.
func (t *table) link(i int32) {
	s := &t.slots[i]
	if t.oldest < 0 {
		s.before, s.after, t.oldest = i, i, i
		return
	}
	first := &t.slots[t.oldest]
	s.before, s.after = first.before, t.oldest
	t.slots[s.before].after, first.before = i, i
}

func (t *table) unlink(i int32) {
	s := &t.slots[i]
	if s.after == i {
		t.oldest = -1
		return
	}
	t.slots[s.before].after, t.slots[s.after].before = s.after, s.before
	if t.oldest == i {
		t.oldest = s.after
	}
}

// residency tells whether a block is on the device.
func (t *table) residency(sp *space, hash uint64) abi.Residency {
	if sp != nil {
		if i, ok := sp.at[hash]; ok {
			if t.slots[i].state == ready {
				return abi.ResidencyDevice
			}
			return abi.ResidencyFilling
		}
	}
	return abi.ResidencyAbsent
}
