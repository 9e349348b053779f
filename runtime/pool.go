package runtime

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// The states of a slot. Whoever moves it from free to busy holds it.
const (
	slotFree    uint32 = iota
	slotBusy           // held, or being looked at by a scrape
	slotVacant         // its instance trapped and no other is ready yet
	slotResting        // its instance waits for kvrt_idle: the rester's
	slotClosed         // the guest is drained; for good
)

// slot holds one instance. Padding keeps neighbours out of each other's cache lines.
type slot struct {
	state   atomic.Uint32
	watched atomic.Uint32 // by the watch over calls that do not end
	_       [56]byte
	inst    *instance
	past    history
	stats   slotStats
	token   atomic.Bool // of the lane of heavy calls
	late    *time.Timer // for waiting for one; nil until then
	index   int         // of the slot
	_       [64]byte
}

// pool is the instances of one guest. Acquire and release take no lock while an
// instance is free.
type pool struct {
	guest    *guest
	slots    []slot
	draining atomic.Bool
	heavy    atomic.Bool   // its calls need a token of the lane
	tooMuch  uint64        // Config.HeavyFuel
	drained  chan struct{} // closed when draining is set
	waiters  atomic.Int32
	freed    chan struct{}
	open     atomic.Int32 // slots that are not closed, and refills that run
	closed   chan struct{}

	unavailable atomic.Uint64
	crowded     atomic.Uint64 // of them, for want of a token
	light       atomic.Uint32 // calls with a token since one took as much as makes a guest heavy
	stalls      atomic.Uint64 // calls that did not end in time
	stuck       atomic.Int32  // slots that they hold
	quarantine  quarantine
	rested      atomic.Int64  // runtime nanoseconds: no upkeep before
	wake        chan struct{} // the rester; nil when the guest has no kvrt_idle

	mu        sync.Mutex // guards what follows; never held while a guest runs
	spare     *instance
	resting   *instance // is in kvrt_idle, or about to be; then there is no spare but by a race with a refill
	alive     int       // instances that are there or being made: at most one more than slots
	idleStats IdleStats
	last      []slotStats // what the last scrape read, for slots that are busy
	memory    []uint64
}

// newPool makes n instances and a spare.
func newPool(ctx context.Context, g *guest, n int) (*pool, error) {
	p := &pool{guest: g, tooMuch: g.runtime.cfg.HeavyFuel, slots: make([]slot, n), freed: make(chan struct{}, n), drained: make(chan struct{}), closed: make(chan struct{}),
		last: make([]slotStats, n), memory: make([]uint64, n)}
	p.open.Store(int32(n))
	p.alive = n + 1
	for i := range n + 1 {
		end := g.runtime.turn(i == 0 || g.long.Load())
		in, fuel, err := g.newInstance(ctx)
		g.took(fuel)
		end()
		if err != nil {
			for j := range i {
				p.slots[j].inst.wasm.Close()
			}
			return nil, err
		}
		if i < n {
			p.slots[i].inst, p.slots[i].index = in, i
		} else {
			p.spare = in
		}
	}
	if p.spare.wasm.Has(ExportIdle) {
		p.wake = make(chan struct{}, 1)
		p.open.Add(1)
		go p.rester()
	}
	return p, nil
}

// acquire takes a free instance, beginning at start, and waits up to wait for one. It
// returns nil when there is none, or the guest is quarantined; drained tells that the
// guest is being replaced.
func (p *pool) acquire(start uint32, wait time.Duration) (s *slot, drained bool) {
	if p.quarantine.until.Load() != 0 && p.quarantined() {
		p.unavailable.Add(1)
		return nil, p.draining.Load()
	}
	n := uint32(len(p.slots))
	for i := range n {
		s := &p.slots[(start+i)%n]
		if s.state.Load() == slotFree && s.state.CompareAndSwap(slotFree, slotBusy) {
			if p.heavy.Load() {
				return p.enter(s)
			}
			return s, false
		}
	}
	if p.draining.Load() {
		return nil, true
	}
	return p.await(start, wait)
}

func (p *pool) await(start uint32, wait time.Duration) (*slot, bool) {
	p.waiters.Add(1)
	defer p.waiters.Add(-1)
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		for i := range p.slots {
			s := &p.slots[(int(start)+i)%len(p.slots)]
			if s.state.CompareAndSwap(slotFree, slotBusy) {
				if p.heavy.Load() {
					return p.enter(s)
				}
				return s, false
			}
		}
		if p.draining.Load() {
			return nil, true
		}
		select {
		case <-p.freed:
		case <-p.drained:
		case <-timeout.C:
			if p.draining.Load() {
				return nil, true
			}
			p.unavailable.Add(1)
			return nil, false
		}
	}
}

// release gives an instance back. When the guest is being drained meanwhile, the
// releaser or the drainer closes it: each looks after it has written.
func (p *pool) release(s *slot) {
	s.unwatch()
	p.leave(s)
	state := slotFree
	if p.wake != nil && s.inst.due(&p.guest.limits) {
		state = p.rest(s)
	}
	s.state.Store(state)
	if p.draining.Load() {
		p.closeFree(s)
	} else if state == slotResting {
		p.wakeRester()
	} else if p.waiters.Load() > 0 {
		select {
		case p.freed <- struct{}{}:
		default:
		}
	}
}

// poison replaces an instance that trapped in a call.
func (p *pool) poison(s *slot) {
	if s.past.note(true); s.past.looping() {
		p.begin(p.guest.runtime.nanos())
	}
	p.replace(s)
}

// replace puts the spare in the place of an instance that is used up, or else a new one
// as soon as it is ready. The old one is closed afterwards, off the caller's path.
func (p *pool) replace(s *slot) {
	s.unwatch()
	p.leave(s)
	old := s.inst
	p.open.Add(1) // the renewal below; s itself is still open
	if !p.fill(s) {
		s.state.Store(slotVacant)
		// A spare may have come meanwhile from who saw no vacant slot.
		if s.state.CompareAndSwap(slotVacant, slotBusy) && !p.fill(s) {
			s.state.Store(slotVacant)
		}
	}
	go p.renew(old)
}

// fill puts the spare, if there is one, into a slot that the caller holds, and gives the
// slot back.
func (p *pool) fill(s *slot) bool {
	p.mu.Lock()
	in := p.spare
	if in != nil {
		s.inst, p.spare = in, nil
	} else {
		p.last[s.index] = s.stats // for scrapes, which do not look into a vacant slot
	}
	p.mu.Unlock()
	if in != nil {
		p.release(s)
	}
	return in != nil
}

// renew closes an instance that is used up and makes another. The caller has counted
// it in open.
func (p *pool) renew(old *instance) {
	p.discard(old)
	p.refill()
	p.closeOne()
}

func (p *pool) discard(in *instance) {
	in.wasm.Close()
	p.mu.Lock()
	p.alive--
	p.mu.Unlock()
}

// refill makes instances until there are as many as there should be. A guest that
// cannot be brought up any more is tried again with growing pauses.
func (p *pool) refill() {
	for pause := time.Millisecond; p.claim(); {
		end, ok := p.turn(p.guest.long.Load())
		if !ok {
			p.mu.Lock()
			p.alive--
			p.mu.Unlock()
			break
		}
		in, fuel, err := p.guest.newInstance(context.Background())
		p.guest.took(fuel)
		p.tired(fuel)
		end()
		if err == nil {
			p.place(in)
			continue
		}
		p.mu.Lock()
		p.alive--
		p.mu.Unlock()
		p.guest.runtime.log.Warn("a trapped instance could not be replaced", "guest", p.guest.spec.Name, slog.Any("error", err))
		select {
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		case <-p.drained:
		}
	}
	if p.draining.Load() {
		p.closeVacant()
	}
}

// claim counts an instance that is about to be made, when one is missing.
func (p *pool) claim() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining.Load() || p.alive > len(p.slots) {
		return false
	}
	p.alive++
	return true
}

// place puts an instance that nobody holds where one is missing.
func (p *pool) place(in *instance) {
	if p.placeVacant(in) {
		return
	}
	p.mu.Lock()
	if p.spare != nil || p.draining.Load() {
		p.mu.Unlock()
		p.discard(in)
		return
	}
	p.spare = in
	p.mu.Unlock()
	// A slot may have become vacant meanwhile, by who saw no spare.
	for i := range p.slots {
		if s := &p.slots[i]; s.state.CompareAndSwap(slotVacant, slotBusy) && !p.fill(s) {
			s.state.Store(slotVacant)
			return
		}
	}
}

func (p *pool) placeVacant(in *instance) bool {
	for i := range p.slots {
		if s := &p.slots[i]; s.state.CompareAndSwap(slotVacant, slotBusy) {
			s.inst = in
			p.release(s)
			return true
		}
	}
	return false
}

// drain closes the pool: free slots now, held ones by their holder. It returns at
// once; closed is closed after the last one.
func (p *pool) drain() {
	if !p.draining.CompareAndSwap(false, true) {
		return
	}
	close(p.drained)
	p.mu.Lock()
	if p.spare != nil {
		p.spare.wasm.Close()
		p.spare = nil
	}
	p.mu.Unlock()
	for i := range p.slots {
		p.closeFree(&p.slots[i])
	}
	p.closeVacant()
}

func (p *pool) closeVacant() {
	for i := range p.slots {
		if p.slots[i].state.CompareAndSwap(slotVacant, slotClosed) {
			p.closeOne()
		}
	}
}

func (p *pool) closeFree(s *slot) {
	if s.state.CompareAndSwap(slotFree, slotClosed) || s.state.CompareAndSwap(slotResting, slotClosed) {
		s.inst.wasm.Close()
		p.closeOne()
	}
}

func (p *pool) closeOne() {
	if p.open.Add(-1) == 0 {
		p.guest.module.Close()
		p.guest.giveBack()
		close(p.closed)
	}
}
