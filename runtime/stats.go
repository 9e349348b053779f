package runtime

import (
	"math/bits"
	"runtime"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// NumReasons bounds the reason codes that are counted apart; a larger one counts as
// handler_error.
const NumReasons = 32

// DurationBuckets is the number of buckets of a [Durations].
const DurationBuckets = 28 * 4

// DurationSchema and DurationFirst place the buckets among those of a Prometheus
// native histogram: bucket i has the upper bound 2^((DurationFirst+i)/4) seconds.
const (
	DurationSchema = 2
	DurationFirst  = -24 * 4
)

// Durations is a histogram of call durations, four buckets to a power of two. The
// first holds everything up to 60 ns, the last everything above 11 s.
type Durations struct {
	Buckets [DurationBuckets]uint64
	SumNS   uint64
}

func (d *Durations) add(ns int64) {
	d.SumNS += uint64(ns)
	d.Buckets[durationBucket(uint64(ns))]++
}

func (d *Durations) merge(o *Durations) {
	for i, n := range o.Buckets {
		d.Buckets[i] += n
	}
	d.SumNS += o.SumNS
}

// durationBucket finds the bucket of ns. In units of 2^-54 s the leading bit gives
// the power of two, and the bits below it the quarter.
func durationBucket(ns uint64) int {
	const unitsPerNS = 18014398 // 2^54 / 1e9
	v := min(ns, 1<<38) * unitsPerNS
	if v == 0 {
		return 0
	}
	e := bits.Len64(v) - 1
	m := v << (62 - e) // in [2^62, 2^63)
	q := 1
	// 2^(62 + 1/4), 2^(62 + 1/2), 2^(62 + 3/4)
	if m > 6521908912666391552 {
		q = 3
		if m > 7755900482342532096 {
			q = 4
		}
	} else if m > 5484249825272419328 {
		q = 2
	}
	return min(max((e-54)*4+q-DurationFirst, 0), DurationBuckets-1)
}

// GuestStats is what one loaded guest has done, merged over its instances.
type GuestStats struct {
	Name       string
	Version    string
	SHA256     string
	Generation uint64 // the generation that loaded it

	Calls      uint64
	Accepted   uint64
	Rejected   [NumReasons]uint64 // by reason
	Traps      [NumTraps]uint64   // by TrapKind
	LogDropped uint64
	Fuel       uint64
	Durations  Durations

	Emitted uint64             // policies: actions that went into envelopes
	Dropped [NumReasons]uint64 // policies: actions that did not, by reason
	Skipped uint64             // policies: requests that lacked a required field, or whose caller was gone

	Instances   int    // configured
	Vacant      int    // trapped and not replaced yet
	Stuck       int    // held by a call that has not ended for a second or more
	Stalls      uint64 // how often that came about
	Unavailable uint64 // calls that found no free instance in time, or the guest quarantined
	Crowded     uint64 // of them, since as many heavy calls were running as may run at once
	Heavy       bool   // its calls take as much fuel as makes a guest heavy
	Quarantined bool   // callers are kept away for a while, since half of the calls trapped
	Quarantines uint64 // how often that came about
	// QuarantineLeft is how long callers are kept away yet.
	QuarantineLeft time.Duration
	MemoryBytes    uint64 // linear memory of all instances
	Idle           IdleStats

	ReservedBytes uint64 // of RuntimeStats.MemoryBudget
}

// RuntimeStats is what the runtime itself has done.
type RuntimeStats struct {
	Generation uint64
	Guests     int
	Dispatches uint64
	Malformed  uint64
	Unrouted   [NumReasons]uint64 // actions rejected before any guest, by reason

	Formulations      uint64
	MalformedContexts uint64

	Swaps       uint64 // generations offered
	FailedSwaps uint64 // builds that changed nothing

	HeavyMost    int    // heavy calls that may run at once
	HeavyRunning int    // that do
	HeavyFuel    uint64 // of a call, that makes its guest heavy

	MemoryBudget   uint64 // Config.Memory
	MemoryReserved uint64 // of it, by guests that are loaded, being replaced or being built
}

// slotStats are the counters of one instance: plain fields of whoever holds it.
type slotStats struct {
	calls, accepted, fuel, logDropped uint64
	peak                              uint64 // the most fuel of a call, until the pool is weighed
	rejected                          [NumReasons]uint64
	traps                             [NumTraps]uint64
	emitted                           uint64
	dropped                           [NumReasons]uint64
	durations                         Durations
}

// count counts one call and its result.
func (s *slotStats) count(out *hint.Result, c *Call) {
	s.calls++
	if out.Status == abi.StatusAccepted {
		s.accepted++
	} else {
		s.rejected[reasonIndex(out.Reason)]++
	}
	s.fuel += out.Fuel
	s.peak = max(s.peak, out.Fuel)
	s.logDropped += c.logDropped
	s.durations.add(out.DurationNS)
}

func reasonIndex(r abi.Reason) int {
	if r >= NumReasons {
		r = abi.ReasonHandlerError
	}
	return int(r)
}

func (g *GuestStats) merge(s *slotStats) {
	g.Calls += s.calls
	g.Accepted += s.accepted
	g.Fuel += s.fuel
	g.LogDropped += s.logDropped
	for i := range s.rejected {
		g.Rejected[i] += s.rejected[i]
	}
	for i := range s.traps {
		g.Traps[i] += s.traps[i]
	}
	g.Emitted += s.emitted
	for i := range s.dropped {
		g.Dropped[i] += s.dropped[i]
	}
	g.Durations.merge(&s.durations)
}

// stats merges the counters of all slots. A slot is taken for the moment of reading;
// of one that stays busy, what was read last counts.
func (p *pool) stats(g *GuestStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		s := &p.slots[i]
		for try := 0; try < 100; try++ {
			state := s.state.Load()
			if state == slotClosed {
				p.last[i], p.memory[i] = s.stats, 0
				break
			}
			if state == slotVacant {
				p.memory[i] = 0
				break
			}
			if state == slotFree && s.state.CompareAndSwap(slotFree, slotBusy) {
				p.last[i], p.memory[i] = s.stats, uint64(len(s.inst.wasm.Memory()))
				p.release(s)
				break
			}
			runtime.Gosched()
		}
		if s.state.Load() == slotVacant {
			g.Vacant++
		}
		g.merge(&p.last[i])
		g.MemoryBytes += p.memory[i]
	}
	g.Stuck, g.Stalls = int(p.stuck.Load()), p.stalls.Load()
	g.ReservedBytes = p.guest.reserved
	g.Instances, g.Idle = len(p.slots), p.idleStats
	g.Unavailable, g.Crowded, g.Heavy = p.unavailable.Load(), p.crowded.Load(), p.heavy.Load()
	g.QuarantineLeft = p.quarantine.left(p.guest.runtime)
	g.Quarantined, g.Quarantines = g.QuarantineLeft > 0, p.quarantine.count.Load()
}
