package session

import (
	"sync"
	"testing"
	"time"
)

// TestAnchorWhileGrafting: the part of a path from an anchor on is the same whatever is
// grafted above it meanwhile.
func TestAnchorWhileGrafting(t *testing.T) {
	x := New(Config{Grace: time.Hour})
	const top = 2000
	apply(t, x, &Event{Op: OpMatched, Worker: w1, Session: "s", Hashes: []uint64{top}}, stored(w1, "s", top+1, top+2).below(top))
	var reader sync.WaitGroup
	done := make(chan struct{})
	reader.Go(func() {
		var p Paths
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := x.Lineage(&p, Query{Session: "s", Worker: w1, Anchor: top + 1, HasAnchor: true}); err != nil || p.Len() != 1 || p.Blocks() != 2 {
				t.Errorf("%v, %d paths, %d blocks", err, p.Len(), p.Blocks())
				return
			}
			if err := x.Lineage(&p, Query{Session: "s", Worker: w1}); err != nil || p.Len() != 1 {
				t.Error(err, p.Len())
				return
			}
			path, ok := p.Append(nil, 0)
			if !ok || path[len(path)-1] != top+2 || path[0] != top+3-uint64(len(path)) {
				t.Errorf("%d", path)
				return
			}
		}
	})
	for h := uint64(top); h > 1; h-- {
		apply(t, x, stored(w1, "s", h).below(h-1))
	}
	close(done)
	reader.Wait()
}
