package staging_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/fleet/staging"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
)

// TestFromAPeer: a hint brings blocks of another kvrt to this one's device, and to the KV
// memory of an engine in this process, in the order of its block table.
func TestFromAPeer(t *testing.T) {
	dir, err := os.MkdirTemp("", "kvrt") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const source = "tcp://127.0.0.1:1"
	socket := filepath.Join(dir, "s")
	from, to := newNode(t), newNode(t)
	from.put(t, 1, 2, 3, 4)
	open := func(n *node, cfg peers.Config) (*peers.Exchange, *fetch.Store) {
		cfg.Hints, cfg.Blocks = fetch.New(fetch.Config{}), n.blocks
		cfg.Fetch.OpTimeout = 20 * time.Second
		x, err := peers.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Close)
		return x, cfg.Hints
	}
	open(from, peers.Config{
		Serve: []peers.Endpoint{{Transport: &unixsock.Transport{}, Address: socket}},
		Auth:  peer.Rules{{Peer: peer.Identity{UID: uint32(os.Geteuid())}, All: true}},
	})
	x, hints := open(to, peers.Config{Local: &unixsock.Transport{}, Sockets: map[string]string{source: socket}})

	hashes := []uint64{3, 1, 2}
	id := hint.Identity{Engine: "vllm", RequestID: "r"}
	allow, err := fetch.ParseAllowList(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	src, err := allow.Check([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var raw []byte
	for _, h := range hashes {
		raw = binary.LittleEndian.AppendUint64(raw, h)
	}
	p, reason, detail := hints.Prepare(id, src, raw, false)
	if p == nil {
		t.Fatal(reason, detail)
	}
	if reason, detail := p.Commit(); reason != abi.ReasonNone {
		t.Fatal(reason, detail)
	}

	// As an engine in this process: its memory, and where its block table wants the blocks.
	kv, err := to.dev.Alloc(gpu.HostMemory, 8<<12, 0)
	if err != nil {
		t.Fatal(err)
	}
	engine := staging.Memory{Tier: to.tier, Namespace: space}
	for i, h := range hashes {
		engine.Places = append(engine.Places, tier.Place{Hash: h, Region: kv, Offset: uint64(5-i) << 12, Length: size})
	}
	req := &fetcher.Request{Identity: id, Tenant: "t", Namespace: []byte(space), Hashes: hashes, BlockBytes: size}
	status := make([]peer.Status, len(hashes))
	if res, err := x.Fetcher.Deliver(t.Context(), req, engine, status); err != nil || res.Fetched != 3 {
		t.Fatalf("%+v, %v: %v", res, err, status)
	}
	mem, err := to.dev.Memory(kv)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range engine.Places {
		if !bytes.Equal(mem.Host[p.Offset:][:size], bytes.Repeat([]byte{byte(p.Hash)}, size)) {
			t.Errorf("block %d is not in its place", p.Hash)
		}
	}

	// As the daemon does: on to the device, and back from it.
	f := &staging.Fetcher{Source: x.Fetcher, Device: to.tier, Hints: hints}
	to.blocks.Evict(space, hashes[:1], nil)
	if res, err := f.FetchHint(t.Context(), req); err != nil || res.Here != 2 || res.Fetched != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if n := to.onDevice(t, hashes...); n != 3 {
		t.Errorf("%d blocks are on the device", n)
	}
	to.blocks.Evict(space, hashes, nil)
	if res, err := f.FetchHint(t.Context(), req); err != nil || res.Here != 3 {
		t.Errorf("what the device has is fetched: %+v, %v", res, err)
	}
}
