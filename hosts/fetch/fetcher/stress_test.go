package fetcher

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// TestOutcomesAddUp runs requests that end in every way at once: whole, in part, for
// want of a source, for time, by discard and by a later hint. Every accepted hint has
// one outcome, and every block that is said to be here is here.
func TestOutcomesAddUp(t *testing.T) {
	w := newWorld(t, Config{OpTimeout: 80 * time.Millisecond, MaxPeerBytes: 40 * size})
	w.serve(0, seq(1, 100)...)
	w.serve(1, seq(50, 100)...)
	w.silent(2)
	sub := w.ledger.Subscribe(outcome.Filter{}, 1<<12)
	defer sub.Close()
	accepted := make([]int, 4)
	var wg sync.WaitGroup
	for g := range accepted {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 7))
			for i := range 60 {
				id := hint.Identity{Engine: "e", RequestID: ident(1000*g + i).RequestID}
				from := 1 + r.IntN(140)
				hashes := seq(from, 1+r.IntN(12))
				src := w.source([]int{0, 0, 1, 1, 1, 2}[r.IntN(6)])
				w.submit(id, src, hashes)
				accepted[g]++
				if r.IntN(5) == 0 {
					w.submit(id, src, hashes)
					accepted[g]++
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(40))*time.Millisecond)
				status := make([]peer.Status, len(hashes))
				switch r.IntN(4) {
				case 0:
					w.fetcher.Fetch(ctx, request(id, hashes), status)
				case 1:
					w.fetcher.FetchHint(ctx, request(id, nil))
				case 2:
					w.fetcher.Deliver(ctx, request(id, hashes), &sink{}, status)
				}
				cancel()
				if r.IntN(3) > 0 {
					w.hints.Discard(id)
					w.ledger.Discard(id)
				}
				for range 4 {
					w.local.Drop(space, uint64(1+r.IntN(150)))
				}
			}
		})
	}
	wg.Wait()
	w.fetcher.Close()
	total := 0
	for _, n := range accepted {
		total += n
	}
	st := w.ledger.Stats()
	if sum := st.Open + st.Completed + st.Partial + st.Failed + st.Superseded + st.Discarded + st.Expired; st.Accepted != uint64(total) || sum != st.Accepted {
		t.Errorf("%+v do not add up to %d", st, total)
	}
	for _, n := range []uint64{st.Open, st.Completed, st.Partial + st.Failed, st.Superseded, st.Discarded} {
		if n == 0 {
			t.Errorf("not every way to end was taken: %+v", st)
		}
	}
	if ended := int(st.Accepted - st.Open); len(sub.Outcomes()) != ended {
		t.Errorf("%d outcomes were streamed, %d hints ended", len(sub.Outcomes()), ended)
	}
	w.right(seq(1, 150), make([]peer.Status, 150))
}
