package runtime

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"
)

// When a guest is taken out of service: at least half of the last 32 calls of one of
// its instances' places trapped, and there were at least 16.
const (
	quarantineMin   = 16
	quarantineFirst = time.Second
	quarantineMost  = time.Minute
)

// history is how the last calls on one slot ended, newest in bit 0; a plain field of
// whoever holds the slot. It outlives the instances that trap.
type history struct {
	traps uint32
	calls uint8 // up to 32
}

func (h *history) note(trapped bool) {
	h.traps <<= 1
	if trapped {
		h.traps |= 1
	}
	h.calls = min(h.calls+1, 32)
}

func (h *history) looping() bool {
	return h.calls >= quarantineMin && 2*bits.OnesCount32(h.traps) >= int(h.calls)
}

// quarantine keeps callers away from a guest that traps again and again: its handlers
// answer handler_unavailable without being called. It ends by itself, and when the next
// calls trap as well it comes back for twice as long. A swap ends it at once, since the
// new guest has a pool of its own, and so does whoever asks for it.
type quarantine struct {
	until atomic.Int64 // runtime nanoseconds; 0: not in one
	count atomic.Uint64
	pause time.Duration // of the last one; guarded by the pool's mutex
	last  int64         // when that was to end; guarded by it, too
}

// quarantined tells whether callers are kept away now. The first to find that a
// quarantine is over says so.
func (p *pool) quarantined() bool {
	q, r := &p.quarantine, p.guest.runtime
	until := q.until.Load()
	if until == 0 {
		return false
	}
	if r.nanos() < until {
		return true
	}
	if q.until.CompareAndSwap(until, 0) {
		r.log.Info("guest is called again: its quarantine is over", "guest", p.guest.spec.Name)
	}
	return false
}

// left is how long callers are kept away yet.
func (q *quarantine) left(r *Runtime) time.Duration {
	return time.Duration(max(q.until.Load()-r.nanos(), 0))
}

// resume ends a quarantine, and forgets that there were any.
func (p *pool) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := &p.quarantine; p.quarantined() {
		q.until.Store(0)
		q.pause = 0
		p.guest.runtime.log.Info("guest resumed: its quarantine was ended by hand", "guest", p.guest.spec.Name)
	}
}

// Resume ends a guest's quarantine. Without one it does nothing.
func (r *Runtime) Resume(name string) error {
	if gen := r.current.Load(); gen != nil {
		for _, g := range gen.guests {
			if g.spec.Name == name {
				g.pool.resume()
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %s", ErrUnknownGuest, name)
}

// begin starts a quarantine, unless one is on.
func (p *pool) begin(now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.quarantine
	if p.quarantined() {
		return
	}
	if q.pause = min(2*q.pause, quarantineMost); q.pause == 0 || now-q.last > int64(4*quarantineMost) {
		q.pause = quarantineFirst
	}
	q.last = now + int64(q.pause)
	q.until.Store(q.last)
	q.count.Add(1)
	p.guest.runtime.log.Error("guest quarantined: half of its last calls trapped; swap in a good one, or wait",
		"guest", p.guest.spec.Name, "for", q.pause.String())
}

// why says why acquire returned nothing.
func (p *pool) why() string {
	if p.quarantined() {
		return "the guest is quarantined: half of its last calls trapped"
	}
	if int(p.stuck.Load()) == len(p.slots) {
		return "every instance is held by a call that does not end"
	}
	if p.heavy.Load() {
		return "no instance was free in time, or as many calls of guests that compute for long were running as may run at once"
	}
	return "no instance was free in time"
}
