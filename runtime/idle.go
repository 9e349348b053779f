package runtime

import (
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// IdleStats is what calls of kvrt_idle have done, the one after the start of each
// instance not counted.
type IdleStats struct {
	Calls uint64
	Fuel  uint64
	Traps [NumTraps]uint64 // by TrapKind; each cost the instance
	NS    uint64
}

// wear is what an instance has done since its last kvrt_idle; plain fields of whoever
// holds it.
type wear struct {
	calls uint64 // of roles
	bytes uint64 // of frames and answers
}

// due tells that kvrt_idle should be called, overdue that no role is called before it.
func (in *instance) due(l *Limits) bool {
	return in.wear.calls >= l.IdleCalls || in.wear.bytes >= l.IdleBytes
}

func (in *instance) overdue(l *Limits) bool {
	return in.wear.calls >= abi.IdleOverdue*l.IdleCalls || in.wear.bytes >= abi.IdleOverdue*l.IdleBytes
}

// idle calls kvrt_idle. An error means that the instance is used up.
func (in *instance) idle(g *guest) error {
	in.wear = wear{}
	in.call.begin(hint.Identity{}, g.limits.IdleFuel)
	err := in.invoke(ExportIdle, in.stack[:0])
	in.call.drop() // nothing outside happens on behalf of no action
	if err == nil {
		err = in.call.failure()
	}
	return err
}

// rest sees to an instance that is due, whose slot the caller holds and is about to
// give back in the state that rest returns. The spare takes its place, so that nobody
// waits for it. While there is none, because another instance is at rest or has
// trapped, this one goes on until it is overdue; then it waits for the rester in its
// slot.
func (p *pool) rest(s *slot) uint32 {
	if p.mu.TryLock() { // a scrape holds it for longer
		if p.spare != nil && p.resting == nil && !p.draining.Load() {
			s.inst, p.spare, p.resting = p.spare, nil, s.inst
			p.mu.Unlock()
			p.wakeRester()
			return slotFree
		}
		p.mu.Unlock()
	}
	if !s.inst.overdue(&p.guest.limits) {
		return slotFree
	}
	return slotResting
}

func (p *pool) wakeRester() {
	select {
	case p.wake <- struct{}{}:
	default: // it will look again in any case
	}
}

// rester calls kvrt_idle of one instance after the other, until the pool is drained.
func (p *pool) rester() {
	defer p.closeOne()
	for {
		select {
		case <-p.wake:
			for p.restOne() {
			}
			continue
		case <-p.drained:
		}
		p.mu.Lock()
		in := p.resting
		p.resting = nil
		p.mu.Unlock()
		if in != nil {
			p.discard(in)
		}
		p.closeVacant() // one that place looked at meanwhile
		return
	}
}

// restOne calls kvrt_idle of the instance that waits for it; false when none does.
func (p *pool) restOne() bool {
	p.mu.Lock()
	in := p.resting
	p.mu.Unlock()
	var held *slot
	if in == nil {
		if in, held = p.parked(); in == nil {
			return false
		}
	}
	end, ok := p.turn(p.guest.long.Load())
	if !ok {
		if held != nil {
			p.release(held)
		}
		return false
	}
	begun := time.Now()
	err := in.idle(p.guest)
	used := in.call.used()
	p.guest.took(used)
	if used > freeIdle {
		p.tired(used)
	}
	end()
	p.mu.Lock()
	st := &p.idleStats
	st.Calls++
	st.Fuel += used
	st.NS += uint64(time.Since(begun))
	if err != nil {
		st.Traps[trapOf(err).Kind]++
	}
	if held == nil {
		p.resting = nil
	}
	p.mu.Unlock()
	if err != nil && p.guest.warned.first(warnIdle, []byte(err.Error())) {
		p.guest.runtime.log.Warn("kvrt_idle failed; the instance is replaced (an equal failure is not logged again)", "guest", p.guest.spec.Name, "error", err)
	}
	switch {
	case err != nil && held != nil:
		p.replace(held)
	case err != nil:
		p.open.Add(1)
		go p.renew(in)
	case held != nil:
		p.release(held)
	default:
		p.place(in)
	}
	return true
}

// parked takes an instance that is overdue. When there is a spare by now, that goes
// into the slot, and no slot is returned.
func (p *pool) parked() (*instance, *slot) {
	for i := range p.slots {
		s := &p.slots[i]
		if !s.state.CompareAndSwap(slotResting, slotBusy) {
			continue
		}
		in := s.inst
		p.mu.Lock()
		if p.spare == nil || p.draining.Load() {
			p.mu.Unlock()
			return in, s
		}
		s.inst, p.spare, p.resting = p.spare, nil, in
		p.mu.Unlock()
		p.release(s)
		return in, nil
	}
	return nil, nil
}

// warnIdle is the kind of the warning about kvrt_idle, beside the levels of guests.
const warnIdle = 1 << 33

// trapOf is how a call ended, whatever the engine made of it.
func trapOf(err error) *Trap {
	switch t := err.(type) {
	case *Trap:
		return t
	case *FatalError:
		return &Trap{TrapHostPanic, t.Error()}
	}
	return &Trap{TrapGuest, err.Error()}
}
