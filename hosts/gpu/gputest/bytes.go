package gputest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// thereAndBack sends lengths and offsets of every kind to the device and fetches them.
func thereAndBack(t *testing.T, r *rig) {
	const size = 1 << 20
	src, from := r.host(size)
	dst, to := r.host(size)
	dev := r.alloc(gpu.DeviceMemory, size)
	q := r.queue()
	rnd := seeded(1)
	want := fill(rnd, from)
	for _, n := range []uint64{1, 15, 16, 4095, 4096, 4097, 65536, size - 33} {
		for _, off := range []uint64{0, 1, 33} {
			if off+n > size {
				continue
			}
			poison := fill(rnd, to)
			f := r.submit(q, gpu.After{}, gpu.Span{Dst: dev, DstOff: off, Src: src, SrcOff: 0, Len: n})
			f = r.submit(q, gpu.After{Fences: []gpu.Fence{f}}, gpu.Span{Dst: dst, DstOff: size - n, Src: dev, SrcOff: off, Len: n})
			r.wait(f)
			r.same(to[size-n:], want[:n], "what came back")
			r.same(to[:size-n], poison[:size-n], "what lies before it")
			if o := f.Outcome(); o.Bytes != n || o.Copies < 1 || o.Spans != 1 {
				t.Errorf("outcome %+v of %d bytes", o, n)
			}
		}
	}
	r.wait(r.submit(q, gpu.After{})) // nothing at all is done, too
}

// againstModel runs random batches over two queues and looks at every byte at the end.
func againstModel(t *testing.T, r *rig) {
	rnd := rand.New(rand.NewPCG(7, 7))
	bytes := seeded(7)
	const size, blocks = 96 << 10, 64
	type memory struct {
		id    gpu.Region
		host  []byte // nil: of the device
		model []byte
	}
	var all []memory
	q := []*gpu.Queue{r.queue(), r.queue()}
	up, upBytes := r.host(size)
	for i := range 4 {
		m := memory{model: make([]byte, size)}
		if i < 2 {
			m.id, m.host = r.host(size)
			m.model = fill(bytes, m.host)
		} else {
			m.id = r.alloc(gpu.DeviceMemory, size)
			m.model = fill(bytes, upBytes)
			r.wait(r.submit(q[0], gpu.After{}, gpu.Span{Dst: m.id, Src: up, Len: size}))
		}
		all = append(all, m)
	}
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	var fences [2]gpu.Fence
	fences[0] = r.submit(q[0], gpu.After{})
	fences[1] = r.submit(q[1], gpu.After{})
	refused := 0
	for round := range rounds {
		b := new(gpu.Batch)
		var spans []gpu.Span
		dst, src := &all[rnd.IntN(4)], &all[rnd.IntN(4)]
		for range 1 + rnd.IntN(blocks) {
			s := gpu.Span{Dst: dst.id, Src: src.id, Len: uint64(rnd.IntN(1 + size/blocks))}
			if rnd.IntN(4) > 0 { // blocks of equal size, so that some lie side by side
				s.Len = 512
				s.DstOff, s.SrcOff = uint64(rnd.IntN(size/512))*512, uint64(rnd.IntN(size/512))*512
				if n := len(spans); n > 0 && rnd.IntN(2) == 0 {
					s.DstOff, s.SrcOff = spans[n-1].DstOff+spans[n-1].Len, spans[n-1].SrcOff+spans[n-1].Len
				}
			} else {
				s.DstOff, s.SrcOff = uint64(rnd.IntN(size)), uint64(rnd.IntN(size))
			}
			if s.DstOff+s.Len <= size && s.SrcOff+s.Len <= size && !collides(append(spans, s)) {
				spans = append(spans, s)
				b.Add(s)
			}
		}
		if round%10 == 9 && len(spans) > 0 { // one that reads, or writes, what another writes
			bad := new(gpu.Batch)
			for _, s := range spans {
				bad.Add(s)
			}
			s := spans[rnd.IntN(len(spans))]
			if s.Len > 0 {
				bad.Add(gpu.Span{Dst: s.Dst, DstOff: s.DstOff + s.Len - 1, Src: up, Len: 1})
				_, err := q[0].Submit(bad, gpu.After{})
				mustBe(t, err, gpu.ErrOverlap)
				refused++
			}
		}
		on := rnd.IntN(2)
		f, err := q[on].Submit(b, gpu.After{Fences: []gpu.Fence{fences[1-on]}})
		for errors.Is(err, gpu.ErrFull) {
			r.wait(fences[on])
			f, err = q[on].Submit(b, gpu.After{Fences: []gpu.Fence{fences[1-on]}})
		}
		if err != nil {
			t.Fatal(err)
		}
		fences[on] = f
		before := append([]byte(nil), src.model...)
		for _, s := range spans {
			copy(dst.model[s.DstOff:s.DstOff+s.Len], before[s.SrcOff:s.SrcOff+s.Len])
		}
	}
	if refused == 0 && rounds > 100 {
		t.Error("no batch was refused")
	}
	for i := range all {
		m := &all[i]
		got := m.host
		if got == nil {
			clear(upBytes)
			got = upBytes
			fences[0] = r.submit(q[0], gpu.After{Fences: fences[1:]}, gpu.Span{Dst: up, Src: m.id, Len: size})
		}
		r.wait(fences[0])
		r.wait(fences[1])
		r.same(got, m.model, "memory")
	}
}

// collides says whether one span writes what another one reads or writes.
func collides(spans []gpu.Span) bool {
	meet := func(a gpu.Region, ao, an uint64, b gpu.Region, bo, bn uint64) bool {
		return a == b && ao < bo+bn && bo < ao+an && an > 0 && bn > 0
	}
	for i, a := range spans {
		for j, b := range spans {
			if i != j && meet(a.Dst, a.DstOff, a.Len, b.Dst, b.DstOff, b.Len) || meet(a.Dst, a.DstOff, a.Len, b.Src, b.SrcOff, b.Len) {
				return true
			}
		}
	}
	return false
}

// writeAfterRead writes one block over and over while a second queue reads it: each read
// sees the write before it, and no write overtakes a read.
func writeAfterRead(t *testing.T, r *rig) {
	const size, rounds = 32 << 10, 40
	src, from := r.host(size * rounds)
	dst, to := r.host(size * rounds)
	dev := r.alloc(gpu.DeviceMemory, size)
	writes, reads := r.queue(), r.queue()
	want := fill(seeded(3), from)
	var write, read gpu.Fence
	for i := range uint64(rounds) {
		var after gpu.After
		if i > 0 {
			after.Fences = []gpu.Fence{read}
		}
		// In pieces, of which the device makes what it likes.
		var spans []gpu.Span
		for off := uint64(0); off < size; off += 1 << 10 {
			spans = append(spans, gpu.Span{Dst: dev, DstOff: off, Src: src, SrcOff: i*size + off, Len: 1 << 10})
		}
		write = r.submit(writes, after, spans...)
		read = r.submit(reads, gpu.After{Fences: []gpu.Fence{write}}, gpu.Span{Dst: dst, DstOff: i * size, Src: dev, Len: size})
	}
	r.wait(read)
	r.same(to, want, "what was read")
}

// manyAtATime runs a queue for each of some goroutines.
func manyAtATime(t *testing.T, r *rig) {
	const size, blocks = 4 << 10, 16
	dev := r.alloc(gpu.DeviceMemory, 4*size*blocks)
	var wg sync.WaitGroup
	for g := range uint64(4) {
		src, from := r.host(size * blocks)
		dst, to := r.host(size * blocks)
		q := r.queue()
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(g, 1))
			bytes := seeded(byte(g))
			there, back := new(gpu.Batch), new(gpu.Batch)
			rows := gpu.Rows{Stride: size, Size: size, Count: blocks}
			for range 30 {
				want := fill(bytes, from)
				_, _ = there.Reset(), back.Reset()
				at, from, to2 := perm(rnd, blocks), perm(rnd, blocks), perm(rnd, blocks)
				d, s, e := rows, rows, rows
				d.Region, d.Base, s.Region, e.Region = dev, g*size*blocks, src, dst
				if err := errors.Join(there.AddBlocks(d, at, s, from), back.AddBlocks(e, to2, d, at)); err != nil {
					t.Error(err)
					return
				}
				if _, err := q.Submit(there, gpu.After{}); err != nil {
					t.Error(err)
					return
				}
				f, err := q.Submit(back, gpu.After{})
				if err == nil {
					err = f.Wait(patience(t))
				}
				if err != nil {
					t.Error(err)
					return
				}
				for i := range blocks {
					if string(to[to2[i]*size:][:size]) != string(want[from[i]*size:][:size]) {
						t.Errorf("block %d of goroutine %d is not what was sent", i, g)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func perm(rnd *rand.Rand, n int) []uint32 {
	out := make([]uint32, n)
	for i, j := range rnd.Perm(n) {
		out[i] = uint32(j)
	}
	return out
}

// large moves more than a copy may have at a time.
func large(t *testing.T, r *rig) {
	const size = 384 << 20
	src, from := r.host(size)
	dst, to := r.host(size)
	dev := r.alloc(gpu.DeviceMemory, size)
	q := r.queue()
	_, _ = seeded(9).Read(from)
	r.submit(q, gpu.After{}, gpu.Span{Dst: dev, Src: src, Len: size})
	f := r.submit(q, gpu.After{}, gpu.Span{Dst: dst, Src: dev, Len: size})
	r.wait(f)
	if o := f.Outcome(); o.Copies < 6 || o.Bytes != size {
		t.Errorf("outcome %+v", o)
	}
	r.same(to, from, "what came back")
}
