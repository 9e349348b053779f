// Package wasi is the stub of WASI preview 1 that stock Go guests, and others whose
// compilers write for WASI, need to start. It is no capability: it reaches nothing but
// the guest's log and the call's clocks, so it needs no grant. There is no file, no
// path, no socket, no argument and no variable.
package wasi

import (
	"encoding/binary"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// Module offers the stub. The zero value is ready.
type Module struct{}

// Name is the import module.
func (Module) Name() string { return abi.ModuleWASI }

// The errnos that the stub gives.
const (
	ok    = 0
	badf  = 8
	fault = 21
	inval = 28
	nosys = 52
	spipe = 70
)

// maxBuffers is how many buffers one write may have.
const maxBuffers = 1024

// Functions lists the host functions.
func (Module) Functions() []runtime.HostFunction {
	has := map[string]func(*runtime.Call, []byte, []uint64) uint64{
		"args_get": nothing, "args_sizes_get": sizes, "environ_get": nothing, "environ_sizes_get": sizes,
		"clock_time_get": clockTime, "clock_res_get": clockRes, "random_get": random, "sched_yield": nothing, "poll_oneoff": poll,
		"fd_write": write, "fd_fdstat_get": fdstat, "fd_fdstat_set_flags": onOutput(ok), "fd_sync": onOutput(ok),
		"fd_seek": onOutput(spipe), "fd_tell": onOutput(spipe),
		"proc_exit": func(c *runtime.Call, _ []byte, stack []uint64) uint64 { c.Exit(uint32(stack[0])); return ok },
	}
	calls := map[string]func(*runtime.Call, []byte, []uint64){}
	for _, f := range abi.Contract().Stubs {
		call := has[f.Name]
		switch {
		case call != nil:
		case f.Name[:3] == "fd_":
			call = always(badf)
		default:
			call = always(nosys)
		}
		calls[f.Name] = func(c *runtime.Call, mem []byte, stack []uint64) { stack[0] = call(c, mem, stack) }
	}
	return runtime.Functions(abi.ModuleWASI, calls)
}

func always(errno uint64) func(*runtime.Call, []byte, []uint64) uint64 {
	return func(*runtime.Call, []byte, []uint64) uint64 { return errno }
}

func nothing(*runtime.Call, []byte, []uint64) uint64 { return ok }

// output tells whether a file descriptor is one of the two that there are.
func output(fd uint64) bool { return uint32(fd) == 1 || uint32(fd) == 2 }

func onOutput(errno uint64) func(*runtime.Call, []byte, []uint64) uint64 {
	return func(_ *runtime.Call, _ []byte, stack []uint64) uint64 {
		if !output(stack[0]) {
			return badf
		}
		return errno
	}
}

// run returns n bytes of memory at off, of which the lower 32 bits count; false when
// they do not lie in it.
func run(mem []byte, off, n uint64) ([]byte, bool) {
	at := uint64(uint32(off))
	if at > uint64(len(mem)) || n > uint64(len(mem))-at {
		return nil, false
	}
	return mem[at : at+n : at+n], true
}

// sizes says that there are 0 strings of 0 bytes.
func sizes(_ *runtime.Call, mem []byte, stack []uint64) uint64 {
	count, ok1 := run(mem, stack[0], 4)
	bytes, ok2 := run(mem, stack[1], 4)
	if !ok1 || !ok2 {
		return fault
	}
	clear(count)
	clear(bytes)
	return ok
}

// now reads a clock. 2 and 3 are those of the process and the thread.
func now(c *runtime.Call, id uint32) (int64, bool) {
	switch id {
	case 0:
		return c.Now(), true
	case 1, 2, 3:
		return c.Monotonic(), true
	}
	return 0, false
}

func clockTime(c *runtime.Call, mem []byte, stack []uint64) uint64 {
	ns, known := now(c, uint32(stack[0]))
	if !known {
		return inval
	}
	to, in := run(mem, stack[2], 8)
	if !in {
		return fault
	}
	binary.LittleEndian.PutUint64(to, uint64(ns))
	return ok
}

func clockRes(_ *runtime.Call, mem []byte, stack []uint64) uint64 {
	if uint32(stack[0]) > 3 {
		return inval
	}
	to, in := run(mem, stack[1], 8)
	if !in {
		return fault
	}
	binary.LittleEndian.PutUint64(to, 1)
	return ok
}

func random(c *runtime.Call, mem []byte, stack []uint64) uint64 {
	to, in := run(mem, stack[0], uint64(uint32(stack[1])))
	if !in {
		return fault
	}
	if !c.ChargeCopy(uint64(len(to))) {
		return inval // the guest is stopped
	}
	c.Random(to)
	return ok
}

func fdstat(_ *runtime.Call, mem []byte, stack []uint64) uint64 {
	if !output(stack[0]) {
		return badf
	}
	to, in := run(mem, stack[1], 24)
	if !in {
		return fault
	}
	clear(to)
	to[0] = 2      // a character device
	to[8] = 1 << 6 // that may be written to
	return ok
}

// write is fd_write. All is checked and charged before the first byte is written.
func write(c *runtime.Call, mem []byte, stack []uint64) uint64 {
	if !output(stack[0]) {
		return badf
	}
	n := uint64(uint32(stack[2]))
	if n > maxBuffers {
		return inval
	}
	list, in := run(mem, stack[1], 8*n)
	written, in2 := run(mem, stack[3], 4)
	if !in || !in2 {
		return fault
	}
	var total uint64
	for i := range n {
		length := uint64(binary.LittleEndian.Uint32(list[8*i+4:]))
		if _, in := run(mem, uint64(binary.LittleEndian.Uint32(list[8*i:])), length); !in {
			return fault
		}
		total += length
	}
	if total >= 1<<32 || !c.ChargeCopy(total+64*n) {
		return inval
	}
	level := abi.LevelInfo
	if uint32(stack[0]) == 2 {
		level = abi.LevelWarn
	}
	for i := range n {
		text, _ := run(mem, uint64(binary.LittleEndian.Uint32(list[8*i:])), uint64(binary.LittleEndian.Uint32(list[8*i+4:])))
		c.Print(level, text)
	}
	binary.LittleEndian.PutUint32(written, uint32(total))
	return ok
}
