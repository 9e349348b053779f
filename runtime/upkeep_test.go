package runtime

import (
	"context"
	"testing"
	"time"
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
		r.turn()
	}
	begun := time.Now()
	r.turn()()
	if took := time.Since(begun); took < upkeepWait {
		t.Errorf("one too many after %v", took)
	}
	for range cap(r.upkeep) {
		r.endTurn()
	}
	p.drain()
	<-p.closed
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
