package wazero

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/tetratelabs/wazero/experimental"
)

func TestMemoryGrowsInPlace(t *testing.T) {
	for name, m := range map[string]experimental.LinearMemory{"reserved": &reserved{reserve(1 << 20)}, "heap": &heap{make([]byte, 0, 1<<16)}} {
		t.Run(name, func(t *testing.T) {
			b := m.Reallocate(1 << 16)
			if len(b) != 1<<16 || !bytes.Equal(b, make([]byte, 1<<16)) {
				t.Fatal("the first page is not a page of zeros")
			}
			b[100] = 7
			first := &b[0]
			b = m.Reallocate(1 << 20)
			if len(b) != 1<<20 || b[100] != 7 || b[1<<20-1] != 0 {
				t.Fatal("growing lost or made up content")
			}
			if name == "reserved" && (&b[0] != first || m.Reallocate(1<<20+1) != nil) {
				t.Fatal("reserved memory moved or grew past its limit")
			}
			m.Free()
			m.Free()
		})
	}
}

// TestInstancesShareNoMemory: what one instance wrote is not in the next, which may
// get the same pages.
func TestInstancesShareNoMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nothing is freed behind the test's back
	for range 50 {
		in := instantiate(t, Config{}, "bare.wasm", constant)
		mem := in.Memory()
		for i, b := range mem {
			if b != 0 {
				t.Fatalf("byte %d of a new instance is %d", i, b)
			}
		}
		for i := range mem {
			mem[i] = 0xaa
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
