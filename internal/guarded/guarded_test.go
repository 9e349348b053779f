//go:build unix

package guarded_test

import (
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/kvrt/kvrt/internal/guarded"
)

// TestMemory holds that a byte on either side is a fault, and none between them.
func TestMemory(t *testing.T) {
	memory := guarded.Memory(t, 5000)
	if len(memory) < 5000 || len(memory) != cap(memory) {
		t.Fatal(len(memory), cap(memory))
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	faults := func(at int) (fault bool) {
		defer func() { fault = recover() != nil }()
		*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory)), at))++
		return false
	}
	for at, want := range map[int]bool{-1: true, 0: false, len(memory) - 1: false, len(memory): true} {
		if got := faults(at); got != want {
			t.Errorf("byte %d: fault %v, want %v", at, got, want)
		}
	}
	n := 0
	for c := range guarded.Ends(memory, []byte("ends")) {
		if n++; string(c) != "ends" || string(memory[0:4]) != "ends" || n == 2 && string(memory[len(memory)-4:]) != "ends" {
			t.Errorf("copy %d: %q", n, c)
		}
	}
	if n != 2 {
		t.Error(n, "copies")
	}
}
