package session

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A ref is where a block stands: a segment of the directory, and the place in it.
type ref uint64

func makeRef(seg, off uint32) ref { return ref(seg)<<32 | ref(off) }
func (r ref) seg() uint32         { return uint32(r >> 32) }
func (r ref) off() uint32         { return uint32(r) }

// noRef stands for a block that is not in the table.
const noRef = ^ref(0)

const (
	tableShards = 256 // so that growing moves few blocks at a time
	minSlots    = 8
)

// What a slot's ref says when it holds no block; a ref is kept with slotRef added.
const (
	slotFree = 0
	slotGone = 1 // held a block: a probe goes on
	slotRef  = 2
)

// table finds blocks by hash: open addressing in shards. One writer changes it; readers
// take no lock, and verify what they find against the segment, since a slot's two words
// are not read at one moment.
type table struct {
	seed   uint64
	bytes  int
	shards [tableShards]shard
}

type shard struct {
	slots atomic.Pointer[[]slot]
	live  int // slots that hold a block
	used  int // and those that held one
}

type slot struct{ hash, ref atomic.Uint64 }

const slotBytes = int(unsafe.Sizeof(slot{}))

// place spreads a hash, since senders choose hashes: the shard, and bits for the slot.
func (t *table) place(hash uint64) (*shard, uint64) {
	hi, lo := bits.Mul64(hash^t.seed, 0x9e3779b97f4a7c15)
	mixed := (hi ^ lo) * 0xff51afd7ed558ccd
	return &t.shards[mixed>>56], mixed << 8
}

// probe begins at the slot that the bits choose.
func probe(slots []slot, at uint64) int {
	hi, _ := bits.Mul64(at, uint64(len(slots)))
	return int(hi)
}

// find returns where a block stands, noRef if it is not there. Only the writer may rely
// on the answer as it is.
func (t *table) find(hash uint64) ref {
	s, at := t.place(hash)
	p := s.slots.Load()
	if p == nil {
		return noRef
	}
	slots := *p
	for i := probe(slots, at); ; {
		switch r := slots[i].ref.Load(); {
		case r == slotFree:
			return noRef
		case r != slotGone && slots[i].hash.Load() == hash:
			return ref(r - slotRef)
		}
		if i++; i == len(slots) {
			i = 0
		}
	}
}

// warm touches the slots of hashes that are looked for next, so that the memory's delays
// pass side by side and not one after the other.
func (t *table) warm(hashes []uint64) (sum uint64) {
	for _, h := range hashes {
		s, at := t.place(h)
		if p := s.slots.Load(); p != nil {
			sum += (*p)[probe(*p, at)].ref.Load()
		}
	}
	return sum
}

// insert adds a block that is not there.
func (t *table) insert(hash uint64, r ref) {
	s, at := t.place(hash)
	p := s.slots.Load()
	if p == nil || (s.used+1)*8 > len(*p)*7 {
		p = t.grow(s, p)
	}
	slots := *p
	i := probe(slots, at)
	for slots[i].ref.Load() >= slotRef {
		if i++; i == len(slots) {
			i = 0
		}
	}
	if slots[i].ref.Load() == slotFree {
		s.used++
	}
	s.live++
	slots[i].hash.Store(hash)
	slots[i].ref.Store(uint64(r) + slotRef)
}

// grow moves a shard to a new array, in which two thirds are used.
func (t *table) grow(s *shard, old *[]slot) *[]slot {
	slots := make([]slot, max(minSlots, s.live+s.live/2+2))
	t.bytes += len(slots) * slotBytes
	if old != nil {
		t.bytes -= len(*old) * slotBytes
		for j := range *old {
			r := (*old)[j].ref.Load()
			if r < slotRef {
				continue
			}
			hash := (*old)[j].hash.Load()
			_, at := t.place(hash)
			i := probe(slots, at)
			for slots[i].ref.Load() != slotFree {
				if i++; i == len(slots) {
					i = 0
				}
			}
			slots[i].hash.Store(hash)
			slots[i].ref.Store(r)
		}
	}
	s.used = s.live
	s.slots.Store(&slots)
	return &slots
}

// remove drops a block that is there.
func (t *table) remove(hash uint64) {
	s, at := t.place(hash)
	p := s.slots.Load()
	slots := *p
	i := probe(slots, at)
	for slots[i].ref.Load() < slotRef || slots[i].hash.Load() != hash {
		if i++; i == len(slots) {
			i = 0
		}
	}
	s.live--
	next := i + 1
	if next == len(slots) {
		next = 0
	}
	if slots[next].ref.Load() == slotFree {
		slots[i].ref.Store(slotFree) // no probe goes on from here
		s.used--
	} else {
		slots[i].ref.Store(slotGone)
	}
	if len(slots) > 4*minSlots && s.live*8 < len(slots) {
		t.grow(s, p) // smaller, in truth
	}
}

// directory numbers the segments, so that a slot needs no pointer and the collector has
// nothing to look at in the table.
type directory struct {
	segs atomic.Pointer[[]atomic.Pointer[segment]]
	next uint32
	free []uint32
}

func (d *directory) at(id uint32) *segment {
	if p := d.segs.Load(); p != nil && int(id) < len(*p) {
		return (*p)[id].Load()
	}
	return nil
}

func (d *directory) add(s *segment) {
	if n := len(d.free); n > 0 {
		s.id, d.free = d.free[n-1], d.free[:n-1]
	} else {
		s.id = d.next
		d.next++
	}
	p := d.segs.Load()
	if p == nil || int(s.id) >= len(*p) {
		var size int
		if p != nil {
			size = len(*p)
		}
		grown := make([]atomic.Pointer[segment], max(64, size+size/2))
		for i := range size {
			grown[i].Store((*p)[i].Load())
		}
		d.segs.Store(&grown)
		p = &grown
	}
	(*p)[s.id].Store(s)
}

func (d *directory) drop(s *segment) {
	(*d.segs.Load())[s.id].Store(nil)
	d.free = append(d.free, s.id)
}

func (d *directory) bytes() int {
	if p := d.segs.Load(); p != nil {
		return 8*len(*p) + 4*cap(d.free)
	}
	return 0
}
