package store

import (
	"errors"
	"math"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func TestBlockSizes(t *testing.T) {
	s := small(t, 0, func(c *Config) { c.Capacity, c.BlockBytes = 64<<10, []uint64{10000, 100} })
	for _, v := range []struct{ size, pool int }{{1, 0}, {4096, 0}, {4097, 1}, {12288, 1}} {
		token, block, err := s.Reserve("n", uint64(v.size), v.size)
		must(t, err)
		if len(block) != v.size || cap(block) != v.size {
			t.Errorf("%d bytes of %d", len(block), cap(block))
		}
		if p := s.slots[s.shards[0].byKey[key{1, uint64(v.size)}]].pool; int(p) != v.pool {
			t.Errorf("%d bytes went into pool %d", v.size, p)
		}
		must(t, s.Commit(token))
	}
	for _, size := range []int{12289, 0, -1} {
		_, _, err := s.Reserve("n", 99, size)
		wants(t, err, ErrTooLarge)
	}
}

func TestLimits(t *testing.T) {
	s := small(t, 8, func(c *Config) { c.MaxLeases, c.MaxNamespaces = 2, 2 })
	put(t, s, "a", 1)
	put(t, s, "b", 1)
	_, _, err := s.Reserve("c", 1, 1)
	wants(t, err, ErrNamespaces)
	s.Evict("a", []uint64{1}, nil)
	put(t, s, "c", 1) // "a" has no blocks any more
	one, two := acquire(t, s, "b", 1), acquire(t, s, "b", 1)
	_, _, err = s.Acquire("b", 1)
	wants(t, err, ErrLeases)
	_, _, err = s.Reserve("b", 2, 1)
	wants(t, err, ErrLeases)
	_, err = s.Transfer(one)
	wants(t, err, ErrLeases)
	must(t, s.Release(one))
	must(t, s.Release(two))
	if st := s.Stats(); st.Tokens != 0 || st.Namespaces != 2 {
		t.Errorf("%+v", st)
	}
}

func TestClose(t *testing.T) {
	unpinned := 0
	s := small(t, 4, func(c *Config) {
		c.Pin = func(slab []byte) (func() error, error) {
			if len(slab) < 4*pageSize {
				t.Errorf("%d bytes to pin", len(slab))
			}
			return func() error { unpinned++; return nil }, nil
		}
	})
	put(t, s, "n", 1)
	lease := acquire(t, s, "n", 1)
	wants(t, s.Close(), ErrBusy)
	_, _, err := s.Acquire("n", 1)
	wants(t, err, ErrClosed)
	_, _, err = s.Reserve("n", 2, 1)
	wants(t, err, ErrClosed)
	must(t, s.Release(lease))
	if unpinned != 0 {
		t.Error("unpinned while it was leased")
	}
	must(t, s.Close())
	must(t, s.Close())
	if unpinned != 1 {
		t.Errorf("unpinned %d times", unpinned)
	}
	if s.Evict("n", []uint64{1}, nil) != 0 {
		t.Error("evicted from a closed store")
	}
	s.Residency("n", []uint64{1}, make([]abi.Residency, 1))
	_ = s.Stats()
}

func TestNewRefuses(t *testing.T) {
	var capacity *CapacityError
	for _, cfg := range []Config{{}, {Capacity: 1 << 20, BlockBytes: []uint64{1 << 20, 4096}}} {
		if _, err := New(cfg); !errors.As(err, &capacity) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, cfg := range []Config{{Capacity: 1 << 20, BlockBytes: []uint64{0}}, {Capacity: math.MaxUint64, BlockBytes: []uint64{1 << 31}}, {Capacity: math.MaxUint64, BlockBytes: []uint64{1 << 30}}, {Capacity: 1 << 20, BlockBytes: []uint64{1 << 40}}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is fine", cfg)
		}
	}
	boom := errors.New("boom")
	_, err := New(Config{Capacity: 1 << 20, memory: func(int, bool) (*slab, error) { return nil, boom }})
	wants(t, err, boom)
	freed := false
	_, err = New(Config{Capacity: 1 << 20, Pin: func([]byte) (func() error, error) { return nil, boom }, memory: func(size int, _ bool) (*slab, error) {
		m := heapSlab(size)
		m.free = func() error { freed = true; return nil }
		return m, nil
	}})
	wants(t, err, boom)
	if !freed {
		t.Error("memory that could not be pinned was kept")
	}
}

func TestHeapHasNoFile(t *testing.T) {
	s := small(t, 4, func(c *Config) { c.memory = func(size int, _ bool) (*slab, error) { return heapSlab(size), nil } })
	_, err := s.File()
	wants(t, err, ErrNoFile)
	wants(t, err, os.ErrInvalid)
	put(t, s, "n", 1)
}

func TestRequestsAreBounded(t *testing.T) {
	c := &ticking{}
	r := NewRequests(RequestsConfig{MaxRequests: 3, MaxHashes: 10, TTL: time.Second, Now: c.now})
	id := func(s string) hint.Identity { return hint.Identity{RequestID: s} }
	known := func(s string) bool { _, ok := r.Of(id(s)); return ok }
	for _, s := range []string{"a", "b", "c", "d"} {
		r.Describe(id(s), Request{Hashes: []uint64{1, 2}})
	}
	if known("a") || !known("b") || !known("d") || r.Len() != 3 {
		t.Error("the oldest stays, or more went")
	}
	r.Describe(id("d"), Request{Hashes: make([]uint64, 9)})
	if known("b") || known("c") || !known("d") {
		t.Error("hashes are not bounded")
	}
	if r.Describe(id("e"), Request{Hashes: make([]uint64, 11)}) || r.Describe(id(""), Request{}) {
		t.Error("kept what is too long, or has no id")
	}
	c.ns.Add(int64(time.Second))
	if known("d") {
		t.Error("known after its time")
	}
	for range 1000 {
		r.Describe(id("x"), Request{Hashes: []uint64{1}})
		r.Forget(id("x"))
	}
	if r.Len() != 0 || r.hashes != 0 || len(r.queue) > 128 {
		t.Errorf("%d requests, %d hashes, %d queued", r.Len(), r.hashes, len(r.queue))
	}
}

// Close and those who give back at the same moment: the memory goes when nobody touches it
// any more. A store that is too early ends this program with a fault.
func TestCloseBesideReleases(t *testing.T) {
	for range 200 {
		s := small(t, 16)
		var tokens []uint64
		for h := range uint64(16) {
			token, _, err := s.Reserve("n", h, 100)
			must(t, err)
			tokens = append(tokens, token)
		}
		var all sync.WaitGroup
		for i, token := range tokens {
			all.Go(func() {
				if i%2 == 0 {
					_ = s.Abort(token)
				} else {
					_ = s.Commit(token)
				}
			})
		}
		for s.Close() != nil {
			runtime.Gosched()
		}
		all.Wait()
	}
}
