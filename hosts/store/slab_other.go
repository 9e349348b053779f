//go:build !linux

package store

// newSlab takes size bytes from Go's heap.
func newSlab(size int, _ bool) (*slab, error) { return heapSlab(size), nil }
