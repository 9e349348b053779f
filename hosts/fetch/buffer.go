package fetch

import "math/bits"

// A buf is memory of one size class, on a free list or in use.
type buf[T byte | uint32] struct {
	data     []T
	class    int
	next     *buf[T] // on a free list
	pins     int     // queries that read data without the shard's lock
	detached bool    // let go of while pinned: the last query frees it
}

// Class k serves up to 8<<k hashes, with 8 bytes each; a set of class k has twice as
// many slots of 4 bytes, so both take sizeOf(k) bytes.
const numClasses = 26

func classOf(hashes int) int { return max(0, bits.Len(uint(hashes-1))-3) }
func sizeOf(class int) int   { return 64 << class }

func newHashes(class int) *buf[byte] {
	return &buf[byte]{data: make([]byte, sizeOf(class)), class: class}
}

func newSlots(class int) *buf[uint32] {
	return &buf[uint32]{data: make([]uint32, sizeOf(class)/4), class: class}
}

// pool is the free lists of one shard, under its lock. It keeps at most limit bytes,
// and of one class a quarter of that or one buffer; what does not fit is left to the
// collector.
type pool[T byte | uint32] struct {
	bytes   int
	limit   int
	classes [numClasses]struct {
		free *buf[T]
		kept int
	}
}

func (p *pool[T]) take(class int) *buf[T] {
	c := &p.classes[class]
	b := c.free
	if b != nil {
		c.free, b.next = b.next, nil
		c.kept--
		p.bytes -= sizeOf(class)
	}
	return b
}

func (p *pool[T]) put(b *buf[T]) {
	if b == nil {
		return
	}
	if b.pins > 0 {
		b.detached = true
		return
	}
	size, c := sizeOf(b.class), &p.classes[b.class]
	if p.bytes+size > p.limit || c.kept > 0 && (c.kept+1)*size > p.limit/4 {
		return
	}
	b.next, c.free = c.free, b
	c.kept++
	p.bytes += size
}
