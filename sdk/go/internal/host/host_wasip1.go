package host

import (
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

//go:wasmimport kvrt_log enabled
func logEnabled(level uint32) int32

//go:wasmimport kvrt_log write
//go:noescape
func logWrite(level uint32, msg unsafe.Pointer, n uint32)

//go:wasmimport kvrt_clock now
func clockNow() int64

//go:wasmimport kvrt_clock monotonic
func clockMonotonic() int64

//go:wasmimport kvrt_fetch submit
//go:noescape
func fetchSubmit(source unsafe.Pointer, sourceLen uint32, hashes unsafe.Pointer, count, flags uint32) int32

//go:wasmimport kvrt_fetch discard
func fetchDiscard() int32

//go:wasmimport kvrt_fetch finish
func fetchFinish(aborted uint32) int32

// Log writes a line.
func Log(level abi.Level, line string) {
	logWrite(uint32(level), unsafe.Pointer(unsafe.StringData(line)), uint32(len(line)))
}

// Logs asks for a level.
func Logs(level abi.Level) bool { return logEnabled(uint32(level)) != 0 }

// Now reads the wall clock.
func Now() int64 { return clockNow() }

// Monotonic reads the monotonic clock.
func Monotonic() int64 { return clockMonotonic() }

// Fetch submits a hint.
func Fetch(source string, hashes []uint64, flags abi.FetchFlag) int32 {
	var from unsafe.Pointer
	if source != "" {
		from = unsafe.Pointer(unsafe.StringData(source))
	}
	return fetchSubmit(from, uint32(len(source)), unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)), uint32(flags))
}

// Discard drops the request's hint.
func Discard() int32 { return fetchDiscard() }

// Finish ends the request.
func Finish(aborted bool) int32 { return fetchFinish(uint32(abi.Bool(aborted).Val)) }
