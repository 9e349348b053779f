// Package hostmem is a device without hardware: its memory is the host's, and its copies
// are made by goroutines of this process. It is the default, and the one that the others
// are held against.
//
// For tests it can be as awkward as hardware is: with a Gate, copies are made when the
// test says so, and with a Seed the copies of a batch are made in a random order.
package hostmem

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// Config configures a Device. The zero value is usable.
type Config struct {
	// Workers share the copies of a large batch; default: one for each core but one, from
	// 1 to 4.
	Workers int

	Seed uint64 // when not 0, the copies of a batch are shuffled
	// Gate, when set, is called before the copies of each batch, on the stream's own
	// goroutine, and holds the stream up until it returns. An error of it becomes the
	// batch's, half of which is copied by then.
	Gate func() error
}

// Device implements gpu.Driver.
type Device struct {
	cfg Config

	mu     sync.RWMutex
	ranges []span // by address
	lost   error
}

// span is memory by its address.
type span struct {
	addr   uint64
	mem    []byte
	mapped bool // here, and so unmapped here
}

// New makes a device.
func New(cfg Config) *Device {
	if cfg.Workers <= 0 {
		cfg.Workers = min(max(runtime.GOMAXPROCS(0)-1, 1), 4)
	}
	return &Device{cfg: cfg}
}

// Info describes it.
func (d *Device) Info() gpu.Info {
	return gpu.Info{Driver: "hostmem", Name: "host memory", Detail: fmt.Sprintf("copies by up to %d goroutines a queue", d.cfg.Workers)}
}

// maxSize bounds what is mapped at a time, so that a size fits an int everywhere.
const maxSize = 1 << 46

// Alloc maps memory. Both kinds are the host's.
func (d *Device) Alloc(kind gpu.Kind, size uint64) (gpu.Memory, error) {
	if size == 0 || size > maxSize {
		return gpu.Memory{}, fmt.Errorf("%d bytes of memory: %w", size, gpu.ErrRange)
	}
	page := uint64(os.Getpagesize())
	b, err := syscall.Mmap(-1, 0, int((size+page-1)/page*page), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return gpu.Memory{}, fmt.Errorf("map %d bytes: %w", size, err)
	}
	m := gpu.Memory{Kind: kind, Addr: addressOf(b), Size: size}
	if kind == gpu.HostMemory {
		m.Host = b[:size]
	}
	return m, d.add(span{m.Addr, b, true})
}

// Register takes memory of the caller.
func (d *Device) Register(host []byte) (gpu.Memory, error) {
	if len(host) == 0 {
		return gpu.Memory{}, fmt.Errorf("no bytes of memory: %w", gpu.ErrRange)
	}
	m := gpu.Memory{Kind: gpu.HostMemory, Addr: addressOf(host), Size: uint64(len(host)), Host: host}
	return m, d.add(span{m.Addr, host, false})
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func (d *Device) add(s span) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, found := d.find(s.addr)
	if found || i < len(d.ranges) && d.ranges[i].addr-s.addr < uint64(len(s.mem)) || i > 0 && s.addr-d.ranges[i-1].addr < uint64(len(d.ranges[i-1].mem)) {
		return fmt.Errorf("%d bytes at %#x are registered already: %w", len(s.mem), s.addr, gpu.ErrOverlap)
	}
	d.ranges = slices.Insert(d.ranges, i, s)
	return nil
}

// find is for those who hold mu.
func (d *Device) find(addr uint64) (int, bool) {
	return slices.BinarySearchFunc(d.ranges, addr, func(s span, a uint64) int { return cmp.Compare(s.addr, a) })
}

// Release takes memory back, and unmaps what was mapped here.
func (d *Device) Release(m gpu.Memory) error {
	d.mu.Lock()
	i, found := d.find(m.Addr)
	if !found {
		d.mu.Unlock()
		return fmt.Errorf("release %d bytes at %#x: %w", m.Size, m.Addr, gpu.ErrStale)
	}
	s := d.ranges[i]
	d.ranges = slices.Delete(d.ranges, i, i+1)
	d.mu.Unlock()
	if s.mapped {
		return syscall.Munmap(s.mem)
	}
	return nil
}

// Peek copies device memory out, for tests and behind the back of every queue.
func (d *Device) Peek(m gpu.Memory) []byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	i, found := d.find(m.Addr)
	if !found {
		return nil
	}
	return slices.Clone(d.ranges[i].mem[:m.Size])
}

// resolve finds the bytes of n at an address, near a range that was found before.
func (d *Device) resolve(addr, n uint64, last *span) ([]byte, error) {
	if addr-last.addr >= uint64(len(last.mem)) {
		i, found := d.find(addr)
		if !found {
			i--
		}
		if i < 0 || addr-d.ranges[i].addr >= uint64(len(d.ranges[i].mem)) {
			return nil, fmt.Errorf("copy at %#x: %w", addr, gpu.ErrStale)
		}
		*last = d.ranges[i]
	}
	off := addr - last.addr
	if n > uint64(len(last.mem))-off {
		return nil, fmt.Errorf("copy of %d bytes at %#x: %w", n, addr, gpu.ErrRange)
	}
	return last.mem[off : off+n], nil
}

// Close ends the device and unmaps what is left, unless it was lost.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return nil
	}
	var errs []error
	for _, s := range d.ranges {
		if s.mapped {
			errs = append(errs, syscall.Munmap(s.mem))
		}
	}
	d.ranges = nil
	return errors.Join(errs...)
}
