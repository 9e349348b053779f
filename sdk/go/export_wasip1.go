package kvrt

import (
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

// arena is what the host writes frames into. The heap does not move, so it lies where
// it lies until a larger one takes its place.
var arena []uint64

// record is what an answer without a body is written into.
var record [(abi.SizeAnswer + abi.MaxDetail + 8) / 8]uint64

// firstArena is what the arena has at least, in bytes: few frames are larger.
const firstArena = 64 << 10

// No collection begins by itself from here on: it would take the fuel of the call that
// it begins in. What calls leave behind is collected in kvrt_idle.
func init() { debug.SetGCPercent(-1) }

//go:wasmexport kvrt_abi_1
func exportABI() {}

//go:wasmexport kvrt_arena
func exportArena(size uint32) int64 {
	if max(int(size), 0) > max(registered.MaxFrame, firstArena) {
		return 0
	}
	if int(size) > 8*len(arena) {
		n := firstArena
		for n < int(size) {
			n *= 2
		}
		arena = make([]uint64, n/8)
	}
	return place(unsafe.Pointer(&arena[0]), 8*len(arena))
}

func place(p unsafe.Pointer, n int) int64 { return int64(uintptr(p))<<32 | int64(n) }

// frame is what the host has written.
func frame(off, n uint32) []byte {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&arena[0])), 8*len(arena))
	from := off - uint32(uintptr(unsafe.Pointer(&arena[0])))
	return b[from : from+n : from+n]
}

// result returns an answer to the host.
func result(a Answer) int64 {
	number, rec := a.Result(unsafe.Slice((*byte)(unsafe.Pointer(&record)), 8*len(record)))
	if rec == nil {
		return number
	}
	return place(unsafe.Pointer(unsafe.SliceData(rec)), len(rec))
}

//go:wasmexport kvrt_init
func exportInit(off, n uint32) int64 {
	a := registered.Start(frame(off, n))
	spare = make([]byte, registered.Heap)
	spare = nil
	runtime.GC()
	if a.Accepted() && registered.Features != 0 {
		rec := abi.AppendAnswer(unsafe.Slice((*byte)(unsafe.Pointer(&record)), 8*len(record))[:0], abi.Answer{Status: abi.StatusAccepted, Features: registered.Features})
		return place(unsafe.Pointer(unsafe.SliceData(rec)), len(rec))
	}
	return result(a)
}

// spare is heap that is set free again, for calls to come. That it is a variable keeps
// the compiler from leaving it out.
var spare []byte

//go:wasmexport kvrt_handle
func exportHandle(off, n, position uint32) int64 {
	return result(registered.CallHandle(frame(off, n), int(position)))
}

//go:wasmexport kvrt_parse
func exportParse(off, n uint32) int64 { return result(registered.CallParse(frame(off, n))) }

//go:wasmexport kvrt_formulate
func exportFormulate(off, n uint32) int64 { return result(registered.CallFormulate(frame(off, n))) }

//go:wasmexport kvrt_idle
func exportIdle() {
	if cap(answers) > DefaultMaxFrame {
		answers = nil
	}
	runtime.GC()
}
