package runtime

import (
	"sync/atomic"
	"time"
)

// Upkeep is what guests do that no caller waits for: the start of an instance in the
// place of one that is used up, and kvrt_idle. A guest holds its thread against the
// scheduler and the collector of this process, and here it may do so for up to 10
// million of fuel. So few do it at once, and a pool rests after it for rest for each
// fuel, within which one at worst takes 6 ns and mostly less than 1: a guest with long
// starts that traps again and again waits for itself, and nobody waits for it.
const (
	rest = 50 * time.Nanosecond
	// Of kvrt_idle, so much fuel is free: a collector takes less.
	freeIdle = 2_000_000
	// What blocks in a start, such as a host function of the embedding program, keeps
	// the others for so long.
	upkeepWait = time.Second
	restMost   = time.Minute
)

// upkeepAtOnce leaves most of the processors to the callers.
func upkeepAtOnce(processors int) int { return max(1, processors/4) }

// turn waits until few others of the runtime are in their upkeep, and if it may be long
// for a token of the lane of heavy calls. What it returns ends the turn.
//
// Nobody who has a token waits for a turn, and both waits end: whoever waits too long
// goes on without, so that a host function that blocks in a call or in a start stops
// nobody's upkeep.
func (r *Runtime) turn(long bool) (end func()) {
	inTurn := take(r.upkeep, upkeepWait)
	token := func() {}
	if long {
		token = r.upkeepToken()
	}
	return func() {
		token()
		if inTurn {
			<-r.upkeep
		}
	}
}

// upkeepToken takes a token of the lane. What it returns gives the token back, unless
// that took so long that it is back already: then a host function blocks.
func (r *Runtime) upkeepToken() (giveBack func()) {
	if !take(r.lane, laneWaits*r.cfg.Wait) {
		return func() {}
	}
	var back atomic.Bool
	give := func() {
		if back.CompareAndSwap(false, true) {
			<-r.lane
		}
	}
	late := time.AfterFunc(upkeepWait, give)
	return func() {
		late.Stop()
		give()
	}
}

// took notes what a start or a kvrt_idle took.
func (g *guest) took(fuel uint64) {
	if fuel >= g.runtime.cfg.HeavyFuel && !g.long.Load() {
		g.long.Store(true)
	}
}

// take sends into a channel that counts who is somewhere, for a while.
func take(c chan struct{}, wait time.Duration) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case c <- struct{}{}:
		return true
	case <-late.C:
		return false
	}
}

// turn waits until the pool has rested, and for its turn. It is false, and there is
// none, when the pool is drained meanwhile.
func (p *pool) turn(long bool) (end func(), ok bool) {
	for {
		if left := p.restLeft(); left > 0 {
			late := time.NewTimer(left)
			select {
			case <-late.C:
			case <-p.drained:
				late.Stop()
				return nil, false
			}
		}
		end := p.guest.runtime.turn(long)
		if p.draining.Load() {
			end()
			return nil, false
		}
		if p.restLeft() <= 0 { // another of the pool's may have been faster
			return end, true
		}
		end()
	}
}

func (p *pool) restLeft() time.Duration {
	return time.Duration(p.rested.Load() - p.guest.runtime.nanos())
}

// tired has the pool rest after upkeep that took so much fuel.
func (p *pool) tired(fuel uint64) {
	p.rested.Store(p.guest.runtime.nanos() + int64(min(time.Duration(min(fuel, maxFuel))*rest, restMost)))
}
