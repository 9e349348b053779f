package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Queue runs batches in their order. It never waits for the device.
type Queue struct {
	dev    *Device
	stream Stream
	submit sync.Mutex // one submission at a time; held before mu

	mu      sync.Mutex
	flight  []*Batch // by seq, modulo its length
	next    uint64   // seq of the next batch
	landed  uint64   // all below have ended
	closing bool
	drained chan struct{} // closed when closing and nothing is in flight
	closed  bool          // the stream is
}

// After is what a batch has to wait for, beside those before it on its queue. Whoever
// hands over memory that something else writes or reads says so here.
type After struct {
	Fences []Fence
	// Events are events of the device's own kind, as the CUevent that a serving engine
	// records behind its kernels. Their owner keeps them until the batch has ended.
	Events []uintptr
}

// NewQueue opens a queue.
func (d *Device) NewQueue() (*Queue, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	q := &Queue{dev: d, flight: make([]*Batch, d.cfg.Depth)}
	s, err := d.driver.Stream(q)
	if err != nil {
		return nil, d.note(err)
	}
	q.stream = s
	d.queues[q] = struct{}{}
	return q, nil
}

// Submit starts a batch. An error means that nothing was started and the batch may be
// changed, or submitted again, at once. Otherwise the fence tells what became of it.
//
// It allocates nothing for a batch that had as many spans before.
func (q *Queue) Submit(b *Batch, after After) (Fence, error) {
	if err := b.begin(); err != nil {
		return Fence{}, err
	}
	f, err := q.start(b, after)
	if err != nil {
		q.dev.drop(b)
		b.abandon()
		q.dev.refused.Add(1)
	}
	return f, err
}

func (q *Queue) start(b *Batch, after After) (Fence, error) {
	if len(b.spans) > q.dev.cfg.MaxSpans {
		return Fence{}, fmt.Errorf("%d of %d: %w", len(b.spans), q.dev.cfg.MaxSpans, ErrTooLarge)
	}
	if err := b.plan.plan(q.dev.regions.Load(), b.spans, q.dev.cfg.MaxCopy); err != nil {
		return Fence{}, err
	}
	b.waits = b.waits[:0]
	for _, f := range after.Fences {
		of, seq, err := f.position()
		if err != nil {
			return Fence{}, err
		}
		if of == nil || of == q { // over, or before it on its own queue
			continue
		}
		if of.dev != q.dev {
			return Fence{}, fmt.Errorf("a fence of another device: %w", ErrUnsupported)
		}
		b.waits = append(b.waits, Wait{Stream: of.stream, Seq: seq})
	}
	for _, e := range after.Events {
		b.waits = append(b.waits, Wait{Event: e})
	}

	q.submit.Lock()
	defer q.submit.Unlock()
	if err := q.dev.Lost(); err != nil {
		return Fence{}, err
	}
	f, seq, err := q.enter(b)
	if err != nil {
		return Fence{}, err
	}
	q.dev.submitted.Add(1) // before it can end
	started, err := q.stream.Submit(seq, b.plan.out, b.waits)
	if started {
		if err != nil {
			b.doom(f, q.dev.note(err))
		}
		return f, nil
	}
	q.dev.submitted.Add(^uint64(0))
	q.mu.Lock()
	q.flight[seq%uint64(len(q.flight))] = nil
	q.next--
	q.drain()
	q.mu.Unlock()
	return Fence{}, q.dev.note(err)
}

// enter gives the batch its place in the queue.
func (q *Queue) enter(b *Batch) (Fence, uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		return Fence{}, 0, ErrClosed
	}
	if q.next-q.landed == uint64(len(q.flight)) {
		return Fence{}, 0, ErrFull
	}
	seq := q.next
	q.next++
	q.flight[seq%uint64(len(q.flight))] = b
	return b.fly(q, seq), seq, nil
}

// Ended is for the driver.
func (q *Queue) Ended(seq uint64, err error) {
	q.dev.note(err)
	q.mu.Lock()
	b := q.flight[seq%uint64(len(q.flight))]
	q.flight[seq%uint64(len(q.flight))] = nil
	q.mu.Unlock()

	if err == nil {
		q.dev.bytes.Add(b.plan.bytes)
		q.dev.copies.Add(uint64(len(b.plan.out.Dst)))
	} else {
		q.dev.failed.Add(1)
	}
	q.dev.drop(b) // first: who sees the fence may free the memory
	b.land(err)
	q.dev.done.Add(1)

	q.mu.Lock()
	q.landed++
	q.drain()
	q.mu.Unlock()
	if b.after != nil {
		b.after()
	}
}

// drain tells who closes the queue that nothing is in flight.
func (q *Queue) drain() {
	if q.closing && q.next == q.landed {
		select {
		case <-q.drained:
		default:
			close(q.drained)
		}
	}
}

// Close takes no more batches, waits for those in flight and closes the queue. When the
// context ends first the queue is not closed yet: call it again.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	if !q.closing {
		q.closing, q.drained = true, make(chan struct{})
		q.drain()
	}
	q.mu.Unlock()
	select {
	case <-q.drained:
	case <-ctx.Done():
		return fmt.Errorf("queue: %w: %w", ErrInFlight, ctx.Err())
	}
	q.submit.Lock()
	defer q.submit.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	err := q.stream.Close()
	q.dev.mu.Lock()
	delete(q.dev.queues, q)
	q.dev.mu.Unlock()
	if errors.Is(err, ErrLost) {
		return nil // nothing is left to be closed
	}
	return err
}
