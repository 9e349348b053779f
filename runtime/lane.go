package runtime

import "time"

// The lane of heavy calls. No scheduler takes a thread away from a guest, so calls that
// compute for long hold processors and the collector for as long. At most half of the
// processors do that at once, over all guests; a guest is heavy, and its calls need a
// token of the lane, from a call that takes Config.HeavyFuel until lightCalls holds in a
// row took less. Other guests pay two branches, and touch nothing that is shared.
//
// A call takes its instance first and then its token, and holds one of each at most, so
// who holds a token waits for nobody.
const (
	defaultHeavyFuel = 50_000
	lightCalls       = 64
	// A call of two million of fuel, the most without the operator's word, may take more
	// than twice Config.Wait.
	laneWaits = 4
)

// laneWidth is how many heavy calls run at once.
func laneWidth(processors int) int { return max(1, processors/2) }

// enter takes a token for the call that is about to be made on s. Without one in time it
// gives s back and returns nil, like acquire.
func (p *pool) enter(s *slot) (entered *slot, drained bool) {
	lane := p.guest.runtime.lane
	select {
	case lane <- struct{}{}:
		s.token.Store(true)
		return s, false
	default:
	}
	wait := laneWaits * p.guest.runtime.cfg.Wait
	if s.late == nil {
		s.late = time.NewTimer(wait)
	} else {
		s.late.Reset(wait)
	}
	select {
	case lane <- struct{}{}:
		s.late.Stop()
		s.token.Store(true)
		return s, false
	case <-p.drained:
		s.late.Stop()
	case <-s.late.C:
	}
	p.release(s)
	if p.draining.Load() {
		return nil, true
	}
	p.crowded.Add(1)
	p.unavailable.Add(1)
	return nil, false
}

// leave is said by whoever gives a slot back: the pool is weighed by what the calls took,
// and the token goes back.
func (p *pool) leave(s *slot) {
	if s.stats.peak >= p.tooMuch {
		s.stats.peak = 0
		p.light.Store(0)
		p.heavy.Store(true)
	} else if s.token.Load() && p.light.Add(1) >= lightCalls {
		p.heavy.Store(false)
	}
	p.giveToken(s)
}

// giveToken gives the token of a slot back, if it has one. The watch does so too, for a
// call that does not end: it computes no more, but waits in a host function.
func (p *pool) giveToken(s *slot) {
	if s.token.Load() && s.token.CompareAndSwap(true, false) {
		<-p.guest.runtime.lane
	}
}
