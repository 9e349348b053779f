package runtime

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// maxWarned bounds the set behind "warn once": types, versions and messages are the
// sender's to choose.
const maxWarned = 1024

// warnOnce remembers what has been warned about, by hash. Readers take no lock: the
// set is copied on write, which happens at most maxWarned times. The zero value is
// empty.
type warnOnce struct {
	mu   sync.Mutex
	seen atomic.Pointer[warned]
}

type warned struct {
	seed maphash.Seed
	keys map[uint64]struct{}
}

// first tells whether (kind, what) is new, and remembers it. When the set is full
// nothing is new any more.
func (w *warnOnce) first(kind uint64, what []byte) bool {
	if seen := w.seen.Load(); seen != nil {
		if _, ok := seen.keys[seen.hash(kind, what)]; ok || len(seen.keys) >= maxWarned {
			return false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	next := &warned{maphash.MakeSeed(), map[uint64]struct{}{}}
	if seen := w.seen.Load(); seen != nil {
		next.seed = seen.seed
		if _, ok := seen.keys[seen.hash(kind, what)]; ok || len(seen.keys) >= maxWarned {
			return false
		}
		for k := range seen.keys {
			next.keys[k] = struct{}{}
		}
	}
	next.keys[next.hash(kind, what)] = struct{}{}
	w.seen.Store(next)
	return true
}

func (s *warned) hash(kind uint64, what []byte) uint64 {
	return maphash.Bytes(s.seed, what) ^ kind*0x9e3779b97f4a7c15
}
