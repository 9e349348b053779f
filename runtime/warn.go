package runtime

import (
	"sync"
	"sync/atomic"
)

// maxWarned bounds the set behind "warn once": types, versions and messages are the
// sender's to choose.
const maxWarned = 1024

// warnOnce remembers what has been warned about. Readers take no lock: the set is
// copied on write, which happens at most maxWarned times.
type warnOnce struct {
	mu   sync.Mutex
	seen atomic.Pointer[map[string]struct{}]
}

// first tells whether (who, kind, what) is new, and remembers it. When the set is
// full nothing is new any more.
func (w *warnOnce) first(who string, kind uint32, what []byte) bool {
	var buf [192]byte
	key := append(buf[:0], byte(kind), byte(kind>>8), byte(kind>>16))
	key = append(append(append(key, who...), 0), what[:min(len(what), 128)]...)
	if seen := w.seen.Load(); seen != nil {
		if _, ok := (*seen)[string(key)]; ok || len(*seen) >= maxWarned {
			return false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	next := map[string]struct{}{}
	if seen := w.seen.Load(); seen != nil {
		if _, ok := (*seen)[string(key)]; ok || len(*seen) >= maxWarned {
			return false
		}
		for k := range *seen {
			next[k] = struct{}{}
		}
	}
	next[string(key)] = struct{}{}
	w.seen.Store(&next)
	return true
}
