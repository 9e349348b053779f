package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
)

// TestLongStartsRest: a pool whose starts take much waits between them, in which no
// caller gets an instance and others of the runtime take their turns; draining does not
// wait.
func TestLongStartsRest(t *testing.T) {
	p, m := newFakePool(t, 1)
	m.takes.Store(1 << 30)
	trap := func() {
		s, _ := p.acquire(0, time.Minute)
		if s == nil {
			t.Fatal("no instance in a minute")
		}
		p.replace(s)
	}
	trap() // the spare takes its place, and a start begins at once
	for p.restLeft() <= 0 {
		time.Sleep(time.Millisecond)
	}
	if left := p.restLeft(); left > restMost {
		t.Errorf("a rest of %v", left)
	}
	trap()
	made := m.made.Load()
	trap() // the last one that there is: the next start waits
	if s, drained := p.acquire(0, 20*time.Millisecond); s != nil || drained {
		t.Error("an instance while the pool rests")
	}
	if m.made.Load() != made {
		t.Errorf("%d starts, and %d while the pool rests", made, m.made.Load()-made)
	}
	other, _ := newIdlePoolOf(t, p.guest.runtime, 1, &fakeModule{}, Limits{})
	other.drain()
	p.drain()
	<-p.closed
	<-other.closed
	if m.alive.Load() != 0 || m.closed.Load() != 1 {
		t.Errorf("%d instances alive, closed %d times", m.alive.Load(), m.closed.Load())
	}
}

// TestLongIdleRests: kvrt_idle that takes more than is free is not called again at once;
// what takes less is.
func TestLongIdleRests(t *testing.T) {
	for takes, rests := range map[int64]bool{freeIdle: false, freeIdle + 1: true} {
		m := &fakeModule{}
		p, _ := newIdlePool(t, 1, m, Limits{IdleCalls: 1})
		m.takes.Store(takes)
		p.use(t, 1)
		for m.idled.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		for p.busyIdle() {
			time.Sleep(time.Millisecond)
		}
		if got := p.rested.Load() != 0; got != rests {
			t.Errorf("after %d of fuel the pool rests: %v", takes, got)
		}
		p.drain()
		<-p.closed
	}
}

func (p *pool) busyIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resting != nil
}

// TestTurns: so many are in their upkeep at once, and one that does not come back holds
// the others up for a while only.
func TestTurns(t *testing.T) {
	p, _ := newFakePool(t, 1)
	r := p.guest.runtime
	for range cap(r.upkeep) {
		r.turn(false)
	}
	begun := time.Now()
	r.turn(false)()
	if took := time.Since(begun); took < upkeepWait {
		t.Errorf("one too many after %v", took)
	}
	for range cap(r.upkeep) {
		<-r.upkeep
	}
	p.drain()
	<-p.closed
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestLongTurns: upkeep that may be long takes a token of the lane of heavy calls; it goes
// on without one when there is none in time, and a token does not stay with upkeep that
// blocks. Short upkeep takes none.
func TestLongTurns(t *testing.T) {
	p := newLanePool(t, 1, 1)
	r := p.guest.runtime
	lane := func() int { return len(r.lane) }
	r.turn(false)()
	end := r.turn(true)
	if lane() != 1 {
		t.Fatal("long upkeep takes no token")
	}
	for lane() != 0 { // the upkeep seems to block
		time.Sleep(time.Millisecond)
	}
	if !p.spend(defaultHeavyFuel, nothing) || !p.spend(1, func() {
		end() // and gives nothing back twice
		if lane() != 1 {
			t.Error("another's token was given back")
		}
		r.turn(true)() // no token is free, in time
		if lane() != 1 {
			t.Error("upkeep without a token gave one back")
		}
	}) {
		t.Error("no token beside upkeep that blocks")
	}
	if lane() != 0 || len(r.upkeep) != 0 {
		t.Errorf("%d tokens and %d turns were not given back", lane(), len(r.upkeep))
	}
}

// TestLongGuests: a guest whose start took much counts as one with long upkeep.
func TestLongGuests(t *testing.T) {
	p, m := newFakePool(t, 1)
	if p.guest.long.Load() {
		t.Error("short starts make a guest long")
	}
	m.takes.Store(defaultHeavyFuel)
	s, _ := p.acquire(0, time.Minute)
	p.replace(s)
	for !p.guest.long.Load() {
		time.Sleep(time.Millisecond)
	}
	p.drain()
	<-p.closed
}

// TestVacantSlotsCount: what was done in a slot is counted while no instance is in it.
func TestVacantSlotsCount(t *testing.T) {
	p, m := newFakePool(t, 1)
	m.takes.Store(1 << 30) // a long rest follows the next start
	for range 3 {
		s, _ := p.acquire(0, time.Minute)
		if s == nil {
			t.Fatal("no instance in a minute")
		}
		s.stats.count(&hint.Result{Fuel: 1}, s.inst.call)
		p.replace(s)
	}
	var st GuestStats
	p.stats(&st)
	if st.Vacant != 1 || st.Calls != 3 {
		t.Errorf("%d calls in %d vacant slots", st.Calls, st.Vacant)
	}
	p.drain()
	<-p.closed
}
