package metrics

import (
	"context"
	"errors"
	"testing"

	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// TestDevice: which one it is, and what became of batches.
func TestDevice(t *testing.T) {
	fail := make(chan error, 3)
	dev := gpu.New(hostmem.New(hostmem.Config{Gate: func() error { return <-fail }}), gpu.Config{})
	t.Cleanup(func() { _ = dev.Close(context.Background()) })
	mem, err := dev.Alloc(gpu.HostMemory, 4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	q, err := dev.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	b := new(gpu.Batch)
	b.Add(gpu.Span{Dst: mem, Src: mem, SrcOff: 100, Len: 100})
	b.Add(gpu.Span{Dst: mem, DstOff: 200, Src: mem, SrcOff: 1000, Len: 100})
	for _, end := range []error{nil, nil, errors.New("told to")} {
		fail <- end
		f, err := q.Submit(b, gpu.After{})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Wait(t.Context()); (err == nil) != (end == nil) {
			t.Fatalf("%v, want %v", err, end)
		}
	}
	b.Add(gpu.Span{Dst: mem, Src: mem, Len: 1})
	if _, err := q.Submit(b, gpu.After{}); !errors.Is(err, gpu.ErrOverlap) {
		t.Fatal(err)
	}
	if err := q.Close(t.Context()); err != nil { // what has ended is counted
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, rt: rt, store: fetch.New(fetch.Config{}), device: dev}
	g.serve()
	for _, v := range []struct {
		name string
		with []string
		want float64
	}{
		{"kvrt_device_info", []string{"driver=hostmem", "name=host memory"}, 1},
		{"kvrt_device_regions", nil, 1},
		{"kvrt_device_batches_total", []string{"result=done"}, 2},
		{"kvrt_device_batches_total", []string{"result=failed"}, 1},
		{"kvrt_device_batches_in_flight", nil, 0},
		{"kvrt_device_batches_refused_total", nil, 1},
		{"kvrt_device_bytes_total", nil, 400},
		{"kvrt_device_copies_total", nil, 4},
		{"kvrt_device_lost", nil, 0},
	} {
		if got := g.value(v.name, v.with...); got != v.want {
			t.Errorf("%s%v: %v, want %v", v.name, v.with, got, v.want)
		}
	}
}

// onDevice are made-up counters of blocks on a device.
type onDevice struct{}

func (onDevice) Stats() tier.Stats {
	return tier.Stats{
		BlockBytes: 4096, Slots: 10, Used: 6, Filling: 1, Leased: 2, Loaded: 11, Saved: 12, Delivered: 13, Offloaded: 14, BytesIn: 15, BytesOut: 16,
		Evicted: 17, Missing: 18, NoRoom: 19, Failed: 20, Abandoned: 21, Quarantined: 22, Prefetches: 30, Refused: 3, Late: 4, Broken: 5, Queued: 6,
	}
}

// TestTier: blocks on the device, by state of their slots, and what became of others.
func TestTier(t *testing.T) {
	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, rt: rt, store: fetch.New(fetch.Config{}), tier: onDevice{}}
	g.serve()
	for _, v := range []struct {
		name string
		with []string
		want float64
	}{
		{"kvrt_device_slots", []string{"state=free"}, 4},
		{"kvrt_device_slots", []string{"state=idle"}, 3},
		{"kvrt_device_slots", []string{"state=filling"}, 1},
		{"kvrt_device_slots", []string{"state=leased"}, 2},
		{"kvrt_device_slot_bytes", nil, 4096},
		{"kvrt_device_blocks_total", []string{"what=loaded"}, 11},
		{"kvrt_device_blocks_total", []string{"what=saved"}, 12},
		{"kvrt_device_blocks_total", []string{"what=delivered"}, 13},
		{"kvrt_device_blocks_total", []string{"what=offloaded"}, 14},
		{"kvrt_device_block_bytes_total", []string{"direction=in"}, 15},
		{"kvrt_device_block_bytes_total", []string{"direction=out"}, 16},
		{"kvrt_device_blocks_displaced_total", nil, 17},
		{"kvrt_device_blocks_missed_total", []string{"why=missing"}, 18},
		{"kvrt_device_blocks_missed_total", []string{"why=no_room"}, 19},
		{"kvrt_device_blocks_missed_total", []string{"why=failed"}, 20},
		{"kvrt_device_batches_abandoned_total", nil, 21},
		{"kvrt_device_quarantined_total", nil, 22},
		{"kvrt_device_prefetches_total", []string{"what=asked"}, 30},
		{"kvrt_device_prefetches_total", []string{"what=refused"}, 3},
		{"kvrt_device_prefetches_total", []string{"what=late"}, 4},
		{"kvrt_device_prefetches_total", []string{"what=broken"}, 5},
		{"kvrt_device_prefetch_blocks", nil, 6},
	} {
		if got := g.value(v.name, v.with...); got != v.want {
			t.Errorf("%s%v: %v, want %v", v.name, v.with, got, v.want)
		}
	}
	g.lint()
}
