package fetcher

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
)

// TestAhead: blocks come from the source that is named, whatever the request's hint says,
// and what does not come is nothing to that hint.
func TestAhead(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(0, seq(1, 10)...)
	w.serve(1, 50)
	w.submit(ident(1), w.source(1), []uint64{50})
	var told atomic.Uint32
	ahead := func(hashes []uint64) (Result, error) {
		told.Store(0)
		return w.fetcher.Ahead(t.Context(), request(ident(1), hashes), w.source(0), func(n uint32, _ uint64) { told.Add(n) })
	}
	if res, err := ahead([]uint64{3, 1, 2}); err != nil || res.Fetched != 3 || res.Bytes != 3*size || told.Load() != 3 {
		t.Errorf("%+v %v, told of %d", res, err, told.Load())
	}
	if res, err := ahead([]uint64{1, 4, 3}); err != nil || res.Here != 2 || res.Fetched != 1 || told.Load() != 1 {
		t.Errorf("%+v %v, told of %d", res, err, told.Load())
	}
	res, err := ahead([]uint64{5, 99, 6})
	if !errors.Is(err, ErrIncomplete) || ReasonOf(err) != abi.ReasonNotFound || res.Fetched != 1 || told.Load() != 1 {
		t.Errorf("%+v %v, told of %d", res, err, told.Load())
	}
	if o := w.outcome(ident(1)); o.State != outcome.Open || o.Fetched != 0 {
		t.Errorf("the request's hint: %+v", o)
	}
	if res, _, err := w.fetch(request(ident(1), []uint64{50})); err != nil || res.Fetched != 1 {
		t.Errorf("the request's hint: %+v %v", res, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.silent(2)
	if _, err := w.fetcher.Ahead(ctx, request(ident(1), []uint64{70}), w.source(2), func(uint32, uint64) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAheadLeavesHalf: of what may be under way, blocks that nobody waits for take half.
func TestAheadLeavesHalf(t *testing.T) {
	w := newWorld(t, Config{MaxPeerBytes: 8 * size, MaxTenantBytes: 8 * size, OpTimeout: time.Second})
	s := w.serve(0, seq(1, 40)...)
	none := func(uint32, uint64) {}
	if res, err := w.fetcher.Ahead(t.Context(), request(ident(1), seq(1, 20)), w.source(0), none); err != nil || res.Fetched != 20 {
		t.Errorf("%+v %v", res, err)
	}
	if st := s.Stats(); st.Requests != 5 {
		t.Errorf("%d requests for 20 blocks, 4 at a time", st.Requests)
	}
	w.silent(1)
	done := make(chan error, 1)
	go func() {
		_, err := w.fetcher.Ahead(t.Context(), request(ident(1), seq(100, 9)), w.source(1), none)
		done <- err
	}()
	eventually(t, "half is under way", func() bool { return w.fetcher.Stats().Flights == 4 })
	if _, err := w.fetcher.Ahead(t.Context(), request(ident(1), seq(30, 1)), w.source(0), none); !errors.Is(err, ErrBusy) || ReasonOf(err) != abi.ReasonLimitExceeded {
		t.Errorf("more than half: %v", err)
	}
	w.submit(ident(2), w.source(0), seq(30, 4))
	if res, _, err := w.fetch(request(ident(2), seq(30, 4))); err != nil || res.Fetched != 4 {
		t.Errorf("who waits: %+v %v", res, err)
	}
	if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
