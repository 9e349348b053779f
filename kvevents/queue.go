package kvevents

import (
	"context"
	"sync"
	"sync/atomic"
)

// What an item of a queue is.
const (
	itemBatch     uint8 = iota + 1
	itemConnected       // a subscription begins; the batches behind it are its own
	itemLost            // batches up to seq were dropped here, and none followed
)

type item struct {
	what    uint8
	seq     uint64
	payload []byte
}

// A queue is between the goroutine that reads a subscription and the one that applies
// it: bounded in batches and bytes, and never in the reader's way. What does not fit is
// dropped, the newest first, and the hole in the sequence tells the other side.
type queue struct {
	maxItems, maxBytes int
	all                *pool

	mu    sync.Mutex
	ring  []item
	head  int
	n     int
	bytes int
	lost  bool   // a batch was dropped after the last one that is queued
	last  uint64 // its number
	wake  chan struct{}
}

// A pool is what the queues of all feeds share: bytes, of which an empty queue may take
// more than there are.
type pool struct {
	max int64
	now atomic.Int64
}

func newQueue(items, bytes int, all *pool) *queue {
	return &queue{maxItems: items, maxBytes: bytes, all: all, wake: make(chan struct{}, 1)}
}

// push reports whether there was room. A connection is always told of.
func (q *queue) push(it item) bool {
	q.mu.Lock()
	fits := q.n < q.maxItems && q.bytes+len(it.payload) <= q.maxBytes &&
		(q.bytes == 0 || q.all.now.Load()+int64(len(it.payload)) <= q.all.max)
	if fits || it.what == itemConnected {
		q.put(it)
		q.lost = false
		fits = true
	} else {
		q.lost, q.last = true, it.seq
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return fits
}

func (q *queue) put(it item) {
	if q.n == len(q.ring) {
		grown := make([]item, max(16, 2*q.n))
		k := copy(grown, q.ring[q.head:])
		copy(grown[k:], q.ring[:q.head])
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = it
	q.n++
	q.bytes += len(it.payload)
	q.all.now.Add(int64(len(it.payload)))
}

// pop waits for the next item; false says that ctx is done.
func (q *queue) pop(ctx context.Context) (item, bool) {
	for {
		if it, ok := q.take(); ok {
			return it, true
		}
		select {
		case <-ctx.Done():
			return item{}, false
		case <-q.wake:
		}
	}
}

func (q *queue) take() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		lost := q.lost
		q.lost = false
		return item{what: itemLost, seq: q.last}, lost
	}
	it := q.ring[q.head]
	q.ring[q.head] = item{}
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	q.bytes -= len(it.payload)
	q.all.now.Add(-int64(len(it.payload)))
	return it, true
}

// close gives back what is still queued. Nothing is pushed any more.
func (q *queue) close() {
	for q.n > 0 {
		q.take()
	}
}

func (q *queue) len() (items, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n, q.bytes
}
