//go:build cgo && linux

package cuda

import (
	"errors"
	"testing"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/gpu/tier/tiertest"
)

// TestEngineInThisProcess is a serving engine that shares the GPU: its KV memory, its
// stream, and the event behind the kernel that writes two blocks. They are offloaded behind
// that event, and delivered to another place behind the next one.
func TestEngineInThisProcess(t *testing.T) {
	const space = "5:acme/llama"
	d := &drivers[3]
	dev := gpu.New(d.open(t, Config{}), gpu.Config{})
	blocks := tiertest.NewBlocks(t, dev, 8)
	tr, err := tier.New(tier.Config{Device: dev, Blocks: blocks, Capacity: 4 * tiertest.Slot, BlockBytes: tiertest.Slot})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Open(Config{Library: modern.Path})
	if err != nil {
		t.Fatal(err)
	}
	engine := opened.(*Device)
	kv, err := engine.Alloc(gpu.DeviceMemory, 8*tiertest.Slot)
	host, err2 := engine.Alloc(gpu.HostMemory, 2*tiertest.Slot)
	ended := make(sink, 4)
	work, err3 := engine.Stream(ended)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	region, err := dev.Adopt(kv.Addr, kv.Size, 0)
	if err != nil {
		t.Fatal(err)
	}
	var places []tier.Place
	var kernel gpu.Copies
	for i, h := range []uint64{4, 5} {
		want := tiertest.Bytes(space, h)
		n := uint64(copy(host.Host[i*tiertest.Slot:], want))
		places = append(places, tier.Place{Hash: h, Region: region, Offset: uint64(3-i) * tiertest.Slot, Length: n})
		kernel.Dst, kernel.Src, kernel.Size = append(kernel.Dst, kv.Addr+places[i].Offset), append(kernel.Src, host.Addr+uint64(i)*tiertest.Slot), append(kernel.Size, n)
	}
	run := func(seq uint64, c gpu.Copies) gpu.After {
		t.Helper()
		if _, err := work.Submit(seq, c, nil); err != nil {
			t.Fatal(err)
		}
		return gpu.After{Events: []uintptr{work.(*stream).at(0).event}}
	}
	modern.Do("hold 1")
	after := run(0, kernel)
	result := make(chan error, 1)
	go func() {
		res, err := tr.Offload(t.Context(), space, places, after, nil) // the store looks at the bytes
		if err == nil && res.Copied != 2 {
			err = errors.New("not all blocks were offloaded")
		}
		result <- err
	}()
	select {
	case err := <-result:
		t.Errorf("before the kernel has run: %v", err)
	case err := <-ended:
		t.Errorf("the kernel ran while it was held: %v", err)
	default:
	}
	modern.Do("hold 0")
	if err := errors.Join(<-ended, <-result); err != nil {
		t.Fatal(err)
	}
	// The engine uses both places for something else, which is read before they are written again.
	moved := gpu.Copies{Dst: []uint64{kv.Addr + 6*tiertest.Slot}, Src: []uint64{kv.Addr + places[0].Offset}, Size: []uint64{places[0].Length}}
	modern.Do("hold 1")
	after = run(1, moved)
	places[0].Hash, places[1].Hash = 5, 4
	places[0].Length, places[1].Length = places[1].Length, places[0].Length
	go func() {
		_, err := tr.Deliver(t.Context(), space, places, after, nil)
		result <- err
	}()
	modern.Do("hold 0")
	if err := errors.Join(<-ended, <-result); err != nil {
		t.Fatal(err)
	}
	blocks.Forget(space, 4, 5)
	places = append(places[:1], tier.Place{Hash: 4, Region: region, Offset: 6 * tiertest.Slot, Length: uint64(len(tiertest.Bytes(space, 4)))})
	if res, err := tr.Offload(t.Context(), space, places, gpu.After{}, nil); err != nil || res.Copied != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := errors.Join(tr.Close(t.Context()), dev.Free(t.Context(), region), work.Close(), engine.Release(kv), engine.Release(host), engine.Close(), dev.Close(t.Context())); err != nil {
		t.Error(err)
	}
	d.clean(t, false)
}
