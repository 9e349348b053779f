package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/cuda"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("kvrt.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const onDevice = "guests: []\nstore: {capacity: 1MiB, block_bytes: [16KiB, 64KiB]}\ngpu: {capacity: 640KiB}\n"

// memoryOn makes the memory of a configuration's blocks on a device.
func memoryOn(t *testing.T, cfg *config.Config, dev *device) *stack {
	t.Helper()
	s := &stack{device: dev}
	var err error
	if s.blocks, err = newBlocks(cfg, dev); err == nil {
		s.onDevice, err = newTier(cfg, dev, s.blocks)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.closeMemory(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// prefetches has a guest's prefetch bring blocks of a request, and looks at them by way of the store.
func prefetches(t *testing.T, s *stack) {
	t.Helper()
	namespace := store.Namespace("a", "llama")
	hashes := []uint64{1, 2, 1 << 63}
	content := func(h uint64) []byte { return bytes.Repeat([]byte{byte(h) | byte(h>>56)}, 20_000) }
	for _, h := range hashes {
		token, b, err := s.blocks.Store().Reserve(namespace, h, 20_000)
		if err != nil {
			t.Fatal(err)
		}
		copy(b, content(h))
		if err := s.blocks.Store().Commit(token); err != nil {
			t.Fatal(err)
		}
	}
	id := hint.Identity{Engine: "vllm", RequestID: "r-1"}
	s.blocks.Requests().Describe(id, store.Request{Namespace: namespace, BlockSize: 16, Hashes: hashes})
	host := s.modules()[slices.IndexFunc(s.modules(), func(h runtime.HostModule) bool { return h.Name() == abi.ModuleGPU })]
	call := runtime.NewCall(runtime.CallConfig{Identity: id})
	stack := make([]uint64, 2)
	if hosttest.Function(t, host, "prefetch").Call(call, nil, stack); stack[0] != 3 {
		_, detail := call.Refusal()
		t.Fatalf("%d: %s", int64(stack[0]), detail)
	}
	if reason, detail := call.Settle(true); reason != abi.ReasonNone {
		t.Fatal(reason, detail)
	}
	tr := s.onDevice.Tier()
	if err := tr.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 8)
	stack = []uint64{0, 0, 0, 8}
	if hosttest.Function(t, host, "residency").Call(call, mem, stack); stack[0] != 3 || !bytes.Equal(mem[:3], bytes.Repeat([]byte{byte(abi.ResidencyDevice)}, 3)) {
		t.Errorf("%d: %v", int64(stack[0]), mem)
	}
	s.blocks.Store().Evict(namespace, hashes, nil)
	if res, err := tr.Save(t.Context(), namespace, hashes, nil); err != nil || res.Copied != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, h := range hashes {
		token, b, err := s.blocks.Store().Acquire(namespace, h)
		if err != nil || !bytes.Equal(b, content(h)) {
			t.Fatalf("block %d: %v", h, err)
		}
		if err := errors.Join(s.blocks.Store().Verify(token), s.blocks.Store().Release(token)); err != nil {
			t.Error(err)
		}
	}
	// What a hint evicts goes from there too.
	blocks := s.modules()[slices.IndexFunc(s.modules(), func(h runtime.HostModule) bool { return h.Name() == abi.ModuleStore })]
	call = runtime.NewCall(runtime.CallConfig{Identity: id})
	hosttest.Function(t, blocks, "evict").Call(call, nil, []uint64{0, 0})
	if reason, detail := call.Settle(true); reason != abi.ReasonNone || tr.Stats().Used != 0 {
		t.Errorf("%v %s; %d are left", reason, detail, tr.Stats().Used)
	}
	// What a policy asks about another tenant's request is not about this one's blocks.
	other := hint.Identity{Engine: "vllm", RequestID: "r-2"}
	stack = []uint64{0, 0}
	if hosttest.Function(t, host, "prefetch").Call(runtime.NewCall(runtime.CallConfig{Identity: other}), nil, stack); int64(stack[0]) != -int64(abi.ReasonNotFound) {
		t.Errorf("a request that nobody described: %d", int64(stack[0]))
	}
}

// TestBlocksOnDevice: from the configuration to bytes on the device and back.
func TestBlocksOnDevice(t *testing.T) {
	cfg := parse(t, onDevice)
	dev, err := openDeviceFrom(config.DeviceHostMem, cuda.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := memoryOn(t, cfg, dev)
	s.subsystems.sessions, s.subsystems.workers = nothingKept().sessions, nothingKept().workers
	prefetches(t, s)
	if tr := s.onDevice.Tier(); tr.Slots() != 10 || tr.BlockBytes() != 64<<10 {
		t.Errorf("%d slots of %d bytes", tr.Slots(), tr.BlockBytes())
	}
}

// TestTellOfDevice: a device that fails is told of once for all blocks.
func TestTellOfDevice(t *testing.T) {
	cfg := parse(t, onDevice)
	drv := hostmem.New(hostmem.Config{Gate: func() error { return errors.New("told to fail") }})
	s := memoryOn(t, cfg, &device{Device: gpu.New(drv, gpu.Config{})})
	var log bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	d := &daemon{stack: s}
	for _, h := range []uint64{1, 2} {
		token, _, err := s.blocks.Store().Reserve("0:", h, 100)
		if err == nil {
			err = s.blocks.Store().Commit(token)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tr := s.onDevice.Tier()
	if err := errors.Join(tr.Prefetch("0:", []uint64{1, 2}), tr.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n := d.tellOfDevice(d.tellOfDevice(0)); n != 2 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "blocks=2") || !strings.Contains(log.String(), "told to fail") {
		t.Errorf("%d: %s", n, &log)
	}
	s.onDevice = tier.NewHost(nil, nil)
	if n := d.tellOfDevice(0); n != 0 {
		t.Error(n)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWiredWithDevice: a daemon of that configuration starts, offers the capability and
// gives everything back.
func TestWiredWithDevice(t *testing.T) {
	s, err := wireDaemon(t.Context(), parse(t, onDevice), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if st := s.onDevice.Tier().Stats(); st.Slots != 10 {
		t.Errorf("%+v", st)
	}
	s.fleet.Close()
	if err := errors.Join(s.runtime.Close(t.Context()), s.closeMemory(t.Context())); err != nil {
		t.Error(err)
	}
	_, err = wireDaemon(t.Context(), parse(t, strings.Replace(onDevice, "640KiB", "100TiB", 1)), slog.New(slog.DiscardHandler))
	var wrong *config.Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "gpu.capacity: the device is host memory here, of which ") {
		t.Errorf("100 TiB on the device: %v", err)
	}
}
