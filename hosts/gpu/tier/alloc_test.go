package tier_test

import (
	"context"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
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

// TestPrefetchAllocatesNothing: accepting one is free when as many have waited before.
func TestPrefetchAllocatesNothing(t *testing.T) {
	var gate sync.RWMutex
	dev := gpu.New(hostmem.New(hostmem.Config{Gate: func() error {
		gate.RLock()
		defer gate.RUnlock()
		return nil
	}}), gpu.Config{})
	s := blocks(t, dev, 1, 2)
	tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: 8 * 4096, BlockBytes: 4096, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, tr, s, dev)
	list := make([]uint64, 100)
	once := func() {
		if err := tr.Prefetch(space, list); err != nil {
			t.Error(err)
		}
	}
	for _, first := range []uint64{1, 2} {
		gate.Lock()
		if err := tr.Prefetch(space, []uint64{first}); err != nil {
			t.Fatal(err)
		}
		for tr.Stats().InFlight == 0 { // what comes now waits behind it
			goruntime.Gosched()
		}
		if first == 1 {
			for range 300 {
				once()
			}
		} else if n := testing.AllocsPerRun(200, once); n != 0 {
			t.Errorf("%v allocations", n)
		}
		gate.Unlock()
		if err := tr.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSaveAllocatesNothing: nor does the way back.
func TestSaveAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	dev := gpu.New(hostmem.New(hostmem.Config{Workers: 1}), gpu.Config{})
	s := blocks(t, dev, 1, 2, 3, 4)
	tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: 4 * 4096, BlockBytes: 4096, Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, tr, s, dev)
	list := []uint64{1, 2, 3, 4}
	if r, err := tr.Load(ctx, space, list, nil); err != nil || r.Copied != 4 {
		t.Fatal(r, err)
	}
	once := func() {
		s.Evict(space, list[:3], nil) // one stays, so that the store keeps the namespace
		if r, err := tr.Save(ctx, space, list, nil); err != nil || r.Copied != 3 || r.Present != 1 {
			t.Error(r, err)
		}
	}
	for range 50 {
		once()
	}
	if n := testing.AllocsPerRun(200, once); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestHostAllocatesNothing: a guest's questions are free, and so is a prefetch that is
// dropped.
func TestHostAllocatesNothing(t *testing.T) {
	dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
	s := blocks(t, dev, 1, 2)
	tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: 4 * 4096, BlockBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, tr, s, dev)
	h := tier.NewHost(tr, func(*runtime.Call) (string, []uint64, bool) { return space, nil, false })
	call := runtime.NewCall(runtime.CallConfig{})
	mem, stack := make([]byte, 16<<10), make([]uint64, 4)
	for name, args := range map[string][4]uint64{"info": {0, 32}, "residency": {0, 256, 8192, 256}, "prefetch": {0, 256}} {
		f := hosttest.Function(t, h, name)
		once := func() {
			copy(stack, args[:])
			if f.Call(call, mem, stack); int64(stack[0]) < 0 {
				t.Errorf("%s: %d", name, int64(stack[0]))
			}
			call.Settle(false)
		}
		for range 10 {
			once()
		}
		if n := testing.AllocsPerRun(1000, once); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
