package store

import (
	"os"
	"sync/atomic"
	"unsafe"
)

// slab is the memory of a store: generations first, one word a slot, then the slots.
type slab struct {
	mem     []byte
	file    *os.File // nil: nobody else can map it
	backing string
	free    func() error
}

// generations is the first n words as generations.
func (s *slab) generations(n int) []atomic.Uint64 {
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(s.mem))), n)
}

// heapSlab is memory that Go's collector owns, where nothing better is to be had.
func heapSlab(size int) *slab {
	words := make([]uint64, (size+7)/8+pageSize/8) // aligned for the generations, and with room to align to a page
	all := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(all)))) & (pageSize - 1)
	return &slab{mem: all[skip : skip+size : skip+size], backing: "heap", free: func() error { return nil }}
}
