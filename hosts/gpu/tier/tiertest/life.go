package tiertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
)

// abandoned: who gives up waiting frees nothing; the copies arrive.
func abandoned(t *testing.T, r *rig) {
	r.open(16)
	r.blocks.Put(space, seq(1, 8)...)
	r.load(seq(7, 8), tier.Result{Copied: 2})
	r.blocks.Forget(space, 7, 8)
	release := r.hold()
	st := make([]tier.Status, 6)
	res, err := r.tier.Load(atOnce(), space, seq(1, 6), st)
	if !errors.Is(err, gpu.ErrInFlight) || res.Failed != 6 || st[0] != tier.Failed {
		t.Errorf("load: %+v, %v: %v", res, err, st)
	}
	if _, err := r.tier.Save(atOnce(), space, seq(7, 8), nil); !errors.Is(err, gpu.ErrInFlight) {
		t.Errorf("save: %v", err)
	}
	r.blocks.Forget(space, seq(1, 6)...) // which poisons what is not leased
	r.there(abi.ResidencyFilling, seq(1, 6)...)
	where := make([]abi.Residency, 2)
	if r.blocks.Residency(space, seq(7, 8), where); where[0] != abi.ResidencyFilling {
		t.Errorf("a block that is on its way is %v", where)
	}
	if n, m := r.blocks.Tokens('r'), r.blocks.Tokens('w'); n != 6 || m != 2 {
		t.Errorf("%d leases and %d reservations are held", n, m)
	}
	if s := r.tier.Stats(); s.Abandoned != 3 || s.Filling != 6 || s.Leased != 2 || s.InFlight != 3 {
		t.Errorf("%+v", s)
	}
	if err := r.tier.Settled(atOnce()); !errors.Is(err, gpu.ErrInFlight) {
		t.Errorf("settled: %v", err)
	}
	release()
	if err := r.tier.Settled(patience(t)); err != nil {
		t.Fatal(err)
	}
	if n, m := r.blocks.Tokens('r'), r.blocks.Tokens('w'); n+m != 0 {
		t.Errorf("%d leases and %d reservations are held", n, m)
	}
	if r.blocks.Residency(space, seq(7, 8), where); where[0] != abi.ResidencyDRAM {
		t.Errorf("a block that has arrived is %v", where)
	}
	r.there(abi.ResidencyDevice, seq(1, 8)...)
	r.same(seq(1, 6)...)
}

// until waits for blocks that others bring: a load that finds them coming is asked again.
func (r *rig) until(hashes ...uint64) {
	r.t.Helper()
	ctx := patience(r.t)
	for {
		res, err := r.tier.Load(ctx, space, hashes, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		if res.Coming == 0 {
			return
		}
	}
}

// coming: a block on its way is not brought twice.
func coming(t *testing.T, r *rig) {
	r.open(8)
	r.blocks.Put(space, 1, 2)
	release := r.hold()
	_, _ = r.tier.Load(atOnce(), space, []uint64{1, 2, 1}, nil)
	r.load([]uint64{1, 2}, tier.Result{Coming: 2})
	if _, err := r.tier.Acquire(space, 1); !errors.Is(err, tier.ErrNotFound) {
		t.Errorf("a block that is on its way is leased: %v", err)
	}
	release()
	r.until(1, 2)
	if s := r.tier.Stats(); s.Loaded != 2 {
		t.Errorf("%+v", s)
	}
	r.same(1, 2)
}

// waiting: prefetches behind one that does not end are bounded, and late ones are dropped.
func waiting(t *testing.T, r *rig) {
	var now sync.Map
	now.Store("now", int64(0))
	r.open(16, func(c *tier.Config) {
		c.Queued, c.Requests = 12, 3
		c.Now = func() int64 { v, _ := now.Load("now"); return v.(int64) }
	})
	r.blocks.Put(space, seq(1, 9)...)
	release := r.hold()
	if err := r.tier.Prefetch(space, seq(1, 2)); err != nil {
		t.Fatal(err)
	}
	for r.tier.Stats().InFlight == 0 { // its turn has come
		runtime.Gosched()
	}
	for _, list := range [][]uint64{{3, 4, 5}, {6}} {
		if err := r.tier.Prefetch(space, list); err != nil {
			t.Error(err)
		}
	}
	if err := r.tier.Prefetch(space, []uint64{7}); !errors.Is(err, tier.ErrBusy) {
		t.Errorf("a seventh block of twelve for one namespace: %v", err)
	}
	if err := r.tier.Prefetch("5:other", []uint64{7}); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	if err := r.tier.Prefetch("5:other", []uint64{8}); !errors.Is(err, tier.ErrBusy) {
		t.Errorf("more requests than may wait: %v", err)
	}
	now.Store("now", int64(2*60e9))
	release()
	if err := r.tier.Wait(patience(t)); err != nil {
		t.Fatal(err)
	}
	r.there(abi.ResidencyDevice, 1, 2)
	r.there(abi.ResidencyAbsent, 3, 4, 5, 6)
	if s := r.tier.Stats(); s.Late != 3 || s.Refused != 2 || s.Queued != 0 {
		t.Errorf("%+v", s)
	}
}

// closeInFlight: a close that gives up leaves all as it is; one that waits ends it well.
func closeInFlight(t *testing.T, r *rig) {
	r.open(8)
	r.blocks.Put(space, seq(1, 5)...)
	release := r.hold()
	if err := r.tier.Prefetch(space, seq(4, 5)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if res, err := r.tier.Load(patience(t), space, seq(1, 3), nil); err != nil || res.Copied != 3 {
			t.Errorf("load: %+v, %v", res, err)
		}
	})
	for r.tier.Stats().InFlight < 2 {
		runtime.Gosched()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.tier.Close(ctx); !errors.Is(err, gpu.ErrInFlight) {
		t.Errorf("close: %v", err)
	}
	if err := r.tier.Prefetch(space, []uint64{1}); !errors.Is(err, tier.ErrClosed) {
		t.Errorf("prefetch: %v", err)
	}
	if n := r.blocks.Tokens('r'); n != 5 {
		t.Errorf("%d leases are held", n)
	}
	release()
	wg.Wait()
}

// fails: a batch that fails publishes nothing, and what it held is free again.
func fails(t *testing.T, r *rig) {
	r.open(4)
	r.blocks.Put(space, seq(1, 4)...)
	r.FailNext()
	st := make([]tier.Status, 4)
	res, err := r.tier.Load(patience(t), space, seq(1, 4), st)
	if err == nil || errors.Is(err, gpu.ErrInFlight) || res.Failed != 4 || st[0] != tier.Failed {
		t.Fatalf("load: %+v, %v", res, err)
	}
	r.there(abi.ResidencyAbsent, seq(1, 4)...)
	r.load(seq(1, 4), tier.Result{Copied: 4})
	r.blocks.Forget(space, seq(1, 4)...)
	r.FailNext()
	res, err = r.tier.Save(patience(t), space, seq(1, 4), nil)
	where := make([]abi.Residency, 4)
	if n := r.blocks.Residency(space, seq(1, 4), where); err == nil || res.Failed != 4 || n != 0 || where[0] != abi.ResidencyAbsent {
		t.Fatalf("save: %+v, %v: %v", res, err, where)
	}
	r.same(seq(1, 4)...)
	r.FailNext()
	r.blocks.Put(space, seq(9, 12)...)
	if err := errors.Join(r.tier.Prefetch(space, seq(9, 12)), r.tier.Wait(patience(t))); err != nil {
		t.Error(err)
	}
	if s := r.tier.Stats(); s.Failed != 12 || s.Broken != 1 || s.Used != 0 || s.Failure == nil {
		t.Errorf("%+v", s)
	}
}

// after: what the caller has to wait for is handed on, for a device to wait or to refuse.
func after(t *testing.T, r *rig) {
	r.open(4)
	r.blocks.Put(space, 1)
	kv, err := r.dev.Alloc(gpu.DeviceMemory, 4*Slot, 0)
	if err != nil {
		t.Fatal(err)
	}
	q, err := r.dev.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	kernel := new(gpu.Batch)
	for i := range uint64(4) {
		kernel.Add(gpu.Span{Dst: kv, DstOff: (2*i + 1) * 256, Src: kv, SrcOff: 2 * i * 256, Len: 128 + i})
	}
	r.FailNext()
	f, err := q.Submit(kernel, gpu.After{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Wait(patience(t)) == nil {
		t.Fatal("the batch was to fail")
	}
	place := []tier.Place{{Hash: 1, Region: kv, Length: uint64(len(Bytes(space, 1)))}, {Hash: 2, Region: kv, Length: 9}}
	behind := gpu.After{Fences: []gpu.Fence{f}}
	if _, err := r.tier.Deliver(patience(t), space, place[:1], behind, nil); !errors.Is(err, gpu.ErrDependency) {
		t.Errorf("deliver behind what has failed: %v", err)
	}
	if res, err := r.tier.Offload(patience(t), space, place[1:], behind, nil); !errors.Is(err, gpu.ErrDependency) || res.Failed != 1 {
		t.Errorf("offload behind what has failed: %+v, %v", res, err)
	}
	where := make([]abi.Residency, 1)
	if r.blocks.Residency(space, []uint64{2}, where); where[0] != abi.ResidencyAbsent {
		t.Errorf("a block of a refused batch is %v", where[0])
	}
	if err := errors.Join(q.Close(patience(t)), r.dev.Free(patience(t), kv)); err != nil {
		t.Error(err)
	}
}

// lost: everything ends, and what the device may still write to is nobody's.
func lost(t *testing.T, r *rig) {
	r.open(8)
	r.blocks.Put(space, seq(1, 5)...)
	r.load(seq(1, 2), tier.Result{Copied: 2})
	r.blocks.Forget(space, 1, 2)
	r.hold()
	var wg sync.WaitGroup
	call := func(what func(context.Context, string, []uint64, []tier.Status) (tier.Result, error), hashes []uint64) {
		wg.Go(func() {
			if res, err := what(patience(t), space, hashes, nil); !errors.Is(err, gpu.ErrLost) || res.Failed != len(hashes) {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	call(r.tier.Save, seq(1, 2))
	call(r.tier.Load, seq(3, 5))
	for r.tier.Stats().InFlight < 2 {
		runtime.Gosched()
	}
	r.Lose()
	wg.Wait()
	if n := r.blocks.Tokens('t'); n != 2 {
		t.Errorf("%d places are kept from others", n)
	}
	r.there(abi.ResidencyAbsent, seq(1, 5)...)
	if _, err := r.tier.Load(patience(t), space, []uint64{3}, nil); !errors.Is(err, gpu.ErrLost) {
		t.Error(err)
	}
	if err := r.tier.Prefetch(space, []uint64{3}); !errors.Is(err, gpu.ErrLost) {
		t.Error(err)
	}
	if err := r.tier.Settled(patience(t)); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("settled: %v", err)
	}
	if s := r.tier.Stats(); s.Quarantined != 2 || s.Failed != 5 {
		t.Errorf("%+v", s)
	}
}

// manyAtATime has everything done at once on a device that is too small for it, with
// batches that fail now and then. The store looks at all bytes that come back.
func manyAtATime(t *testing.T, r *rig) {
	r.open(12)
	kv, err := r.dev.Alloc(gpu.DeviceMemory, 4*8*Slot, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.blocks.Put(space, seq(1, 24)...)
	var wg sync.WaitGroup
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var failing sync.Mutex
	for g := range uint64(4) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(g, 5))
			for range rounds {
				var list []uint64
				var places []tier.Place
				for i := range 1 + rnd.IntN(8) {
					h := 1 + rnd.Uint64N(24)
					list = append(list, h)
					places = append(places, tier.Place{Hash: h, Region: kv, Offset: (g*8 + uint64(i)) * Slot, Length: uint64(len(Bytes(space, h)))})
				}
				if r.FailNext != nil && rnd.IntN(8) == 0 {
					failing.Lock()
					r.FailNext()
					failing.Unlock()
				}
				ctx := context.Context(t.Context())
				if rnd.IntN(6) == 0 {
					ctx = atOnce()
				}
				switch rnd.IntN(4) {
				case 0:
					_, _ = r.tier.Load(ctx, space, list, nil)
				case 1:
					_, _ = r.tier.Save(ctx, space, list, nil)
				case 2:
					_ = r.tier.Prefetch(space, list)
				default:
					st := make([]tier.Status, len(places))
					if _, err := r.tier.Deliver(patience(t), space, places, gpu.After{}, st); err != nil {
						continue // a failed batch, which leaves the places as they may be
					}
					r.blocks.Forget(space, list[:len(list)/2]...)
					var back []tier.Place
					for i, s := range st {
						if s == tier.Copied {
							back = append(back, places[i])
						}
					}
					_, _ = r.tier.Offload(patience(t), space, back, gpu.After{}, nil)
				}
			}
		})
	}
	wg.Wait()
	if err := r.tier.Close(patience(t)); err != nil {
		t.Fatal(err)
	}
	if err := r.dev.Free(patience(t), kv); err != nil {
		t.Error(err)
	}
	t.Logf("%+v", r.tier.Stats())
}
