//go:build cgo && linux

package cuda

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// stream is a stream of the driver, with the batches that have not ended.
type stream struct {
	dev    *Device
	sink   gpu.Sink
	id     uintptr
	waits  []uintptr
	flight []flight // a ring, grown when needed
	head   int
	n      int
}

// flight is a batch in flight.
type flight struct {
	seq   uint64
	event uintptr
	err   error // of one that was taken in part
}

// Stream opens a stream.
func (d *Device) Stream(sink gpu.Sink) (gpu.Stream, error) {
	s := &stream{dev: d, sink: sink, flight: make([]flight, 64)}
	var id C.uintptr_t
	if err := d.failure("cuStreamCreate", C.kv_cuda_stream(d.cuda, &id)); err != nil {
		return nil, err
	}
	s.id = uintptr(id)
	d.mu.Lock()
	d.streams = append(d.streams, s)
	d.mu.Unlock()
	return s, nil
}

// Submit hands a batch to the driver.
func (s *stream) Submit(seq uint64, c gpu.Copies, waits []gpu.Wait) (bool, error) {
	d := s.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return false, d.lost
	}
	s.waits = s.waits[:0]
	for _, w := range waits {
		if w.Event != 0 {
			s.waits = append(s.waits, w.Event)
			continue
		}
		o, ok := w.Stream.(*stream)
		if !ok || o.dev != d {
			return false, fmt.Errorf("a batch of another device: %w", gpu.ErrUnsupported)
		}
		if e := o.eventOf(w.Seq); e != 0 { // else it has ended
			s.waits = append(s.waits, e)
		}
	}
	event, err := d.event()
	if err != nil {
		return false, err
	}
	out := C.kv_cuda_submit(d.cuda, C.uintptr_t(s.id), C.uintptr_t(event),
		(*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(s.waits))), C.size_t(len(s.waits)),
		(*C.uint64_t)(unsafe.SliceData(c.Dst)), (*C.uint64_t)(unsafe.SliceData(c.Src)), (*C.uint64_t)(unsafe.SliceData(c.Size)), C.size_t(len(c.Dst)))
	if out.result != 0 {
		return s.failed(seq, event, &c, out)
	}
	s.push(flight{seq: seq, event: event})
	return true, nil
}

// failed says what a submission that failed comes to.
func (s *stream) failed(seq uint64, event uintptr, c *gpu.Copies, out C.kv_submitted) (bool, error) {
	d := s.dev
	call := map[C.int]string{C.KV_CONTEXT: "cuCtxSetCurrent", C.KV_WAIT: "cuStreamWaitEvent", C.KV_COPY: "the copies", C.KV_RECORD: "cuEventRecord"}[out.stage]
	err := d.failure(call, out.result)
	if out.stage == C.KV_COPY && out.bad >= 0 {
		err = fmt.Errorf("copy %d of %d, %d bytes to %#x: %w", out.bad, len(c.Dst), c.Size[out.bad], c.Dst[out.bad], err)
	}
	if out.stage == C.KV_RECORD && !errors.Is(err, gpu.ErrLost) {
		err = fmt.Errorf("%w: nothing tells when a batch ends: %w", gpu.ErrLost, err)
	}
	started := out.stage == C.KV_COPY || out.stage == C.KV_RECORD
	if started {
		s.push(flight{seq: seq, event: event, err: err})
	} else {
		d.events = append(d.events, event)
	}
	if errors.Is(err, gpu.ErrLost) {
		d.lose(err)
	}
	return started, err
}

// lose is for those who hold mu. The poller does the rest.
func (d *Device) lose(err error) {
	if d.lost == nil {
		d.lost = err
	}
	d.wake.Signal()
}

// event takes an event that nothing waits for any more, or makes one.
func (d *Device) event() (uintptr, error) {
	if n := len(d.events); n > 0 {
		e := d.events[n-1]
		d.events = d.events[:n-1]
		return e, nil
	}
	var e C.uintptr_t
	err := d.failure("cuEventCreate", C.kv_cuda_event(d.cuda, &e))
	if errors.Is(err, gpu.ErrLost) {
		d.lose(err)
	}
	return uintptr(e), err
}

func (s *stream) at(i int) *flight { return &s.flight[(s.head+i)%len(s.flight)] }

func (s *stream) push(f flight) {
	if s.n == len(s.flight) {
		grown := make([]flight, 2*len(s.flight))
		for i := range s.n {
			grown[i] = *s.at(i)
		}
		s.flight, s.head = grown, 0
	}
	*s.at(s.n) = f
	s.n++
	if s.dev.flying++; s.dev.flying == 1 {
		s.dev.wake.Signal()
	}
}

func (s *stream) pop() flight {
	f := *s.at(0)
	*s.at(0) = flight{}
	s.head, s.n = (s.head+1)%len(s.flight), s.n-1
	s.dev.flying--
	return f
}

// eventOf returns the event behind a batch, 0 when it has ended.
func (s *stream) eventOf(seq uint64) uintptr {
	if s.n == 0 || seq < s.at(0).seq {
		return 0
	}
	return s.at(int(seq - s.at(0).seq)).event
}

// Close ends the stream. One of a lost device goes with its context.
func (s *stream) Close() error {
	d := s.dev
	d.mu.Lock()
	d.streams = slices.DeleteFunc(d.streams, func(o *stream) bool { return o == s })
	lost := d.lost
	d.mu.Unlock()
	if lost != nil {
		return nil
	}
	return d.failure("cuStreamDestroy", C.kv_cuda_stream_end(d.cuda, C.uintptr_t(s.id)))
}

// How long the poller spins for an event before it sleeps, and for how long at a time.
const (
	spins    = 200
	minSleep = 20 * time.Microsecond
	maxSleep = 100 * time.Microsecond
)

const notReady = 600

// end is a batch that has ended.
type end struct {
	sink gpu.Sink
	seq  uint64
	err  error
}

// poll tells the sinks what has ended. It makes no call while nothing is in flight.
func (d *Device) poll() {
	defer close(d.polling)
	var (
		asked   []*stream
		events  []uintptr
		results []C.int
		ends    []end
		idle    int
	)
	for {
		asked, events, results = asked[:0], events[:0], results[:0]
		d.mu.Lock()
		for d.flying == 0 && !d.closed {
			d.wake.Wait()
			idle = 0
		}
		if d.flying == 0 {
			d.mu.Unlock()
			return
		}
		for _, s := range d.streams {
			if s.n > 0 { // its oldest; the event is not used again before this goroutine says so
				asked, events, results = append(asked, s), append(events, s.at(0).event), append(results, 0)
			}
		}
		d.mu.Unlock()
		code := C.kv_cuda_poll(d.cuda, (*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(events))), unsafe.SliceData(results), C.size_t(len(events)))
		d.mu.Lock()
		ends = d.reap(ends[:0], asked, results, code)
		d.mu.Unlock()
		for i := range ends {
			ends[i].sink.Ended(ends[i].seq, ends[i].err)
		}
		if len(ends) > 0 {
			idle = 0
			continue
		}
		if idle++; idle < spins {
			runtime.Gosched()
			continue
		}
		time.Sleep(min(maxSleep, minSleep*time.Duration(1+(idle-spins)/8)))
	}
}

// reap takes what has ended out of the streams.
func (d *Device) reap(ends []end, asked []*stream, results []C.int, code C.int) []end {
	if code != 0 {
		d.lose(asLost(d.failure("cuCtxSetCurrent", code)))
	}
	for i, s := range asked {
		switch r := results[i]; {
		case code != 0 || r == notReady:
		case r == 0:
			f := s.pop()
			d.events = append(d.events, f.event)
			ends = append(ends, end{s.sink, f.seq, f.err})
		default:
			d.lose(asLost(d.failure("cuEventQuery", r)))
		}
	}
	if d.lost == nil {
		return ends
	}
	for _, s := range d.streams {
		for s.n > 0 {
			f := s.pop()
			d.events = append(d.events, f.event)
			ends = append(ends, end{s.sink, f.seq, d.lost})
		}
	}
	return ends
}

// asLost: an error where only the end of the device can be the reason.
func asLost(err error) error {
	if errors.Is(err, gpu.ErrLost) {
		return err
	}
	return fmt.Errorf("%w: %w", gpu.ErrLost, err)
}
