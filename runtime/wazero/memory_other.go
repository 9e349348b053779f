//go:build !linux && !darwin

package wazero

// reserve always fails where there is no mmap: the heap is used.
func reserve(uint64) []byte { return nil }

func release([]byte) {}
