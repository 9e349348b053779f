// Package peertest is the suite that every transport of peer links passes. A
// transport's test makes an [Env] and calls [Run].
package peertest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/memstore"
)

// Env is a transport under test.
type Env struct {
	Source, Target peer.Transport
	// Stranger is one that must not get a link; nil where nobody can be one here.
	Stranger peer.Transport
	// Identity is how the source must see the target.
	Identity peer.Identity
	// Address makes a new address to listen on. It may be taken again after Close.
	Address func(t *testing.T) string
	// Slab: the source passes its slab.
	Slab bool
}

// patience bounds what must happen, and is never waited for when it does.
const patience = 20 * time.Second

// Run runs the suite.
func Run(t *testing.T, newEnv func(t *testing.T) Env) {
	for _, c := range []struct {
		name, rule string
		run        func(t *testing.T, e Env)
	}{
		{"bytes", "blocks of any size arrive as they were", testBytes},
		{"kept", "a link serves one pull after another", testKept},
		{"prefix", "what is served is the longest prefix that the source has", testPrefix},
		{"namespace", "a namespace is served to those who may read it, and no other is", testNamespace},
		{"identity", "the source sees who the target is", testIdentity},
		{"stranger", "who does not authenticate gets no link", testStranger},
		{"length", "a block of another length than was asked for is not sent", testLength},
		{"credit", "no more bytes are sent than were asked for", testCredit},
		{"present", "a block that the target has is dropped", testPresent},
		{"room", "a full store keeps what fitted and gives the rest up", testRoom},
		{"parallel", "pulls of many goroutines do not disturb each other", testParallel},
		{"absent", "nobody at the address is an error, at once", testAbsent},
		{"silent", "a source that never answers costs the deadline, and holds nothing", testSilent},
		{"cancel", "a cancelled pull returns and holds nothing", testCancel},
		{"cut", "a link that is cut anywhere leaves whole blocks or none", testCut},
		{"flip", "a bit that is flipped anywhere never reaches a block", testFlip},
		{"trickle", "a source that sends a byte at a time is cut off at the deadline", testTrickle},
		{"restart", "another process at the same address is another peer", testRestart},
		{"close source", "a source that is closed ends its links and leases", testCloseSource},
		{"close target", "a target that is closed ends its pulls", testCloseTarget},
		{"vanish", "a target that vanishes in mid-block leaves no lease", testVanish},
		{"loris", "connections that say nothing hold nobody up and are ended", testLoris},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t)
			c.run(t, e)
			if t.Failed() {
				t.Logf("the rule: %s", c.rule)
			}
		})
	}
}

// Open lets one identity read one namespace, and map the slab.
type Open struct {
	Identity  peer.Identity
	Namespace string
}

// MayRead compares.
func (o Open) MayRead(id peer.Identity, namespace []byte) bool {
	return id == o.Identity && string(namespace) == o.Namespace
}

// MayMap compares.
func (o Open) MayMap(id peer.Identity) bool { return id == o.Identity }

const space = "tenant/model"

// side is a source with its store.
type side struct {
	store  *memstore.Store
	server *peer.Server
	addr   string
	done   chan error
}

func store(t *testing.T, e Env, slots, size int) *memstore.Store {
	t.Helper()
	s, err := memstore.New(slots, size, e.Slab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// serve starts a source. Its store must be without leases in the end.
func serve(t *testing.T, e Env, tr peer.Transport, addr string, st *memstore.Store, cfg peer.ServerConfig) *side {
	t.Helper()
	l, err := tr.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Source = st
	if cfg.Auth == nil {
		cfg.Auth = Open{e.Identity, space}
	}
	s := &side{store: st, server: peer.NewServer(cfg), addr: l.Address(), done: make(chan error, 1)}
	go func() { s.done <- s.server.Serve(l) }()
	t.Cleanup(func() { s.close(t) })
	return s
}

func (s *side) close(t *testing.T) {
	if s.done == nil {
		return
	}
	s.server.Close()
	if err := <-s.done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve returned %v, want net.ErrClosed", err)
	}
	s.done = nil
	if u := s.store.Use(); u.Leased != 0 {
		t.Errorf("the closed source has %d blocks under lease", u.Leased)
	}
	if st := s.server.Stats(); st.Open != 0 || st.Handshake != 0 || st.Leased != 0 {
		t.Errorf("the closed source has %+v", st)
	}
}

// target makes a client. Its store must be without reserved slots in the end.
func target(t *testing.T, e Env, addr string, st *memstore.Store, cfg peer.ClientConfig) *peer.Client {
	t.Helper()
	c := peer.NewClient(cfg, func(ctx context.Context) (*peer.Link, error) { return e.Target.Dial(ctx, addr) }, st)
	t.Cleanup(func() {
		c.Close()
		if u := st.Use(); u.Filling != 0 {
			t.Errorf("the closed target has %d slots reserved", u.Filling)
		}
	})
	return c
}

// block makes the bytes of a block, which differ everywhere.
func block(hash uint64, size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(hash), byte(hash >> 8), byte(size)}).Read(b)
	return b
}

func fill(t *testing.T, st *memstore.Store, sizes ...int) (hashes []uint64) {
	t.Helper()
	for i, size := range sizes {
		h := uint64(i + 1)
		if err := st.Put(space, h, block(h, size)); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, h)
	}
	return hashes
}

func repeat(size, n int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}

func request(hashes []uint64) *peer.Request {
	return &peer.Request{Namespace: []byte(space), Hashes: hashes, MaxBytes: 1 << 40}
}

// pull runs a pull under the suite's patience.
func pull(t *testing.T, c *peer.Client, req *peer.Request) (peer.Result, []peer.Status, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status := make([]peer.Status, len(req.Hashes))
	res, err := c.Pull(ctx, req, status)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the pull hung")
	}
	return res, status, err
}

// right checks that every block that a store has is as it should be, and that those
// with a good status are there.
func right(t *testing.T, st *memstore.Store, hashes []uint64, sizes []int, status []peer.Status) {
	t.Helper()
	for i, h := range hashes {
		got := st.Get(space, h)
		if got != nil && !bytes.Equal(got, block(h, sizes[i])) {
			t.Errorf("block %d is wrong", h)
		}
		if (got != nil) != (status[i] != peer.Failed) {
			t.Errorf("block %d: present %v, status %v", h, got != nil, status[i])
		}
	}
}

// eventually waits for what the other side does in its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
