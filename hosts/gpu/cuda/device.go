//go:build cgo && linux

package cuda

/*
#cgo LDFLAGS: -ldl
#cgo CFLAGS: -O2 -Wall
#cgo noescape kv_cuda_submit
#cgo nocallback kv_cuda_submit
#cgo noescape kv_cuda_poll
#cgo nocallback kv_cuda_poll
#cgo nocallback kv_cuda_nothing
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// Device implements gpu.Driver and gpu.Adopter.
type Device struct {
	cfg  Config
	cuda *C.kv_cuda
	info gpu.Info

	mu      sync.Mutex // of submissions, events and streams
	wake    *sync.Cond // of the poller
	streams []*stream
	flying  int       // batches
	events  []uintptr // to be used again
	lost    error
	closed  bool
	polling chan struct{} // closed when the poller has ended

	memory sync.Mutex
	owned  map[uint64]owned // by address
}

// owned is what has to be undone for memory.
type owned struct {
	chunks []uint64 // addresses of registrations
	mapped []byte
	alloc  bool
}

// places are where drivers put libcuda, beside what the loader knows.
func places() []string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return []string{
		"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1",
		"/usr/lib/" + arch + "-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
	}
}

// Open opens a GPU. It fails with an *AbsentError where there is none.
func Open(cfg Config) (gpu.Driver, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	paths := places()
	if cfg.Library != "" {
		paths = []string{cfg.Library}
	}
	absent := &AbsentError{}
	for _, path := range paths {
		cuda, why := load(path)
		if cuda == nil {
			absent.Tried = append(absent.Tried, path+": "+why)
			continue
		}
		d := &Device{cfg: cfg, cuda: cuda, polling: make(chan struct{}), owned: make(map[uint64]owned)}
		d.wake = sync.NewCond(&d.mu)
		var call *C.char
		if code := C.kv_cuda_start(cuda, C.int(cfg.Device), &call); code != 0 {
			absent.Tried = append(absent.Tried, path+": "+d.failure(C.GoString(call), code).Error())
			continue
		}
		version := int(C.kv_cuda_version(cuda))
		d.info = gpu.Info{
			Driver: "cuda", Name: C.GoString(C.kv_cuda_name(cuda)), Memory: uint64(C.kv_cuda_memory(cuda)),
			Detail: fmt.Sprintf("%s, driver for CUDA %d.%d, copies by %s", path, version/1000, version%1000/10, d.Copying()),
		}
		go d.poll()
		return d, nil
	}
	return nil, absent
}

func load(path string) (*C.kv_cuda, string) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why [512]C.char
	cuda := C.kv_cuda_load(name, &why[0], C.size_t(len(why)))
	return cuda, strings.TrimPrefix(C.GoString(&why[0]), path+": ")
}

// Info describes the GPU.
func (d *Device) Info() gpu.Info { return d.info }

// Copying tells how batches are copied now: a driver may turn out to refuse its own way.
func (d *Device) Copying() string {
	switch C.kv_cuda_batch(d.cuda) {
	case 12:
		return "batch (12.8)"
	case 13:
		return "batch (13)"
	}
	return "a loop"
}

// failure makes an error of a code; nil of 0.
func (d *Device) failure(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	err := error(&Error{call, int(code), C.GoString(C.kv_cuda_error(d.cuda, code))})
	if fatal(int(code)) {
		return fmt.Errorf("%w: %w", gpu.ErrLost, err)
	}
	return err
}

// Alloc makes memory on the GPU, or on the host and registered.
func (d *Device) Alloc(kind gpu.Kind, size uint64) (gpu.Memory, error) {
	if size == 0 || size > 1<<46 {
		return gpu.Memory{}, fmt.Errorf("%d bytes of memory: %w", size, gpu.ErrRange)
	}
	if kind == gpu.DeviceMemory {
		var addr C.uint64_t
		if err := d.failure("cuMemAlloc", C.kv_cuda_alloc(d.cuda, C.uint64_t(size), &addr)); err != nil {
			return gpu.Memory{}, fmt.Errorf("%d bytes of GPU memory: %w", size, err)
		}
		d.own(uint64(addr), owned{alloc: true})
		return gpu.Memory{Kind: kind, Addr: uint64(addr), Size: size}, nil
	}
	page := uint64(os.Getpagesize())
	b, err := syscall.Mmap(-1, 0, int((size+page-1)/page*page), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return gpu.Memory{}, fmt.Errorf("map %d bytes: %w", size, err)
	}
	m, err := d.register(b[:size], b)
	if err != nil {
		return gpu.Memory{}, errors.Join(err, syscall.Munmap(b))
	}
	return m, nil
}

// Register registers memory of the caller.
func (d *Device) Register(host []byte) (gpu.Memory, error) { return d.register(host, nil) }

func (d *Device) register(host, mapped []byte) (gpu.Memory, error) {
	if len(host) == 0 {
		return gpu.Memory{}, fmt.Errorf("no bytes of memory: %w", gpu.ErrRange)
	}
	m := gpu.Memory{Kind: gpu.HostMemory, Addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(host)))), Size: uint64(len(host)), Host: host}
	if m.Size > d.cfg.Chunk {
		m.Chunk = d.cfg.Chunk
	}
	o := owned{mapped: mapped}
	for off := uint64(0); off < m.Size; off += d.cfg.Chunk {
		addr := m.Addr + off
		if err := d.failure("cuMemHostRegister", C.kv_cuda_register(d.cuda, C.uint64_t(addr), C.uint64_t(min(d.cfg.Chunk, m.Size-off)))); err != nil {
			return gpu.Memory{}, fmt.Errorf("register %d bytes of host memory: %w", m.Size, errors.Join(err, d.unregister(o.chunks)))
		}
		o.chunks = append(o.chunks, addr)
	}
	d.own(m.Addr, o)
	return m, nil
}

func (d *Device) unregister(chunks []uint64) error {
	var errs []error
	for _, addr := range chunks {
		errs = append(errs, d.failure("cuMemHostUnregister", C.kv_cuda_unregister(d.cuda, C.uint64_t(addr))))
	}
	return errors.Join(errs...)
}

// Adopt takes GPU memory of another owner, of one allocation.
func (d *Device) Adopt(addr, size uint64) (gpu.Memory, error) {
	var base, n C.uint64_t
	if err := d.failure("cuMemGetAddressRange", C.kv_cuda_range(d.cuda, C.uint64_t(addr), &base, &n)); err != nil {
		return gpu.Memory{}, fmt.Errorf("%d bytes at %#x are no memory of this GPU: %w", size, addr, err)
	}
	if off := addr - uint64(base); size == 0 || size > uint64(n)-off {
		return gpu.Memory{}, fmt.Errorf("%d bytes at %#x, where the allocation has %d left: %w", size, addr, uint64(n)-off, gpu.ErrRange)
	}
	d.memory.Lock()
	defer d.memory.Unlock()
	if _, ok := d.owned[addr]; ok {
		return gpu.Memory{}, fmt.Errorf("%d bytes at %#x are registered already: %w", size, addr, gpu.ErrOverlap)
	}
	d.owned[addr] = owned{}
	return gpu.Memory{Kind: gpu.DeviceMemory, Addr: addr, Size: size}, nil
}

func (d *Device) own(addr uint64, o owned) {
	d.memory.Lock()
	d.owned[addr] = o
	d.memory.Unlock()
}

// Release undoes Alloc, Register and Adopt. Host memory whose registration cannot be undone
// stays mapped.
func (d *Device) Release(m gpu.Memory) error {
	d.memory.Lock()
	o, ok := d.owned[m.Addr]
	delete(d.owned, m.Addr)
	d.memory.Unlock()
	switch {
	case !ok:
		return fmt.Errorf("release %d bytes at %#x: %w", m.Size, m.Addr, gpu.ErrStale)
	case o.alloc:
		return d.failure("cuMemFree", C.kv_cuda_free(d.cuda, C.uint64_t(m.Addr)))
	}
	if err := d.unregister(o.chunks); err != nil || o.mapped == nil {
		return err
	}
	return syscall.Munmap(o.mapped)
}

// Close ends the poller and gives the context back. Other users of it are not disturbed.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.wake.Signal()
	d.mu.Unlock()
	<-d.polling
	var errs []error
	if d.lost == nil {
		for _, e := range d.events {
			errs = append(errs, d.failure("cuEventDestroy", C.kv_cuda_event_end(d.cuda, C.uintptr_t(e))))
		}
	}
	errs = append(errs, d.failure("cuDevicePrimaryCtxRelease", C.kv_cuda_stop(d.cuda)))
	if d.lost != nil {
		return nil // what a dead device says is no news
	}
	return errors.Join(errs...)
}
