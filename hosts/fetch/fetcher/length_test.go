package fetcher

import (
	"errors"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// TestLength: a block that is here with another length than the request has is never said
// to be here, nor delivered; the others come.
func TestLength(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(0, seq(1, 4)...)
	if err := w.local.Put(space, 2, block(2)[:size/2]); err != nil {
		t.Fatal(err)
	}
	id := ident(1)
	w.submit(id, w.source(0), seq(1, 4))
	places := make([]Place, 4)
	if w.fetcher.Query(request(id, seq(1, 4)), places); !slices.Equal(places, []Place{Fetchable, Unfit, Fetchable, Fetchable}) {
		t.Errorf("%v", places)
	}
	res, status, err := w.fetch(request(id, seq(1, 4)))
	if want := []peer.Status{peer.Success, peer.Failed, peer.Success, peer.Success}; !errors.Is(err, ErrLength) || !slices.Equal(status, want) || res.Fetched != 3 {
		t.Errorf("%+v %v %v", res, status, err)
	}
	dst := &sink{}
	if _, err := w.fetcher.Deliver(t.Context(), request(id, seq(1, 4)), dst, status); !errors.Is(err, ErrLength) || !slices.Equal(status, []peer.Status{peer.Success, 0, 0, 0}) {
		t.Errorf("%v %v", status, err)
	}
	if _, err := w.fetcher.FetchHint(t.Context(), request(id, nil)); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if o := w.outcome(id); o.State != outcome.Partial || o.Reason != abi.ReasonStateConflict || o.Fetched != 3 {
		t.Errorf("%+v", o)
	}
	// Who says no length takes what is there.
	any := request(id, seq(1, 4))
	any.BlockBytes = 0
	if _, status, err := w.fetch(any); err != nil || slices.Contains(status, peer.Failed) {
		t.Errorf("%v %v", status, err)
	}
}

// TestLengthOfAnothers: a block that somebody else was bringing, who took any length.
func TestLengthOfAnothers(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(0, 1)
	id := ident(1)
	w.submit(id, w.source(0), []uint64{1})
	long := request(id, []uint64{1})
	long.BlockBytes = size + 1
	op := &operation{done: make(chan struct{}), hashes: []uint64{1}, status: []peer.Status{peer.Success}}
	w.fetcher.flights[key{space, 1}] = flight{op, 0}
	end := make(chan struct{})
	go func() {
		defer close(end)
		if res, status, err := w.fetch(long); !errors.Is(err, ErrLength) || status[0] != peer.Failed || res.Fetched != 0 {
			t.Errorf("%+v %v %v", res, status, err)
		}
	}()
	eventually(t, "it waits for the other", func() bool { return w.fetcher.Stats().Coalesced == 1 })
	if err := w.local.Put(space, 1, block(1)); err != nil {
		t.Error(err)
	}
	w.fetcher.land(op, space)
	<-end
}
