package hostmem_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
)

// BenchmarkCopyBatch: blocks in random places of one pool to random places of another,
// beside Go's copy of the same spans.
func BenchmarkCopyBatch(b *testing.B) {
	for _, c := range []struct{ size, blocks uint64 }{{64 << 10, 256}, {1 << 20, 64}} {
		dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
		pool := 4 * c.size * c.blocks
		var mem [2][]byte
		var id [2]gpu.Region
		for i := range id {
			var err error
			if id[i], err = dev.Alloc(gpu.HostMemory, pool, 4096); err != nil {
				b.Fatal(err)
			}
			m, _ := dev.Memory(id[i])
			mem[i] = m.Host
			for j := range mem[i] {
				mem[i][j] = byte(j >> 7)
			}
		}
		rnd := rand.New(rand.NewPCG(1, 1))
		to, from := rnd.Perm(int(4 * c.blocks))[:c.blocks], rnd.Perm(int(4 * c.blocks))[:c.blocks]
		batch := new(gpu.Batch)
		for i := range to {
			batch.Add(gpu.Span{Dst: id[0], DstOff: uint64(to[i]) * c.size, Src: id[1], SrcOff: uint64(from[i]) * c.size, Len: c.size})
		}
		q, err := dev.NewQueue()
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprintf("%dKiB", c.size>>10)
		b.Run(name+"/batch", func(b *testing.B) {
			b.SetBytes(int64(c.size * c.blocks))
			for b.Loop() {
				f, err := q.Submit(batch, gpu.After{})
				if err == nil {
					err = f.Wait(context.Background())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/copy", func(b *testing.B) {
			b.SetBytes(int64(c.size * c.blocks))
			for b.Loop() {
				for i := range to {
					copy(mem[0][uint64(to[i])*c.size:][:c.size], mem[1][uint64(from[i])*c.size:][:c.size])
				}
			}
		})
		if err := dev.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
