package gputest

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// refusedSpans: a batch with one bad span among good ones touches nothing.
func refusedSpans(t *testing.T, r *rig) {
	const size = 8 << 10
	src, from := r.host(size)
	dst, to := r.host(size)
	gone, _ := r.host(size)
	if err := r.dev.Free(patience(t), gone); err != nil {
		t.Fatal(err)
	}
	mustBe(t, r.dev.Free(patience(t), gone), gpu.ErrStale)
	again, _ := r.host(size) // may well have the slot of the one that is gone
	strict, err := r.dev.Alloc(gpu.DeviceMemory, size, 16)
	if err != nil {
		t.Fatal(err)
	}
	q := r.queue()
	fill(seeded(4), from)
	want := fill(seeded(5), to)
	good := gpu.Span{Dst: dst, Src: src, Len: 64}
	for _, c := range []struct {
		bad gpu.Span
		err error
		end gpu.End
	}{
		{gpu.Span{Dst: dst, DstOff: size, Src: src, Len: 1}, gpu.ErrRange, gpu.Destination},
		{gpu.Span{Dst: dst, DstOff: size + 1, Src: src}, gpu.ErrRange, gpu.Destination},
		{gpu.Span{Dst: dst, DstOff: 64, Src: src, SrcOff: size - 1, Len: 2}, gpu.ErrRange, gpu.Source},
		{gpu.Span{Dst: dst, DstOff: 64, Src: src, SrcOff: math.MaxUint64, Len: 2}, gpu.ErrRange, gpu.Source},
		{gpu.Span{Dst: dst, DstOff: 64, Src: src, SrcOff: 2, Len: math.MaxUint64}, gpu.ErrRange, gpu.Destination},
		{gpu.Span{Dst: gone, Src: src, Len: 1}, gpu.ErrStale, gpu.Destination},
		{gpu.Span{Dst: dst, DstOff: 64, Src: gone, Len: 1}, gpu.ErrStale, gpu.Source},
		{gpu.Span{Src: src, Len: 1}, gpu.ErrStale, gpu.Destination},
		{gpu.Span{Dst: strict, DstOff: 8, Src: src, Len: 16}, gpu.ErrAlign, gpu.Destination},
		{gpu.Span{Dst: dst, DstOff: 64, Src: strict, Len: 15}, gpu.ErrAlign, gpu.Source},
	} {
		b := new(gpu.Batch)
		b.Add(good)
		b.Add(c.bad)
		_, err := q.Submit(b, gpu.After{})
		mustBe(t, err, c.err)
		var at *gpu.SpanError
		if !errors.As(err, &at) || at.Span != 1 || at.End != c.end {
			t.Errorf("%+v: %v names not its end", c.bad, err)
		}
	}
	rows := gpu.Rows{Region: dst, Stride: 128, Size: 64, Count: 4}
	mustBe(t, new(gpu.Batch).AddBlocks(rows, []uint32{0, 4}, rows, []uint32{0, 1}), gpu.ErrRange)
	mustBe(t, new(gpu.Batch).AddBlocks(rows, []uint32{0, 1}, rows, []uint32{0}), gpu.ErrRange)
	small := rows
	small.Size = 32
	mustBe(t, new(gpu.Batch).AddBlocks(rows, []uint32{0}, small, []uint32{1}), gpu.ErrRange)
	r.same(to, want, "the destination")
	for _, id := range []gpu.Region{src, dst, again, strict} {
		if err := r.dev.Free(patience(t), id); err != nil {
			t.Errorf("a region of refused batches: %v", err)
		}
	}
}

// usedAgain: a fence tells of its own use of a batch only.
func usedAgain(t *testing.T, r *rig) {
	src, _ := r.host(64)
	dst, _ := r.host(64)
	q := r.queue()
	b := new(gpu.Batch)
	b.Add(gpu.Span{Dst: dst, Src: src, Len: 64})
	first, err := q.Submit(b, gpu.After{})
	if err != nil {
		t.Fatal(err)
	}
	r.wait(first)
	second, err := q.Submit(b, gpu.After{})
	if err != nil {
		t.Fatal(err)
	}
	mustBe(t, first.Err(), gpu.ErrForgotten)
	_, err = q.Submit(new(gpu.Batch), gpu.After{Fences: []gpu.Fence{first}})
	mustBe(t, err, gpu.ErrForgotten)
	_, err = q.Submit(new(gpu.Batch), gpu.After{Fences: make([]gpu.Fence, 1)})
	mustBe(t, err, gpu.ErrForgotten)
	r.wait(second)
}

// notBeforeTheFence: bytes come late, and the batch cannot be changed before.
func notBeforeTheFence(t *testing.T, r *rig) {
	const size = 4 << 10
	src, from := r.host(size)
	dst, to := r.host(size)
	q := r.queue()
	want, poison := fill(seeded(1), from), fill(seeded(2), to)
	release := r.hold()
	b := new(gpu.Batch)
	b.Add(gpu.Span{Dst: dst, Src: src, Len: size})
	f, err := q.Submit(b, gpu.After{})
	if err != nil {
		t.Fatal(err)
	}
	mustBe(t, f.Err(), gpu.ErrInFlight)
	mustBe(t, f.Wait(hurry()), gpu.ErrInFlight)
	mustBe(t, b.Reset(), gpu.ErrInFlight)
	_, err = q.Submit(b, gpu.After{})
	mustBe(t, err, gpu.ErrInFlight)
	if o := f.Outcome(); o.Bytes != 0 {
		t.Errorf("%d bytes are done before the fence", o.Bytes)
	}
	r.same(to, poison, "the destination before the fence")
	release()
	r.wait(f)
	r.same(to, want, "the destination")
}

func fullQueue(t *testing.T, r *rig) {
	r.open(gpu.Config{Depth: 4})
	src, _ := r.host(64)
	dst, _ := r.host(64)
	q := r.queue()
	release := r.hold()
	one := gpu.Span{Dst: dst, Src: src, Len: 64}
	first := r.submit(q, gpu.After{}, one)
	for range 3 {
		r.submit(q, gpu.After{}, one)
	}
	b := new(gpu.Batch)
	b.Add(one)
	_, err := q.Submit(b, gpu.After{})
	mustBe(t, err, gpu.ErrFull)
	release()
	r.wait(first)
	var f gpu.Fence
	for err = gpu.ErrFull; errors.Is(err, gpu.ErrFull); { // it has ended a moment before its place is free
		f, err = q.Submit(b, gpu.After{})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.wait(f)
}

// heldMemory: neither end of a copy is released before the copy's end, though whoever asks
// for it may give up.
func heldMemory(t *testing.T, r *rig) {
	const size = 4 << 10
	src, from := r.host(size)
	dst, to := r.host(size)
	dev := r.alloc(gpu.DeviceMemory, size)
	q := r.queue()
	want := fill(seeded(1), from)
	release := r.hold()
	r.submit(q, gpu.After{}, gpu.Span{Dst: dev, Src: src, Len: size})
	f := r.submit(q, gpu.After{}, gpu.Span{Dst: dst, Src: dev, Len: size})
	mustBe(t, r.dev.Free(hurry(), src), gpu.ErrInFlight)
	mustBe(t, r.dev.Free(hurry(), dev), gpu.ErrInFlight)
	b := new(gpu.Batch)
	b.Add(gpu.Span{Dst: dst, Src: src, Len: 1})
	_, err := q.Submit(b, gpu.After{})
	mustBe(t, err, gpu.ErrStale)
	r.same(from, want, "the source") // faults if it is gone
	release()
	r.wait(f)
	r.same(to, want, "the destination")
	for _, id := range []gpu.Region{src, dev} { // it is over: released by now, or about to be
		if err := r.dev.Free(patience(t), id); err != nil && !errors.Is(err, gpu.ErrStale) {
			t.Errorf("free again: %v", err)
		}
	}
}

// refusedMemory: what a refused batch has named can be freed.
func refusedMemory(t *testing.T, r *rig) {
	src, _ := r.host(64)
	dst, _ := r.host(64)
	q := r.queue()
	if err := q.Close(patience(t)); err != nil {
		t.Fatal(err)
	}
	b := new(gpu.Batch)
	b.Add(gpu.Span{Dst: dst, Src: src, Len: 64})
	_, err := q.Submit(b, gpu.After{})
	mustBe(t, err, gpu.ErrClosed)
	if err := errors.Join(r.dev.Free(patience(t), src), r.dev.Free(patience(t), dst)); err != nil {
		t.Error(err)
	}
	if err := b.Reset(); err != nil {
		t.Error(err)
	}
}

// freeUnderLoad frees and allocates while others copy: each batch is refused or right.
func freeUnderLoad(t *testing.T, r *rig) {
	const size = 16 << 10
	src, from := r.host(size)
	want := fill(seeded(6), from)
	q := r.queue()
	var mu sync.Mutex
	current := r.alloc(gpu.DeviceMemory, size)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			next, err := r.dev.Alloc(gpu.DeviceMemory, size, 0)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			old := current
			current = next
			mu.Unlock()
			if err := r.dev.Free(patience(t), old); err != nil {
				t.Errorf("free: %v", err)
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	dst, to := r.host(size)
	refused := 0
	for range 100 {
		mu.Lock()
		dev := current
		mu.Unlock()
		there, back := new(gpu.Batch), new(gpu.Batch)
		there.Add(gpu.Span{Dst: dev, Src: src, Len: size})
		back.Add(gpu.Span{Dst: dst, Src: dev, Len: size})
		_, err := q.Submit(there, gpu.After{})
		var f gpu.Fence
		if err == nil {
			f, err = q.Submit(back, gpu.After{})
		}
		if errors.Is(err, gpu.ErrStale) {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		r.wait(f)
		r.same(to, want, "what came back")
		clear(to)
	}
	t.Logf("%d of 100 refused", refused)
}

// closeInFlight: a close that gives up leaves everything as it is.
func closeInFlight(t *testing.T, r *rig) {
	const size = 4 << 10
	src, from := r.host(size)
	dst, to := r.host(size)
	q := r.queue()
	want := fill(seeded(1), from)
	release := r.hold()
	f := r.submit(q, gpu.After{}, gpu.Span{Dst: dst, Src: src, Len: size})
	mustBe(t, r.dev.Close(hurry()), gpu.ErrInFlight)
	_, err := q.Submit(new(gpu.Batch), gpu.After{})
	mustBe(t, err, gpu.ErrClosed)
	_, err = r.dev.Alloc(gpu.HostMemory, size, 0)
	mustBe(t, err, gpu.ErrClosed)
	_, err = r.dev.NewQueue()
	mustBe(t, err, gpu.ErrClosed)
	release()
	r.wait(f)
	r.same(to, want, "the destination")
}

// partFails: a batch of which a part was copied has failed, and so has what was to follow.
func partFails(t *testing.T, r *rig) {
	const size = 64 << 10
	src, from := r.host(size)
	dst, to := r.host(size)
	q, other := r.queue(), r.queue()
	want := fill(seeded(1), from)
	var spans []gpu.Span
	for off := uint64(0); off < size; off += 8 << 10 {
		spans = append(spans, gpu.Span{Dst: dst, DstOff: off, Src: src, SrcOff: off, Len: 4 << 10})
	}
	r.FailNext()
	f := r.submit(q, gpu.After{}, spans...)
	if err := f.Wait(patience(t)); err == nil || errors.Is(err, gpu.ErrInFlight) || errors.Is(err, gpu.ErrLost) {
		t.Fatalf("a batch that failed: %v", err)
	}
	if o := f.Outcome(); o.Bytes != 0 || o.Err == nil {
		t.Errorf("outcome %+v of a batch that failed", o)
	}
	_, err := other.Submit(new(gpu.Batch), gpu.After{Fences: []gpu.Fence{f}})
	mustBe(t, err, gpu.ErrDependency)
	f = r.submit(q, gpu.After{}, gpu.Span{Dst: dst, Src: src, Len: size})
	r.wait(f)
	r.same(to, want, "the destination")
	if s := r.dev.Stats(); s.Failed != 1 || s.Refused != 1 || s.Bytes != size {
		t.Errorf("%+v", s)
	}
}

// lost: everything in flight fails, nothing new starts, and all of it ends.
func lost(t *testing.T, r *rig) {
	const size = 4 << 10
	src, _ := r.host(size)
	dst, _ := r.host(size)
	dev := r.alloc(gpu.DeviceMemory, size)
	q, other := r.queue(), r.queue()
	r.hold()
	first := r.submit(q, gpu.After{}, gpu.Span{Dst: dev, Src: src, Len: size})
	fences := []gpu.Fence{first,
		r.submit(q, gpu.After{}, gpu.Span{Dst: dst, Src: dev, Len: size}),
		r.submit(other, gpu.After{Fences: []gpu.Fence{first}}, gpu.Span{Dst: dst, Src: dev, Len: size}),
	}
	r.Lose()
	for _, f := range fences {
		mustBe(t, f.Wait(patience(t)), gpu.ErrLost)
		if o := f.Outcome(); o.Bytes != 0 {
			t.Errorf("%d bytes are done on a lost device", o.Bytes)
		}
	}
	mustBe(t, r.dev.Lost(), gpu.ErrLost)
	_, err := q.Submit(new(gpu.Batch), gpu.After{})
	mustBe(t, err, gpu.ErrLost)
	_, err = r.dev.Alloc(gpu.DeviceMemory, size, 0)
	mustBe(t, err, gpu.ErrLost)
	_, err = r.dev.NewQueue()
	mustBe(t, err, gpu.ErrLost)
	mustBe(t, r.dev.Free(patience(t), dst), gpu.ErrLost)
}
