//go:build unix

// Package guarded gives tests memory between two pages that nobody may touch: code that
// reads or writes a byte too far, on either side, ends the test with a fault. It is for
// code that the compiler puts no bounds checks into.
package guarded

import (
	"iter"
	"os"
	"syscall"
	"testing"
)

// Memory returns at least size bytes, in whole pages, until the test ends.
func Memory(tb testing.TB, size int) []byte {
	tb.Helper()
	page := os.Getpagesize()
	size = (size + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Munmap(all) })
	for _, guard := range [][]byte{all[:page], all[page+size:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			tb.Fatal(err)
		}
	}
	return all[page : page+size : page+size]
}

// Ends copies b to the beginning of memory, and then to its end, and yields each copy. They
// may overlap, so each is to be used while it is yielded.
func Ends(memory, b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, from := range []int{0, len(memory) - len(b)} {
			c := memory[from : from+len(b) : from+len(b)]
			if copy(c, b); !yield(c) {
				return
			}
		}
	}
}
