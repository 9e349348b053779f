//go:build cgo && linux

package cuda

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// submitter is a queue on a driver whose copies take no time, and a batch for it.
func submitter(tb testing.TB, spans uint64, drv *driver) (dev *gpu.Device, submit func()) {
	d := drv.open(tb, Config{})
	modern.Do("instant 1")
	dev = gpu.New(d, gpu.Config{Depth: 256})
	host, err := dev.Alloc(gpu.HostMemory, spans*128, 0)
	if err != nil {
		tb.Fatal(err)
	}
	mem, err := dev.Alloc(gpu.DeviceMemory, spans*64, 0)
	if err != nil {
		tb.Fatal(err)
	}
	q, err := dev.NewQueue()
	if err != nil {
		tb.Fatal(err)
	}
	// Batches are used in turn, and one is waited for before it is used again.
	var batches [128]gpu.Batch
	var fences [len(batches)]gpu.Fence
	for i := range batches {
		for j := range spans {
			at := (j*769 + 1) % spans // in no order; the source leaves gaps, so nothing merges
			batches[i].Add(gpu.Span{Dst: mem, DstOff: at * 64, Src: host, SrcOff: at * 128, Len: 64})
		}
	}
	i := 0
	return dev, func() {
		if i = (i + 1) % len(batches); fences[i] != (gpu.Fence{}) {
			if err := fences[i].Wait(context.Background()); err != nil {
				tb.Fatal(err)
			}
		}
		var err error
		if fences[i], err = q.Submit(&batches[i], gpu.After{}); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestSubmitAllocatesNothing(t *testing.T) {
	for _, d := range drivers[1:] {
		for _, spans := range []uint64{1, 1024} {
			dev, submit := submitter(t, spans, &d)
			for range 300 {
				submit()
			}
			settle(dev)
			// The end of a batch counts, too.
			if n := testing.AllocsPerRun(60, func() { submit(); settle(dev) }); n != 0 {
				t.Errorf("%s, %d spans: %v allocations", d.name, spans, n)
			}
			if err := dev.Close(t.Context()); err != nil {
				t.Error(err)
			}
			d.clean(t, false)
		}
	}
}

// settle waits until all that was submitted has ended.
func settle(dev *gpu.Device) {
	for s := dev.Stats(); s.Submitted != s.Ended; s = dev.Stats() {
		runtime.Gosched()
	}
}

// BenchmarkSubmit: batches whose copies take no time in the driver and end later, as on a
// GPU that is busy; their ends are not timed.
func BenchmarkSubmit(b *testing.B) {
	for _, d := range []*driver{&drivers[3], &drivers[1]} {
		for _, spans := range []uint64{1, 1024} {
			b.Run(fmt.Sprintf("%s/spans=%d", map[bool]string{true: "loop", false: "batch"}[d.want == "a loop"], spans), func(b *testing.B) {
				dev, submit := submitter(b, spans, d)
				for range 300 {
					submit()
				}
				settle(dev)
				modern.Do("hold 1")
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					if n == 120 {
						b.StopTimer()
						modern.Do("hold 0")
						settle(dev)
						modern.Do("hold 1")
						n = 0
						b.StartTimer()
					}
					submit()
				}
				b.StopTimer()
				modern.Do("hold 0")
				if err := dev.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkBareCall is a call into C that does nothing.
func BenchmarkBareCall(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		nothing()
	}
}
