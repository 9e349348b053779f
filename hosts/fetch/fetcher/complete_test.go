package fetcher

import (
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// TestCompleted: a hint is completed once all that it names is here, also when some of it
// was here before, and when it is fetched in parts.
func TestCompleted(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(0, seq(1, 200)...)
	for _, h := range []uint64{1, 100, 200} {
		if err := w.local.Put(space, h, block(h)); err != nil {
			t.Fatal(err)
		}
	}
	id := ident(1)
	w.submit(id, w.source(0), seq(1, 200))
	for _, part := range []struct {
		hashes []uint64
		state  outcome.State
	}{
		{[]uint64{200, 1}, outcome.Open}, // both are here
		{seq(150, 50), outcome.Open},
		{seq(2, 100), outcome.Open},
		{seq(90, 60), outcome.Completed},
	} {
		if _, _, err := w.fetch(request(id, part.hashes)); err != nil {
			t.Fatal(err)
		}
		if o := w.outcome(id); o.State != part.state || o.Reason != abi.ReasonNone {
			t.Errorf("after %d to %d: %+v", part.hashes[0], part.hashes[len(part.hashes)-1], o)
		}
	}
	if o := w.outcome(id); o.Fetched != 197 {
		t.Errorf("%+v", o)
	}
	w.submit(id, w.source(0), seq(1, 3))
	if _, err := w.fetcher.Deliver(t.Context(), request(id, seq(1, 3)), &sink{}, make([]peer.Status, 3)); err != nil || w.outcome(id).State != outcome.Completed {
		t.Errorf("delivered: %v, %+v", err, w.outcome(id))
	}
}
