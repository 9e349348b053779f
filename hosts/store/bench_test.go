package store

import (
	"sync"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

const benchBlock = 64 << 10

// full is a store of so many published blocks, with hashes from 0 on.
func full(tb testing.TB, blocks int, size uint64) *Store {
	s, err := New(Config{Capacity: uint64(blocks) * size, BlockBytes: []uint64{size}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	for h := range uint64(blocks) {
		token, _, err := s.Reserve("n", h*0x9e3779b97f4a7c15, int(size))
		if err != nil {
			tb.Fatal(err)
		}
		if err := s.Commit(token); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// BenchmarkResidency1024: where the blocks of a long request are, half of them here; and
// the same of a map under one lock.
func BenchmarkResidency1024(b *testing.B) {
	hashes, out := make([]uint64, 1024), make([]abi.Residency, 1024)
	for i := range hashes {
		hashes[i] = uint64(4096-512+i) * 0x9e3779b97f4a7c15
	}
	b.Run("store", func(b *testing.B) {
		s := full(b, 4096, pageSize)
		b.ReportAllocs()
		for b.Loop() {
			if s.Residency("n", hashes, out) != 512 {
				b.Fatal("not half of them")
			}
		}
	})
	b.Run("map", func(b *testing.B) {
		var mu sync.Mutex
		m := map[key]uint32{}
		for h := range uint64(4096) {
			m[key{1, h * 0x9e3779b97f4a7c15}] = uint32(h)
		}
		for b.Loop() {
			mu.Lock()
			for i, h := range hashes {
				if _, ok := m[key{1, h}]; ok {
					out[i] = abi.ResidencyDRAM
				} else {
					out[i] = abi.ResidencyAbsent
				}
			}
			mu.Unlock()
		}
	})
}

// cycle writes a block, which displaces another one, and reads it.
func (s *Store) cycle(tb testing.TB, hash uint64, src []byte) {
	token, block, err := s.Reserve("n", hash, benchBlock)
	if err != nil {
		tb.Fatal(err)
	}
	copy(block, src)
	if err = s.Commit(token); err == nil {
		token, _, err = s.Acquire("n", hash)
	}
	if err == nil {
		err = s.Release(token)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkCycle: a block of 64 KiB is reserved, copied, committed, leased and released in
// a full store; the copy alone; and a map under a lock that does as much with them, as one
// would write it for one goroutine that never fails.
func BenchmarkCycle(b *testing.B) {
	src := make([]byte, benchBlock)
	const slots = 1024
	b.Run("store", func(b *testing.B) {
		s, hash := full(b, slots, benchBlock), uint64(1)
		b.ReportAllocs()
		for b.Loop() {
			s.cycle(b, hash, src)
			hash++
		}
	})
	b.Run("nothing", func(b *testing.B) { // the store's own part
		s, hash := full(b, slots, benchBlock), uint64(1)
		b.ReportAllocs()
		for b.Loop() {
			s.cycle(b, hash, nil)
			hash++
		}
	})
	slab := full(b, slots, benchBlock).slab.mem[pageSize*2:]
	b.Run("copy", func(b *testing.B) {
		i := 0
		for b.Loop() {
			copy(slab[i*benchBlock:][:benchBlock], src)
			i = (i + 1) % slots
		}
	})
	b.Run("map", func(b *testing.B) {
		var mu sync.Mutex
		m, order, hash := map[key]int{}, make([]key, slots), uint64(1)
		for b.Loop() {
			k, i := key{1, hash}, int(hash%slots)
			mu.Lock()
			delete(m, order[i])
			mu.Unlock()
			copy(slab[i*benchBlock:][:benchBlock], src)
			mu.Lock()
			order[i] = k
			m[k] = i
			mu.Unlock()
			mu.Lock()
			_ = m[k]
			mu.Unlock()
			hash++
		}
	})
}

// BenchmarkLease: a block that is there is leased and released, by one goroutine and by
// one on each processor.
func BenchmarkLease(b *testing.B) {
	s := full(b, 4096, pageSize)
	lease := func(b *testing.B, h uint64) {
		token, _, err := s.Acquire("n", h%4096*0x9e3779b97f4a7c15)
		if err == nil {
			err = s.Release(token)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		h := uint64(0)
		for b.Loop() {
			lease(b, h)
			h += 17
		}
	})
	b.Run("all", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for h := uint64(0); pb.Next(); h += 17 {
				lease(b, h)
			}
		})
	})
}

func TestCycleAllocatesNothing(t *testing.T) {
	s, hash, src := full(t, 64, benchBlock), uint64(1), make([]byte, benchBlock)
	for range 1000 { // the index and the queues grow to their size
		s.cycle(t, hash, src)
		hash++
	}
	if n := testing.AllocsPerRun(1000, func() {
		s.cycle(t, hash, src)
		hash++
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	claim := Claim{Owner: 1, Priority: 5, TTL: 1000}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := s.Retain("n", []uint64{hash - 1}, claim, nil); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations of a claim", n)
	}
}
