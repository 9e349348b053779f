package gpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// Config configures a Device. The zero value is usable.
type Config struct {
	Depth    int    // batches in flight on one queue; default 64
	MaxSpans int    // spans of one batch; default 65,536
	MaxCopy  uint64 // bytes of one copy, so that none keeps others waiting for long; default 64 MiB
}

func (c *Config) fill() {
	if c.Depth <= 0 {
		c.Depth = 64
	}
	if c.MaxSpans <= 0 {
		c.MaxSpans = 65_536
	}
	if c.MaxCopy == 0 {
		c.MaxCopy = 64 << 20
	}
}

// Device is a driver with its books. It is safe for concurrent use.
type Device struct {
	cfg     Config
	driver  Driver
	info    Info
	regions atomic.Pointer[table]
	lost    atomic.Pointer[error]

	submitted, done, failed, refused, bytes, copies atomic.Uint64

	mu         sync.Mutex // of changes
	generation uint32     // of the newest region
	queues     map[*Queue]struct{}
	ending     map[*region]struct{} // freed, and not released yet
	closing    bool
	closed     bool
}

// New makes a device, which owns the driver from then on.
func New(d Driver, cfg Config) *Device {
	cfg.fill()
	dev := &Device{cfg: cfg, driver: d, info: d.Info(), queues: make(map[*Queue]struct{}), ending: make(map[*region]struct{})}
	dev.regions.Store(&table{})
	return dev
}

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// Lost returns why the device is dead, nil while it is not.
func (d *Device) Lost() error {
	if err := d.lost.Load(); err != nil {
		return *err
	}
	return nil
}

// note keeps an error that means the end of the device.
func (d *Device) note(err error) error {
	if err != nil && errors.Is(err, ErrLost) {
		why := err // here, so that nothing is allocated when all is well
		d.lost.CompareAndSwap(nil, &why)
	}
	return err
}

// usable is for those who hold mu.
func (d *Device) usable() error {
	if d.closing {
		return ErrClosed
	}
	return d.Lost()
}

// Alloc makes memory. Offsets and lengths of its spans are to be multiples of align, a
// power of two; 0: of anything.
func (d *Device) Alloc(kind Kind, size, align uint64) (Region, error) {
	return d.add(align, func() (Memory, error) { return d.driver.Alloc(kind, size) }, d.driver.Release)
}

// Register makes the caller's host memory fit for copies. It is mapped memory, never
// from Go's heap, and stays mapped until Free has returned without an error.
func (d *Device) Register(host []byte, align uint64) (Region, error) {
	return d.add(align, func() (Memory, error) { return d.driver.Register(host) }, d.driver.Release)
}

// Adopt registers device memory of another owner, who keeps it until Free has returned.
func (d *Device) Adopt(addr, size, align uint64) (Region, error) {
	a, ok := d.driver.(Adopter)
	if !ok {
		return 0, fmt.Errorf("memory of another owner: %w", ErrUnsupported)
	}
	return d.add(align, func() (Memory, error) { return a.Adopt(addr, size) }, d.driver.Release)
}

func (d *Device) add(align uint64, get func() (Memory, error), undo func(Memory) error) (Region, error) {
	if align == 0 {
		align = 1
	}
	if bits.OnesCount64(align) != 1 {
		return 0, fmt.Errorf("an alignment of %d: %w", align, ErrAlign)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return 0, err
	}
	m, err := get()
	if err != nil {
		return 0, d.note(err)
	}
	if d.generation++; d.generation == 0 {
		d.generation = 1
	}
	r := &region{mem: m, align: align, freed: make(chan struct{})}
	t, err := d.regions.Load().with(r, d.generation)
	if err != nil {
		return 0, errors.Join(err, undo(m))
	}
	d.regions.Store(t)
	return r.id, nil
}

// Memory describes a region.
func (d *Device) Memory(id Region) (Memory, error) {
	r := d.regions.Load().find(id)
	if r == nil {
		return Memory{}, ErrStale
	}
	return r.mem, nil
}

// Locate finds the region that holds all of n bytes at an address, for callers whose
// block tables hold addresses.
func (d *Device) Locate(addr, n uint64) (id Region, off uint64, err error) {
	r := d.regions.Load().at(addr)
	if r == nil {
		return 0, 0, fmt.Errorf("%d bytes at %#x: %w", n, addr, ErrStale)
	}
	off = addr - r.mem.Addr
	return r.id, off, r.check(off, n)
}

// Free takes a region out of use at once and releases its memory when the last batch that
// touches it has ended. When the context ends before that, the release is still to come:
// memory that the caller owns must stay as it is until the device says so, in a second
// call of Free or in Close.
func (d *Device) Free(ctx context.Context, id Region) error {
	r := d.retire(id)
	if r == nil {
		return ErrStale
	}
	select {
	case <-r.freed:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("region is in use: %w: %w", ErrInFlight, ctx.Err())
	}
}

// retire takes a region out of the table, or finds it among those that are ending.
func (d *Device) retire(id Region) *region {
	d.mu.Lock()
	t := d.regions.Load()
	r := t.find(id)
	if r == nil {
		defer d.mu.Unlock()
		for r := range d.ending {
			if r.id == id {
				return r
			}
		}
		return nil
	}
	d.regions.Store(t.without(r))
	d.ending[r] = struct{}{}
	d.mu.Unlock()
	if r.use.Add(ending) == ending {
		d.release(r)
	}
	return r
}

// drop lets go of the regions of a batch.
func (d *Device) drop(b *Batch) {
	for i, r := range b.plan.regions {
		b.plan.regions[i] = nil
		if r.use.Add(-1) == ending {
			go d.release(r) // not on the driver's own goroutine
		}
	}
	b.plan.regions = b.plan.regions[:0]
}

// release gives memory back to the driver. Memory of a lost device is not given back:
// nothing says that the device has stopped writing to it.
func (d *Device) release(r *region) {
	if r.err = d.Lost(); r.err == nil {
		r.err = d.note(d.driver.Release(r.mem))
	}
	d.mu.Lock()
	delete(d.ending, r)
	d.mu.Unlock()
	close(r.freed)
}

// Close waits for what is in flight, releases everything and closes the driver. When the
// context ends first nothing is lost: call it again.
func (d *Device) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closing = true
	queues := slices.Collect(maps.Keys(d.queues))
	d.mu.Unlock()
	var errs []error
	for _, q := range queues {
		if err := q.Close(ctx); errors.Is(err, ErrInFlight) {
			return err
		} else if err != nil {
			errs = append(errs, err)
		}
	}
	wait := make([]*region, 0, 16)
	for _, r := range d.regions.Load().byStart {
		if r := d.retire(r.id); r != nil {
			wait = append(wait, r)
		}
	}
	d.mu.Lock()
	wait = slices.AppendSeq(wait, maps.Keys(d.ending))
	d.mu.Unlock()
	for _, r := range wait {
		<-r.freed // nothing is in flight
		if r.err != nil && !errors.Is(r.err, ErrLost) {
			errs = append(errs, r.err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return errors.Join(append(errs, d.driver.Close())...)
}

// Stats are counts since the start.
type Stats struct {
	Submitted, Ended, Failed uint64 // batches; those that failed have ended, too
	Refused                  uint64 // batches of which nothing was started
	Bytes, Copies            uint64 // of batches that are done
	Regions                  int
	Lost                     bool
}

// Stats returns the counts. They are read one after the other, and in an order in which no
// more have failed than have ended, and no more ended than were submitted.
func (d *Device) Stats() (s Stats) {
	s.Failed = d.failed.Load()
	s.Ended = d.done.Load()
	s.Submitted = d.submitted.Load()
	s.Refused, s.Bytes, s.Copies = d.refused.Load(), d.bytes.Load(), d.copies.Load()
	s.Regions, s.Lost = len(d.regions.Load().byStart), d.Lost() != nil
	return s
}
