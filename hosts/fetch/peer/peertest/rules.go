package peertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// large is the slot size of most tests.
const large = 2 << 20

func testBytes(t *testing.T, e Env) {
	sizes := []int{1, 2, 511, 512, 513, 4095, 4096, 65536, 100_000, 1 << 20, 1<<20 + 1, 1<<20 - 1, 7}
	sizes = append(sizes, repeat(3000, 130)...)
	from, to := store(t, e, len(sizes), large), store(t, e, len(sizes), large)
	hashes := fill(t, from, sizes...)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	res, status, err := pull(t, c, request(hashes))
	if err != nil || res.Blocks != len(hashes) || res.Stop != peer.StopNone || res.Source == 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	right(t, to, hashes, sizes, status)
	if m := c.Stats().Mapped; e.Slab != (m == uint64(len(hashes))) {
		t.Errorf("%d blocks were copied out of the slab", m)
	}
}

func testKept(t *testing.T, e Env) {
	sizes := repeat(5000, 20)
	from, to := store(t, e, 20, 8192), store(t, e, 20, 8192)
	hashes := fill(t, from, sizes...)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	for i := range hashes {
		if res, _, err := pull(t, c, request(hashes[i:i+1])); err != nil || res.Blocks != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if st := c.Stats(); st.Dials != 1 || st.Idle != 1 || st.Blocks != 20 || st.Bytes != 100_000 {
		t.Errorf("%+v", st)
	}
	if st := s.server.Stats(); st.Links != 1 || st.Requests != 20 || st.Blocks != 20 || st.Bytes != 100_000 || st.Cut != 0 {
		t.Errorf("%+v", st)
	}
}

func testPrefix(t *testing.T, e Env) {
	from, to := store(t, e, 8, 4096), store(t, e, 8, 4096)
	sizes := repeat(1000, 5)
	hashes := fill(t, from, sizes...)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{MaxBlocks: 4})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	from.Drop(space, hashes[2])
	res, status, err := pull(t, c, request(hashes))
	if err != nil || res.Blocks != 2 || res.Stop != peer.StopMissing {
		t.Fatalf("%+v, %v", res, err)
	}
	right(t, to, hashes, sizes, status)
	if res, _, err = pull(t, c, request([]uint64{99, 1})); err != nil || res.Blocks != 0 || res.Stop != peer.StopMissing {
		t.Errorf("nothing of it: %+v, %v", res, err)
	}
	if res, _, err = pull(t, c, request([]uint64{1, 2, 4, 5, 6})); err != nil || res.Blocks != 4 || res.Stop != peer.StopCredit {
		t.Errorf("more than the source's limit: %+v, %v", res, err)
	}
}

func testNamespace(t *testing.T, e Env) {
	from, to := store(t, e, 8, 4096), store(t, e, 8, 4096)
	hashes := fill(t, from, 100)
	if err := from.Put("other/model", 7, block(7, 100)); err != nil {
		t.Fatal(err)
	}
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	req := request([]uint64{7})
	if res, _, err := pull(t, c, req); err != nil || res.Stop != peer.StopMissing {
		t.Errorf("a block of another namespace: %+v, %v", res, err)
	}
	req.Namespace = []byte("other/model")
	if res, _, err := pull(t, c, req); err != nil || res.Blocks != 0 || res.Stop != peer.StopDenied {
		t.Errorf("a namespace of others: %+v, %v", res, err)
	}
	if res, _, err := pull(t, c, request(hashes)); err != nil || res.Blocks != 1 {
		t.Errorf("after a denial: %+v, %v", res, err)
	}
	if n := s.server.Stats().Denied; n != 1 {
		t.Errorf("%d denials were counted", n)
	}
}

type seen struct {
	Open
	ids chan peer.Identity
}

func (s seen) MayRead(id peer.Identity, ns []byte) bool {
	s.ids <- id
	return s.Open.MayRead(id, ns)
}

func testIdentity(t *testing.T, e Env) {
	from, to := store(t, e, 1, 4096), store(t, e, 1, 4096)
	hashes := fill(t, from, 100)
	auth := seen{Open{e.Identity, space}, make(chan peer.Identity, 1)}
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{Auth: auth})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	if _, _, err := pull(t, c, request(hashes)); err != nil {
		t.Fatal(err)
	}
	if id := <-auth.ids; id != e.Identity {
		t.Errorf("the source sees %+v, want %+v", id, e.Identity)
	}
}

func testStranger(t *testing.T, e Env) {
	if e.Stranger == nil {
		t.Skip("nobody can be a stranger here")
	}
	from, to := store(t, e, 1, 4096), store(t, e, 1, 4096)
	hashes := fill(t, from, 100)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	stranger := e
	stranger.Target = e.Stranger
	c := target(t, stranger, s.addr, to, peer.ClientConfig{})
	if res, _, err := pull(t, c, request(hashes)); err == nil || res.Blocks != 0 {
		t.Errorf("a stranger got %+v, %v", res, err)
	}
	// The other way round: a target that meets a stranger where it expects a source.
	s2 := serve(t, e, e.Stranger, e.Address(t), from, peer.ServerConfig{})
	c2 := target(t, e, s2.addr, to, peer.ClientConfig{})
	if res, _, err := pull(t, c2, request(hashes)); err == nil || res.Blocks != 0 {
		t.Errorf("from a stranger came %+v, %v", res, err)
	}
}

func testLength(t *testing.T, e Env) {
	from, to := store(t, e, 8, 4096), store(t, e, 8, 4096)
	sizes := []int{1000, 1000, 999, 1000}
	hashes := fill(t, from, sizes...)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{MaxBlock: 2000})
	req := request(hashes)
	req.BlockBytes = 1000
	res, status, err := pull(t, c, req)
	if err != nil || res.Blocks != 2 || res.Stop != peer.StopLength {
		t.Errorf("%+v, %v", res, err)
	}
	right(t, to, hashes, sizes, status)
	if err := from.Put(space, 50, block(50, 2001)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := pull(t, c, request([]uint64{50})); !errors.Is(err, peer.ErrProtocol) {
		t.Errorf("a block over the target's limit: %v", err)
	}
}

func testCredit(t *testing.T, e Env) {
	from, to := store(t, e, 8, 4096), store(t, e, 8, 4096)
	sizes := repeat(1000, 5)
	hashes := fill(t, from, sizes...)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{MaxBytesPerPeer: 3500})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	req := request(hashes)
	req.MaxBytes = 2999
	res, status, err := pull(t, c, req)
	if err != nil || res.Blocks != 2 || res.Stop != peer.StopCredit {
		t.Errorf("the target's: %+v, %v", res, err)
	}
	right(t, to, hashes, sizes, status)
	req.MaxBytes = 1 << 40
	if res, _, err = pull(t, c, req); err != nil || res.Blocks != 3 || res.Stop != peer.StopCredit {
		t.Errorf("the source's: %+v, %v", res, err)
	}
}

func testPresent(t *testing.T, e Env) {
	from, to := store(t, e, 8, 4096), store(t, e, 8, 4096)
	sizes := repeat(1000, 3)
	hashes := fill(t, from, sizes...)
	if err := to.Put(space, 2, block(2, 1000)); err != nil {
		t.Fatal(err)
	}
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	res, status, err := pull(t, c, request(hashes))
	if err != nil || res.Blocks != 3 || status[0] != peer.Success || status[1] != peer.Dropped || status[2] != peer.Success {
		t.Errorf("%+v, %v, %v", res, status, err)
	}
	right(t, to, hashes, sizes, status)
}

func testRoom(t *testing.T, e Env) {
	from, to := store(t, e, 8, large), store(t, e, 2, large)
	sizes := repeat(large, 3)
	hashes := fill(t, from, sizes...)
	// What came in this pull is in use, and so is not evicted at once.
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	var held peer.Lease
	if _, _, err := pull(t, c, request(hashes[:2])); err != nil {
		t.Fatal(err)
	}
	to.Lease([]byte(space), hashes[:2], 1<<40, &held)
	defer to.Release(&held)
	if _, status, err := pull(t, c, request(hashes)); !errors.Is(err, peer.ErrNoRoom) {
		t.Errorf("%v, %v", status, err)
	}
	eventually(t, "the source's leases end", func() bool { return from.Use().Leased == 0 })
}

func testParallel(t *testing.T, e Env) {
	const workers, each = 6, 30
	from, to := store(t, e, workers*each, 8192), store(t, e, workers*each, 8192)
	sizes := repeat(8000, workers*each)
	hashes := fill(t, from, sizes...)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{MaxLinks: 3})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each / 5 {
				at := w*each + 5*i
				res, status, err := pull(t, c, request(hashes[at:at+5]))
				if err != nil || res.Blocks != 5 {
					t.Errorf("%+v, %v", res, err)
				}
				right(t, to, hashes[at:at+5], sizes[at:at+5], status)
			}
		})
	}
	wg.Wait()
	if st := c.Stats(); st.Dials > 3 || st.Blocks != workers*each {
		t.Errorf("%+v", st)
	}
}

func testAbsent(t *testing.T, e Env) {
	to := store(t, e, 1, 4096)
	c := target(t, e, e.Address(t), to, peer.ClientConfig{})
	if _, _, err := pull(t, c, request([]uint64{1})); err == nil {
		t.Error("a pull from nobody succeeded")
	}
	if st := c.Stats(); st.DialFailures != 1 || st.Dials != 0 {
		t.Errorf("%+v", st)
	}
}

func testCloseTarget(t *testing.T, e Env) {
	from, to := store(t, e, 1, large), store(t, e, 1, large)
	hashes := fill(t, from, large)
	stalled := &faults{stallAt: 5000}
	s := serve(t, e, &faulty{e.Source, stalled}, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{OpTimeout: patience})
	errs := make(chan error, 1)
	go func() {
		_, err := c.Pull(context.Background(), request(hashes), make([]peer.Status, 1))
		errs <- err
	}()
	if !e.Slab {
		eventually(t, "the pull is in mid-block", func() bool { return to.Use().Filling == 1 })
	}
	c.Close()
	if err := <-errs; err == nil && !e.Slab {
		t.Error("a pull of a closed target succeeded")
	}
	if _, err := c.Pull(context.Background(), request(hashes), make([]peer.Status, 1)); !errors.Is(err, peer.ErrClosed) {
		t.Errorf("a closed target: %v", err)
	}
	stalled.release()
	eventually(t, "the source's lease ends", func() bool { return from.Use().Leased == 0 })
}

func testLoris(t *testing.T, e Env) {
	from, to := store(t, e, 1, 4096), store(t, e, 1, 4096)
	hashes := fill(t, from, 1000)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{HandshakeTimeout: 100 * time.Millisecond})
	for range 5 {
		raw := dialRaw(t, s.addr)
		defer raw.Close()
	}
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	if _, _, err := pull(t, c, request(hashes)); err != nil {
		t.Errorf("beside silent connections: %v", err)
	}
	eventually(t, "the silent connections are ended", func() bool {
		st := s.server.Stats()
		return st.Handshake == 0 && st.Open == 1
	})
}
