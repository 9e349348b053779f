//go:build linux || darwin

package wazero

import "syscall"

// reserve reserves n bytes of zeros, or returns nil.
func reserve(n uint64) []byte {
	if n == 0 || n > 1<<32 {
		return nil
	}
	b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return b
}

// release gives back what reserve returned. It can only fail for what is none.
func release(b []byte) { _ = syscall.Munmap(b) }
