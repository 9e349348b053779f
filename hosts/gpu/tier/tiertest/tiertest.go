// Package tiertest is the suite of package tier, for any device: blocks there and back are
// the same bytes, and nothing is freed, published or reported before its copy has ended.
package tiertest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/gputest"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
)

// Run runs the suite on the harness's device.
func Run(t *testing.T, h gputest.Harness) {
	for _, c := range []struct {
		name  string
		test  func(*testing.T, *rig)
		needs bool
	}{
		{"there and back", thereAndBack, true},
		{"memory of the caller", memoryOfTheCaller, true},
		{"a full device", full, true},
		{"leases", leases, true},
		{"prefetch", prefetch, true},
		{"two that are equally fast", race, true},
		{"no such memory", tooMuch, true},
		{"a store that the device cannot reach", unreachable, true},
		{"many at a time", manyAtATime, true},
		{"a copy that nobody waits for", abandoned, h.Hold != nil},
		{"one at a time brings a block", coming, h.Hold != nil},
		{"prefetches that wait", waiting, h.Hold != nil},
		{"close in flight", closeInFlight, h.Hold != nil},
		{"a batch that fails", fails, h.FailNext != nil},
		{"what comes after what has failed", after, h.FailNext != nil},
		{"a device that is lost", lost, h.Hold != nil && h.Lose != nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.needs {
				t.Skip("this device cannot be made to")
			}
			r := &rig{Harness: h, t: t, dev: gpu.New(h.Open(t), gpu.Config{})}
			r.blocks = NewBlocks(t, r.dev, 64)
			c.test(t, r)
			r.close()
		})
	}
}

const space = "5:acme/llama"

type rig struct {
	gputest.Harness
	t      *testing.T
	dev    *gpu.Device
	blocks *Blocks
	tier   *tier.Tier
}

// open makes a tier with room for so many blocks.
func (r *rig) open(slots int, change ...func(*tier.Config)) *tier.Tier {
	r.t.Helper()
	cfg := tier.Config{Device: r.dev, Blocks: r.blocks, Capacity: uint64(slots * Slot), BlockBytes: Slot, Batch: 4, Depth: 4, Patience: time.Minute}
	for _, f := range change {
		f(&cfg)
	}
	t, err := tier.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.tier = t
	return t
}

// close closes everything; nothing is held any more then.
func (r *rig) close() {
	r.t.Helper()
	if r.tier != nil {
		if err := r.tier.Close(patience(r.t)); err != nil {
			r.t.Errorf("close: %v", err)
		}
		if _, err := r.tier.Load(r.t.Context(), space, []uint64{1}, nil); !errors.Is(err, tier.ErrClosed) {
			r.t.Errorf("a closed tier loads: %v", err)
		}
		s := r.tier.Stats()
		if s.InFlight != 0 || s.Filling != 0 || s.Leased != 0 {
			r.t.Errorf("after the end: %+v", s)
		}
		if n := r.blocks.Tokens('t'); uint64(n) != s.Quarantined {
			r.t.Errorf("%d places are held for good, and %d are said to be", n, s.Quarantined)
		}
	}
	for _, kind := range []byte{'r', 'w'} {
		if n := r.blocks.Tokens(kind); n != 0 {
			r.t.Errorf("%d tokens of kind %c are out", n, kind)
		}
	}
	if err := r.dev.Close(patience(r.t)); err != nil {
		r.t.Errorf("close the device: %v", err)
	}
	if r.Clean != nil && r.dev.Lost() == nil {
		r.Clean(r.t)
	}
}

// patience bounds what would otherwise hang.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// hurry has no patience at all, but lets a call begin.
type hurry struct{ context.Context }

func (hurry) Err() error { return nil }

func atOnce() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return hurry{ctx}
}

func (r *rig) hold() func() {
	release := r.Hold()
	r.t.Cleanup(release)
	return release
}

// seq are the hashes from a to b.
func seq(a, b uint64) (out []uint64) {
	for ; a <= b; a++ {
		out = append(out, a)
	}
	return out
}

func (r *rig) load(hashes []uint64, want tier.Result) []tier.Status {
	r.t.Helper()
	st := make([]tier.Status, len(hashes))
	res, err := r.tier.Load(patience(r.t), space, hashes, st)
	if want.Bytes == 0 {
		res.Bytes = 0
	}
	if err != nil || res != want {
		r.t.Fatalf("load: %+v, %v, want %+v", res, err, want)
	}
	return st
}

// same looks at what is on the device, by way of the store.
func (r *rig) same(hashes ...uint64) {
	r.t.Helper()
	r.blocks.Forget(space, hashes...)
	st := make([]tier.Status, len(hashes))
	if res, err := r.tier.Save(patience(r.t), space, hashes, st); err != nil || res.Copied != len(hashes) {
		r.t.Fatalf("save: %+v, %v: %v", res, err, st) // Commit looks at the bytes
	}
}

func (r *rig) there(want abi.Residency, hashes ...uint64) {
	r.t.Helper()
	out := make([]abi.Residency, len(hashes))
	r.tier.Residency(space, hashes, out)
	for i, got := range out {
		if got != want {
			r.t.Errorf("block %d is %v, not %v", hashes[i], got, want)
		}
	}
}

func thereAndBack(t *testing.T, r *rig) {
	r.open(32)
	hashes := seq(1, 30) // twice as many batches as there may be in flight
	r.blocks.Put(space, hashes...)
	r.load(hashes, tier.Result{Copied: 30})
	r.there(abi.ResidencyDevice, hashes...)
	r.there(abi.ResidencyAbsent, 31)
	r.load(append(hashes, 99), tier.Result{Present: 30, Missing: 1})
	r.same(hashes...)
	if res, err := r.tier.Save(patience(t), space, []uint64{3, 99}, nil); err != nil || res.Present != 1 || res.Missing != 1 {
		t.Errorf("save again: %+v, %v", res, err)
	}
	out := make([]abi.Residency, 1)
	if r.tier.Residency("5:other", hashes[:1], out) != 0 {
		t.Error("another namespace has the block")
	}
	var bytes uint64
	for _, h := range hashes {
		bytes += uint64(len(Bytes(space, h)))
	}
	if s := r.tier.Stats(); s.Loaded != 30 || s.Saved != 30 || s.BytesIn != bytes || s.BytesOut != bytes || s.Used != 30 || s.Missing != 2 {
		t.Errorf("%+v", s)
	}
}

// memoryOfTheCaller is a serving engine in this process: its KV memory, which the host
// cannot read, its block tables and its events.
func memoryOfTheCaller(t *testing.T, r *rig) {
	r.open(4)
	kv, err := r.dev.Alloc(gpu.DeviceMemory, 32*Slot, 0)
	if err != nil {
		t.Fatal(err)
	}
	hashes := seq(1, 10)
	r.blocks.Put(space, hashes...)
	r.load(hashes[:3], tier.Result{Copied: 3}) // so that some come from the device, and some from the store
	var to []tier.Place
	for i, h := range hashes {
		to = append(to, tier.Place{Hash: h, Region: kv, Offset: uint64(i*2+1) * Slot, Length: uint64(len(Bytes(space, h)))})
	}
	r.blocks.Forget(space, 2)
	to = append(to, tier.Place{Hash: 5, Region: kv, Offset: 30 * Slot, Length: 7}, tier.Place{Hash: 77, Region: kv, Length: 7}, tier.Place{Hash: 1, Region: kv, Length: 7})
	st := make([]tier.Status, len(to))
	res, err := r.tier.Deliver(patience(t), space, to, gpu.After{}, st)
	if err != nil || res.Copied != 10 || res.Missing != 3 || st[10] != tier.Missing || st[11] != tier.Missing {
		t.Fatalf("deliver: %+v, %v: %v", res, err, st)
	}
	r.blocks.Forget(space, hashes...)
	to = append(to[:10], tier.Place{Hash: 3, Region: kv, Offset: 0, Length: 9}, tier.Place{Hash: 78, Region: kv}, tier.Place{Hash: 79, Region: kv, Length: Slot + 1})
	st = make([]tier.Status, len(to))
	res, err = r.tier.Offload(patience(t), space, to, gpu.After{}, st) // Commit looks at the bytes
	if err != nil || res.Copied != 10 || res.Coming+res.Present != 1 || res.NoRoom != 2 {
		t.Fatalf("offload: %+v, %v: %v", res, err, st)
	}
	if res, err := r.tier.Offload(patience(t), space, to[:2], gpu.After{}, nil); err != nil || res.Present != 2 {
		t.Errorf("offload again: %+v, %v", res, err)
	}
	to[0].Offset = 32 * Slot
	if _, err := r.tier.Deliver(patience(t), space, to[:1], gpu.After{}, nil); !errors.Is(err, gpu.ErrRange) {
		t.Errorf("beyond the caller's memory: %v", err)
	}
	if err := r.dev.Free(patience(t), kv); err != nil {
		t.Error(err)
	}
	if s := r.tier.Stats(); s.Delivered != 10 || s.Offloaded != 10 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
}

// full: of a list that is too long the first blocks come; others yield in the order of
// their last use.
func full(t *testing.T, r *rig) {
	r.open(6)
	r.blocks.Put(space, seq(1, 20)...)
	st := r.load(seq(1, 9), tier.Result{Copied: 6, NoRoom: 3})
	if !slices.Equal(st[6:], []tier.Status{tier.NoRoom, tier.NoRoom, tier.NoRoom}) {
		t.Error(st)
	}
	r.load(seq(2, 3), tier.Result{Present: 2}) // in use of late
	r.load(seq(11, 13), tier.Result{Copied: 3})
	r.there(abi.ResidencyDevice, 2, 3, 11, 12, 13)
	r.there(abi.ResidencyAbsent, 1, 4, 5)
	r.same(2, 3, 6, 11, 12, 13)
	r.load(append([]uint64{2, 3}, seq(14, 19)...), tier.Result{Present: 2, Copied: 4, NoRoom: 2})
	r.there(abi.ResidencyDevice, 2, 3, 14, 15, 16, 17)
	if s := r.tier.Stats(); s.Evicted != 7 || s.NoRoom != 5 || s.Used != 6 {
		t.Errorf("%+v", s)
	}
}

func leases(t *testing.T, r *rig) {
	r.open(4)
	r.blocks.Put(space, seq(1, 20)...)
	r.load(seq(1, 4), tier.Result{Copied: 4})
	if _, err := r.tier.Acquire(space, 9); !errors.Is(err, tier.ErrNotFound) {
		t.Error(err)
	}
	l, err := r.tier.Acquire(space, 1)
	l2, err2 := r.tier.Acquire(space, 1)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if l.Region != r.tier.Region() || l.Length != uint64(len(Bytes(space, 1))) || l.Generation&1 != 1 || l.Generation != l2.Generation {
		t.Errorf("%+v", l)
	}
	r.load(seq(5, 9), tier.Result{Copied: 3, NoRoom: 2})
	r.there(abi.ResidencyDevice, 1, 5, 6, 7)
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if err := l.Release(); !errors.Is(err, tier.ErrLease) {
		t.Errorf("released twice: %v", err)
	}
	r.load(seq(10, 13), tier.Result{Copied: 3, NoRoom: 1}) // the second lease
	if err := l2.Release(); err != nil {
		t.Error(err)
	}
	r.load(seq(14, 17), tier.Result{Copied: 4})
	r.load(seq(14, 17), tier.Result{Present: 4})
	r.load([]uint64{1}, tier.Result{Copied: 1})
	again, err := r.tier.Acquire(space, 1)
	if err != nil || again.Offset == l2.Offset && again.Generation == l2.Generation {
		t.Errorf("another block's slot has its generation: %+v, %v", again, err)
	}
	if n := r.tier.Evict(space, append(seq(14, 17), 1, 99)); n != 3 { // one yielded to 1, which is in use
		t.Errorf("%d were evicted", n)
	}
	r.there(abi.ResidencyDevice, 1)
	if err := again.Release(); err != nil {
		t.Error(err)
	}
	r.same(1)
	if n := r.tier.Evict("another", []uint64{1}) + r.tier.Evict(space, []uint64{1, 1}); n != 1 {
		t.Errorf("%d were evicted", n)
	}
	if s := r.tier.Stats(); s.Used != 0 {
		t.Errorf("%+v", s)
	}
	r.load(seq(1, 4), tier.Result{Copied: 4})
	r.same(seq(1, 4)...)
}

func prefetch(t *testing.T, r *rig) {
	r.open(8, func(c *tier.Config) { c.Queued = 16 })
	r.blocks.Put(space, seq(1, 5)...)
	for _, list := range [][]uint64{seq(1, 3), seq(2, 6), nil} {
		if err := r.tier.Prefetch(space, list); err != nil {
			t.Error(err)
		}
	}
	if err := r.tier.Wait(patience(t)); err != nil {
		t.Fatal(err)
	}
	r.there(abi.ResidencyDevice, seq(1, 5)...)
	r.same(seq(1, 5)...)
	if err := r.tier.Prefetch(space, seq(1, 9)); !errors.Is(err, tier.ErrBusy) {
		t.Errorf("more than may wait: %v", err)
	}
	if s := r.tier.Stats(); s.Prefetches != 3 || s.Refused != 1 || s.Queued != 0 || s.Late != 0 || s.Broken != 0 {
		t.Errorf("%+v", s)
	}
}

// race: what another call has brought, since this one looked, is not brought again.
func race(t *testing.T, r *rig) {
	r.open(4)
	r.blocks.Put(space, 1)
	r.blocks.Acquired = func() {
		r.blocks.Acquired = nil
		r.load([]uint64{1}, tier.Result{Copied: 1})
	}
	r.load([]uint64{1}, tier.Result{Present: 1})
	if s := r.tier.Stats(); s.Used != 1 || s.Loaded != 1 {
		t.Errorf("%+v", s)
	}
}

// tooMuch: memory that the device has not got.
func tooMuch(t *testing.T, r *rig) {
	cfg := tier.Config{Device: r.dev, Blocks: r.blocks, Capacity: 1 << 47, BlockBytes: 1 << 30}
	if _, err := tier.New(cfg); err == nil {
		t.Error("128 TiB of device memory")
	}
	cfg.Capacity = Slot
	if _, err := tier.New(cfg); err == nil {
		t.Error("no room for a block")
	}
	cfg.Capacity, cfg.BlockBytes = 1<<47, 1
	if _, err := tier.New(cfg); err == nil {
		t.Error("2^39 slots")
	}
}

// unreachable: blocks that lie in memory which nobody has registered.
func unreachable(t *testing.T, r *rig) {
	r.open(4)
	r.blocks.Put(space, 1, 2)
	r.load([]uint64{1}, tier.Result{Copied: 1})
	r.blocks.Forget(space, 1)
	registered := r.blocks.mem
	r.blocks.mem = make([]byte, len(registered))
	if res, err := r.tier.Load(patience(t), space, []uint64{2}, nil); !errors.Is(err, gpu.ErrStale) || res.Failed != 1 {
		t.Errorf("load: %+v, %v", res, err)
	}
	if res, err := r.tier.Save(patience(t), space, []uint64{1}, nil); !errors.Is(err, gpu.ErrStale) || res.Failed != 1 {
		t.Errorf("save: %+v, %v", res, err)
	}
	r.blocks.mem = registered
	r.same(1)
}
