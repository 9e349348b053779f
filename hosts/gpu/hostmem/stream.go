package hostmem

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// stream makes the copies of its batches, one batch after the other.
type stream struct {
	dev   *Device
	sink  gpu.Sink
	left  sync.WaitGroup // the stream's goroutines
	team  chan struct{}  // one token for each worker that is to help
	order []int          // of the copies of a batch, when shuffled
	rand  *rand.Rand
	help  job

	mu     sync.Mutex
	wake   *sync.Cond // work, an end, or a batch that has ended
	work   []batch    // a ring, grown when needed
	head   int
	n      int
	ended  uint64 // how many batches have ended
	closed bool
}

type batch struct {
	seq    uint64
	copies gpu.Copies
	waits  []gpu.Wait
}

// Stream opens a stream.
func (d *Device) Stream(sink gpu.Sink) (gpu.Stream, error) {
	s := &stream{dev: d, sink: sink, work: make([]batch, 64), team: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	if d.cfg.Seed != 0 {
		s.rand = rand.New(rand.NewPCG(d.cfg.Seed, d.cfg.Seed))
	}
	s.left.Add(d.cfg.Workers)
	go s.run()
	for range d.cfg.Workers - 1 {
		go func() {
			defer s.left.Done()
			for range s.team {
				s.help.run()
				s.help.busy.Done()
			}
		}()
	}
	return s, nil
}

// Submit queues a batch.
func (s *stream) Submit(seq uint64, c gpu.Copies, waits []gpu.Wait) (bool, error) {
	for _, w := range waits {
		if w.Event != 0 {
			return false, fmt.Errorf("an event of a GPU: %w", gpu.ErrUnsupported)
		}
		if o, ok := w.Stream.(*stream); !ok || o.dev != s.dev {
			return false, fmt.Errorf("a batch of another device: %w", gpu.ErrUnsupported)
		}
	}
	if err := s.dev.dead(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == len(s.work) {
		grown := make([]batch, 2*len(s.work))
		for i := range s.n {
			grown[i] = s.work[(s.head+i)%len(s.work)]
		}
		s.work, s.head = grown, 0
	}
	s.work[(s.head+s.n)%len(s.work)] = batch{seq, c, waits}
	s.n++
	s.wake.Broadcast()
	return true, nil
}

func (d *Device) dead() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.lost
}

// Lose ends the device as a fault of hardware would: what is in flight fails.
func (d *Device) Lose() {
	d.mu.Lock()
	d.lost = fmt.Errorf("%w: it was told to be", gpu.ErrLost)
	d.mu.Unlock()
}

// next waits for a batch; ok is false when the stream is closed.
func (s *stream) next() (b batch, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.n == 0 {
		if s.closed {
			return b, false
		}
		s.wake.Wait()
	}
	b = s.work[s.head]
	s.work[s.head] = batch{}
	s.head, s.n = (s.head+1)%len(s.work), s.n-1
	return b, true
}

// await waits until the batch seq of the stream has ended.
func (s *stream) await(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ended <= seq {
		s.wake.Wait()
	}
}

func (s *stream) run() {
	defer s.left.Done()
	for {
		b, ok := s.next()
		if !ok {
			return
		}
		for _, w := range b.waits {
			w.Stream.(*stream).await(w.Seq)
		}
		err := s.make(&b)
		if lost := s.dev.dead(); lost != nil {
			err = lost
		}
		s.sink.Ended(b.seq, err)
		s.mu.Lock()
		s.ended++
		s.wake.Broadcast()
		s.mu.Unlock()
	}
}

// make makes the copies of a batch.
func (s *stream) make(b *batch) error {
	n := len(b.copies.Dst)
	var refused error
	if gate := s.dev.cfg.Gate; gate != nil {
		if refused = gate(); refused != nil {
			n /= 2 // a part of it is there: the worst case
		}
	}
	j := &s.help
	j.dev, j.copies, j.order = s.dev, b.copies, nil
	j.next.Store(0)
	j.n = n
	j.err.Store(nil)
	if s.rand != nil {
		s.order = s.order[:0]
		for i := range len(b.copies.Dst) {
			s.order = append(s.order, i)
		}
		s.rand.Shuffle(len(s.order), func(a, b int) { s.order[a], s.order[b] = s.order[b], s.order[a] })
		j.order = s.order
	}
	helpers := 0
	if s.dev.cfg.Workers > 1 && n > 1 {
		var bytes uint64
		for _, size := range b.copies.Size {
			bytes += size
		}
		helpers = min(s.dev.cfg.Workers-1, n-1, int(bytes/perWorker))
	}
	j.busy.Add(helpers)
	for range helpers {
		s.team <- struct{}{}
	}
	j.run()
	j.busy.Wait()
	if err := j.err.Load(); err != nil {
		return errors.Join(refused, *err)
	}
	return refused
}

// perWorker is how many bytes make it worth waking one more worker: about 200 us of copying.
const perWorker = 1 << 20

// job is the copies of one batch, shared among workers.
type job struct {
	dev    *Device
	copies gpu.Copies
	order  []int
	n      int
	next   atomic.Int64
	busy   sync.WaitGroup
	err    atomic.Pointer[error]
}

// run makes copies until none is left.
func (j *job) run() {
	var dst, src span
	d := j.dev
	for {
		i := int(j.next.Add(1)) - 1
		if i >= j.n {
			return
		}
		if j.order != nil {
			i = j.order[i]
		}
		d.mu.RLock() // memory in flight is not released; the table of it may change
		to, err := d.resolve(j.copies.Dst[i], j.copies.Size[i], &dst)
		from, err2 := d.resolve(j.copies.Src[i], j.copies.Size[i], &src)
		d.mu.RUnlock()
		if err == nil {
			err = err2
		}
		if err != nil {
			first := err // here, so that nothing is allocated when all is well
			j.err.CompareAndSwap(nil, &first)
			continue
		}
		copy(to, from)
	}
}

// Close ends the stream's goroutines.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.wake.Broadcast()
	s.mu.Unlock()
	close(s.team)
	s.left.Wait()
	return nil
}
