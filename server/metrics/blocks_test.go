package metrics

import (
	"testing"

	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// TestBlocks: slots by size and state, and what became of blocks.
func TestBlocks(t *testing.T) {
	blocks, err := store.New(store.Config{Capacity: 64 << 10, BlockBytes: []uint64{4 << 10, 16 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blocks.Close() })
	for hash := range uint64(3) {
		token, _, err := blocks.Reserve("n", hash, 100)
		if err != nil {
			t.Fatal(err)
		}
		if hash > 0 {
			err = blocks.Commit(token)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := blocks.Acquire("n", 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := blocks.Acquire("n", 9); err == nil {
		t.Fatal("a block that nobody stored")
	}
	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, rt: rt, store: fetch.New(fetch.Config{}), blocks: blocks}
	g.serve()
	for _, v := range []struct {
		name string
		with []string
		want float64
	}{
		{"kvrt_store_capacity_bytes", []string{"backing=" + blocks.Backing()}, 64 << 10},
		{"kvrt_store_used_bytes", nil, 3 * 4096},
		{"kvrt_store_slots", []string{"block_bytes=4096", "state=free"}, 5},
		{"kvrt_store_slots", []string{"block_bytes=4096", "state=filling"}, 1},
		{"kvrt_store_slots", []string{"block_bytes=4096", "state=leased"}, 1},
		{"kvrt_store_slots", []string{"block_bytes=4096", "state=idle"}, 1},
		{"kvrt_store_slots", []string{"block_bytes=16384", "state=free"}, 2},
		{"kvrt_store_leases", nil, 2},
		{"kvrt_store_namespaces", nil, 1},
		{"kvrt_store_lookups_total", []string{"result=hit"}, 1},
		{"kvrt_store_lookups_total", []string{"result=miss"}, 1},
		{"kvrt_store_writes_total", []string{"result=committed"}, 2},
	} {
		if got := g.value(v.name, v.with...); got != v.want {
			t.Errorf("%s%v: %v, want %v", v.name, v.with, got, v.want)
		}
	}
	g.lint()
}
