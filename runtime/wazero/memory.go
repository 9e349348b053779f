package wazero

import (
	"context"

	"github.com/tetratelabs/wazero/experimental"
)

// withOwnMemory makes instances keep their linear memory outside the Go heap, with
// the room up to the guest's limit reserved at once: growing then moves nothing and
// costs the same for the first page and the last, a closed instance gives its memory
// back at once, and a new one need not be zeroed by hand. Where the system cannot
// reserve, the heap is used.
func withOwnMemory(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(capacity, limit uint64) experimental.LinearMemory {
		if b := reserve(limit); b != nil {
			return &reserved{b}
		}
		return &heap{make([]byte, 0, capacity)}
	}))
}

// reserved is a run of reserved pages that the system backs when they are touched.
type reserved struct{ room []byte }

// Reallocate makes the first size bytes usable. The address stays.
func (m *reserved) Reallocate(size uint64) []byte {
	if size > uint64(len(m.room)) {
		return nil
	}
	return m.room[:size:len(m.room)]
}

// Free gives the pages back. The engine calls it when the instance is closed, which the
// pool does after its last user has left.
func (m *reserved) Free() {
	if m.room != nil {
		release(m.room)
		m.room = nil
	}
}

// heap is the fallback.
type heap struct{ b []byte }

func (m *heap) Reallocate(size uint64) []byte {
	if size > uint64(cap(m.b)) {
		m.b = append(make([]byte, 0, size), m.b...)
	}
	m.b = m.b[:size]
	return m.b
}

func (m *heap) Free() {}
