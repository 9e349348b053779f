package gpu

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrStale: the region was freed, or never was.
	ErrStale = errors.New("no such region: it was freed, or belongs to another device")
	// ErrRange: a span reaches beyond its region, or a block's number beyond its rows.
	ErrRange = errors.New("out of range")
	// ErrAlign: an offset or a length is not a multiple of its region's alignment.
	ErrAlign = errors.New("not aligned")
	// ErrOverlap: memory is registered twice, or a batch writes what it also reads or writes.
	ErrOverlap = errors.New("overlap")
	// ErrFull: the queue has as many batches in flight as it may have. Try again when one
	// has ended.
	ErrFull = errors.New("queue is full")
	// ErrTooLarge: a batch has more spans than the device takes.
	ErrTooLarge = errors.New("too many spans in one batch")
	// ErrInFlight: the batch has not ended yet.
	ErrInFlight = errors.New("batch is in flight")
	// ErrForgotten: the fence's batch has been used again. What became of it must be asked
	// before.
	ErrForgotten = errors.New("batch was used again, and its outcome is forgotten")
	// ErrDependency: a batch that this one was to follow has failed.
	ErrDependency = errors.New("a batch that had to come first has failed")
	// ErrLost: the device is dead. Every batch in flight has failed and no new one is
	// taken. Host memory that it may have been writing to is to be given up.
	ErrLost = errors.New("device is lost")
	// ErrClosed: the device or the queue was closed.
	ErrClosed = errors.New("closed")
	// ErrUnsupported: this driver cannot do that.
	ErrUnsupported = errors.New("not supported by this device")
)

// SpanError is an error about one span of a batch.
type SpanError struct {
	Span int // its place in the batch
	End  End
	Err  error
}

// End is one of the two ends of a span.
type End string

// The ends of a span.
const (
	Source      End = "source"
	Destination End = "destination"
)

func (e *SpanError) Error() string { return fmt.Sprintf("span %d, %s: %v", e.Span, e.End, e.Err) }
func (e *SpanError) Unwrap() error { return e.Err }
