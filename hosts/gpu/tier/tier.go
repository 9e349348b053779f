package tier

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
)

// Tier keeps blocks on a device. Any number of goroutines may use it.
type Tier struct {
	cfg    Config
	dev    *gpu.Device
	region gpu.Region
	lanes  [2]lane // to the device, and from it

	mu    sync.Mutex
	table table

	ended    chan *op // those whose batch has ended; it has room for all
	reaped   chan struct{}
	calls    atomic.Uint64
	count    counts
	prefetch prefetches
	failure  atomic.Pointer[error]

	closing   chan struct{}
	close     sync.Mutex
	closed    bool
	collected [2]int // operations that Close has in its hands
}

// lane is the operations of one direction.
type lane struct {
	queue  *gpu.Queue
	idle   chan *op
	flying atomic.Int64
}

// ways
const (
	in uint8 = iota
	out
)

type counts struct {
	loaded, saved, delivered, offloaded         atomic.Uint64
	bytesIn, bytesOut                           atomic.Uint64
	evicted, noRoom, missing, failed, abandoned atomic.Uint64
	quarantined                                 atomic.Uint64
}

// New takes the memory on the device. The tier is to be closed before the block store, and
// that before the device.
func New(cfg Config) (*Tier, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	n := cfg.Capacity / cfg.BlockBytes
	t := &Tier{cfg: cfg, dev: cfg.Device, closing: make(chan struct{}), reaped: make(chan struct{})}
	if t.region, err = t.dev.Alloc(gpu.DeviceMemory, n*cfg.BlockBytes, 1); err != nil {
		return nil, fmt.Errorf("memory for blocks on the device: %w", err)
	}
	t.table.init(int(n))
	t.ended = make(chan *op, 2*cfg.Depth)
	for way := range t.lanes {
		l := &t.lanes[way]
		if l.queue, err = t.dev.NewQueue(); err != nil {
			return nil, fmt.Errorf("a queue for blocks on the device: %w", err) // the device's Close takes care of the rest
		}
		l.idle = make(chan *op, cfg.Depth)
		for range cfg.Depth {
			o := &op{way: uint8(way), moves: make([]move, 0, cfg.Batch), done: make(chan struct{}, 1)}
			o.batch.OnEnd(func() { t.ended <- o })
			l.idle <- o
		}
	}
	go func() {
		defer close(t.reaped)
		for o := range t.ended {
			t.land(o)
		}
	}()
	t.startPrefetches()
	return t, nil
}

// usable tells why nothing can be begun.
func (t *Tier) usable() error {
	select {
	case <-t.closing:
		return ErrClosed
	default:
	}
	return t.dev.Lost()
}

// Region is the memory on the device.
func (t *Tier) Region() gpu.Region { return t.region }

// BlockBytes is the size of a slot, and Slots how many there are.
func (t *Tier) BlockBytes() uint64 { return t.cfg.BlockBytes }

// Slots is how many blocks there is room for.
func (t *Tier) Slots() int { return len(t.table.slots) }

// Residency writes for each hash whether its block is on the device. What it says may have
// changed by the time that it is read. It allocates nothing, and returns how many are there.
func (t *Tier) Residency(namespace string, hashes []uint64, out []abi.Residency) (there int) {
	lost := t.dev.Lost() != nil
	for from := 0; from < len(hashes); from += lookAtOnce {
		t.mu.Lock()
		sp := t.table.spaces[namespace]
		if lost {
			sp = nil
		}
		for i := from; i < min(from+lookAtOnce, len(hashes)); i++ {
			if out[i] = t.table.residency(sp, hashes[i]); out[i] == abi.ResidencyDevice {
				there++
			}
		}
		t.mu.Unlock()
	}
	return there
}

// lookAtOnce is how many blocks are looked for in one go, so that a long list keeps nobody
// from the table for long.
const lookAtOnce = 1024

// Evict lets go of blocks on the device, and returns how many went: those in use, or on
// their way, stay. It allocates nothing.
func (t *Tier) Evict(namespace string, hashes []uint64) (evicted int) {
	for from := 0; from < len(hashes); from += lookAtOnce {
		t.mu.Lock()
		for _, h := range hashes[from:min(from+lookAtOnce, len(hashes))] {
			if sp := t.table.spaces[namespace]; sp != nil && t.table.evict(sp, h) { // the last block of a namespace takes that with it
				evicted++
			}
		}
		t.mu.Unlock()
	}
	return evicted
}

// Lease holds a block on the device.
type Lease struct {
	Region     gpu.Region
	Offset     uint64
	Length     uint64
	Generation uint64 // of the slot: another one, another block

	tier *Tier
	slot int32
}

// Acquire leases a block that is on the device: its bytes stay what they are until Release.
// Whoever copies them releases the lease when the copy's fence has fired.
func (t *Tier) Acquire(namespace string, hash uint64) (*Lease, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.table.find(namespace, hash)
	if i < 0 || t.table.slots[i].state != ready {
		return nil, ErrNotFound
	}
	t.table.hold(i)
	s := &t.table.slots[i]
	s.call = t.calls.Add(1)
	return &Lease{t.region, uint64(i) * t.cfg.BlockBytes, s.length, s.generation, t, i}, nil
}

// Release ends the lease.
func (l *Lease) Release() error {
	if l.tier == nil {
		return ErrLease
	}
	t := l.tier
	l.tier = nil
	t.mu.Lock()
	t.table.drop(l.slot)
	t.mu.Unlock()
	return nil
}

// Close takes nothing new, ends the prefetches, waits for what is in flight and gives the
// memory back. When the context ends first nothing is lost: call it again. After that the
// tier has no lease and no reservation in the block store, but where the device was lost.
func (t *Tier) Close(ctx context.Context) error {
	t.close.Lock()
	defer t.close.Unlock()
	if t.closed {
		return nil
	}
	select {
	case <-t.closing:
	default:
		close(t.closing)
	}
	t.endPrefetches()
	for way := range t.lanes {
		for ; t.collected[way] < t.cfg.Depth; t.collected[way]++ {
			select {
			case <-t.lanes[way].idle:
			case <-ctx.Done():
				return fmt.Errorf("blocks on the device: %w: %w", gpu.ErrInFlight, ctx.Err())
			}
		}
	}
	close(t.ended)
	<-t.reaped
	t.closed = true
	for way := range t.lanes {
		if err := t.lanes[way].queue.Close(ctx); err != nil {
			return err
		}
	}
	if err := t.dev.Free(ctx, t.region); err != nil && t.dev.Lost() == nil {
		return fmt.Errorf("give back the memory for blocks on the device: %w", err)
	}
	return nil
}

// Stats are a tier's gauges and totals.
type Stats struct {
	BlockBytes uint64
	Slots      int
	Used       int // slots with a block, or one on its way
	Filling    int // of them on their way
	Leased     int // of them in use
	InFlight   int // batches, both ways
	Queued     int // blocks that wait in prefetches

	Loaded, Saved         uint64 // blocks to the device and back
	Delivered, Offloaded  uint64 // blocks to memory of the program and back
	BytesIn, BytesOut     uint64 // to the device, and from it
	Evicted               uint64 // blocks that yielded to others
	Missing, NoRoom       uint64 // blocks that did not come
	Failed                uint64 // blocks whose copy failed
	Abandoned             uint64 // batches that nobody waited for any longer
	Quarantined           uint64 // places in host memory that a lost device may be writing to
	Prefetches            uint64 // asked for
	Refused, Late, Broken uint64 // of them: too many waited; too late; failed, or not all in time

	Failure error // of the last batch that failed
}

// Stats reads all counters.
func (t *Tier) Stats() Stats {
	s := Stats{
		BlockBytes: t.cfg.BlockBytes, Slots: len(t.table.slots), Queued: int(t.prefetch.queued.Load()),
		Loaded: t.count.loaded.Load(), Saved: t.count.saved.Load(), Delivered: t.count.delivered.Load(), Offloaded: t.count.offloaded.Load(),
		BytesIn: t.count.bytesIn.Load(), BytesOut: t.count.bytesOut.Load(),
		Evicted: t.count.evicted.Load(), Missing: t.count.missing.Load(), NoRoom: t.count.noRoom.Load(), Failed: t.count.failed.Load(),
		Abandoned: t.count.abandoned.Load(), Quarantined: t.count.quarantined.Load(),
		Prefetches: t.prefetch.asked.Load(), Refused: t.prefetch.refused.Load(), Late: t.prefetch.late.Load(), Broken: t.prefetch.broken.Load(),
	}
	if why := t.failure.Load(); why != nil {
		s.Failure = *why
	}
	for i := range t.lanes {
		s.InFlight += int(t.lanes[i].flying.Load())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Used, s.Filling, s.Leased = len(t.table.slots)-len(t.table.free), t.table.filling, t.table.leased
	return s
}
