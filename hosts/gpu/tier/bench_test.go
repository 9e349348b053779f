package tier_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/store"
)

// BenchmarkLoad brings blocks of the store to host memory, each time others, in place of
// those before. The floor copies the same bytes in batches of a queue, of which nobody
// keeps books.
func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct{ size, blocks uint64 }{{64 << 10, 256}, {1 << 20, 32}} {
		b.Run(fmt.Sprintf("%dKiB", c.size>>10), func(b *testing.B) { benchLoad(b, c.size, c.blocks) })
	}
}

func benchLoad(b *testing.B, size, blocks uint64) {
	ctx := context.Background()
	dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
	var slab gpu.Region
	s, err := store.New(store.Config{Capacity: 2 * blocks * size, BlockBytes: []uint64{size}, Pin: func(mem []byte) (func() error, error) {
		id, err := dev.Register(mem, 0)
		slab = id
		return func() error { return dev.Free(ctx, id) }, err
	}})
	if err != nil {
		b.Fatal(err)
	}
	list := make([]uint64, 2*blocks)
	offsets := make([]uint64, len(list))
	for i := range list {
		list[i] = uint64(i) * 0x9e3779b97f4a7c15
		token, mem, err := s.Reserve(space, list[i], int(size))
		if err != nil {
			b.Fatal(err)
		}
		for j := range mem {
			mem[j] = byte(i + j)
		}
		if err := s.Commit(token); err != nil {
			b.Fatal(err)
		}
		lease, _, err := s.Acquire(space, list[i])
		if err != nil {
			b.Fatal(err)
		}
		info, err := s.Describe(lease)
		if err != nil {
			b.Fatal(err)
		}
		if offsets[i] = uint64(info.Offset); s.Release(lease) != nil {
			b.Fatal("release")
		}
	}
	tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: blocks * size, BlockBytes: size})
	if err != nil {
		b.Fatal(err)
	}
	closeAfter(b, tr, s, dev)
	own, err := dev.Alloc(gpu.DeviceMemory, blocks*size, 0)
	if err != nil {
		b.Fatal(err)
	}
	q, err := dev.NewQueue()
	if err != nil {
		b.Fatal(err)
	}
	batches := make([]gpu.Batch, (blocks+127)/128)
	fences := make([]gpu.Fence, len(batches))
	floor := func(from uint64) {
		for j := range batches {
			if err := batches[j].Reset(); err != nil {
				b.Fatal(err)
			}
			for k := uint64(j) * 128; k < min(blocks, uint64(j+1)*128); k++ {
				batches[j].Add(gpu.Span{Dst: own, DstOff: k * size, Src: slab, SrcOff: offsets[from+k], Len: size})
			}
			if fences[j], err = q.Submit(&batches[j], gpu.After{}); err != nil {
				b.Fatal(err)
			}
		}
		for _, f := range fences {
			if err := f.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	// In turn, so that a busy machine disturbs both alike.
	var loading, copying time.Duration
	b.SetBytes(int64(2 * size * blocks))
	n := 0
	for b.Loop() {
		from := uint64(n%2) * blocks
		start := time.Now()
		if r, err := tr.Load(ctx, space, list[from:from+blocks], nil); err != nil || r.Copied != int(blocks) {
			b.Fatalf("%+v, %v", r, err)
		}
		between := time.Now()
		floor(from)
		loading, copying = loading+between.Sub(start), copying+time.Since(between)
		n++
	}
	b.ReportMetric(float64(loading.Nanoseconds())/float64(n), "load-ns")
	b.ReportMetric(float64(copying.Nanoseconds())/float64(n), "floor-ns")
	if err := dev.Free(ctx, own); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPrefetch is what accepting a prefetch costs the dispatching goroutine. The
// device has the blocks, so that the goroutine that carries it out has little to do.
func BenchmarkPrefetch(b *testing.B) {
	for _, n := range []int{1, 1024} {
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
			s := blocks(b, dev, 1)
			tr, err := tier.New(tier.Config{Device: dev, Blocks: s, Capacity: 8 << 12, BlockBytes: 4096, Queued: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			closeAfter(b, tr, s, dev)
			list := make([]uint64, n)
			for i := range list {
				list[i] = 1
			}
			// What carries it out is another goroutine's time.
			var accepting time.Duration
			n := 0
			for b.Loop() {
				start := time.Now()
				err := tr.Prefetch(space, list)
				accepting += time.Since(start)
				if n++; err != nil {
					b.Fatal(err)
				}
				if n%64 == 0 {
					if err := tr.Wait(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(accepting.Nanoseconds())/float64(n), "accept-ns")
		})
	}
}
