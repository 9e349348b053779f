package hostmem_test

import (
	"runtime"
	"testing"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
)

func TestSubmitAllocatesNothing(t *testing.T) {
	dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
	src, err := dev.Alloc(gpu.HostMemory, 1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	dst, err := dev.Alloc(gpu.DeviceMemory, 1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	q, err := dev.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	b := new(gpu.Batch)
	for i := range uint64(256) {
		b.Add(gpu.Span{Dst: dst, DstOff: i << 12, Src: src, SrcOff: (255 - i) << 12, Len: 4096})
	}
	if n := testing.AllocsPerRun(50, func() {
		f, err := q.Submit(b, gpu.After{})
		if err != nil {
			t.Fatal(err)
		}
		for f.Err() != nil {
			runtime.Gosched()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := dev.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
