package server

import (
	"runtime"
	"testing"
	"time"
)

func (t *trimmer) times() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trims
}

// TestTrim: what a change took is given back once the changes have ended, when it is
// much, and nothing runs after close.
func TestTrim(t *testing.T) {
	runtime.GC()
	tr := trimmer{after: time.Millisecond, above: mapped() + 64<<20}
	tr.soon()
	tr.running.Wait()
	if tr.times() != 0 {
		t.Error("memory is given back where there is little")
	}
	b := make([]byte, 128<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	high := mapped()
	runtime.KeepAlive(b)
	b = nil
	for range 3 {
		tr.soon()
	}
	for tr.times() == 0 {
		time.Sleep(time.Millisecond)
	}
	if now := mapped(); now > high-100<<20 {
		t.Errorf("%d of %d bytes are left", now, high)
	}
	tr.close()
	tr.soon()
	tr.close()
	slow := trimmer{after: time.Hour}
	slow.soon()
	slow.soon()
	slow.close() // does not wait for it
}
