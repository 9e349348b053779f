//go:build unix

package crc32c_test

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/kvrt/kvrt/internal/crc32c"
	"github.com/kvrt/kvrt/internal/guarded"
)

// TestChecksum holds every length, from every offset of 64, against hash/crc32.
func TestChecksum(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	memory := make([]byte, 1<<16)
	rand.NewChaCha8([32]byte{1}).Read(memory)
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 4096 {
		b := memory[n%64:][:n:n]
		if got, want := crc32c.Checksum(b), crc32.Checksum(b, table); got != want {
			t.Fatalf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
	for range 1000 {
		from := r.IntN(len(memory))
		b := memory[from : from+r.IntN(len(memory)-from)]
		crc := r.Uint32()
		if got, want := crc32c.Update(crc, b), crc32.Update(crc, table, b); got != want {
			t.Fatalf("%d bytes behind %#x: %#x, want %#x", len(b), crc, got, want)
		}
	}
	for _, same := range []byte{0, 0xff} {
		b := make([]byte, 3<<20+5)
		for i := range b {
			b[i] = same
		}
		if got, want := crc32c.Checksum(b), crc32.Checksum(b, table); got != want {
			t.Errorf("%d times %#x: %#x, want %#x", len(b), same, got, want)
		}
	}
}

// TestBounds sums up memory whose neighbours nobody may read, at either end.
func TestBounds(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	memory := guarded.Memory(t, 16<<10)
	b := make([]byte, 8<<10)
	rand.NewChaCha8([32]byte{2}).Read(b)
	for n := range len(b) {
		want := crc32.Checksum(b[:n], table)
		for c := range guarded.Ends(memory, b[:n]) {
			if got := crc32c.Checksum(c); got != want {
				t.Fatalf("%d bytes: %#x, want %#x", n, got, want)
			}
		}
	}
}

func FuzzUpdate(f *testing.F) {
	table := crc32.MakeTable(crc32.Castagnoli)
	f.Add(uint32(1), []byte("0123456789abcdef"), uint8(255), uint8(3))
	f.Fuzz(func(t *testing.T, crc uint32, b []byte, times, from uint8) {
		b = bytes.Repeat(b[:min(len(b), 4096)], int(times)+1)
		b = b[min(int(from), len(b)):]
		if got, want := crc32c.Update(crc, b), crc32.Update(crc, table, b); got != want {
			t.Errorf("%d bytes behind %#x: %#x, want %#x", len(b), crc, got, want)
		}
	})
}

func TestUpdateAllocatesNothing(t *testing.T) {
	b := make([]byte, 1<<16)
	if n := testing.AllocsPerRun(10, func() { crc32c.Update(1, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkUpdate is 64 KiB in the cache; its floor is hash/crc32.
func BenchmarkUpdate(b *testing.B) {
	memory := make([]byte, 64<<10)
	table := crc32.MakeTable(crc32.Castagnoli)
	for _, c := range []struct {
		name string
		sum  func(crc uint32, b []byte) uint32
	}{
		{"wide", crc32c.Update},
		{"floor", func(crc uint32, b []byte) uint32 { return crc32.Update(crc, table, b) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(memory)))
			for b.Loop() {
				c.sum(0, memory)
			}
		})
	}
}
