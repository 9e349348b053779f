package peers_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
	"github.com/kvrt/kvrt/hosts/store"
)

const (
	near   = "tcp://127.0.0.1:1"
	nobody = "tcp://127.0.0.1:2"
	silent = "tcp://127.0.0.1:3" // takes links and says nothing
)

// pair is a node with blocks, and one that reaches it as near.
func pair(t *testing.T, cfg peers.Config, hashes ...uint64) (from, to *node) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	from = newNode(t, peers.Config{
		Serve: []peers.Endpoint{{&unixsock.Transport{}, socket}},
		Auth:  peer.Rules{{Peer: peer.Identity{UID: uint32(os.Geteuid())}, Namespaces: []string{space}}},
	})
	for _, h := range hashes {
		from.put(t, h)
	}
	cfg.Local, cfg.Sockets = &unixsock.Transport{}, map[string]string{near: socket, nobody: filepath.Join(dir, "nobody"), silent: filepath.Join(dir, "silent")}
	l, err := net.Listen("unix", filepath.Join(dir, "silent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return from, newNode(t, cfg)
}

func source(t *testing.T, text string) fetch.Source {
	t.Helper()
	allow, err := fetch.ParseAllowList(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	src, err := allow.Check([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// ended waits for the outcome of an order.
func (n *node) ended(t *testing.T, id hint.Identity, index uint32) outcome.Outcome {
	t.Helper()
	s := n.Outcomes.Subscribe(outcome.Filter{Identity: &id, Index: &index}, 8)
	defer s.Close()
	if out := n.Outcomes.Query(outcome.Filter{Identity: &id, Index: &index, Ended: true}, 1); len(out) == 1 {
		return out[0]
	}
	select {
	case o := <-s.Outcomes():
		return o
	case <-time.After(time.Minute):
		t.Fatal("no outcome")
	}
	return outcome.Outcome{}
}

// TestPrefetch: blocks come ahead of need, and what became of them is known.
func TestPrefetch(t *testing.T) {
	_, to := pair(t, peers.Config{}, 1, 2, 3, 4, 5)
	id := hint.Identity{Engine: "vllm", RequestID: "r"}
	to.put(t, 2)
	order := func(index int, src, namespace string, hashes ...uint64) outcome.Outcome {
		t.Helper()
		o := fetch.Order{Identity: id, MessageID: []byte("m"), Index: index, Tenant: "tenant", Namespace: namespace, Source: source(t, src), Hashes: hashes}
		if reason, detail := to.Prefetch(&o); reason != abi.ReasonNone {
			t.Fatal(reason, detail)
		}
		return to.ended(t, id, uint32(index))
	}
	o := order(0, near, space, 4, 1, 4, 2)
	if o.State != outcome.Completed || o.Fetched != 2 || o.Blocks != 3 || o.Bytes != 2*size || o.MessageID != "m" {
		t.Errorf("%+v", o)
	}
	for _, h := range []uint64{1, 2, 4} {
		if !bytes.Equal(to.get(t, h), payload(h)) {
			t.Errorf("block %d is wrong", h)
		}
	}
	to.Ended(id) // the request's end is nothing to it
	if o := order(1, near, space, 3, 99, 5); o.State != outcome.Partial || o.Reason != abi.ReasonNotFound || o.Fetched != 1 {
		t.Errorf("%+v", o)
	}
	if o := order(2, near, store.Namespace("another", "model"), 5); o.State != outcome.Failed || o.Reason != abi.ReasonSourceNotAllowed {
		t.Errorf("another tenant's: %+v", o)
	}
	if o := order(3, nobody, space, 5); o.State != outcome.Failed || o.Reason != abi.ReasonUnavailable {
		t.Errorf("nobody there: %+v", o)
	}
	if o := order(4, near, space, 1, 2); o.State != outcome.Completed || o.Fetched != 0 {
		t.Errorf("all here: %+v", o)
	}
	if _, _, st := to.Stats(); st.Open != 0 || st.Accepted != 5 {
		t.Errorf("%+v", st)
	}
}

// TestPrefetchWaits: an order that finds no room waits for it, and orders wait for each
// other.
func TestPrefetchWaits(t *testing.T) {
	var hashes []uint64
	for h := range uint64(40) {
		hashes = append(hashes, h)
	}
	_, to := pair(t, peers.Config{
		Fetch: fetcher.Config{MaxPeerBytes: 2 * size, BlockBytes: size}, Ahead: peers.AheadConfig{Pause: time.Millisecond},
	}, hashes...)
	for i := range 10 {
		o := fetch.Order{Identity: hint.Identity{RequestID: fmt.Sprint(i)}, Tenant: "tenant", Namespace: space, Source: source(t, near), Hashes: hashes[4*i : 4*i+4]}
		if reason, detail := to.Prefetch(&o); reason != abi.ReasonNone {
			t.Fatal(reason, detail)
		}
	}
	for i := range 10 {
		if o := to.ended(t, hint.Identity{RequestID: fmt.Sprint(i)}, 0); o.State != outcome.Completed {
			t.Errorf("%+v", o)
		}
	}
}

// TestPrefetchOfOthers: a tenant whose orders find no room does not hold up another.
func TestPrefetchOfOthers(t *testing.T) {
	_, to := pair(t, peers.Config{
		Fetch: fetcher.Config{BlockBytes: size, MaxTenantBytes: 2 * size},
		Ahead: peers.AheadConfig{Running: 3, TenantRunning: 2, Pause: time.Millisecond},
	}, 1, 2)
	for i := range 5 {
		o := fetch.Order{Identity: hint.Identity{RequestID: "stuck"}, Index: i, Tenant: "stuck", Namespace: store.Namespace("stuck", ""), Source: source(t, silent), Hashes: []uint64{uint64(i)}}
		if reason, detail := to.Prefetch(&o); reason != abi.ReasonNone {
			t.Fatal(reason, detail)
		}
	}
	id := hint.Identity{RequestID: "r"}
	if reason, detail := to.Prefetch(&fetch.Order{Identity: id, Tenant: "tenant", Namespace: space, Source: source(t, near), Hashes: []uint64{1}}); reason != abi.ReasonNone {
		t.Fatal(reason, detail)
	}
	if o := to.ended(t, id, 0); o.State != outcome.Completed {
		t.Errorf("%+v", o)
	}
	if _, _, st := to.Stats(); st.Open != 5 {
		t.Errorf("%+v", st)
	}
	// The one that is done is taken off after its outcome is told.
	for now := to.Ahead(); now.Blocks != 5 || now.Waiting != 3 || now.Running != 2; now = to.Ahead() {
		if now.Waiting+now.Running > 6 || now.Waiting+now.Running < 5 || t.Context().Err() != nil {
			t.Fatalf("%+v", now)
		}
		runtime.Gosched()
	}
}

// TestPrefetchBounds: what waits is bounded, for a tenant and for all, and an exchange
// that ends leaves no outcome open.
func TestPrefetchBounds(t *testing.T) {
	_, to := pair(t, peers.Config{Fetch: fetcher.Config{MaxPeerBytes: 1}, Ahead: peers.AheadConfig{Running: 1, Orders: 4, TenantOrders: 3, Blocks: 10}}, 1)
	id := hint.Identity{RequestID: "r"}
	order := func(tenant string, blocks int) abi.Reason {
		o := fetch.Order{Identity: id, Tenant: tenant, Namespace: space, Source: source(t, near)}
		for h := range blocks {
			o.Hashes = append(o.Hashes, uint64(h))
		}
		reason, _ := to.Prefetch(&o)
		return reason
	}
	// No block ever fits, so that all wait.
	for i, c := range []struct {
		tenant string
		blocks int
		want   abi.Reason
	}{{"a", 1, 0}, {"a", 2, 0}, {"a", 1, 0}, {"a", 1, abi.ReasonLimitExceeded}, {"b", 7, abi.ReasonLimitExceeded}, {"b", 6, 0}, {"c", 1, abi.ReasonLimitExceeded}} {
		if got := order(c.tenant, c.blocks); got != c.want {
			t.Errorf("order %d: %q, want %q", i, got, c.want)
		}
	}
	if now := to.Ahead(); now.Waiting+now.Running != 4 || now.Running > 1 || now.Blocks != 10 {
		t.Errorf("%+v", now)
	}
	to.Close()
	if now := to.Ahead(); now != (peers.AheadStats{}) {
		t.Errorf("after the end: %+v", now)
	}
	if _, _, st := to.Stats(); st.Open != 0 || st.Accepted != 4 || st.Failed != 4 {
		t.Errorf("%+v", st)
	}
	if got := order("a", 1); got != abi.ReasonUnavailable {
		t.Errorf("after the end: %q", got)
	}
}
