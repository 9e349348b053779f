package staging_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet/staging"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	space = "1:tm"
	size  = 3000
)

// node is a block store with a device.
type node struct {
	blocks *store.Store
	dev    *gpu.Device
	tier   *tier.Tier
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{dev: gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})}
	var err error
	n.blocks, err = store.New(store.Config{Capacity: 16 << 12, BlockBytes: []uint64{4096}, Checksum: true, Pin: func(slab []byte) (func() error, error) {
		id, err := n.dev.Register(slab, 0)
		return func() error { return n.dev.Free(context.Background(), id) }, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n.tier, err = tier.New(tier.Config{Device: n.dev, Blocks: n.blocks, Capacity: 8 << 12, BlockBytes: 4096, Patience: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(n.tier.Close(ctx), n.blocks.Close(), n.dev.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *node) put(t *testing.T, hashes ...uint64) {
	t.Helper()
	for _, h := range hashes {
		token, b, err := n.blocks.Reserve(space, h, size)
		if err != nil {
			t.Fatal(err)
		}
		copy(b, bytes.Repeat([]byte{byte(h)}, size))
		if err := n.blocks.Commit(token); err != nil {
			t.Fatal(err)
		}
	}
}

func (n *node) onDevice(t *testing.T, hashes ...uint64) int {
	t.Helper()
	if err := n.tier.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n.tier.Residency(space, hashes, make([]abi.Residency, len(hashes)))
}

// source brings blocks that it is told to; it is asked for those that are not here.
type source struct {
	*node
	t     *testing.T
	asked int
	err   error
}

func (s *source) Fetch(_ context.Context, r *fetcher.Request, _ []peer.Status) (res fetcher.Result, err error) {
	if s.err != nil {
		return res, s.err
	}
	where := make([]abi.Residency, len(r.Hashes))
	res.Here = s.blocks.Residency(string(r.Namespace), r.Hashes, where)
	for i, w := range where {
		if w == abi.ResidencyAbsent {
			s.asked++
			res.Fetched++
			s.put(s.t, r.Hashes[i])
		}
	}
	return res, nil
}

func (s *source) FetchHint(ctx context.Context, r *fetcher.Request) (fetcher.Result, error) {
	all := *r
	all.Hashes = []uint64{1, 2, 3, 4}
	return s.Fetch(ctx, &all, nil)
}

func (s *source) AppendHashes(dst []uint64, _ hint.Identity) []uint64 { return append(dst, 1, 2, 3, 4) }
func (s *source) Stats() fetcher.Stats                                { return fetcher.Stats{} }

var _ staging.Hints = (*fetch.Store)(nil)

// TestFetcher: what was fetched is on the device, and what only the device has is not
// fetched again.
func TestFetcher(t *testing.T) {
	n := newNode(t)
	s := &source{node: n, t: t}
	f := &staging.Fetcher{Source: s, Device: n.tier, Hints: s}
	req := &fetcher.Request{Namespace: []byte(space), Hashes: []uint64{3, 4, 5}}
	if res, err := f.FetchHint(t.Context(), req); err != nil || res.Fetched != 4 || s.asked != 4 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := n.onDevice(t, 1, 2, 3, 4, 5); got != 4 {
		t.Errorf("%d blocks are on the device", got)
	}
	n.blocks.Evict(space, []uint64{1, 2, 3, 4}, nil)
	if res, err := f.Fetch(t.Context(), req, nil); err != nil || res.Here != 2 || res.Fetched != 1 || s.asked != 5 {
		t.Errorf("%+v, %v: asked for %d", res, err, s.asked)
	}
	if got := n.onDevice(t, 1, 2, 3, 4, 5); got != 5 {
		t.Errorf("%d blocks are on the device", got)
	}
	token, b, err := n.blocks.Acquire(space, 3)
	if err != nil || !bytes.Equal(b, bytes.Repeat([]byte{3}, size)) {
		t.Errorf("what came back from the device: %v", err)
	}
	if err := n.blocks.Release(token); err != nil {
		t.Error(err)
	}
	s.err = errors.New("no source")
	if _, err := f.FetchHint(t.Context(), req); !errors.Is(err, s.err) {
		t.Error(err)
	}
}

// TestDestinations: what a fetch delivers lies in the tier's memory, or where the program
// wants it.
func TestDestinations(t *testing.T) {
	n := newNode(t)
	n.put(t, 1, 2, 3)
	blocks := []peer.Block{{Hash: 1}, {Hash: 2}, {Hash: 3}}
	if err := (staging.Slots{Tier: n.tier, Namespace: space}).Deliver(t.Context(), blocks); err != nil || n.onDevice(t, 1, 2, 3) != 3 {
		t.Error(err)
	}
	if err := (staging.Slots{Tier: n.tier, Namespace: space}).Deliver(t.Context(), append(blocks, peer.Block{Hash: 9})); err == nil {
		t.Error("a block that is nowhere is on the device")
	}
	kv, err := n.dev.Alloc(gpu.HostMemory, 8<<12, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := staging.Memory{Tier: n.tier, Namespace: space}
	for h := range uint64(3) {
		m.Places = append(m.Places, tier.Place{Hash: h + 1, Region: kv, Offset: (7 - 2*h) << 12, Length: size})
	}
	if err := m.Deliver(t.Context(), blocks); err != nil {
		t.Fatal(err)
	}
	mem, err := n.dev.Memory(kv)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Places {
		if !bytes.Equal(mem.Host[p.Offset:][:size], bytes.Repeat([]byte{byte(p.Hash)}, size)) {
			t.Errorf("block %d is not in its place", p.Hash)
		}
	}
	for _, wrong := range [][]peer.Block{append(blocks, peer.Block{Hash: 4}), {{Hash: 2}}} {
		if err := m.Deliver(t.Context(), wrong); !errors.Is(err, gpu.ErrRange) {
			t.Errorf("%v", err)
		}
	}
	m.Places[1].Length = 7
	if err := m.Deliver(t.Context(), blocks); err == nil {
		t.Error("a block of another length was delivered")
	}
}
