package runtime

import "time"

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

// turn waits until few others of the runtime are in their upkeep. What it returns ends
// the turn.
func (r *Runtime) turn() (end func()) {
	select {
	case r.upkeep <- struct{}{}:
		return r.endTurn
	default:
	}
	late := time.NewTimer(upkeepWait)
	defer late.Stop()
	select {
	case r.upkeep <- struct{}{}:
		return r.endTurn
	case <-late.C:
		return func() {}
	}
}

func (r *Runtime) endTurn() { <-r.upkeep }

// turn waits until the pool has rested, and for its turn. It is false, and there is
// none, when the pool is drained meanwhile.
func (p *pool) turn() (end func(), ok bool) {
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
		end := p.guest.runtime.turn()
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
