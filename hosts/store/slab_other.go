//go:build !linux

package store

import "math"

// Available does not know.
func Available() uint64 { return math.MaxUint64 }

// newSlab takes size bytes from Go's heap.
func newSlab(size int, _ bool) (*slab, error) { return heapSlab(size), nil }
