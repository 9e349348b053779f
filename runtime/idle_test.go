package runtime

import (
	"testing"
	"time"
)

// use makes n calls on one slot of a pool, as n dispatches would.
func (p *pool) use(t *testing.T, n int) {
	t.Helper()
	for range n {
		s, _ := p.acquire(0, time.Minute)
		if s == nil {
			t.Fatal("no instance in a minute")
		}
		if _, err := s.inst.run(ExportHandle, 0); err != nil {
			t.Fatal(err)
		}
		p.release(s)
	}
}

func (p *pool) first() *instance { return p.slots[0].inst }

// TestIdleKeepsNobodyWaiting: an instance that is due makes room for the spare, and is
// the next spare. While it is at rest the other goes on, until it is overdue.
func TestIdleKeepsNobodyWaiting(t *testing.T) {
	m := &fakeModule{idle: make(chan struct{})}
	p, _ := newIdlePool(t, 1, m, Limits{IdleCalls: 4})
	a := p.first()
	p.use(t, 3)
	if p.first() != a || m.idled.Load() != 0 {
		t.Fatal("at rest after three calls, due after four")
	}
	p.use(t, 1)
	<-m.idle
	b := p.first()
	if a == b {
		t.Fatal("due and still in its slot")
	}
	p.use(t, 15)
	if p.first() != b {
		t.Fatal("overdue after 15 calls, not 16")
	}
	p.use(t, 1)
	if s, drained := p.acquire(0, time.Millisecond); s != nil || drained {
		t.Fatal("an instance is called that is overdue")
	}
	if p.unavailable.Load() != 1 {
		t.Errorf("%d calls counted unavailable, want 1", p.unavailable.Load())
	}
	m.idle <- struct{}{} // a comes back, and b goes to rest
	<-m.idle
	p.use(t, 1)
	if p.first() != a {
		t.Error("the instance that was at rest did not take the slot")
	}
	m.idle <- struct{}{}
	p.drain()
	<-p.closed
	if st := p.idleStats; st.Calls != 2 || st.Traps != [NumTraps]uint64{} || m.alive.Load() != 0 || m.made.Load() != 2 {
		t.Errorf("%+v, %d instances made, %d alive", st, m.made.Load(), m.alive.Load())
	}
}

// TestIdleInPlace: without a spare an overdue instance rests in its slot.
func TestIdleInPlace(t *testing.T) {
	m := &fakeModule{}
	p, _ := newIdlePool(t, 1, m, Limits{IdleCalls: 2})
	p.mu.Lock() // as if it had taken the place of one that trapped
	spare := p.spare
	p.spare = nil
	p.mu.Unlock()
	a := p.first()
	p.use(t, 50)
	if n := m.idled.Load(); n < 6 {
		t.Errorf("kvrt_idle %d times after 50 calls, due after 2", n)
	}
	if p.first() != a {
		t.Error("another instance")
	}
	p.discard(spare)
	p.drain()
	<-p.closed
}

// TestIdleFails: an instance whose kvrt_idle fails is replaced, wherever it was, and
// counted.
func TestIdleFails(t *testing.T) {
	for _, spare := range []bool{true, false} {
		m := &fakeModule{}
		m.failIdle.Store(true)
		p, _ := newIdlePool(t, 2, m, Limits{IdleBytes: 1})
		if !spare {
			p.mu.Lock()
			in := p.spare
			p.spare = nil
			p.mu.Unlock()
			p.discard(in)
		}
		for range 100 {
			s, _ := p.acquire(0, time.Minute)
			if err := s.inst.write(make([]byte, 64)); err != nil {
				t.Fatal(err)
			}
			p.release(s)
		}
		p.drain()
		<-p.closed
		var st GuestStats
		p.stats(&st)
		if st.Idle.Calls < 10 || st.Idle.Traps[TrapOutOfFuel] != st.Idle.Calls || st.Quarantined {
			t.Errorf("%+v", st.Idle)
		}
		if m.alive.Load() != 0 || m.closed.Load() != 1 || m.made.Load() < 10 {
			t.Errorf("%d alive, %d made, module closed %d times", m.alive.Load(), m.made.Load(), m.closed.Load())
		}
	}
}

// TestIdleWhileDraining: a pool that is drained while an instance is at rest, and
// another waits for it, closes both.
func TestIdleWhileDraining(t *testing.T) {
	m := &fakeModule{idle: make(chan struct{})}
	p, _ := newIdlePool(t, 1, m, Limits{IdleCalls: 1})
	p.use(t, 1)
	<-m.idle
	p.use(t, 4) // overdue
	p.drain()
	m.idle <- struct{}{}
	<-p.closed
	if m.alive.Load() != 0 || m.closed.Load() != 1 || m.idled.Load() != 1 {
		t.Errorf("%d alive, module closed %d times, kvrt_idle %d times", m.alive.Load(), m.closed.Load(), m.idled.Load())
	}
}
