package fetcher

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/memstore"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	space   = "tenant/model"
	size    = 1000
	patient = 20 * time.Second
)

type local struct{ *memstore.Store }

func (l local) Where(ns []byte, hashes []uint64, blockBytes int, out []Place) {
	for i, h := range hashes {
		have, coming := l.Has(ns, h)
		out[i] = map[bool]Place{true: Ready}[have]
		if coming {
			out[i] = Filling
		}
		if have && blockBytes > 0 && len(l.Get(string(ns), h)) != blockBytes {
			out[i] = Unfit
		}
	}
}

// world is a fetcher with everything around it.
type world struct {
	t       *testing.T
	dir     string
	hints   *fetch.Store
	ledger  *outcome.Ledger
	local   *memstore.Store
	allow   *fetch.AllowList
	fetcher *Fetcher
	paths   map[string]string // source to socket
	wrap    func(*peer.Link)  // what is done to each link
}

func newWorld(t *testing.T, cfg Config) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, hints: fetch.New(fetch.Config{}), ledger: outcome.NewLedger(outcome.Config{}), paths: make(map[string]string)}
	if w.local, err = memstore.New(256, size, false); err != nil {
		t.Fatal(err)
	}
	if w.allow, err = fetch.ParseAllowList(context.Background(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if cfg.OpTimeout == 0 {
		cfg.OpTimeout = patient
	}
	if cfg.BlockBytes == 0 {
		cfg.BlockBytes = size
	}
	cfg.Hints, cfg.Local, cfg.Outcomes = w.hints, local{w.local}, w.ledger
	cfg.Dial = func(ctx context.Context, src fetch.Source) (*peer.Link, error) {
		l, err := (&unixsock.Transport{}).Dial(ctx, w.paths[src.String()])
		if err == nil && w.wrap != nil {
			w.wrap(l)
		}
		return l, err
	}
	w.fetcher = New(cfg)
	t.Cleanup(func() {
		w.fetcher.Close()
		if u := w.local.Use(); u.Filling != 0 || u.Leased != 0 {
			t.Errorf("the closed fetcher left %+v", u)
		}
		f := w.fetcher
		if len(f.flights) != 0 || len(f.peers.used) != 0 || len(f.tenants.used) != 0 {
			t.Errorf("the closed fetcher left %d flights, bytes %v and %v", len(f.flights), f.peers.used, f.tenants.used)
		}
	})
	return w
}

func (w *world) source(n int) fetch.Source {
	src, err := w.allow.Check(fmt.Appendf(nil, "tcp://127.0.0.1:%d", n+1))
	if err != nil {
		w.t.Fatal(err)
	}
	return src
}

// serve starts source n with some blocks.
func (w *world) serve(n int, hashes ...uint64) *peer.Server {
	w.t.Helper()
	st, err := memstore.New(256, size, false)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range hashes {
		if err := st.Put(space, h, block(h)); err != nil {
			w.t.Fatal(err)
		}
	}
	path := filepath.Join(w.dir, fmt.Sprint(n))
	l, err := (&unixsock.Transport{}).Listen(path)
	if err != nil {
		w.t.Fatal(err)
	}
	w.paths[w.source(n).String()] = path
	s := peer.NewServer(peer.ServerConfig{Source: st, Auth: peertest.Open{Identity: peer.Identity{UID: uint32(os.Geteuid())}, Namespace: space}})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	w.t.Cleanup(func() { s.Close(); <-done })
	return s
}

// silent opens a socket for source n at which nobody answers. The peer's connections
// are closed with the test.
func (w *world) silent(n int) {
	w.t.Helper()
	path := filepath.Join(w.dir, fmt.Sprint(n))
	l, err := net.Listen("unix", path)
	if err != nil {
		w.t.Fatal(err)
	}
	w.paths[w.source(n).String()] = path
	w.t.Cleanup(func() { l.Close() })
}

func block(h uint64) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(h), byte(h >> 8)}).Read(b)
	return b
}

func seq(from, n int) []uint64 {
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = uint64(from + i)
	}
	return hashes
}

func ident(n int) hint.Identity { return hint.Identity{Engine: "vllm", RequestID: fmt.Sprint("r", n)} }

// submit stores a hint and opens its outcome.
func (w *world) submit(id hint.Identity, src fetch.Source, hashes []uint64) {
	w.t.Helper()
	var b []byte
	for _, h := range hashes {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	p, reason, detail := w.hints.Prepare(id, src, b, false)
	if p == nil {
		w.t.Fatal(reason, detail)
	}
	if reason, detail := p.Commit(); reason != abi.ReasonNone {
		w.t.Fatal(reason, detail)
	}
	w.ledger.Accept(id, []byte("m"), 0, uint32(len(hashes)))
}

func request(id hint.Identity, hashes []uint64) *Request {
	return &Request{Identity: id, Tenant: "t", Namespace: []byte(space), Hashes: hashes, BlockBytes: size}
}

func (w *world) fetch(r *Request) (Result, []peer.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	status := make([]peer.Status, len(r.Hashes))
	res, err := w.fetcher.Fetch(ctx, r, status)
	return res, status, err
}

// outcome is the latest of a request.
func (w *world) outcome(id hint.Identity) outcome.Outcome {
	w.t.Helper()
	out := w.ledger.Query(outcome.Filter{Identity: &id}, 1)
	if len(out) != 1 {
		w.t.Fatalf("request %v has %d outcomes", id, len(out))
	}
	return out[0]
}

// right checks that what is said to be here is, and that it is what it should be.
func (w *world) right(hashes []uint64, status []peer.Status) {
	w.t.Helper()
	for i, h := range hashes {
		got := w.local.Get(space, h)
		if got != nil && !bytes.Equal(got, block(h)) {
			w.t.Errorf("block %d is wrong", h)
		}
		if got == nil && status[i] != peer.Failed {
			w.t.Errorf("block %d is not here, and its status is %v", h, status[i])
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patient); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
