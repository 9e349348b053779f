package runtime

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The states of a slot. Whoever moves it from free to busy holds it.
const (
	slotFree   uint32 = iota
	slotBusy          // held, or being looked at by a scrape
	slotVacant        // its instance trapped and no other is ready yet
	slotClosed        // the guest is drained; for good
)

// slot holds one instance. Padding keeps neighbours out of each other's cache lines.
type slot struct {
	state atomic.Uint32
	_     [60]byte
	inst  *instance
	past  history
	stats slotStats
	_     [64]byte
}

// pool is the instances of one guest. Acquire and release take no lock while an
// instance is free.
type pool struct {
	guest    *guest
	slots    []slot
	draining atomic.Bool
	drained  chan struct{} // closed when draining is set
	waiters  atomic.Int32
	freed    chan struct{}
	open     atomic.Int32 // slots that are not closed, and refills that run
	closed   chan struct{}

	unavailable atomic.Uint64
	quarantine  quarantine

	mu     sync.Mutex // guards what follows; never held while a guest runs on a slot
	spare  *instance
	last   []slotStats // what the last scrape read, for slots that are busy
	memory []uint64
}

// newPool makes n instances and a spare.
func newPool(ctx context.Context, g *guest, n int) (*pool, error) {
	p := &pool{guest: g, slots: make([]slot, n), freed: make(chan struct{}, n), drained: make(chan struct{}), closed: make(chan struct{}),
		last: make([]slotStats, n), memory: make([]uint64, n)}
	p.open.Store(int32(n))
	for i := range n + 1 {
		in, err := g.newInstance(ctx)
		if err != nil {
			for j := range i {
				p.slots[j].inst.wasm.Close()
			}
			return nil, err
		}
		if i < n {
			p.slots[i].inst = in
		} else {
			p.spare = in
		}
	}
	return p, nil
}

// acquire takes a free instance, beginning at start, and waits up to wait for one. It
// returns nil when there is none, or the guest is quarantined; drained tells that the
// guest is being replaced.
func (p *pool) acquire(start uint32, wait time.Duration) (s *slot, drained bool) {
	if p.quarantine.on(p.guest.runtime) {
		p.unavailable.Add(1)
		return nil, p.draining.Load()
	}
	n := uint32(len(p.slots))
	for i := range n {
		s := &p.slots[(start+i)%n]
		if s.state.Load() == slotFree && s.state.CompareAndSwap(slotFree, slotBusy) {
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
	s.state.Store(slotFree)
	if p.draining.Load() {
		p.closeFree(s)
	} else if p.waiters.Load() > 0 {
		select {
		case p.freed <- struct{}{}:
		default:
		}
	}
}

// poison replaces an instance that trapped: by the spare at once, or else as soon as
// a new one is ready. The trapped one is closed afterwards, off the caller's path.
func (p *pool) poison(s *slot) {
	if s.past.note(true); s.past.looping() {
		p.begin(p.guest.runtime.nanos())
	}
	old := s.inst
	p.open.Add(1) // the refill below; s itself is still open
	p.mu.Lock()
	s.inst, p.spare = p.spare, nil
	p.mu.Unlock()
	if s.inst == nil {
		s.state.Store(slotVacant)
	} else {
		p.release(s)
	}
	go func() {
		old.wasm.Close()
		p.refill()
		p.closeOne()
	}()
}

// refill makes instances until no slot is vacant and a spare is there. A guest that
// cannot be brought up any more is tried again with growing pauses.
func (p *pool) refill() {
	for pause := time.Millisecond; !p.draining.Load(); {
		in, err := p.guest.newInstance(context.Background())
		if err == nil {
			if !p.place(in) {
				return
			}
			continue
		}
		p.guest.runtime.log.Warn("a trapped instance could not be replaced", "guest", p.guest.spec.Name, slog.Any("error", err))
		select {
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		case <-p.drained:
		}
	}
	p.closeVacant()
}

// place puts a new instance where one is missing; false when none is.
func (p *pool) place(in *instance) bool {
	for i := range p.slots {
		if s := &p.slots[i]; s.state.CompareAndSwap(slotVacant, slotBusy) {
			s.inst = in
			p.release(s)
			return true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spare != nil || p.draining.Load() {
		in.wasm.Close()
		return false
	}
	p.spare = in
	return false
}

// why says why acquire returned nothing.
func (p *pool) why() string {
	if p.quarantine.on(p.guest.runtime) {
		return "the guest is quarantined: half of its last calls trapped"
	}
	return "no instance was free in time"
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
	if s.state.CompareAndSwap(slotFree, slotClosed) {
		s.inst.wasm.Close()
		p.closeOne()
	}
}

func (p *pool) closeOne() {
	if p.open.Add(-1) == 0 {
		p.guest.module.Close()
		close(p.closed)
	}
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
	g.Instances = len(p.slots)
	g.Unavailable = p.unavailable.Load()
	g.Quarantined, g.Quarantines = p.quarantine.on(p.guest.runtime), p.quarantine.count.Load()
}
