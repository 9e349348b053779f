package server

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A change of the guests takes memory in passing: a request of megabytes, the module in
// it, what reading, rewriting and loading make of that. Go's heap keeps what it once had
// for minutes, and as room for garbage for good. So a while after the last change the
// process gives back what it does not use, if it has much.
const (
	trimAfter = time.Second
	trimAbove = 16 << 20 // bytes that the process has from the system for Go's heap
)

// trimmer gives memory back after changes. The zero value is ready.
type trimmer struct {
	after time.Duration // of tests; 0: trimAfter
	above uint64        // of tests; 0: trimAbove

	mu      sync.Mutex
	timer   *time.Timer
	running sync.WaitGroup
	closed  bool
	trims   int
}

// soon has memory given back when no further change comes for a while.
func (t *trimmer) soon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	after := t.after
	if after == 0 {
		after = trimAfter
	}
	switch {
	case t.closed:
	case t.timer != nil && t.timer.Stop():
		t.timer.Reset(after)
	default:
		t.running.Add(1)
		t.timer = time.AfterFunc(after, t.trim)
	}
}

func (t *trimmer) trim() {
	defer t.running.Done()
	above := t.above
	if above == 0 {
		above = trimAbove
	}
	if mapped() < above {
		return
	}
	debug.FreeOSMemory()
	t.mu.Lock()
	t.trims++
	t.mu.Unlock()
}

// close ends it; nothing runs afterwards.
func (t *trimmer) close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil && t.timer.Stop() {
		t.running.Done()
	}
	t.mu.Unlock()
	t.running.Wait()
}

// mapped is what Go has of the system's memory and has not given back.
func mapped() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
