package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
)

// Region names registered memory: a slot of the device's table in the low half, the
// slot's generation, never 0, in the high one. The zero Region names nothing. It is a
// plain number so that it may be handed to a guest.
type Region uint64

func regionOf(slot, generation uint32) Region { return Region(generation)<<32 | Region(slot) }
func (r Region) slot() uint32                 { return uint32(r) }

// region is registered memory. What is said of it never changes, its use aside.
type region struct {
	id    Region
	mem   Memory
	align uint64
	// use counts the batches in flight that touch it; ending is added when it is freed.
	use   atomic.Int64
	freed chan struct{} // closed when the driver has released it
	err   error         // of the release, to be read after freed
}

const ending = 1 << 62

// hold takes the region for a batch, unless it is ending.
func (r *region) hold() bool {
	for {
		n := r.use.Load()
		if n >= ending {
			return false
		}
		if r.use.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// table is the regions of a device; one is never changed.
type table struct {
	slots   []*region // by slot; nil: free
	byStart []*region // by address
}

func (t *table) find(id Region) *region {
	if s := id.slot(); uint64(s) < uint64(len(t.slots)) {
		if r := t.slots[s]; r != nil && r.id == id {
			return r
		}
	}
	return nil
}

// at finds the region that holds an address, nil if none does.
func (t *table) at(addr uint64) *region {
	i, ok := slices.BinarySearchFunc(t.byStart, addr, func(r *region, a uint64) int { return cmp.Compare(r.mem.Addr, a) })
	if !ok {
		i--
	}
	if i < 0 || addr-t.byStart[i].mem.Addr >= t.byStart[i].mem.Size {
		return nil
	}
	return t.byStart[i]
}

// with returns the table with one region more, whose id is generation g of a free slot.
func (t *table) with(r *region, g uint32) (*table, error) {
	m := r.mem
	if m.Size == 0 || m.Addr+m.Size < m.Addr {
		return nil, fmt.Errorf("%d bytes at %#x: %w", m.Size, m.Addr, ErrRange)
	}
	i, _ := slices.BinarySearchFunc(t.byStart, m.Addr, func(r *region, a uint64) int { return cmp.Compare(r.mem.Addr, a) })
	if i > 0 && m.Addr-t.byStart[i-1].mem.Addr < t.byStart[i-1].mem.Size || i < len(t.byStart) && t.byStart[i].mem.Addr-m.Addr < m.Size {
		return nil, fmt.Errorf("%d bytes at %#x are registered already: %w", m.Size, m.Addr, ErrOverlap)
	}
	n := &table{slots: slices.Clone(t.slots), byStart: slices.Insert(slices.Clone(t.byStart), i, r)}
	slot := slices.Index(n.slots, nil)
	if slot < 0 {
		slot = len(n.slots)
		n.slots = append(n.slots, nil)
	}
	r.id = regionOf(uint32(slot), g)
	n.slots[slot] = r
	return n, nil
}

func (t *table) without(r *region) *table {
	n := &table{slots: slices.Clone(t.slots), byStart: slices.Clone(t.byStart)}
	n.slots[r.id.slot()] = nil
	n.byStart = slices.DeleteFunc(n.byStart, func(x *region) bool { return x == r })
	return n
}

// Rows is an array of equal blocks in a region: block i has Size bytes at Base + i*Stride.
type Rows struct {
	Region             Region
	Base, Stride, Size uint64
	Count              uint64 // blocks
}

// offset returns where block i begins.
func (w *Rows) offset(i uint64) (uint64, error) {
	if i >= w.Count {
		return 0, fmt.Errorf("block %d of %d: %w", i, w.Count, ErrRange)
	}
	if w.Stride != 0 && i > (^uint64(0)-w.Base)/w.Stride {
		return 0, fmt.Errorf("block %d at a stride of %d: %w", i, w.Stride, ErrRange)
	}
	return w.Base + i*w.Stride, nil
}
