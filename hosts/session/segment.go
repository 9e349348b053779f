package session

import (
	"sync/atomic"
	"unsafe"
)

// segment is a run of blocks that follow each other, the parent first. A path from the
// root is a few segments, so it is read at the speed of a copy. What was written to a
// place of a run is never written again: a segment that was cut takes no further block,
// and a branch begins a segment of its own. So readers need no lock.
type segment struct {
	parent atomic.Pointer[segment] // of the first block; set at most once
	above  uint32                  // the parent's place in its segment; set before parent
	id     uint32                  // in the directory
	n      atomic.Uint32           // blocks
	cut    bool                    // takes no more blocks
	queued bool
	run    atomic.Pointer[run]

	// Segments that branch off from here, and frontiers that stand here: lists that
	// readers may follow while the writer changes them.
	kids  atomic.Pointer[segment]
	next  atomic.Pointer[segment]
	prev  *segment
	first atomic.Pointer[frontier]
}

// run holds the blocks; its length is the room for them.
type run struct {
	hash []uint64
	pins []pin
}

// pin counts what stands on a block.
type pin struct {
	fronts atomic.Uint32 // frontiers
	kids   atomic.Uint32 // segments that branch off
}

const (
	segmentBytes = int(unsafe.Sizeof(segment{}) + unsafe.Sizeof(run{}))
	blockBytes   = 8 + int(unsafe.Sizeof(pin{}))
)

// position is a block in the tree; a nil segment is none.
type position struct {
	seg *segment
	off uint32
}

// up is where the first block of p's segment hangs.
func (p position) up() position {
	if parent := p.seg.parent.Load(); parent != nil {
		return position{parent, p.seg.above}
	}
	return position{}
}

// parent is the block before p.
func (p position) parent() position {
	if p.off > 0 {
		return position{p.seg, p.off - 1}
	}
	return p.up()
}

// hash is for the writer: a reader may hold a place that was cut off since.
func (p position) hash() uint64 { return p.seg.run.Load().hash[p.off] }

func (p position) pin() *pin { return &p.seg.run.Load().pins[p.off] }

// holds tells whether p is q or an ancestor of it.
func (p position) holds(q position) bool {
	_, ok := q.since(p)
	return ok
}

// since is how many blocks lie from q to p, both included. It is false when q is not on
// the path to p. It does not depend on what hangs above q, which may be grafted meanwhile.
func (p position) since(q position) (n int, ok bool) {
	for p.seg != nil {
		if p.seg == q.seg {
			return n + int(p.off) - int(q.off) + 1, p.off >= q.off
		}
		n += int(p.off) + 1
		p = p.up()
	}
	return 0, false
}

// depth is how many blocks the path to p has. It takes a step for each segment, and is
// false when there are too few.
func (p position) depth(steps *int) (n int, ok bool) {
	for p.seg != nil {
		if *steps--; *steps < 0 {
			return 0, false
		}
		n += int(p.off) + 1
		p = p.up()
	}
	return n, true
}

// extend adds new blocks below at, or as a root, and returns where the last one stands.
func (x *Index) extend(at position, hashes []uint64) position {
	s := at.seg
	from := uint32(0)
	if s != nil && !s.cut && at.off+1 == s.n.Load() {
		from = s.n.Load()
		if room := len(s.run.Load().hash); room < int(from)+len(hashes) {
			need := int(from) + len(hashes)
			x.resize(s, need+need/8+3)
		}
	} else {
		s = new(segment)
		x.dir.add(s)
		x.bytes += segmentBytes
		x.resize(s, len(hashes))
		if at.seg != nil {
			s.attach(at)
		}
	}
	r := s.run.Load()
	copy(r.hash[from:], hashes)
	s.n.Store(from + uint32(len(hashes)))
	for i, h := range hashes {
		x.table.insert(h, makeRef(s.id, from+uint32(i)))
	}
	x.nodes += len(hashes)
	return position{s, from + uint32(len(hashes)) - 1}
}

// resize moves a segment's blocks to a run with another room.
func (x *Index) resize(s *segment, room int) {
	r := &run{make([]uint64, room), make([]pin, room)}
	if old := s.run.Load(); old != nil {
		x.bytes -= len(old.hash) * blockBytes
		n := s.n.Load()
		copy(r.hash, old.hash[:n])
		for i := range n {
			r.pins[i].fronts.Store(old.pins[i].fronts.Load())
			r.pins[i].kids.Store(old.pins[i].kids.Load())
		}
	}
	x.bytes += room * blockBytes
	s.run.Store(r)
}

// attach hangs a segment below a block.
func (s *segment) attach(at position) {
	at.pin().kids.Add(1)
	s.above = at.off
	if head := at.seg.kids.Load(); head != nil {
		s.next.Store(head)
		head.prev = s
	}
	s.parent.Store(at.seg)
	at.seg.kids.Store(s)
}

// detach undoes attach. The segment keeps its pointers for readers that stand on it.
func (s *segment) detach(parent *segment) {
	next := s.next.Load()
	if next != nil {
		next.prev = s.prev
	}
	if s.prev == nil {
		parent.kids.Store(next)
	} else {
		s.prev.next.Store(next)
	}
}
