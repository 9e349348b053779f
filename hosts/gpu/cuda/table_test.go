//go:build cgo && linux

package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// bench is the memory that the table is measured on: what is sent, what is fetched, and the
// GPU's between them.
type bench struct {
	t                   *testing.T
	driver              *Device
	dev                 *gpu.Device
	up, down            *gpu.Queue
	src, dst, mem       gpu.Region
	from, to            []byte // of src and dst
	atSrc, atDst, onGPU uint64 // addresses of src, dst and mem
	size                uint64 // of each
	rounds              int
	scale               uint64 // by which cases are smaller than they should be
}

// TestGPUTable prints how fast batches are, beside what the driver does with nothing around
// it, and looks at every byte.
func TestGPUTable(t *testing.T) {
	b := &bench{t: t, driver: checked(t), size: 256 << 20, rounds: 7, scale: 1}
	if os.Getenv(checkEnv) == "fake" {
		b.size, b.rounds, b.scale = 8<<20, 3, 32
		fmt.Println("\na rehearsal on the fake driver: the bytes count, the figures do not")
	}
	b.dev = gpu.New(b.driver, gpu.Config{MaxCopy: 1 << 40})
	var errs [5]error
	b.src, errs[0] = b.dev.Alloc(gpu.HostMemory, b.size, 0)
	b.dst, errs[1] = b.dev.Alloc(gpu.HostMemory, b.size, 0)
	b.mem, errs[2] = b.dev.Alloc(gpu.DeviceMemory, b.size, 0)
	b.up, errs[3] = b.dev.NewQueue()
	b.down, errs[4] = b.dev.NewQueue()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	src, _ := b.dev.Memory(b.src)
	dst, _ := b.dev.Memory(b.dst)
	mem, _ := b.dev.Memory(b.mem)
	b.from, b.to, b.onGPU, b.atSrc, b.atDst = src.Host, dst.Host, mem.Addr, src.Addr, dst.Addr
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b.from)

	fmt.Printf("\n%-30s %10s %10s %10s %10s %8s %10s   GB/s, medians of %d\n", "", "one copy", "bare loop", "bare batch", "kvrt", "ratio", "submit us", b.rounds)
	for _, c := range []struct {
		block, blocks uint64
		aim           float64
	}{{2 << 20, 128, 0.95}, {512 << 10, 256, 0.95}, {64 << 10, 1024, 0.85}, {16 << 10, 2048, 0}, {4 << 10, 4096, 0}} {
		for _, merge := range []bool{false, true} {
			b.row(true, c.block, max(c.blocks/b.scale, 2), merge, c.aim)
			b.row(false, c.block, max(c.blocks/b.scale, 2), merge, c.aim)
		}
	}
	b.both()
	fmt.Printf("\nratio: kvrt beside the best of the columns that copy the same blocks, or beside one copy where blocks lie in order. copies by %s\n", b.driver.Copying())
	if err := b.dev.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// row measures one case in one direction and prints it. Scattered blocks lie in random
// places at both ends; blocks that merge lie in order.
func (b *bench) row(up bool, block, blocks uint64, merge bool, aim float64) {
	b.t.Helper()
	n := b.size / block
	rnd := rand.New(rand.NewPCG(block, 1))
	host, dev := rnd.Perm(int(n))[:blocks], rnd.Perm(int(n))[:blocks]
	if merge {
		for i := range host {
			host[i], dev[i] = i, i
		}
	}
	batch := new(gpu.Batch)
	var bare gpu.Copies
	hostAt, q := b.atSrc, b.up
	if !up {
		hostAt, q = b.atDst, b.down
	}
	for i := range host {
		h, d := uint64(host[i])*block, uint64(dev[i])*block
		s := gpu.Span{Dst: b.mem, DstOff: d, Src: b.src, SrcOff: h, Len: block}
		to, from := b.onGPU+d, hostAt+h
		if !up {
			s = gpu.Span{Dst: b.dst, DstOff: h, Src: b.mem, SrcOff: d, Len: block}
			to, from = from, to
		}
		batch.Add(s)
		bare.Dst, bare.Src, bare.Size = append(bare.Dst, to), append(bare.Src, from), append(bare.Size, block)
	}
	one := gpu.Copies{Dst: []uint64{b.onGPU}, Src: []uint64{hostAt}, Size: []uint64{block * blocks}}
	if !up {
		one.Dst, one.Src = one.Src, one.Dst
	}
	var times [5][]time.Duration
	for range b.rounds {
		for i, c := range []struct {
			copies gpu.Copies
			batch  bool
		}{{one, false}, {bare, false}, {bare, true}} {
			d, err := b.driver.Bare(c.copies, c.batch)
			if err != nil {
				b.t.Fatal(err)
			}
			times[i] = append(times[i], d)
		}
		b.poison(up)
		start := time.Now()
		f, err := q.Submit(batch, gpu.After{})
		submitted := time.Since(start)
		if err == nil {
			err = f.Wait(context.Background())
		}
		if err != nil {
			b.t.Fatal(err)
		}
		times[3], times[4] = append(times[3], time.Since(start)), append(times[4], submitted)
	}
	b.verify(up, block, host, dev)
	var rate [4]float64
	for i := range rate {
		rate[i] = float64(block*blocks) / float64(median(times[i]))
	}
	floor := max(rate[1], rate[2])
	name := "scattered"
	if merge {
		floor, name = rate[0], "in order"
	}
	note := ""
	if rate[3] < aim*floor {
		note = fmt.Sprintf("  below the aim of %.2f", aim)
	}
	fmt.Printf("%s %4d KiB x %-5d %-9s %10.1f %10.1f %10.1f %10.1f %8.2f %10.1f%s\n", direction(up), block>>10, blocks, name,
		rate[0], rate[1], rate[2], rate[3], rate[3]/floor, float64(median(times[4]))/1e3, note)
}

func direction(up bool) string {
	if up {
		return "to GPU  "
	}
	return "from GPU"
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// poison makes what a batch is to write something else.
func (b *bench) poison(up bool) {
	if !up {
		for i := range b.to {
			b.to[i] = 0xee
		}
		return
	}
	half := b.size / 2 // the source, shifted by half: nothing is where it belongs
	c := gpu.Copies{Dst: []uint64{b.onGPU, b.onGPU + half}, Src: []uint64{b.atSrc + half, b.atSrc}, Size: []uint64{half, half}}
	if _, err := b.driver.Bare(c, false); err != nil {
		b.t.Fatal(err)
	}
}

// verify looks at the bytes that a batch was to write.
func (b *bench) verify(up bool, block uint64, host, dev []int) {
	b.t.Helper()
	want, got := b.from, b.to
	if up { // fetch all of the GPU's memory by one copy
		if _, err := b.driver.Bare(gpu.Copies{Dst: []uint64{b.atDst}, Src: []uint64{b.onGPU}, Size: []uint64{b.size}}, false); err != nil {
			b.t.Fatal(err)
		}
	} else { // what the GPU has, by another way: into memory that nothing else uses
		id, err := b.dev.Alloc(gpu.HostMemory, b.size, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		m, _ := b.dev.Memory(id)
		if _, err := b.driver.Bare(gpu.Copies{Dst: []uint64{m.Addr}, Src: []uint64{b.onGPU}, Size: []uint64{b.size}}, false); err != nil {
			b.t.Fatal(err)
		}
		want = bytes.Clone(m.Host)
		if err := b.dev.Free(context.Background(), id); err != nil {
			b.t.Fatal(err)
		}
	}
	for i := range host {
		w, g := want[uint64(host[i])*block:][:block], got[uint64(dev[i])*block:][:block]
		if !up {
			w, g = want[uint64(dev[i])*block:][:block], got[uint64(host[i])*block:][:block]
		}
		if !bytes.Equal(w, g) {
			b.t.Fatalf("%s: block %d of %d bytes is WRONG", direction(up), i, block)
		}
	}
}

// both copies in both directions at once.
func (b *bench) both() {
	half := b.size / 2
	there, back := new(gpu.Batch), new(gpu.Batch)
	there.Add(gpu.Span{Dst: b.mem, Src: b.src, Len: half})
	back.Add(gpu.Span{Dst: b.dst, DstOff: half, Src: b.mem, SrcOff: half, Len: half})
	var times []time.Duration
	for range b.rounds {
		start := time.Now()
		f, err := b.up.Submit(there, gpu.After{})
		if err != nil {
			b.t.Fatal(err)
		}
		g, err := b.down.Submit(back, gpu.After{})
		if err = errors.Join(err, f.Wait(context.Background())); err == nil {
			err = g.Wait(context.Background())
		}
		if err != nil {
			b.t.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	fmt.Printf("both at once, %d MiB each, sum %42.1f\n", half>>20, float64(b.size)/float64(median(times)))
}
