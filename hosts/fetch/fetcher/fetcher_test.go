package fetcher

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

func TestQuery(t *testing.T) {
	w := newWorld(t, Config{})
	w.local.Put(space, 1, block(1))
	slot, err := w.local.Reserve([]byte(space), 2, size)
	if err != nil {
		t.Fatal(err)
	}
	defer w.local.Abort(slot)
	hashes := []uint64{1, 2, 3, 4}
	for _, c := range []struct {
		name string
		do   func(id hint.Identity)
		want []Place
	}{
		{"no hint", func(hint.Identity) {}, []Place{Ready, Filling, Missing, Missing}},
		{"a hint", func(id hint.Identity) { w.submit(id, w.source(0), []uint64{1, 3}) }, []Place{Ready, Filling, Fetchable, Missing}},
		{"local storage only", func(id hint.Identity) { w.submit(id, fetch.Source{}, []uint64{3, 4}) }, []Place{Ready, Filling, Missing, Missing}},
		{"failed", func(id hint.Identity) {
			w.submit(id, w.source(0), hashes)
			w.hints.Fail(id, abi.ReasonUnavailable)
		}, []Place{Ready, Filling, Missing, Missing}},
		{"finished", func(id hint.Identity) { w.submit(id, w.source(0), hashes); w.hints.Finish(id, false) }, []Place{Ready, Filling, Missing, Missing}},
	} {
		id := hint.Identity{RequestID: c.name}
		c.do(id)
		out := make([]Place, len(hashes))
		if w.fetcher.Query(request(id, hashes), out); !slices.Equal(out, c.want) {
			t.Errorf("%s: %v, want %v", c.name, out, c.want)
		}
	}
	w.fetcher.cfg.Opportunistic = true
	id := hint.Identity{RequestID: "a hint"}
	out := make([]Place, len(hashes))
	if w.fetcher.Query(request(id, hashes), out); out[3] != Fetchable {
		t.Errorf("opportunistic: %v", out)
	}
}

func TestFetch(t *testing.T) {
	w := newWorld(t, Config{})
	s := w.serve(0, seq(1, 10)...)
	id := ident(1)
	w.submit(id, w.source(0), seq(1, 10))
	w.local.Put(space, 3, block(3))
	res, status, err := w.fetch(request(id, seq(1, 5)))
	if err != nil || res.Here != 1 || res.Fetched != 4 || res.Bytes != 4*size {
		t.Fatalf("%+v %v %v", res, status, err)
	}
	w.right(seq(1, 5), status)
	if o := w.outcome(id); o.State != outcome.Open || o.Fetched != 4 {
		t.Errorf("half way: %+v", o)
	}
	if _, err := w.fetcher.FetchHint(t.Context(), request(id, nil)); err != nil {
		t.Fatal(err)
	}
	if o := w.outcome(id); o.State != outcome.Completed || o.Fetched != 9 || o.Bytes != 9*size {
		t.Errorf("all of it: %+v", o)
	}
	if st := s.Stats(); st.Blocks != 9 {
		t.Errorf("the source served %d blocks", st.Blocks)
	}
	if _, _, err := w.fetch(request(ident(2), seq(1, 5))); err != nil {
		t.Errorf("what is here needs no hint: %v", err)
	}
	if _, _, err := w.fetch(request(ident(2), seq(50, 1))); !errors.Is(err, ErrNoHint) {
		t.Errorf("what is not needs one: %v", err)
	}
}

// TestPrefix: a pull that does not complete every key marks its request failed.
func TestPrefix(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(0, 1, 2, 4)
	id := ident(1)
	w.submit(id, w.source(0), seq(1, 4))
	res, status, err := w.fetch(request(id, seq(1, 4)))
	if !errors.Is(err, ErrIncomplete) || res.Fetched != 2 || !slices.Equal(status, []peer.Status{peer.Success, peer.Success, peer.Failed, peer.Failed}) {
		t.Fatalf("%+v %v %v", res, status, err)
	}
	if o := w.outcome(id); o.State != outcome.Partial || o.Fetched != 2 || o.Reason != abi.ReasonNotFound {
		t.Errorf("%+v", o)
	}
	if _, _, err := w.fetch(request(id, seq(4, 1))); !errors.Is(err, ErrNoHint) {
		t.Errorf("a failed request is served: %v", err)
	}
	w.submit(id, w.source(0), seq(4, 1))
	if _, _, err := w.fetch(request(id, seq(4, 1))); err != nil {
		t.Errorf("a later hint of the same source: %v", err)
	}
	w.submit(ident(2), w.source(0), []uint64{2})
	if _, status, err := w.fetch(request(ident(2), []uint64{2, 99})); !errors.Is(err, ErrIncomplete) || status[0] != peer.Success || status[1] != peer.Failed {
		t.Errorf("a block that the hint does not name: %v %v", status, err)
	}
}

// slow holds reads of a link back, deaf to deadlines and to Close, as memory that a
// device or a remote writer owns would be.
type slow struct {
	net.Conn
	gate    chan struct{}
	reading chan struct{}
	once    sync.Once
}

func (s *slow) Read(b []byte) (int, error) {
	if len(b) > 500 { // payload
		s.once.Do(func() { close(s.reading) })
		<-s.gate
	}
	return s.Conn.Read(b)
}

// TestDeadlineFreesNoSlot: who waits is told in time; the slot stays taken until the
// transport has let go of it, and a late success is none.
func TestDeadlineFreesNoSlot(t *testing.T) {
	w := newWorld(t, Config{OpTimeout: 50 * time.Millisecond})
	w.serve(0, 1)
	gate, reading := make(chan struct{}), make(chan struct{})
	w.wrap = func(l *peer.Link) {
		c := &slow{Conn: l.Control, gate: gate, reading: reading}
		l.Control, l.Data = c, c
	}
	id := ident(1)
	w.submit(id, w.source(0), seq(1, 1))
	ctx, cancel := context.WithCancelCause(context.Background())
	over := errors.New("the caller's time is over")
	go func() { <-reading; cancel(over) }()
	status := make([]peer.Status, 1)
	if _, err := w.fetcher.Fetch(ctx, request(id, seq(1, 1)), status); !errors.Is(err, over) || status[0] != peer.Failed {
		t.Fatalf("%v %v", status, err)
	}
	if o := w.outcome(id); o.State != outcome.Failed {
		t.Errorf("%+v", o)
	}
	if u := w.local.Use(); u.Filling != 1 {
		t.Errorf("the slot was given up: %+v", u)
	}
	if _, err := w.local.Reserve([]byte(space), 1, size); !errors.Is(err, peer.ErrPresent) {
		t.Errorf("the slot can be had: %v", err)
	}
	<-time.After(60 * time.Millisecond) // the operation's own deadline, which the transport does not heed
	if u, st := w.local.Use(), w.fetcher.Stats(); u.Filling != 1 || st.Flights != 1 {
		t.Errorf("the slot was given up: %+v %+v", u, st)
	}
	close(gate)
	eventually(t, "the slot is given back", func() bool { return w.local.Use().Filling == 0 && w.fetcher.Stats().Flights == 0 })
	if w.local.Get(space, 1) != nil {
		t.Error("a late success counted")
	}
}

func TestCoalescing(t *testing.T) {
	w := newWorld(t, Config{})
	s := w.serve(0, seq(1, 50)...)
	var wg sync.WaitGroup
	for n := range 20 {
		w.submit(ident(n), w.source(0), seq(1, 50))
		wg.Go(func() {
			_, status, err := w.fetch(request(ident(n), seq(1, 50)))
			if err != nil {
				t.Error(err)
			}
			w.right(seq(1, 50), status)
		})
	}
	wg.Wait()
	if st := s.Stats(); st.Blocks != 50 {
		t.Errorf("the source served %d blocks for 50", st.Blocks)
	}
	// Duplicates in one list are one block too.
	w.submit(ident(99), w.source(0), seq(1, 50))
	w.local.Drop(space, 7)
	if res, status, err := w.fetch(request(ident(99), []uint64{7, 8, 7})); err != nil || res.Bytes != size || slices.Contains(status, peer.Failed) {
		t.Errorf("%+v %v %v", res, status, err)
	}
}

// TestAnothersFailure: who waited for another's source tries its own.
func TestAnothersFailure(t *testing.T) {
	w := newWorld(t, Config{OpTimeout: 600 * time.Millisecond})
	w.silent(0)
	w.serve(1, seq(1, 3)...)
	a, b := ident(1), ident(2)
	w.submit(a, w.source(0), seq(1, 3))
	w.submit(b, w.source(1), seq(1, 3))
	failed := make(chan error, 1)
	go func() {
		_, _, err := w.fetch(request(a, seq(1, 3)))
		failed <- err
	}()
	eventually(t, "the first is under way", func() bool { return w.fetcher.Stats().Flights == 3 })
	res, status, err := w.fetch(request(b, seq(1, 3)))
	if err != nil || res.Fetched != 3 {
		t.Errorf("%+v %v %v", res, status, err)
	}
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the first: %v", err)
	}
	if o := w.outcome(a); o.State != outcome.Failed || o.Reason != abi.ReasonUnavailable {
		t.Errorf("%+v", o)
	}
	if o := w.outcome(b); o.State != outcome.Completed {
		t.Errorf("%+v", o)
	}
	if w.fetcher.Stats().Coalesced != 3 {
		t.Errorf("%+v", w.fetcher.Stats())
	}
}

// TestSharedFailure: requests that fail together fail for the same reason, whoever of them
// turned to the source.
func TestSharedFailure(t *testing.T) {
	w := newWorld(t, Config{OpTimeout: 300 * time.Millisecond})
	w.silent(0)
	var wait sync.WaitGroup
	for i := range 4 {
		w.submit(ident(i), w.source(0), seq(1, 3))
		wait.Go(func() {
			if _, _, err := w.fetch(request(ident(i), seq(1, 3))); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	for i := range 4 {
		if o := w.outcome(ident(i)); o.State != outcome.Failed || o.Reason != abi.ReasonUnavailable {
			t.Errorf("request %d: %+v", i, o)
		}
	}
}

func TestAdmission(t *testing.T) {
	w := newWorld(t, Config{MaxPeerBytes: 4 * size, MaxTenantBytes: 6 * size, OpTimeout: time.Second})
	s := w.serve(0, seq(1, 20)...)
	w.submit(ident(1), w.source(0), seq(1, 20))
	if res, _, err := w.fetch(request(ident(1), seq(1, 20))); err != nil || res.Fetched != 20 {
		t.Errorf("in rounds: %+v %v", res, err)
	}
	if st := s.Stats(); st.Requests != 5 {
		t.Errorf("%d requests for 20 blocks, 4 at a time", st.Requests)
	}
	// A tenant whose bytes are under way, from sources that never answer, is refused;
	// another is not.
	w.silent(1)
	w.silent(2)
	var wg sync.WaitGroup
	for n := 1; n <= 2; n++ {
		w.submit(ident(10+n), w.source(n), seq(100*n, 3))
		wg.Go(func() { w.fetch(request(ident(10+n), seq(100*n, 3))) })
	}
	eventually(t, "six blocks are under way", func() bool { return w.fetcher.Stats().Flights == 6 })
	for _, h := range seq(1, 3) {
		w.local.Drop(space, h)
	}
	w.submit(ident(20), w.source(0), seq(1, 3))
	r := request(ident(20), seq(1, 3))
	if _, _, err := w.fetch(r); !errors.Is(err, ErrBusy) {
		t.Errorf("a tenant over its cap: %v", err)
	}
	if o := w.outcome(ident(20)); o.State != outcome.Open {
		t.Errorf("a refusal is no failure: %+v", o)
	}
	r.Tenant = "another"
	if res, _, err := w.fetch(r); err != nil || res.Fetched != 3 {
		t.Errorf("another tenant: %+v %v", res, err)
	}
	wg.Wait()
}

type sink struct {
	got  [][]byte
	fail error
}

func (s *sink) Deliver(_ context.Context, blocks []peer.Block) error {
	for _, b := range blocks {
		s.got = append(s.got, bytes.Clone(b.Data))
	}
	return s.fail
}

func TestDeliver(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(0, 1, 2, 3)
	w.local.Put(space, 1, block(1))
	id := ident(1)
	w.submit(id, w.source(0), []uint64{3})
	status := make([]peer.Status, 3)
	dst := &sink{}
	// Two is not in the hint, and is asked for all the same.
	if _, err := w.fetcher.Deliver(t.Context(), request(id, seq(1, 3)), dst, status); err != nil || slices.Contains(status, peer.Failed) {
		t.Fatalf("%v %v", status, err)
	}
	for i, b := range dst.got {
		if !bytes.Equal(b, block(uint64(i+1))) {
			t.Errorf("block %d is wrong", i+1)
		}
	}
	w.submit(ident(2), w.source(0), seq(1, 5))
	status = make([]peer.Status, 5)
	if _, err := w.fetcher.Deliver(t.Context(), request(ident(2), seq(1, 5)), &sink{}, status); !errors.Is(err, ErrIncomplete) || status[2] != peer.Success || status[3] != peer.Failed {
		t.Errorf("a prefix: %v %v", status, err)
	}
	broken := errors.New("broken")
	if _, err := w.fetcher.Deliver(t.Context(), request(ident(2), seq(1, 3)), &sink{fail: broken}, status[:3]); !errors.Is(err, broken) || status[0] != peer.Failed {
		t.Errorf("a device that fails: %v %v", status, err)
	}
	if res, err := w.fetcher.Deliver(t.Context(), request(id, nil), dst, nil); err != nil || res != (Result{}) {
		t.Errorf("nothing: %+v %v", res, err)
	}
}

func TestPeersAreEvicted(t *testing.T) {
	w := newWorld(t, Config{MaxPeers: 2})
	for n := range 5 {
		w.serve(n, uint64(n+1))
		w.submit(ident(n), w.source(n), seq(n+1, 1))
		if _, _, err := w.fetch(request(ident(n), seq(n+1, 1))); err != nil {
			t.Error(err)
		}
	}
	if st := w.fetcher.Stats(); st.Peers != 2 {
		t.Errorf("%+v", st)
	}
}

func TestClose(t *testing.T) {
	w := newWorld(t, Config{})
	w.silent(0)
	w.submit(ident(1), w.source(0), seq(1, 3))
	errs := make(chan error, 1)
	go func() {
		_, _, err := w.fetch(request(ident(1), seq(1, 3)))
		errs <- err
	}()
	eventually(t, "it is under way", func() bool { return w.fetcher.Stats().Flights == 3 })
	w.fetcher.Close()
	if err := <-errs; err == nil {
		t.Error("a fetch of a closed fetcher succeeded")
	}
	w.submit(ident(2), w.source(0), seq(1, 3))
	if _, _, err := w.fetch(request(ident(2), seq(1, 3))); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
