package gpu

import (
	"context"
	"fmt"
	"sync"
)

// Batch is a list of spans on its way. It is filled, submitted, and may be filled again
// when it has ended; one that is used again and again allocates nothing. The zero value
// is an empty batch. Filling is for one goroutine at a time.
type Batch struct {
	spans []Span
	plan  planner
	waits []Wait

	mu    sync.Mutex
	use   uint64 // how often it was submitted
	taken bool   // by a Submit
	state state
	err   error // of a batch that has failed, or is about to
	queue *Queue
	seq   uint64
	wake  chan struct{} // made by the first who waits, closed at the end
	n     Outcome
	after func() // see OnEnd
}

type state uint8

const (
	idle state = iota
	flying
	ended
)

// Outcome is what became of a batch.
type Outcome struct {
	Bytes  uint64 // copied; 0 unless the batch is done
	Spans  int
	Copies int // that the spans became
	Err    error
}

// Reset empties a batch that is not in flight.
func (b *Batch) Reset() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken || b.state == flying {
		return ErrInFlight
	}
	b.spans = b.spans[:0]
	return nil
}

// OnEnd has f called after each use of the batch, when its fence has fired and its queue has
// room for another one. f runs on a goroutine of the driver's and must not wait for
// anything. OnEnd comes before the first Submit.
func (b *Batch) OnEnd(f func()) { b.after = f }

// Add appends a span. A batch that is in flight must not be added to; Submit works on
// the spans as they were.
func (b *Batch) Add(s Span) { b.spans = append(b.spans, s) }

// AddBlocks appends a span for each pair of blocks: the one that from names at i goes where
// to names at i.
func (b *Batch) AddBlocks(dst Rows, to []uint32, src Rows, from []uint32) error {
	if len(to) != len(from) {
		return fmt.Errorf("%d blocks to %d places: %w", len(from), len(to), ErrRange)
	}
	if dst.Size != src.Size {
		return fmt.Errorf("blocks of %d bytes to places of %d: %w", src.Size, dst.Size, ErrRange)
	}
	n := len(b.spans)
	for i := range to {
		d, err := dst.offset(uint64(to[i]))
		if err != nil {
			b.spans = b.spans[:n]
			return &SpanError{n + i, Destination, err}
		}
		s, err := src.offset(uint64(from[i]))
		if err != nil {
			b.spans = b.spans[:n]
			return &SpanError{n + i, Source, err}
		}
		b.spans = append(b.spans, Span{Dst: dst.Region, DstOff: d, Src: src.Region, SrcOff: s, Len: dst.Size})
	}
	return nil
}

// Len returns the number of spans.
func (b *Batch) Len() int { return len(b.spans) }

// Fence is the end of one use of a batch.
type Fence struct {
	batch *Batch
	use   uint64
}

// Err returns nil when the batch is done, ErrInFlight before it has ended, and why it
// failed when it did.
func (f Fence) Err() error {
	o := f.Outcome()
	return o.Err
}

// Outcome returns what became of the batch; its Err is as Fence.Err says.
func (f Fence) Outcome() Outcome {
	if f.batch == nil {
		return Outcome{Err: ErrForgotten}
	}
	b := f.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.use != f.use:
		return Outcome{Err: ErrForgotten}
	case b.state != ended:
		return Outcome{Err: ErrInFlight, Spans: b.n.Spans, Copies: b.n.Copies}
	}
	return b.n
}

// Done returns a channel that is closed when the batch has ended, one way or the other.
func (f Fence) Done() <-chan struct{} {
	if b := f.batch; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.use == f.use && b.state != ended {
			if b.wake == nil {
				b.wake = make(chan struct{})
			}
			return b.wake
		}
	}
	c := make(chan struct{})
	close(c)
	return c
}

// Wait waits for the end and returns Err. When the context ends first the batch is still
// in flight, and its memory in use.
func (f Fence) Wait(ctx context.Context) error {
	if err := f.Err(); err != ErrInFlight {
		return err
	}
	select {
	case <-f.Done():
		return f.Err()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrInFlight, ctx.Err())
	}
}

// position returns the queue and number of a batch in flight that others may follow; the
// queue is nil when it has ended well.
func (f Fence) position() (q *Queue, seq uint64, err error) {
	b := f.batch
	if b == nil {
		return nil, 0, ErrForgotten
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.use != f.use:
		return nil, 0, ErrForgotten
	case b.err != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrDependency, b.err)
	case b.state == ended:
		return nil, 0, nil
	}
	return b.queue, b.seq, nil
}

// begin takes a batch for a submission.
func (b *Batch) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken || b.state == flying {
		return ErrInFlight
	}
	b.taken = true
	return nil
}

// abandon ends a submission that came to nothing.
func (b *Batch) abandon() {
	b.mu.Lock()
	b.taken = false
	if b.state == flying { // of a use that nobody has a fence of
		b.state = idle
	}
	b.mu.Unlock()
}

// fly makes it a batch in flight, of a new use.
func (b *Batch) fly(q *Queue, seq uint64) Fence {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.use++
	b.taken, b.state, b.err, b.queue, b.seq, b.wake = false, flying, nil, q, seq, nil
	b.n = Outcome{Spans: len(b.spans), Copies: len(b.plan.out.Dst)}
	return Fence{b, b.use}
}

// doom notes that a batch in flight has failed already.
func (b *Batch) doom(f Fence, err error) {
	b.mu.Lock()
	if b.use == f.use && b.state == flying {
		b.err = err
	}
	b.mu.Unlock()
}

// land ends the batch.
func (b *Batch) land(err error) {
	b.mu.Lock()
	b.state, b.err, b.n.Err = ended, err, err
	if err == nil {
		b.n.Bytes = b.plan.bytes
	}
	if b.wake != nil {
		close(b.wake)
	}
	b.mu.Unlock()
}
