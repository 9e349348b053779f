package fetch

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

// TestStress lets many goroutines work on few requests, at the caps, and checks that
// nothing is lost or counted twice.
func TestStress(t *testing.T) {
	for _, c := range []struct {
		requests int
		cfg      Config
	}{
		{60, Config{Shards: 4, MaxEntries: 40, MaxBytes: 64 * 200, TTL: 2 * time.Millisecond}},
		{300, Config{Shards: 2, MaxEntries: 128, MaxBytes: 64 * 1000, TTL: 20 * time.Millisecond}}, // shards have something in hand
	} {
		t.Run(fmt.Sprintf("requests=%d", c.requests), func(t *testing.T) { testStress(t, c.requests, c.cfg) })
	}
}

func testStress(t *testing.T, requests int, cfg Config) {
	var now atomic.Int64
	cfg.MaxTombstones, cfg.MaxHashes, cfg.TombstoneTTL, cfg.Now = 16, 3000, time.Millisecond, now.Load
	s := New(cfg)
	rounds := 6000
	if testing.Short() {
		rounds = 1000
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range rounds {
				now.Add(int64(r.IntN(int(20 * time.Microsecond))))
				id := request(fmt.Sprint("r", r.IntN(requests)))
				switch r.IntN(10) {
				case 0:
					s.Discard(id)
				case 1:
					p, _, _ := s.PrepareFinish(id, true)
					if r.IntN(2) == 0 {
						p.Drop()
					} else {
						p.Commit()
					}
				case 2:
					if r.IntN(20) == 0 {
						s.Sweep()
					}
					s.Stats()
				case 3, 4, 5:
					// The n-th hash of every hint is n*..., so what is found must be one.
					if _, ok := s.Lookup(id, 0); ok {
						t.Error("found a hash that nobody sent")
						return
					}
					s.Lookup(id, 1)
					if st := s.Status(id); st.State == abi.FetchStateLive && st.Hashes == 0 {
						t.Error("a live hint without hashes")
						return
					}
				default:
					n := 1 + r.IntN(12)
					if r.IntN(50) == 0 {
						n = 3000 // refused for its bytes
					}
					p, reason, _ := s.Prepare(id, source(fmt.Sprint("tcp://h:", 1+r.IntN(3)/2)), manyHashes(n), false)
					switch {
					case p == nil && reason != abi.ReasonLimitExceeded:
						t.Error(reason)
						return
					case p == nil:
					case r.IntN(4) == 0:
						p.Drop()
					default:
						p.Commit()
					}
				}
				// Each goroutine may be over for a moment.
				e, b := s.entries.taken.Load(), s.bytes.taken.Load()
				if e < 0 || b < 0 || e > s.entries.max+8*(1+s.entries.chunk) || b > s.bytes.max+8*(32<<10+s.bytes.chunk) {
					t.Errorf("%d entries, %d bytes", e, b)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	st := s.Stats()
	if st.Prepared != 0 || st.Conflicts == 0 || st.Replaced == 0 || st.Expired == 0 || st.RefusedLimit == 0 || st.RefusedFinished == 0 {
		t.Errorf("%+v", st)
	}
	now.Add(int64(time.Hour))
	s.Sweep()
	if st := s.Stats(); st.Entries != 0 || st.Tombstones != 0 || st.Bytes != 0 {
		t.Errorf("left over: %+v", st)
	}
	for i := range s.shards {
		for b := range s.shards[i].hashes.classes {
			n := 0
			for f := s.shards[i].hashes.classes[b].free; f != nil; f = f.next {
				if n++; f.pins != 0 || f.detached {
					t.Error("a pinned buffer is free")
				}
			}
			if n != s.shards[i].hashes.classes[b].kept {
				t.Errorf("%d free buffers of class %d, counted as %d", n, b, s.shards[i].hashes.classes[b].kept)
			}
		}
	}
}

// TestFirstQueryOutsideTheLock replaces a hint while its set is built.
func TestFirstQueryOutsideTheLock(t *testing.T) {
	for _, lookers := range []int{1, 2} {
		t.Run(fmt.Sprintf("lookers=%d", lookers), func(t *testing.T) { testFirstQuery(t, lookers) })
	}
}

func testFirstQuery(t *testing.T, lookers int) {
	var ticks atomic.Int64
	s := New(Config{Shards: 1, TombstoneTTL: 1, Now: func() int64 { return ticks.Add(1) }})
	id, hashes := request("r"), manyHashes(100_000)
	hash, sh := s.locate(&id)
	free := func(b *buf[byte]) bool {
		for f := sh.hashes.classes[b.class].free; f != nil; f = f.next {
			if f == b {
				return true
			}
		}
		return false
	}
	// observe looks at the shard until f is content.
	observe := func(f func() bool) {
		for done := false; !done; {
			sh.mu.Lock()
			done = f()
			sh.mu.Unlock()
			runtime.Gosched()
		}
	}

	for caught := 0; caught < 6/lookers && !t.Failed(); {
		p, _, _ := s.Prepare(id, Source{}, hashes, false)
		p.Commit()
		small, _, _ := s.Prepare(id, Source{}, hashBytes(7), false)
		var wg sync.WaitGroup
		for range lookers {
			wg.Go(func() { s.Lookup(id, 0) })
		}
		var big *buf[byte]
		observe(func() bool {
			e := sh.find(hash, &id)
			if e.hashes.pins < lookers {
				if e.set == nil {
					return false
				}
				small.use() // too late this time
				sh.putPending(small)
				return true
			}
			big = e.hashes
			if caught++; caught%2 == 0 {
				s.endLocked(sh, hash, &id, discarded, ticks.Load())
			}
			small.use()
			s.submit(sh, small, ticks.Add(1))
			sh.putPending(small)
			return true
		})
		if big != nil {
			observe(func() bool {
				if big.pins > 0 && free(big) {
					t.Error("a buffer that is read is free")
				}
				return big.pins == 0
			})
			if !free(big) {
				t.Error("the buffer got lost")
			}
			if st := s.Status(id); st.Hashes != 1 {
				t.Errorf("%d distinct hashes", st.Hashes)
			} else if _, ok := s.Lookup(id, 7); !ok {
				t.Error("the hint is missing")
			}
		}
		wg.Wait()
	}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
}

// What lies where in a shard is a matter of cache lines.
func TestShardLayout(t *testing.T) {
	var sh shard
	if unsafe.Offsetof(sh.hints) != 64 || unsafe.Offsetof(sh.stats) != 128 || unsafe.Offsetof(sh.free) != 192 || unsafe.Sizeof(sh)%64 != 0 {
		t.Error(unsafe.Offsetof(sh.hints), unsafe.Offsetof(sh.stats), unsafe.Offsetof(sh.free), unsafe.Sizeof(sh))
	}
}

// TestOwn: a hint of the size of the last one is prepared without its shard, and the
// buffers go round.
func TestOwn(t *testing.T) {
	s := New(Config{Shards: 1})
	own, n := s.newOwn(), uint64(0)
	submit := func(id string, hashes int) {
		t.Helper()
		r, want := request(id), []uint64{}
		for range hashes {
			n++
			want = append(want, n)
		}
		p, reason, detail := s.prepareSubmit(own, &r, Source{}, hashBytes(want...), false)
		if p != own {
			t.Fatal(reason, detail)
		}
		if reason, detail := p.Commit(); reason != abi.ReasonNone {
			t.Fatal(reason, detail)
		}
		if got := s.AppendHashes(nil, r); !slices.Equal(got, want) {
			t.Fatal(got, want)
		}
	}
	submit("a", 1)
	submit("a", 2) // its first buffer comes back
	r := request("a")
	s.shards[0].mu.Lock()
	p, _, _ := s.prepareSubmit(own, &r, Source{}, hashBytes(7), false)
	s.shards[0].mu.Unlock()
	if p != own || s.Stats().Prepared != 0 {
		t.Fatal(p, s.Stats())
	}
	p.Drop()
	submit("b", 8)
	submit("b", 9) // another size
	submit("a", 5000)
	if own.spare != nil && own.spare.class > spareClass {
		t.Fatal("a large buffer is kept")
	}
	submit("a", 5001)
	p, _, _ = s.prepareEnd(own, &r, finished)
	if reason, detail := p.Commit(); reason != abi.ReasonNone || p != own || s.Stats().Finished != 1 || s.Stats().Prepared != 0 {
		t.Fatal(reason, detail, s.Stats())
	}
	defer func() {
		if _, ok := recover().(*Fault); !ok {
			t.Error("a second Commit did not panic")
		}
	}()
	own.Commit()
}
