package tier_test

import (
	"context"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
)

// TestAllocatesNothing: once slots and operations have been used, blocks move without an
// allocation, in both directions, and guests' questions are free.
func TestAllocatesNothing(t *testing.T) {
	dev := gpu.New(hostmem.New(hostmem.Config{Workers: 1}), gpu.Config{})
	list := make([]uint64, 48)
	for i := range list {
		list[i] = uint64(i)
	}
	s := blocks(t, dev, list...)
	tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: 16 * 4096, BlockBytes: 4096, Batch: 4, Depth: 4})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, tr, s, dev)
	ctx := context.Background()
	kv, err := dev.Alloc(gpu.DeviceMemory, 16*4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	places := make([]tier.Place, 16)
	statuses, where := make([]tier.Status, 16), make([]abi.Residency, 16)
	at := 0
	next := func() []uint64 { // blocks that are not on the device: 16 of 48 are
		at = (at + 16) % 48
		return list[at : at+16]
	}
	for name, once := range map[string]func(){
		"load": func() {
			if r, err := tr.Load(ctx, space, next(), statuses); err != nil || r.Copied == 0 {
				t.Error(r, err)
			}
		},
		"deliver": func() {
			for i, h := range next() {
				places[i] = tier.Place{Hash: h, Region: kv, Offset: uint64(i) * 4096, Length: 100}
			}
			if r, err := tr.Deliver(ctx, space, places, gpu.After{}, statuses); err != nil || r.Copied != 16 {
				t.Error(r, err)
			}
		},
		"prefetch": func() {
			if err := tr.Prefetch(space, list[:0]); err != nil {
				t.Error(err)
			}
		},
		"residency": func() { tr.Residency(space, next(), where) },
	} {
		for range 100 {
			once()
		}
		if n := testing.AllocsPerRun(200, once); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
