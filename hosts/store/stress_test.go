package store

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
)

// Blocks describe themselves: each word is the block's namespace and hash, and which of
// all writes it is of. A block with words of two writes is torn, and one with another
// block's words is stale.

func word(ns, hash, write uint64) uint64 { return ns<<56 | hash<<40 | write&(1<<40-1) }

func fill(block []byte, w uint64) {
	for i := 0; i < len(block); i += 8 {
		binary.LittleEndian.PutUint64(block[i:], w)
	}
}

// uniform is the word of a block, if all of it says the same.
func uniform(block []byte) (uint64, bool) {
	w := binary.LittleEndian.Uint64(block)
	for i := 8; i < len(block); i += 8 {
		if binary.LittleEndian.Uint64(block[i:]) != w {
			return w, false
		}
	}
	return w, true
}

// torture is a store with fewer slots than blocks, and those who use it.
type torture struct {
	t      *testing.T
	s      *Store
	keys   uint64
	writes atomic.Uint64
	late   sync.WaitGroup // transfers that end after their operation
	served atomic.Uint64
	filled atomic.Uint64
}

var tenants = [2]string{"a", "b"}

func (x *torture) pick(r *rand.Rand) (ns, hash uint64) { return r.Uint64N(2), r.Uint64N(x.keys) }

func (x *torture) write(r *rand.Rand) {
	ns, hash := x.pick(r)
	token, block, err := x.s.Reserve(tenants[ns], hash, 512)
	var filling *FillingError
	var full *FullError
	switch {
	case errors.As(err, &filling):
		<-filling.Done
		return
	case errors.Is(err, ErrExists), errors.As(err, &full):
		return
	case err != nil:
		x.t.Error(err)
		return
	}
	w := word(ns, hash, x.writes.Add(1))
	half := len(block) / 2
	fill(block[:half], w)
	if r.IntN(4) == 0 {
		runtime.Gosched()
	}
	switch r.IntN(8) {
	case 0: // a write that fails
		if err := x.s.Abort(token); err != nil {
			x.t.Error(err)
		}
	case 1: // a write that is given up while a device still writes
		transfer, err := x.s.Transfer(token)
		if err != nil {
			x.t.Error(err)
		}
		x.late.Add(1)
		given := make(chan struct{})
		go func() {
			defer x.late.Done()
			<-given // its operation was given up
			for range 3 {
				runtime.Gosched()
				fill(block, ^w)
			}
			if err := x.s.Release(transfer); err != nil {
				x.t.Error(err)
			}
		}()
		if err := x.s.Commit(token); !errors.Is(err, ErrInFlight) {
			x.t.Errorf("published while a device writes: %v", err)
		}
		abort := x.s.Abort(token)
		close(given)
		if abort != nil {
			x.t.Error(abort)
		}
	default:
		fill(block[half:], w)
		if err := x.s.Commit(token); err != nil {
			x.t.Error(err)
		}
		x.filled.Add(1)
	}
}

func (x *torture) read(r *rand.Rand) {
	ns, hash := x.pick(r)
	token, block, err := x.s.Acquire(tenants[ns], hash)
	if err != nil {
		if !errors.Is(err, ErrNotFound) {
			x.t.Error(err)
		}
		return
	}
	x.served.Add(1)
	w, ok := uniform(block)
	if !ok || w>>40 != ns<<16|hash {
		x.t.Errorf("torn or stale: %x for %d/%d", w, ns, hash)
	}
	if r.IntN(2) == 0 {
		runtime.Gosched()
	}
	if again, ok := uniform(block); !ok || again != w {
		x.t.Errorf("a leased block has changed: %x, then %x", w, again)
	}
	if r.IntN(8) == 0 {
		if err := x.s.Verify(token); err != nil {
			x.t.Error(err)
		}
	}
	if err := x.s.Release(token); err != nil {
		x.t.Error(err)
	}
	if err := x.s.Release(token); !errors.Is(err, ErrToken) {
		x.t.Errorf("released twice: %v", err)
	}
}

func (x *torture) meddle(r *rand.Rand) {
	ns, hash := x.pick(r)
	list := []uint64{hash, (hash + 1) % x.keys, (hash + 2) % x.keys}
	switch r.IntN(6) {
	case 0:
		x.s.Evict(tenants[ns], list, make([]Outcome, 3))
	case 1:
		if _, err := x.s.Retain(tenants[ns], list, Claim{r.Uint64N(12), r.IntN(101), time.Duration(r.IntN(1000)) * time.Microsecond}, nil); err != nil {
			x.t.Error(err)
		}
	case 2:
		if pin, err := x.s.Pin(tenants[ns], hash); err == nil {
			runtime.Gosched()
			if err := x.s.Release(pin); err != nil {
				x.t.Error(err)
			}
		}
	case 3:
		_ = x.s.Stats()
		x.s.Sweep()
	default:
		x.s.Residency(tenants[ns], list, make([]abi.Residency, 3))
	}
}

// Whatever writers, readers, evictions and late transfers do, nobody is served a block
// that is torn, stale or another tenant's, and at the end everything is released. The
// memory is Go's, so that the race detector sees the bytes.
func TestTorture(t *testing.T) {
	for _, slots := range []int{3, 24, 256} {
		s := small(t, slots, func(c *Config) {
			c.memory = func(size int, _ bool) (*slab, error) { return heapSlab(size), nil }
			c.Checksum = slots == 24
		})
		x := &torture{t: t, s: s, keys: uint64(slots)}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(slots)))
				for n := 0; n < 8000 || n < 1<<20 && (x.filled.Load() < 100 || x.served.Load() < 100); n++ {
					switch n := r.IntN(10); {
					case n < 4:
						x.write(r)
					case n < 8:
						x.read(r)
					default:
						x.meddle(r)
					}
				}
			})
		}
		all.Wait()
		x.late.Wait()
		st := s.Stats()
		p := st.Pools[0]
		if st.Tokens != 0 || p.Filling != 0 || p.Pinned != 0 || p.Leased != 0 || p.Waiting != 0 || p.Free+p.Published != slots {
			t.Errorf("%d slots: something is still held: %+v", slots, st)
		}
		if x.served.Load() < 100 || x.filled.Load() < 100 || st.Displaced == 0 {
			t.Errorf("%d slots: only %d blocks served and %d filled, %d displaced", slots, x.served.Load(), x.filled.Load(), st.Displaced)
		}
		for _, ns := range tenants {
			for h := range x.keys {
				s.Evict(ns, []uint64{h}, nil)
			}
		}
		if st := s.Stats(); st.Pools[0].Free != slots || st.Claims != 0 || st.Namespaces != 0 {
			t.Errorf("%d slots: %+v", slots, st)
		}
		must(t, s.Close())
	}
}
