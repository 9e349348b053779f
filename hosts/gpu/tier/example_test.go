package tier_test

import (
	"context"
	"fmt"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/store"
)

// A program that has a serving engine in its process: the engine's KV memory is registered
// once, and each call says where its block table wants the blocks. On a GPU the memory is the
// engine's own (gpu.Device.Adopt), and After names the event behind the kernels that use it.
func Example() {
	ctx := context.Background()
	dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
	blocks, err := store.New(store.Config{Capacity: 1 << 20, BlockBytes: []uint64{64 << 10}, Pin: func(slab []byte) (func() error, error) {
		id, err := dev.Register(slab, 0)
		return func() error { return dev.Free(ctx, id) }, err
	}})
	if err != nil {
		panic(err)
	}
	t, err := tier.New(tier.Config{Device: dev, Blocks: blocks, Capacity: 256 << 10, BlockBytes: 64 << 10})
	if err != nil {
		panic(err)
	}

	kv, err := dev.Alloc(gpu.DeviceMemory, 4*64<<10, 0)
	if err != nil {
		panic(err)
	}
	namespace := store.Namespace("acme", "llama-fp8")
	computed := []tier.Place{{Hash: 11, Region: kv, Offset: 128 << 10, Length: 64 << 10}, {Hash: 12, Region: kv, Offset: 0, Length: 64 << 10}}
	kernels := gpu.After{} // Events: []uintptr{the CUevent behind them}
	saved, err := t.Offload(ctx, namespace, computed, kernels, nil)
	fmt.Println("offloaded", saved.Copied, err)

	// Another request wants the first block, and one that nobody has, in other places.
	wanted := []tier.Place{{Hash: 11, Region: kv, Offset: 64 << 10, Length: 64 << 10}, {Hash: 99, Region: kv, Offset: 192 << 10, Length: 64 << 10}}
	statuses := make([]tier.Status, len(wanted))
	_, err = t.Deliver(ctx, namespace, wanted, gpu.After{}, statuses)
	fmt.Println(statuses, err)

	if err := t.Close(ctx); err != nil { // before the store, and that before the device
		panic(err)
	}
	if err := blocks.Close(); err != nil {
		panic(err)
	}
	if err := dev.Close(ctx); err != nil {
		panic(err)
	}
	// Output:
	// offloaded 2 <nil>
	// [copied missing] <nil>
}
