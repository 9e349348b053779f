package kvevents

import (
	"testing"
	"time"
)

// until polls for what no event tells.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never:", what)
		}
	}
}

// TestFlood holds the sink back while a publisher floods: the queue stays within its
// bounds, and what it dropped is replayed, although nothing follows that would show the hole.
func TestFlood(t *testing.T) {
	const batches, queued = 4000, 100
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), nil)
	cfg := quick(l)
	cfg.QueueBatches = queued
	man := follow(t, l, cfg, rank0, e)
	l.wait(t, "replayed 0 0")
	p.Do("subscribed", nil)
	l.mu.Lock()
	p.publish(m{"times": batches / 2}, stored(nil, 1), removed(1))
	until(t, "drops", func() bool {
		s := man.Stats()[0]
		if s.Queued > queued {
			t.Fatalf("%d batches queued", s.Queued)
		}
		return s.Dropped+queued+1 == batches // one is being applied
	})
	l.mu.Unlock()
	until(t, "all of it", func() bool { return man.Stats()[0].Sequence == batches })
	p.publish(nil, stored(nil, 2))
	l.wait(t, "7 rank 0 stored [2]")
	if s := man.Stats()[0]; s.Clears != 0 || s.Gaps == 0 || s.Batches != batches+1 || l.blocks(rank0) != 1 {
		t.Errorf("%d blocks, %+v", l.blocks(rank0), s)
	}
}

// TestQueueBytes holds the queue to its bytes.
func TestQueueBytes(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), nil)
	cfg := quick(l)
	cfg.Limits.Bytes, cfg.QueueBytes = 1000, 1000
	man := follow(t, l, cfg, rank0, e)
	l.wait(t, "replayed 0 0")
	p.Do("subscribed", nil)
	l.mu.Lock()
	p.publish(m{"times": 50}, stored(nil, 1), removed(1))
	until(t, "drops", func() bool {
		s := man.Stats()[0]
		if s.QueuedBytes > 1000 {
			t.Fatalf("%d bytes queued", s.QueuedBytes)
		}
		return s.Dropped > 0
	})
	l.mu.Unlock()
	until(t, "all of it", func() bool { return man.Stats()[0].Sequence == 100 })
}

// TestPublisherDrops floods through a high-water mark of one until libzmq dropped
// some: what is known in the end is what the publisher has.
func TestPublisherDrops(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), m{"hwm": 1})
	man := follow(t, l, quick(l), rank0, e)
	l.wait(t, "replayed 0 0")
	p.Do("subscribed", nil)
	until(t, "a gap", func() bool {
		p.publish(m{"times": 100}, stored(nil, 1, 2), removed(1, 2))
		return man.Stats()[0].Gaps > 0
	})
	until(t, "the end", func() bool {
		next := p.Do("publish", m{"batches": []m{{"events": stored(nil, 3)}}})["next"].(float64)
		until(t, "what is on its way", func() bool { return man.Stats()[0].Queued == 0 })
		return man.Stats()[0].Sequence == uint64(next)
	})
	if s := man.Stats()[0]; s.Clears != 0 || l.blocks(rank0) != 1 {
		t.Errorf("%d blocks, %+v", l.blocks(rank0), s)
	}
}
