//go:build cgo && linux

package cuda

// #include "shim.h"
import "C"

import (
	"time"
	"unsafe"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// Bare makes copies on a stream of its own with nothing around the driver's calls, waits for
// them and tells how long that took: what batches are measured against. With batch they are
// one call, where the driver has it; else one call each.
func (d *Device) Bare(c gpu.Copies, batch bool) (time.Duration, error) {
	var s C.uintptr_t
	if err := d.failure("cuStreamCreate", C.kv_cuda_stream(d.cuda, &s)); err != nil {
		return 0, err
	}
	var ns C.uint64_t
	whole := C.int(0)
	if batch {
		whole = 1
	}
	code := C.kv_cuda_bare(d.cuda, s, (*C.uint64_t)(unsafe.SliceData(c.Dst)), (*C.uint64_t)(unsafe.SliceData(c.Src)), (*C.uint64_t)(unsafe.SliceData(c.Size)),
		C.size_t(len(c.Dst)), whole, &ns)
	if err := d.failure("bare copies", code); err != nil {
		return 0, err
	}
	return time.Duration(ns), d.failure("cuStreamDestroy", C.kv_cuda_stream_end(d.cuda, s))
}

// nothing is a call into C and no more.
func nothing() { C.kv_cuda_nothing() }
