package tier

import (
	"context"
	"fmt"
	"sync"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
)

// op is one batch with what it holds. It is idle, somebody's who fills it and waits for it,
// or, when nobody waits any longer, its own until it has ended.
type op struct {
	way   uint8
	what  what
	batch gpu.Batch
	moves []move
	err   error
	key   [1]uint64 // of a question to the store
	where [1]abi.Residency

	start sync.Mutex // held while it is submitted: it may end before that returns
	fence gpu.Fence

	mu        sync.Mutex
	over      bool
	abandoned bool
	done      chan struct{} // has one value when it is over and somebody waits
}

// move is one block on its way.
type move struct {
	at     int    // in the list of the call
	slot   int32  // on the device, or -1
	token  uint64 // of the block store
	bytes  uint64
	leased bool // token is a lease
	status Status
}

// what a call does
type what uint8

const (
	loads what = iota
	saves
	delivers
	offloads
)

// way is which lane a call takes. Deliver's may begin on the device; what matters is where
// they go.
func (w what) way() uint8 {
	if w == loads || w == delivers {
		return in
	}
	return out
}

// take gets an idle operation for a call that waits for none of its own.
func (t *Tier) take(ctx context.Context, way uint8) (*op, error) {
	select {
	case o := <-t.lanes[way].idle:
		if err := t.usable(); err != nil {
			t.lanes[way].idle <- o
			return nil, err
		}
		return o, nil
	case <-t.closing:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, cause(ctx)
	}
}

// cause is why a context that is done has ended, whatever it says itself.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return context.Canceled
}

// spare is take where nothing is waited for; nil when there is none.
func (t *Tier) spare(way uint8) *op {
	select {
	case o := <-t.lanes[way].idle:
		return o
	default:
		return nil
	}
}

// rest makes an operation idle again.
func (t *Tier) rest(o *op) {
	o.moves, o.err, o.over, o.abandoned = o.moves[:0], nil, false, false
	t.lanes[o.way].idle <- o
}

// submit starts an operation. When it cannot be started its blocks are given back.
func (t *Tier) submit(o *op, after gpu.After) error {
	lane := &t.lanes[o.way]
	o.start.Lock()
	f, err := lane.queue.Submit(&o.batch, after)
	if o.fence = f; err == nil {
		lane.flying.Add(1)
	}
	o.start.Unlock()
	if err != nil {
		t.settle(o, err)
		t.rest(o)
		return fmt.Errorf("copy blocks: %w", err)
	}
	return nil
}

// land ends an operation whose batch has ended.
func (t *Tier) land(o *op) {
	o.start.Lock()
	err := o.fence.Err()
	t.lanes[o.way].flying.Add(-1)
	o.start.Unlock()
	t.settle(o, err)
	o.mu.Lock()
	o.over = true
	mine := o.abandoned
	o.mu.Unlock()
	if mine {
		t.rest(o)
		return
	}
	o.done <- struct{}{}
}

// settle publishes what an operation has copied, or gives it up, and lets go of both ends.
func (t *Tier) settle(o *op, err error) {
	o.err = err
	if err != nil {
		why := err // here, so that nothing is allocated when all is well
		t.failure.Store(&why)
	}
	lost := t.dev.Lost() != nil
	for i := range o.moves {
		m := &o.moves[i]
		m.status = Failed
		if err == nil {
			m.status = Copied
		}
		switch {
		case m.leased:
			t.release(m.token)
		case o.what == saves || o.what == offloads:
			t.commit(m, lost && o.fence != gpu.Fence{})
		}
		if m.slot >= 0 {
			t.mu.Lock()
			switch {
			case o.what != loads:
				t.table.drop(m.slot)
			case err == nil:
				t.table.filled(m.slot)
			default:
				t.table.abandon(m.slot, lost)
			}
			t.mu.Unlock()
		}
		t.tell(o.what, m)
	}
}

// commit ends the reservation of a move.
func (t *Tier) commit(m *move, lost bool) {
	b := t.cfg.Blocks
	if m.status == Copied {
		if b.Commit(m.token) == nil {
			return
		}
		m.status = Failed
	}
	if lost {
		// Nothing says that the device has stopped writing there.
		if _, err := b.Transfer(m.token); err == nil {
			t.count.quarantined.Add(1)
		}
	}
	_ = b.Abort(m.token) // of a reservation of this package's own: it cannot have ended
}

// release ends a lease of this package's own, which cannot have ended.
func (t *Tier) release(token uint64) {
	if err := t.cfg.Blocks.Release(token); err != nil {
		panic(fmt.Errorf("release a block that was on its way to the device: %w", err))
	}
}

// tell counts a move that has ended.
func (t *Tier) tell(w what, m *move) {
	c := &t.count
	if m.status == Failed {
		c.failed.Add(1)
		return
	}
	switch w {
	case loads:
		c.loaded.Add(1)
	case saves:
		c.saved.Add(1)
	case delivers:
		c.delivered.Add(1)
	case offloads:
		c.offloaded.Add(1)
	}
	if w.way() == in {
		c.bytesIn.Add(m.bytes)
	} else {
		c.bytesOut.Add(m.bytes)
	}
}

// harvest waits for an operation and takes over what became of its blocks. When the
// context ends first the operation is left to itself.
func (t *Tier) harvest(ctx context.Context, c *call, o *op) {
	select {
	case <-o.done:
	default:
		select {
		case <-o.done:
		case <-ctx.Done():
			o.mu.Lock()
			over := o.over
			o.abandoned = !over
			o.mu.Unlock()
			if !over {
				t.count.abandoned.Add(1)
				c.fail(fmt.Errorf("copy blocks: %w: %w", gpu.ErrInFlight, cause(ctx)))
				return
			}
			<-o.done // at once
		}
	}
	for i := range o.moves {
		m := &o.moves[i]
		c.put(m.at, m.status)
		if m.status == Copied {
			c.res.Bytes += m.bytes
		}
	}
	if o.err != nil {
		c.fail(fmt.Errorf("copy blocks: %w", o.err))
	}
	t.rest(o)
}
