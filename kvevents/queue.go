package kvevents

import (
	"context"
	"sync"
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

	mu    sync.Mutex
	ring  []item
	head  int
	n     int
	bytes int
	lost  bool   // a batch was dropped after the last one that is queued
	last  uint64 // its number
	wake  chan struct{}
}

func newQueue(items, bytes int) *queue {
	return &queue{maxItems: items, maxBytes: bytes, wake: make(chan struct{}, 1)}
}

// push reports whether there was room. A connection is always told of.
func (q *queue) push(it item) bool {
	q.mu.Lock()
	fits := q.n < q.maxItems && q.bytes+len(it.payload) <= q.maxBytes
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
	return it, true
}

func (q *queue) len() (items, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n, q.bytes
}
