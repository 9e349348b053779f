package runtime

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
)

// spend makes one call that takes so much fuel; false when it got no instance.
func (p *pool) spend(fuel uint64, within func()) bool {
	s, _ := p.acquire(0, time.Minute)
	if s == nil {
		return false
	}
	within()
	s.stats.count(&hint.Result{Fuel: fuel}, s.inst.call)
	p.release(s)
	return true
}

func nothing() {}

func newLanePool(t *testing.T, width, n int) *pool {
	t.Helper()
	r, err := New(Config{Engine: noEngine{}, Processors: 2 * width, Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newIdlePoolOf(t, r, n, &fakeModule{}, Limits{})
	t.Cleanup(func() {
		p.drain()
		<-p.closed
		if n := len(r.lane); n != 0 {
			t.Errorf("%d tokens were not given back", n)
		}
	})
	return p
}

// TestLaneWidth: of heavy guests so many calls run at once, over all of them; who is
// light runs beside them, and who finds no token in time has his instance back in the
// pool and is counted.
func TestLaneWidth(t *testing.T) {
	p := newLanePool(t, 2, 4)
	other, _ := newIdlePoolOf(t, p.guest.runtime, 4, &fakeModule{}, Limits{})
	light, _ := newIdlePoolOf(t, p.guest.runtime, 4, &fakeModule{}, Limits{})
	p.spend(defaultHeavyFuel, nothing)
	other.spend(defaultHeavyFuel, nothing)
	light.spend(defaultHeavyFuel-1, nothing)
	a, _ := p.acquire(0, time.Minute)
	b, _ := other.acquire(0, time.Minute)
	if a == nil || b == nil {
		t.Fatal("no token in an empty lane")
	}
	if s, drained := p.acquire(0, time.Minute); s != nil || drained {
		t.Error("a third heavy call beside two")
	}
	for range 4 {
		if s, _ := light.acquire(0, time.Minute); s == nil {
			t.Fatal("a light call waited for the lane")
		} else {
			defer light.release(s)
		}
	}
	var st GuestStats
	p.stats(&st)
	if !st.Heavy || st.Crowded != 1 || st.Unavailable != 1 {
		t.Errorf("heavy %v, crowded %d, unavailable %d", st.Heavy, st.Crowded, st.Unavailable)
	}
	done := make(chan bool)
	go func() { done <- p.spend(defaultHeavyFuel, nothing) }()
	other.poison(b) // a trap gives the token back as well
	if !<-done {
		// It may have given up just before.
		if !p.spend(defaultHeavyFuel, nothing) {
			t.Error("no token after one was given back")
		}
	}
	p.release(a)
	for _, p := range []*pool{other, light} {
		p.drain()
	}
}

// TestLaneLeft: a guest is heavy after one long call, and light again after enough short
// ones in a row.
func TestLaneLeft(t *testing.T) {
	p := newLanePool(t, 1, 2)
	for range 2 {
		p.spend(defaultHeavyFuel, nothing)
		for i := range lightCalls {
			if !p.heavy.Load() {
				t.Fatalf("light after %d calls", i)
			}
			if i == lightCalls/2 {
				p.spend(defaultHeavyFuel, nothing)
				for range lightCalls / 2 {
					p.spend(1, nothing)
				}
			}
			p.spend(1, nothing)
			if i == lightCalls/2 {
				break
			}
		}
		for p.light.Load() < lightCalls {
			p.spend(1, nothing)
		}
		if p.heavy.Load() {
			t.Fatal("heavy after enough short calls")
		}
	}
	if n := testing.AllocsPerRun(100, func() { p.spend(defaultHeavyFuel, nothing) }); n != 0 {
		t.Errorf("%v allocations per heavy call", n)
	}
}

// TestLaneDrained: who waits for a token of a guest that is replaced is told at once.
func TestLaneDrained(t *testing.T) {
	p := newLanePool(t, 1, 2)
	p.guest.runtime.cfg.Wait = time.Minute
	p.spend(defaultHeavyFuel, nothing)
	a, _ := p.acquire(0, time.Minute)
	told := make(chan bool)
	go func() {
		s, drained := p.acquire(0, time.Minute)
		told <- s == nil && drained
	}()
	for p.slots[1].state.Load() != slotBusy {
		time.Sleep(time.Millisecond)
	}
	p.drain()
	if !<-told {
		t.Error("not told that the guest is replaced")
	}
	p.release(a)
}

// TestLaneStuck: a call that does not end loses its token, once.
func TestLaneStuck(t *testing.T) {
	p := newLanePool(t, 1, 2)
	p.spend(defaultHeavyFuel, nothing)
	a, _ := p.acquire(0, time.Minute)
	p.watch()
	if len(p.guest.runtime.lane) != 1 {
		t.Fatal("the token went at the first look")
	}
	p.watch()
	if len(p.guest.runtime.lane) != 0 {
		t.Fatal("a call that does not end keeps its token")
	}
	if !p.spend(1, func() { p.watch() }) {
		t.Error("no token beside a call that does not end")
	}
	p.release(a)
}

// TestLaneRace: heavy and light guests, traps, scrapes and a watch at once: never more
// heavy calls than the lane is wide, once a guest is known as heavy.
func TestLaneRace(t *testing.T) {
	p := newLanePool(t, 2, 4)
	other, _ := newIdlePoolOf(t, p.guest.runtime, 2, &fakeModule{}, Limits{})
	p.spend(defaultHeavyFuel, nothing)
	other.spend(defaultHeavyFuel, nothing)
	var running atomic.Int32
	var calls sync.WaitGroup
	for w := range 6 {
		calls.Go(func() {
			for i := range 300 {
				q := []*pool{p, other}[(w+i)%2]
				s, _ := q.acquire(uint32(w), time.Second)
				if s == nil {
					continue
				}
				if n := running.Add(1); n > 2 {
					t.Errorf("%d heavy calls at once", n)
				}
				s.stats.count(&hint.Result{Fuel: defaultHeavyFuel}, s.inst.call)
				s.past.note(false)
				running.Add(-1)
				if i%16 == 15 {
					q.replace(s)
				} else {
					q.release(s)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			var st GuestStats
			p.stats(&st)
			other.stats(&st)
		}
	}()
	calls.Wait()
	<-done
	other.drain()
	<-other.closed
}
