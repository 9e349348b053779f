//go:build cgo && linux

package cuda

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// pair is a device on the newest fake with host memory at both ends of a queue.
type pair struct {
	d        *driver
	driver   *Device
	dev      *gpu.Device
	q        *gpu.Queue
	src, dst gpu.Region
	from, to []byte
}

func newPair(t *testing.T, d *driver, size uint64) *pair {
	t.Helper()
	p := &pair{d: d, driver: d.open(t, Config{})}
	p.dev = gpu.New(p.driver, gpu.Config{})
	var err, err2, err3 error
	p.src, err = p.dev.Alloc(gpu.HostMemory, size, 0)
	p.dst, err2 = p.dev.Alloc(gpu.HostMemory, size, 0)
	p.q, err3 = p.dev.NewQueue()
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	src, _ := p.dev.Memory(p.src)
	dst, _ := p.dev.Memory(p.dst)
	p.from, p.to = src.Host, dst.Host
	for i := range p.from {
		p.from[i], p.to[i] = byte(i*7+i>>8), 0xee
	}
	return p
}

// spans are n pieces that do not merge.
func (p *pair) spans(n uint64) *gpu.Batch {
	b := new(gpu.Batch)
	for i := range n {
		b.Add(gpu.Span{Dst: p.dst, DstOff: i * 64, Src: p.src, SrcOff: i * 128, Len: 64})
	}
	return b
}

func (p *pair) right(t *testing.T, n uint64) {
	t.Helper()
	for i := range n {
		if string(p.to[i*64:][:64]) != string(p.from[i*128:][:64]) {
			t.Fatalf("piece %d is not what was sent", i)
		}
	}
}

func (p *pair) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.dev.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	p.d.clean(t, p.dev.Lost() != nil)
}

func TestAbsent(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cfg   Config
		setup string
		want  string
	}{
		{Config{Library: filepath.Join(dir, "none.so")}, "", "none.so: "},
		{Config{Library: text}, "", "text.so: "},
		{Config{Library: "libm.so.6"}, "", "libm.so.6: it has no cuInit"},
		{Config{Library: modern.Path}, "fail cuInit 1 100", "cuInit: CUDA_ERROR_NO_DEVICE (100)"},
		{Config{Library: modern.Path, Device: 7}, "delay 0", "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"},
		{Config{Library: modern.Path}, "fail cuDevicePrimaryCtxRetain 1 2", "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2)"},
	} {
		modern.Do("reset 13000")
		if c.setup != "" {
			modern.Do("%s", c.setup)
		}
		d, err := Open(c.cfg)
		var absent *AbsentError
		if d != nil || !errors.As(err, &absent) || len(absent.Tried) != 1 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %q: %v", c.cfg, c.setup, err)
		}
	}
}

// TestContextOfThread: a thread that was somebody else's has their context afterwards.
func TestContextOfThread(t *testing.T) {
	p := newPair(t, &drivers[2], 4096)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, theirs := range []string{"0x1234", "(nil)"} {
		modern.Do("setcurrent %s", strings.ReplaceAll(theirs, "(nil)", "0"))
		f, err := p.q.Submit(p.spans(8), gpu.After{})
		if err == nil {
			_, err = p.dev.Alloc(gpu.DeviceMemory, 64, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := modern.Do("current"); got != theirs {
			t.Errorf("the thread has context %s now, and had %s", got, theirs)
		}
		if err := f.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.right(t, 8)
	p.close(t)
	modern.Do("setcurrent 0")
}

// TestRefusedBatchCall: a driver that has the call and refuses it is copied with one by
// one. That is remembered, of copies that are called invalid after some in a row.
func TestRefusedBatchCall(t *testing.T) {
	for code, first := range map[int]int{1: 8, 500: 1, 801: 1} {
		p := newPair(t, &drivers[3], 4096)
		submit := func() {
			t.Helper()
			f, err := p.q.Submit(p.spans(8), gpu.After{})
			if err == nil {
				err = f.Wait(t.Context())
			}
			if err != nil {
				t.Fatalf("code %d: %v", code, err)
			}
			p.right(t, 8)
		}
		for i := range first {
			if i == first-1 && code == 1 { // one that works in between: the count starts again
				modern.Do("reject 0")
				submit()
				modern.Do("reject 1")
				for range first - 1 {
					submit()
				}
			}
			if got := p.driver.Copying(); got == "a loop" {
				t.Errorf("code %d: a loop after %d", code, i)
			}
			modern.Do("reject %d", code)
			submit()
		}
		before := modern.Do("calls")
		if got := p.driver.Copying(); got != "a loop" {
			t.Errorf("code %d: copies by %s, after %s calls", code, got, before)
		}
		modern.Do("reject 0")
		was := modern.Do("copies")
		submit()
		if now := modern.Do("copies"); strings.Fields(now)[0] != strings.Fields(was)[0] {
			t.Errorf("code %d: %s, then %s", code, was, now)
		}
		p.close(t)
	}
}

// TestBadCopyIsNoMissingCall: where one by one fails as well, the batch has failed and the
// call stays in use.
func TestBadCopyIsNoMissingCall(t *testing.T) {
	p := newPair(t, &drivers[3], 4096)
	modern.Do("reject 1")
	modern.Do("fail cuMemcpyAsync 4 1")
	f, err := p.q.Submit(p.spans(8), gpu.After{})
	if err != nil {
		t.Fatal(err)
	}
	err = f.Wait(t.Context())
	var of *Error
	if !errors.As(err, &of) || of.Code != 1 || !strings.Contains(err.Error(), "copy 3 of 8") {
		t.Errorf("%v", err)
	}
	if got := p.driver.Copying(); got != "batch (12.8)" {
		t.Errorf("copies by %s", got)
	}
	p.close(t)
}

// TestNothingStarted: where the driver refuses before any copy, Submit says so and the
// batch may be submitted again.
func TestNothingStarted(t *testing.T) {
	p := newPair(t, &drivers[2], 4096)
	other, err := p.dev.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	modern.Do("hold 1")
	first, err := other.Submit(p.spans(1), gpu.After{})
	if err != nil {
		t.Fatal(err)
	}
	b := p.spans(8)
	after := gpu.After{Fences: []gpu.Fence{first}}
	for _, call := range []string{"cuEventCreate", "cuStreamWaitEvent"} {
		modern.Do("fail %s 1 2", call)
		if _, err := p.q.Submit(b, after); err == nil || !strings.Contains(err.Error(), call) {
			t.Errorf("%s failed: %v", call, err)
		}
	}
	f, err := p.q.Submit(b, after)
	if err != nil {
		t.Fatal(err)
	}
	modern.Do("hold 0")
	if err := f.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.right(t, 8)
	p.close(t)
}

// TestNoEventNoDevice: without an event nothing tells when memory is free again.
func TestNoEventNoDevice(t *testing.T) {
	for _, call := range []string{"cuEventRecord", "cuEventQuery"} {
		p := newPair(t, &drivers[2], 4096)
		modern.Do("fail %s 1 1", call)
		f, err := p.q.Submit(p.spans(8), gpu.After{})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Wait(t.Context()); !errors.Is(err, gpu.ErrLost) {
			t.Errorf("%s failed: %v", call, err)
		}
		if err := p.dev.Free(t.Context(), p.src); !errors.Is(err, gpu.ErrLost) {
			t.Errorf("memory was given back: %v", err)
		}
		p.close(t)
	}
}

// TestRegisterInChunks: one chunk that cannot be registered, and none is left so.
func TestRegisterInChunks(t *testing.T) {
	driver := drivers[2].open(t, Config{Chunk: 4096})
	dev := gpu.New(driver, gpu.Config{})
	mem, err := syscall.Mmap(-1, 0, 5*4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	modern.Do("fail cuMemHostRegister 4 2")
	var of *Error
	if _, err := dev.Register(mem[:4*4096+1], 0); !errors.As(err, &of) || of.Code != 2 {
		t.Errorf("%v", err)
	}
	if got := modern.Do("left"); !strings.Contains(got, " 0 registrations") {
		t.Error(got)
	}
	id, err := dev.Register(mem[:4*4096+1], 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := modern.Do("left"); !strings.Contains(got, " 5 registrations") {
		t.Error(got)
	}
	if _, err := dev.Register(mem[4096:], 0); err == nil {
		t.Error("memory was registered twice")
	}
	if err := dev.Free(t.Context(), id); err != nil {
		t.Error(err)
	}
	mem[0] = 1 // it is still mapped: it is the caller's
	if err := syscall.Munmap(mem); err != nil {
		t.Error(err)
	}
	if err := dev.Close(t.Context()); err != nil {
		t.Error(err)
	}
	drivers[2].clean(t, false)
}

// TestAdopt: an engine's memory is taken when it lies in one allocation of the GPU.
func TestAdopt(t *testing.T) {
	p := newPair(t, &drivers[2], 4096)
	engine, err := p.driver.Alloc(gpu.DeviceMemory, 4096)
	if err != nil {
		t.Fatal(err)
	}
	host, _ := p.dev.Memory(p.src)
	for _, c := range []struct{ addr, size uint64 }{
		{engine.Addr, 4097}, {engine.Addr + 4095, 2}, {engine.Addr, 0}, {engine.Addr + 4096, 1}, {host.Addr, 64}, {engine.Addr, 1<<64 - 1},
	} {
		if _, err := p.dev.Adopt(c.addr, c.size, 0); err == nil {
			t.Errorf("%d bytes at %#x were adopted", c.size, c.addr)
		}
	}
	own, err := p.dev.Alloc(gpu.DeviceMemory, 4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	mem, _ := p.dev.Memory(own)
	for _, off := range []uint64{0, 64} { // of its own: refused, and still freed as it should be
		if _, err := p.dev.Adopt(mem.Addr+off, 64, 0); !errors.Is(err, gpu.ErrOverlap) {
			t.Errorf("its own memory was adopted: %v", err)
		}
	}
	if err := p.dev.Free(t.Context(), own); err != nil {
		t.Error(err)
	}
	if _, err := p.dev.Alloc(gpu.HostMemory, 0, 0); !errors.Is(err, gpu.ErrRange) {
		t.Errorf("no bytes: %v", err)
	}
	id, err := p.dev.Adopt(engine.Addr+64, 1024, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, off, err := p.dev.Locate(engine.Addr+64+1000, 24); got != id || off != 1000 || err != nil {
		t.Errorf("located at %#x, %d: %v", got, off, err)
	}
	if _, _, err := p.dev.Locate(engine.Addr+64+1000, 25); !errors.Is(err, gpu.ErrRange) {
		t.Errorf("located more than is there: %v", err)
	}
	b := new(gpu.Batch)
	b.Add(gpu.Span{Dst: id, Src: p.src, Len: 1024})
	there, err := p.q.Submit(b, gpu.After{})
	if err != nil {
		t.Fatal(err)
	}
	b = new(gpu.Batch)
	b.Add(gpu.Span{Dst: p.dst, Src: id, Len: 1024})
	f, err := p.q.Submit(b, gpu.After{Fences: []gpu.Fence{there}})
	if err == nil {
		err = f.Wait(t.Context())
	}
	if err != nil || string(p.to[:1024]) != string(p.from[:1024]) {
		t.Errorf("there and back: %v", err)
	}
	if err := p.dev.Free(t.Context(), id); err != nil {
		t.Error(err)
	}
	if got := modern.Do("left"); !strings.HasPrefix(got, "1 allocations") {
		t.Errorf("the engine's memory is gone: %s", got)
	}
	if err := p.driver.Release(engine); err != nil {
		t.Error(err)
	}
	p.close(t)
}

// TestEngineEvent: a batch waits for an event that somebody else has recorded: the engine
// is a second user of the GPU.
func TestEngineEvent(t *testing.T) {
	p := newPair(t, &drivers[2], 4096)
	opened, err := Open(Config{Library: modern.Path})
	if err != nil {
		t.Fatal(err)
	}
	engine := opened.(*Device)
	dst, _ := p.dev.Memory(p.dst)
	src, _ := p.dev.Memory(p.src)
	done := make(sink, 1)
	work, err := engine.Stream(done)
	if err != nil {
		t.Fatal(err)
	}
	modern.Do("hold 1")
	// What the batch is to overwrite, if it comes in its turn.
	if _, err := work.Submit(0, gpu.Copies{Dst: []uint64{dst.Addr}, Src: []uint64{src.Addr + 2048}, Size: []uint64{64}}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := p.q.Submit(p.spans(1), gpu.After{Events: []uintptr{work.(*stream).at(0).event}})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(f.Err(), gpu.ErrInFlight) {
		t.Errorf("a batch came before the event: %v", f.Err())
	}
	modern.Do("hold 0")
	if err := f.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	p.right(t, 1)
	if err := errors.Join(work.Close(), engine.Close()); err != nil {
		t.Error(err)
	}
	p.close(t)
}

// sink is sent what became of batches.
type sink chan error

func (s sink) Ended(_ uint64, err error) { s <- err }

// TestIdle: no call is made while nothing is in flight.
func TestIdle(t *testing.T) {
	p := newPair(t, &drivers[2], 4096)
	for range 3 {
		f, err := p.q.Submit(p.spans(8), gpu.After{})
		if err == nil {
			err = f.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := modern.Do("left"); !strings.Contains(got, " 1 events") {
		t.Errorf("events are not used again: %s", got)
	}
	before := modern.Do("calls")
	for range 100 {
		runtime.Gosched()
	}
	if after := modern.Do("calls"); after != before {
		t.Errorf("%s calls, then %s", before, after)
	}
	p.close(t)
}
