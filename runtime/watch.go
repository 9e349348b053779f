package runtime

import (
	"context"
	"time"
)

// watchEvery is how often slots are looked at for calls that do not end.
const watchEvery = time.Second

// Patience is for host functions that may have to wait. It ends when the call has waited
// long enough, Config.Patience from when it was first asked for, or is over. A host
// function that waits for anything else holds its caller and the instance for as long:
// nothing in Go can end it. The watch over the pools reports such a call.
func (c *Call) Patience() context.Context {
	if c.patience == nil {
		c.patience, c.endPatience = context.WithTimeout(context.Background(), c.runtime.cfg.Patience)
	}
	return c.patience
}

// settle ends what belongs to a call whose effect is out of the way.
func (c *Call) settle() {
	if c.patience != nil {
		c.endPatience()
		c.patience, c.endPatience = nil, nil
	}
}

// watch looks at the slots. One that was held at the last look and has not been given
// back since is stuck: fuel ends a guest long before, so a host function blocks, or the
// carrying out of an effect. The first look at which it is stuck is logged.
func (p *pool) watch() {
	stuck := 0
	for i := range p.slots {
		s := &p.slots[i]
		if s.state.Load() != slotBusy {
			continue
		}
		switch s.watched.Load() {
		case 0:
			s.watched.CompareAndSwap(0, watchSeen)
		case watchSeen:
			if s.watched.CompareAndSwap(watchSeen, watchStuck) {
				stuck++
				p.stalls.Add(1)
				p.giveToken(s)
				p.guest.runtime.log.Error("a call does not end: a host function blocks, or an effect does, or the guest's limits of fuel are very high; its instance and its caller are held as long",
					"guest", p.guest.spec.Name, "for_at_least", watchEvery.String(), "instance", i)
			}
		case watchStuck:
			stuck++
		}
	}
	p.stuck.Store(int32(stuck))
}

// What a watch has made of the hold on a slot; whoever gives the slot back clears it.
const (
	watchSeen  = 1 + iota // held at one look
	watchStuck            // and at the next
)

// unwatch is said by whoever gives a slot back. It costs a load.
func (s *slot) unwatch() {
	if s.watched.Load() != 0 {
		s.watched.Store(0)
	}
}

// watchOver looks at all pools, until the runtime is closed.
func (r *Runtime) watchOver() {
	defer close(r.watched)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.closing:
			return
		case <-tick.C:
		}
		if gen := r.current.Load(); gen != nil {
			for _, g := range gen.guests {
				g.pool.watch()
			}
		}
	}
}
