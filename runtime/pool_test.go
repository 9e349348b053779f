package runtime

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeModule makes instances that do nothing, and counts what is alive.
type fakeModule struct {
	alive, closed, made, idled atomic.Int64
	fail, failIdle             atomic.Bool
	takes                      atomic.Int64  // fuel that each call takes
	idle                       chan struct{} // when set, kvrt_idle after the start is in it, and waits to be let go
}

func (m *fakeModule) Instantiate(context.Context) (Instance, error) {
	if m.closed.Load() > 0 {
		panic("an instance of a closed module")
	}
	if m.fail.Load() {
		return nil, errors.New("no more instances")
	}
	m.alive.Add(1)
	m.made.Add(1)
	return &fakeInstance{m: m, mem: make([]byte, 1<<16)}, nil
}

func (m *fakeModule) Close() error { m.closed.Add(1); return nil }

type fakeInstance struct {
	m       *fakeModule
	mem     []byte
	fuel    int64
	started bool // it has been in kvrt_idle once
	gone    bool
}

func (i *fakeInstance) Has(f Export) bool { return f != ExportInitialize }
func (i *fakeInstance) Memory() []byte    { return i.mem }
func (i *fakeInstance) Fuel() int64       { return i.fuel }
func (i *fakeInstance) SetFuel(n int64)   { i.fuel = n }
func (i *fakeInstance) Close() error {
	if i.gone {
		panic("an instance closed twice")
	}
	i.gone = true
	i.m.alive.Add(-1)
	return nil
}

func (i *fakeInstance) Call(_ *Call, f Export, stack []uint64) error {
	if i.gone {
		panic("a call into a closed instance")
	}
	i.fuel -= i.m.takes.Load()
	switch {
	case f == ExportArena:
		stack[0] = 1024<<32 | 8192
	case f != ExportIdle:
		stack[0] = 0
	case !i.started:
		i.started = true
	default:
		i.m.idled.Add(1)
		if i.m.idle != nil {
			i.m.idle <- struct{}{}
			<-i.m.idle
		}
		if i.m.failIdle.Load() {
			return &Trap{TrapOutOfFuel, "out of fuel"}
		}
	}
	return nil
}

func newFakePool(t *testing.T, n int) (*pool, *fakeModule) {
	t.Helper()
	return newIdlePool(t, n, &fakeModule{}, Limits{})
}

func newIdlePool(t *testing.T, n int, m *fakeModule, l Limits) (*pool, *fakeModule) {
	t.Helper()
	r, err := New(Config{Engine: noEngine{}})
	if err != nil {
		t.Fatal(err)
	}
	return newIdlePoolOf(t, r, n, m, l)
}

func newIdlePoolOf(t *testing.T, r *Runtime, n int, m *fakeModule, l Limits) (*pool, *fakeModule) {
	t.Helper()
	g := &guest{runtime: r, module: m, spec: GuestSpec{Name: "fake"}, limits: l.withDefaults(0, 0), initFrame: make([]byte, 48)}
	p, err := newPool(context.Background(), g, n)
	if err != nil {
		t.Fatal(err)
	}
	g.pool = p
	return p, m
}

type noEngine struct{}

func (noEngine) Name() string { return "none" }
func (noEngine) Compile(context.Context, []byte, CompileOptions) (Module, error) {
	return nil, errors.New("no engine")
}

func TestPoolFullAndFreed(t *testing.T) {
	p, _ := newFakePool(t, 2)
	a, _ := p.acquire(0, time.Second)
	b, _ := p.acquire(0, time.Second)
	if a == nil || b == nil || a == b {
		t.Fatal("two callers share an instance")
	}
	if s, drained := p.acquire(0, time.Millisecond); s != nil || drained {
		t.Fatal("a third caller got an instance of two")
	}
	got := make(chan *slot)
	go func() {
		s, _ := p.acquire(1, time.Minute)
		got <- s
	}()
	for p.waiters.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	p.release(b)
	if s := <-got; s != b {
		t.Fatal("the waiter did not get the instance that was freed")
	}
	if n := p.unavailable.Load(); n != 1 {
		t.Fatalf("%d calls counted unavailable, want 1", n)
	}
	p.release(a)
	p.release(b)
	p.drain()
	<-p.closed
}

// TestPoolDrainRaces drains while callers acquire, release and poison: every instance
// is closed once, the module after all of them, and nobody is called after that.
func TestPoolDrainRaces(t *testing.T) {
	for round := range 200 {
		p, m := newIdlePool(t, 3, &fakeModule{}, Limits{IdleCalls: uint64(1 + round%4)})
		m.failIdle.Store(round%3 == 0)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; ; i++ {
					s, drained := p.acquire(uint32(w), time.Second)
					if drained {
						return
					}
					if s == nil {
						t.Errorf("no instance in a second; quarantined %d times", p.quarantine.count.Load())
						return
					}
					_, _ = s.inst.run(ExportHandle, 0)
					if (i+round)%5 == 0 {
						s.past = history{} // or else it may come to a quarantine
						p.poison(s)
					} else {
						s.past.note(false)
						p.release(s)
					}
				}
			}()
		}
		if round%2 == 0 {
			time.Sleep(time.Duration(round) * 5 * time.Microsecond)
		}
		var st GuestStats
		p.stats(&st)
		p.drain()
		wg.Wait()
		<-p.closed
		if alive, closed := m.alive.Load(), m.closed.Load(); alive != 0 || closed != 1 {
			t.Fatalf("round %d: %d instances alive, module closed %d times", round, alive, closed)
		}
	}
}

func TestPoolReplacesTrapped(t *testing.T) {
	p, m := newFakePool(t, 2)
	m.fail.Store(true)
	for range 3 { // the first is replaced by the spare
		s, _ := p.acquire(0, time.Second)
		p.poison(s)
	}
	if s, drained := p.acquire(0, 5*time.Millisecond); s != nil || drained {
		t.Fatal("an instance although none can be made")
	}
	var st GuestStats
	if p.stats(&st); st.Vacant != 2 {
		t.Fatalf("%d slots vacant, want 2", st.Vacant)
	}
	m.fail.Store(false)
	for range 2 {
		s, _ := p.acquire(0, 10*time.Second)
		if s == nil {
			t.Fatal("the trapped instances were not replaced")
		}
		defer p.release(s)
	}
	p.drain()
}

func TestPoolRefillStopsWhenDrained(t *testing.T) {
	p, m := newFakePool(t, 1)
	m.fail.Store(true)
	s, _ := p.acquire(0, time.Second)
	p.poison(s)
	p.drain()
	<-p.closed
	if m.alive.Load() != 0 || m.closed.Load() != 1 {
		t.Fatalf("%d alive, closed %d times", m.alive.Load(), m.closed.Load())
	}
}

func TestDurationBuckets(t *testing.T) {
	bound := func(i int) float64 { return math.Exp2(float64(DurationFirst+i) / 4) }
	for _, ns := range []uint64{0, 1, 59, 60, 61, 100, 953, 954, 1000, 4096, 999_999, 1_000_000, 50_000_000, 1_000_000_000, 13_000_000_000, 1 << 62} {
		i, s := durationBucket(ns), float64(ns)/1e9
		if i < DurationBuckets-1 && s > bound(i)*1.0001 {
			t.Errorf("%d ns is above bucket %d, which ends at %g s", ns, i, bound(i))
		}
		if i > 0 && s < bound(i-1)*0.9999 {
			t.Errorf("%d ns is below bucket %d, which begins at %g s", ns, i, bound(i-1))
		}
	}
	for ns := uint64(1); ns < 1<<34; ns += ns/7 + 1 {
		if i, s := durationBucket(ns), float64(ns)/1e9; i > 0 && i < DurationBuckets-1 && (s > bound(i)*1.0001 || s < bound(i-1)*0.9999) {
			t.Fatalf("%d ns is in bucket %d, (%g, %g] s", ns, i, bound(i-1), bound(i))
		}
	}
}

func TestWarnOnceIsBounded(t *testing.T) {
	var w warnOnce
	if !w.first(1, []byte("x")) || w.first(1, []byte("x")) || !w.first(2, []byte("x")) || !w.first(1, []byte("y")) {
		t.Fatal("first is not once")
	}
	for i := range 3 * maxWarned {
		w.first(3, strconv.AppendInt(nil, int64(i), 10))
	}
	if n := len(w.seen.Load().keys); n > maxWarned {
		t.Fatalf("%d warnings remembered", n)
	}
	seen := []byte("x")
	if n := testing.AllocsPerRun(100, func() { w.first(1, seen) }); n != 0 {
		t.Fatalf("%v allocations for a known warning", n)
	}
}

// TestWatch: an instance that one call holds from one look to the next is stuck until
// it is given back, whichever way; one that is held at both looks by two calls is not.
func TestWatch(t *testing.T) {
	p, _ := newFakePool(t, 2)
	look := func(stuck int, stalls uint64) {
		t.Helper()
		p.watch()
		var st GuestStats
		if p.stats(&st); st.Stuck != stuck || st.Stalls != stalls {
			t.Errorf("%d stuck after %d stalls, want %d and %d", st.Stuck, st.Stalls, stuck, stalls)
		}
	}
	for _, giveBack := range []func(*slot){p.release, p.poison} {
		before := p.stalls.Load()
		s, _ := p.acquire(0, time.Second)
		look(0, before)
		giveBack(s)
		s, _ = p.acquire(0, time.Second)
		look(0, before)
		look(1, before+1)
		look(1, before+1)
		other, _ := p.acquire(0, time.Second)
		p.watch()
		p.watch()
		if why := p.why(); why != "every instance is held by a call that does not end" {
			t.Error(why)
		}
		p.release(other)
		giveBack(s)
		look(0, before+2)
	}
	p.drain()
	<-p.closed
}
