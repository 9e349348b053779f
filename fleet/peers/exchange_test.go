package peers_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
	"github.com/kvrt/kvrt/hosts/fetch/peer/tcp"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
	"github.com/kvrt/kvrt/hosts/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const size = 10_000

var space = store.Namespace("tenant", "model")

func payload(h uint64) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(h)}).Read(b)
	return b
}

// node is one kvrt, as far as peers are concerned.
type node struct {
	*peers.Exchange
	hints  *fetch.Store
	blocks *store.Store
}

func newNode(t *testing.T, cfg peers.Config) *node {
	t.Helper()
	s, err := store.New(store.Config{Capacity: 4 << 20, BlockBytes: []uint64{16 << 10}, Checksum: true})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{blocks: s}
	n.hints = fetch.New(fetch.Config{Ended: func(id hint.Identity) { n.Ended(id) }})
	cfg.Hints, cfg.Blocks = n.hints, s
	cfg.Fetch.OpTimeout = 20 * time.Second
	if n.Exchange, err = peers.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.Close()
		if err := s.Close(); err != nil {
			t.Errorf("a lease or a reservation is left: %v", err)
		}
	})
	return n
}

func (n *node) put(t *testing.T, h uint64) {
	t.Helper()
	token, b, err := n.blocks.Reserve(space, h, size)
	if err != nil {
		t.Fatal(err)
	}
	copy(b, payload(h))
	if err := n.blocks.Commit(token); err != nil {
		t.Fatal(err)
	}
}

func (n *node) get(t *testing.T, h uint64) []byte {
	t.Helper()
	token, b, err := n.blocks.Acquire(space, h)
	if err != nil {
		return nil
	}
	defer n.blocks.Release(token)
	return bytes.Clone(b)
}

// submit stores a hint for the source at an address.
func (n *node) submit(t *testing.T, id hint.Identity, source string, hashes []uint64) {
	t.Helper()
	allow, err := fetch.ParseAllowList(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	src, err := allow.Check([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for _, h := range hashes {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	p, reason, detail := n.hints.Prepare(id, src, b, false)
	if p == nil {
		t.Fatal(reason, detail)
	}
	if reason, detail := p.Commit(); reason != abi.ReasonNone {
		t.Fatal(reason, detail)
	}
	n.Outcomes.Accept(id, []byte("m"), 0, uint32(len(hashes)))
}

// TestExchange: a hint to one node fetches blocks from another, over each transport.
func TestExchange(t *testing.T) {
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := peertest.NewAuthority(t)
	source := &tcp.Transport{Certificate: a.Issue(t, "source"), Roots: a.Roots()}
	target := &tcp.Transport{Certificate: a.Issue(t, "target"), Roots: a.Roots()}
	own := peer.Identity{UID: uint32(os.Geteuid())}
	socket := filepath.Join(dir, "s")
	from := newNode(t, peers.Config{
		Serve: []peers.Endpoint{{source, "127.0.0.1:0"}, {&unixsock.Transport{}, socket}},
		Auth:  peer.Rules{{Peer: peer.Identity{Name: "target"}, Namespaces: []string{space}}, {Peer: own, All: true}},
	})
	for h := range uint64(20) {
		from.put(t, h)
	}
	remote := "tcp://" + from.Addresses()[0]
	hashes := []uint64{3, 1, 4, 15, 9, 2, 6}
	for name, cfg := range map[string]peers.Config{
		"tcp":  {Remote: target},
		"slab": {Local: &unixsock.Transport{}, Sockets: map[string]string{remote: socket}},
	} {
		t.Run(name, func(t *testing.T) {
			to := newNode(t, cfg)
			to.put(t, 15)
			id := hint.Identity{Engine: "vllm", RequestID: "r"}
			to.submit(t, id, remote, hashes)
			req := &fetcher.Request{Identity: id, Tenant: "tenant", Namespace: []byte(space), BlockBytes: size}
			res, err := to.Fetcher.FetchHint(t.Context(), req)
			if err != nil || res.Here != 1 || res.Fetched != 6 {
				t.Fatalf("%+v, %v", res, err)
			}
			for _, h := range hashes {
				if !bytes.Equal(to.get(t, h), payload(h)) {
					t.Errorf("block %d is wrong", h)
				}
			}
			if out := to.Outcomes.Query(outcome.Filter{Identity: &id}, 1); len(out) != 1 || out[0].State != outcome.Completed || out[0].Fetched != 6 {
				t.Errorf("%+v", out)
			}
			id.RequestID = "another tenant's"
			to.submit(t, id, remote, []uint64{1})
			other := *req
			other.Identity, other.Namespace = id, []byte(store.Namespace("another", "model"))
			if res, err := to.Fetcher.FetchHint(t.Context(), &other); !errors.Is(err, fetcher.ErrIncomplete) || res.Fetched != 0 {
				t.Errorf("another tenant's namespace: %+v, %v", res, err)
			}
			want := map[string]abi.Reason{"tcp": abi.ReasonSourceNotAllowed, "slab": abi.ReasonNotFound}[name] // the local peer may read all
			if out := to.Outcomes.Query(outcome.Filter{Identity: &id}, 1); out[0].State != outcome.Failed || out[0].Reason != want {
				t.Errorf("%+v", out)
			}
			id.RequestID = "too many"
			to.submit(t, id, remote, []uint64{7, 8, 77, 10})
			req.Identity = id
			if res, err := to.Fetcher.FetchHint(t.Context(), req); !errors.Is(err, fetcher.ErrIncomplete) || res.Fetched != 2 {
				t.Errorf("more than the source has: %+v, %v", res, err)
			}
			if out := to.Outcomes.Query(outcome.Filter{Identity: &id}, 1); out[0].State != outcome.Partial || out[0].Fetched != 2 {
				t.Errorf("%+v", out)
			}
		})
	}
	st, _, _ := from.Stats()
	if st.Blocks != 16 || st.Denied != 1 {
		t.Errorf("%+v", st)
	}
	readers := from.Readers()
	if len(readers) != 3 || readers[0].Peer != own || readers[0].Denied != 0 || readers[1].Peer.Name != "target" || readers[1].Denied != 1 || !readers[2].Others ||
		readers[0].Requests+readers[1].Requests != st.Requests || readers[0].Blocks+readers[1].Blocks != st.Blocks || readers[0].Bytes+readers[1].Bytes != st.Bytes ||
		readers[0].Blocks == 0 || readers[1].Blocks == 0 {
		t.Errorf("%+v, of %d requests", readers, st.Requests)
	}
}

// TestUnreachable: what the allow list lets pass is not dialled without a transport.
func TestUnreachable(t *testing.T) {
	n := newNode(t, peers.Config{})
	id := hint.Identity{RequestID: "r"}
	n.submit(t, id, "tcp://127.0.0.1:1", []uint64{1})
	req := &fetcher.Request{Identity: id, Namespace: []byte(space), BlockBytes: size}
	if _, err := n.Fetcher.FetchHint(t.Context(), req); !errors.Is(err, peers.ErrUnreachable) {
		t.Error(err)
	}
	if _, err := peers.New(peers.Config{Blocks: n.blocks, Hints: n.hints, Serve: []peers.Endpoint{{&unixsock.Transport{}, "/nowhere/at/all"}}}); err == nil {
		t.Error("an endpoint that cannot be opened is no error")
	}
}
