package tier_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

const space = "0:"

func uints(list []vectors.Uint) (out []uint64) {
	for _, v := range list {
		out = append(out, uint64(v))
	}
	return out
}

// blocks is a block store whose memory is registered with a device.
func blocks(t testing.TB, dev *gpu.Device, hashes ...uint64) *store.Store {
	t.Helper()
	s, err := store.New(store.Config{Capacity: 64 << 12, BlockBytes: []uint64{4096}, Pin: func(slab []byte) (func() error, error) {
		id, err := dev.Register(slab, 0)
		return func() error { return dev.Free(context.Background(), id) }, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hashes {
		token, b, err := s.Reserve(space, h, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = byte(h)
		}
		if err := s.Commit(token); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// closeAfter closes a tier after the test, and what is below it.
func closeAfter(t testing.TB, tr *tier.Tier, s *store.Store, dev *gpu.Device) {
	t.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(tr.Close(ctx), s.Close(), dev.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
}

// hostOf is a host that knows what a vector says.
func hostOf(t *testing.T, v vectors.Host) runtime.HostModule {
	if v.GPU == nil {
		return tier.NewHost(nil, nil)
	}
	dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
	s := blocks(t, dev, uints(v.Store.Blocks)...)
	tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: uint64(v.GPU.Room * v.GPU.BlockBytes), BlockBytes: uint64(v.GPU.BlockBytes)})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, tr, s, dev)
	if _, err := tr.Load(t.Context(), space, uints(v.GPU.Blocks), nil); err != nil {
		t.Fatal(err)
	}
	return tier.NewHost(tr, func(*runtime.Call) (string, []uint64, bool) {
		return space, uints(v.Store.Request), v.Store.BlockSize > 0
	})
}

func TestVectors(t *testing.T) {
	hosttest.Vectors(t, abi.ModuleGPU, hostOf, func(t *testing.T, h runtime.HostModule, call *runtime.Call, v vectors.Call) {
		tr := h.(*tier.Host).Tier()
		if tr == nil {
			return
		}
		if s := tr.Stats(); s.Prefetches != 0 || s.Used != len(v.Host.GPU.Blocks) {
			t.Errorf("before the commit: %+v", s)
		}
		if reason, detail := call.Settle(true); reason != abi.ReasonNone {
			t.Fatal(reason, detail)
		}
		if err := tr.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := uints(v.Host.GPU.Blocks)
		for _, e := range v.Effects {
			want = uints(e.Prefetch.Hashes)
		}
		if n := tr.Residency(space, want, make([]abi.Residency, len(want))); n != len(want) || tr.Stats().Used != n {
			t.Errorf("after the commit %d of %v are on the device, and %d in all", n, want, tr.Stats().Used)
		}
	})
}

func TestHostOffersTheTable(t *testing.T) {
	hosttest.Table(t, abi.ModuleGPU, tier.NewHost(nil, nil))
}

// TestCommitRefuses: what is queued when the action is accepted can still be refused.
func TestCommitRefuses(t *testing.T) {
	drv := hostmem.New(hostmem.Config{})
	dev := gpu.New(drv, gpu.Config{})
	s := blocks(t, dev, 1, 2, 3)
	tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: 8 * 4096, BlockBytes: 4096, Queued: 2})
	if err != nil {
		t.Fatal(err)
	}
	h := tier.NewHost(tr, func(*runtime.Call) (string, []uint64, bool) { return space, []uint64{1, 2, 3}, true })
	prefetch := hosttest.Function(t, h, "prefetch")
	ask := func() (*runtime.Call, int64) {
		call := runtime.NewCall(runtime.CallConfig{})
		stack := []uint64{0, 0}
		prefetch.Call(call, nil, stack)
		return call, int64(stack[0])
	}
	call, n := ask()
	if reason, _ := call.Settle(true); n != 3 || reason != abi.ReasonLimitExceeded {
		t.Errorf("%d, %v", n, reason)
	}
	call, _ = ask()
	stack := []uint64{0, 0}
	if prefetch.Call(call, nil, stack); int64(stack[0]) != -int64(abi.ReasonLimitExceeded) {
		t.Errorf("a second effect: %d", int64(stack[0]))
	}
	call.Settle(false)
	if s := tr.Stats(); s.Prefetches != 1 || s.Refused != 1 || s.Used != 0 {
		t.Errorf("%+v", s)
	}
	call, _ = ask()
	drv.Lose()
	if _, err := tr.Load(t.Context(), space, []uint64{1}, nil); err == nil { // who finds out
		t.Error("a lost device copies")
	}
	if reason, _ := call.Settle(true); reason != abi.ReasonUnavailable {
		t.Errorf("a lost device: %v", reason)
	}
	for _, name := range []string{"info", "residency", "prefetch"} {
		stack := make([]uint64, 4)
		hosttest.Function(t, h, name).Call(runtime.NewCall(runtime.CallConfig{}), nil, stack)
		if int64(stack[0]) != -int64(abi.ReasonUnavailable) {
			t.Errorf("%s on a lost device: %d", name, int64(stack[0]))
		}
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := dev.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLongLists: lists are looked at in pieces, and all of each.
func TestLongLists(t *testing.T) {
	dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
	s := blocks(t, dev, 1, 2, 3)
	tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: 8 * 4096, BlockBytes: 4096, Queued: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, tr, s, dev)
	if _, err := tr.Load(t.Context(), space, []uint64{2}, nil); err != nil {
		t.Fatal(err)
	}
	list := make([]uint64, 3000)
	for i := range list {
		list[i] = uint64(100 + i)
	}
	list[0], list[1023], list[1024], list[2999] = 1, 2, 3, 2
	where := make([]abi.Residency, len(list))
	if n := tr.Residency(space, list, where); n != 2 || where[1023] != abi.ResidencyDevice || where[2999] != abi.ResidencyDevice || where[1024] != abi.ResidencyAbsent {
		t.Errorf("%d blocks are on the device", n)
	}
	h := tier.NewHost(tr, func(*runtime.Call) (string, []uint64, bool) { return space, list, true })
	stack := []uint64{0, 0}
	call := runtime.NewCall(runtime.CallConfig{})
	if hosttest.Function(t, h, "prefetch").Call(call, nil, stack); stack[0] != 2 {
		t.Errorf("%d blocks are to be brought", int64(stack[0]))
	}
	call.Settle(true)
	if err := tr.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := tr.Residency(space, list, where); n != 4 {
		t.Errorf("%d blocks are on the device", n)
	}
}
