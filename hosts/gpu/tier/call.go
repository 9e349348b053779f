package tier

import (
	"context"
	"fmt"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
)

// Place is where a block of the caller lies: in a region that it has registered, or has let
// the device allocate, at an offset of its own.
type Place struct {
	Hash   uint64
	Region gpu.Region
	Offset uint64
	Length uint64
}

// call is a list on its way.
type call struct {
	what      what
	namespace string
	hashes    []uint64 // loads and saves
	places    []Place  // delivers and offloads
	after     gpu.After
	out       []Status
	number    uint64
	res       Result
	err       error
}

func (c *call) len() int { return max(len(c.hashes), len(c.places)) }

func (c *call) hash(i int) uint64 {
	if c.places != nil {
		return c.places[i].Hash
	}
	return c.hashes[i]
}

// put says what became of a block.
func (c *call) put(i int, s Status) {
	c.res.add(s)
	if c.out != nil {
		c.out[i] = s
	}
}

// fail keeps the first error.
func (c *call) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Load brings blocks of the store to the device and waits for them. statuses may be nil, or
// as long as the list. The error says why blocks have failed; that some are missing, or
// find no room, is none. When the context ends first, what is in flight still arrives.
func (t *Tier) Load(ctx context.Context, namespace string, hashes []uint64, statuses []Status) (Result, error) {
	return t.run(ctx, &call{what: loads, namespace: namespace, hashes: hashes, out: statuses})
}

// Save brings blocks back from the device to the store, as Load does the other way.
func (t *Tier) Save(ctx context.Context, namespace string, hashes []uint64, statuses []Status) (Result, error) {
	return t.run(ctx, &call{what: saves, namespace: namespace, hashes: hashes, out: statuses})
}

// Deliver copies blocks to places of the caller: from the device where they are there, else
// from the store. after is what still reads or writes the places. They are the device's
// until Deliver has returned, and after gpu.ErrInFlight until Settled has.
func (t *Tier) Deliver(ctx context.Context, namespace string, to []Place, after gpu.After, statuses []Status) (Result, error) {
	return t.run(ctx, &call{what: delivers, namespace: namespace, places: to, after: after, out: statuses})
}

// Offload copies blocks from places of the caller to the store, where it has not got them.
// after is what still writes the places, as the kernels that compute the blocks. They must
// not change until Offload has returned, and after gpu.ErrInFlight until Settled has.
func (t *Tier) Offload(ctx context.Context, namespace string, from []Place, after gpu.After, statuses []Status) (Result, error) {
	return t.run(ctx, &call{what: offloads, namespace: namespace, places: from, after: after, out: statuses})
}

// Settled waits until all copies have ended that are in flight, those too that nobody waits
// for. It fails with gpu.ErrLost when the device is lost: then nothing says that it does not
// write any more, and host memory that it was to write to is never to be used again.
func (t *Tier) Settled(ctx context.Context) error {
	for way := range t.lanes {
		if err := t.usable(); err != nil {
			return err
		}
		o, err := t.take(ctx, uint8(way))
		if err != nil {
			return fmt.Errorf("%w: %w", gpu.ErrInFlight, err)
		}
		if err := o.batch.Reset(); err != nil {
			panic(fmt.Errorf("a batch that has ended: %w", err))
		}
		// One without copies ends after all before it.
		if err := t.submit(o, gpu.After{}); err != nil {
			return err
		}
		var c call
		if t.harvest(ctx, &c, o); c.err != nil {
			return c.err
		}
	}
	return nil
}

// run carries a call out in as many batches as it takes.
func (t *Tier) run(ctx context.Context, c *call) (Result, error) {
	clear(c.out)
	c.number = t.calls.Add(1)
	var room [8]*op // more are rare
	flying := room[:0]
	for at := 0; at < c.len() && c.err == nil; {
		if err := t.usable(); err != nil {
			c.fail(err)
			continue
		}
		if ctx.Err() != nil {
			c.fail(cause(ctx))
			continue
		}
		o := t.spare(c.what.way())
		switch {
		case o == nil && len(flying) > 0: // never wait for others while holding one's own
			t.harvest(ctx, c, flying[0])
			flying = flying[:copy(flying, flying[1:])]
			continue
		case o == nil:
			var err error
			if o, err = t.take(ctx, c.what.way()); err != nil {
				c.fail(err)
				continue
			}
		}
		if err := o.batch.Reset(); err != nil {
			panic(fmt.Errorf("a batch that has ended: %w", err))
		}
		for o.what = c.what; at < c.len() && len(o.moves) < t.cfg.Batch; at++ {
			t.gather(c, o, at)
		}
		if len(o.moves) == 0 {
			t.rest(o)
			continue
		}
		if err := t.submit(o, c.after); err != nil {
			c.fail(err)
			continue
		}
		flying = append(flying, o)
	}
	for _, o := range flying {
		t.harvest(ctx, c, o)
	}
	c.res.Failed = c.len() - c.res.settled()
	t.count.missing.Add(uint64(c.res.Missing))
	t.count.noRoom.Add(uint64(c.res.NoRoom))
	return c.res, c.err
}

// gather takes both ends of a block, or says why not.
func (t *Tier) gather(c *call, o *op, i int) {
	m := move{at: i, slot: -1}
	var span gpu.Span
	var s Status
	var err error
	switch c.what {
	case loads:
		s, err = t.toSlot(c, i, &m, &span)
	case delivers:
		s, err = t.toPlace(c, i, &m, &span)
	default:
		s, err = t.toStore(c, o, i, &m, &span)
	}
	if s != Copied {
		c.put(i, s)
		if err != nil {
			c.fail(err)
			t.count.failed.Add(1)
		}
		return
	}
	m.bytes = span.Len
	o.batch.Add(span)
	o.moves = append(o.moves, m)
}

// locate finds a block of the store in the device's regions.
func (t *Tier) locate(block []byte) (gpu.Region, uint64, error) {
	r, off, err := t.dev.Locate(addressOf(block), uint64(len(block)))
	if err != nil {
		return 0, 0, fmt.Errorf("the block store's memory is not registered with the device: %w", err)
	}
	return r, off, nil
}

// toSlot makes ready to load a block. Copied means that it is to be copied.
func (t *Tier) toSlot(c *call, i int, m *move, span *gpu.Span) (Status, error) {
	hash := c.hashes[i]
	if s := t.onDevice(c, hash); s != Missing {
		return s, nil
	}
	token, block, err := t.cfg.Blocks.Acquire(c.namespace, hash)
	if err != nil {
		return Missing, nil
	}
	s := NoRoom
	if n := uint64(len(block)); n <= t.cfg.BlockBytes {
		if span.Src, span.SrcOff, err = t.locate(block); err == nil {
			s, m.slot = t.claim(c, hash, n)
			*span = gpu.Span{Dst: t.region, DstOff: uint64(max(m.slot, 0)) * t.cfg.BlockBytes, Src: span.Src, SrcOff: span.SrcOff, Len: n}
		} else {
			s = Failed
		}
	}
	if s != Copied {
		t.release(token)
		return s, err
	}
	m.token, m.leased = token, true
	return Copied, nil
}

// onDevice tells whether a block is there, or coming; Missing when it is neither.
func (t *Tier) onDevice(c *call, hash uint64) Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.look(c, hash)
}

func (t *Tier) look(c *call, hash uint64) Status {
	slot := t.table.find(c.namespace, hash)
	if slot < 0 {
		return Missing
	}
	t.table.used(slot, c.number)
	if t.table.slots[slot].state == ready {
		return Present
	}
	return Coming
}

// claim takes a slot for a block, unless another call was faster.
func (t *Tier) claim(c *call, hash, n uint64) (Status, int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.look(c, hash); s != Missing {
		return s, -1
	}
	slot, evicted := t.table.take(c.namespace, hash, n, c.number)
	if evicted {
		t.count.evicted.Add(1)
	}
	if slot < 0 {
		return NoRoom, -1
	}
	return Copied, slot
}

// holdSlot holds the slot of a block that is on the device.
func (t *Tier) holdSlot(c *call, hash uint64) (slot int32, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slot = t.table.find(c.namespace, hash); slot < 0 || t.table.slots[slot].state != ready {
		return -1, 0
	}
	t.table.used(slot, c.number)
	t.table.hold(slot)
	return slot, t.table.slots[slot].length
}

func (t *Tier) dropSlot(slot int32) {
	t.mu.Lock()
	t.table.drop(slot)
	t.mu.Unlock()
}

// toPlace makes ready to deliver a block.
func (t *Tier) toPlace(c *call, i int, m *move, span *gpu.Span) (Status, error) {
	p := &c.places[i]
	*span = gpu.Span{Dst: p.Region, DstOff: p.Offset, Len: p.Length}
	if slot, n := t.holdSlot(c, p.Hash); slot >= 0 {
		if n != p.Length {
			t.dropSlot(slot)
			return Missing, nil
		}
		m.slot, span.Src, span.SrcOff = slot, t.region, uint64(slot)*t.cfg.BlockBytes
		return Copied, nil
	}
	token, block, err := t.cfg.Blocks.Acquire(c.namespace, p.Hash)
	if err != nil {
		return Missing, nil
	}
	s := Missing
	if uint64(len(block)) == p.Length {
		if s = Copied; p.Length == 0 {
			s = Missing
		} else if span.Src, span.SrcOff, err = t.locate(block); err != nil {
			s = Failed
		}
	}
	if s != Copied {
		t.release(token)
		return s, err
	}
	m.token, m.leased = token, true
	return Copied, nil
}

// toStore makes ready to save or offload a block.
func (t *Tier) toStore(c *call, o *op, i int, m *move, span *gpu.Span) (Status, error) {
	hash := c.hash(i)
	if c.what == offloads {
		p := &c.places[i]
		*span = gpu.Span{Src: p.Region, SrcOff: p.Offset, Len: p.Length}
	} else {
		if m.slot, span.Len = t.holdSlot(c, hash); m.slot < 0 {
			return Missing, nil
		}
		span.Src, span.SrcOff = t.region, uint64(m.slot)*t.cfg.BlockBytes
	}
	s, err := t.reserve(c, o, hash, m, span)
	if s != Copied && m.slot >= 0 {
		t.dropSlot(m.slot)
	}
	return s, err
}

func (t *Tier) reserve(c *call, o *op, hash uint64, m *move, span *gpu.Span) (Status, error) {
	o.key[0] = hash
	t.cfg.Blocks.Residency(c.namespace, o.key[:], o.where[:])
	switch o.where[0] {
	case abi.ResidencyDRAM:
		return Present, nil
	case abi.ResidencyFilling:
		return Coming, nil
	}
	if span.Len == 0 || span.Len > 1<<40 {
		return NoRoom, nil
	}
	token, block, err := t.cfg.Blocks.Reserve(c.namespace, hash, int(span.Len))
	if err != nil {
		return NoRoom, nil
	}
	if span.Dst, span.DstOff, err = t.locate(block); err != nil {
		_ = t.cfg.Blocks.Abort(token) // it was taken just now
		return Failed, err
	}
	m.token = token
	return Copied, nil
}
