// Package cuda is a device on NVIDIA GPUs, through the CUDA driver.
//
// Building it takes a C compiler and nothing of CUDA: a shim of one C file opens libcuda at
// run time and declares what it calls. Without cgo, or on another system than Linux, the
// package builds too, and Open says that there is no CUDA.
//
// A submission is one call into C, which sets the device's context, makes the stream wait,
// hands over the copies (as a batch, by either of the driver's two interfaces, or one by one
// where there is none), records an event and restores the thread's context. So goroutines
// need not be bound to threads. One goroutine asks for the events of all streams, and only
// while something is in flight.
//
// Tests run on package fakecuda's driver: every device's suite (gputest), and the one of blocks
// that a store has (tier/tiertest), over drivers of five kinds, with the race detector and
// with the address sanitizer. scripts/gpu-check runs both suites and a table of copies on a
// real GPU: that shows that the calls mean to a real driver what the fake one takes them
// for, and that all bytes are right there. Faults, late and shuffled copies and a lost
// device are shown on the fake one only.
package cuda

import (
	"fmt"
	"strings"
)

// Config configures a Device. The zero value is usable.
type Config struct {
	Library string // path of libcuda; default: where drivers are installed
	Device  int    // number of the GPU
	// Chunk is how many bytes of host memory are registered at a time: the driver holds
	// locks meanwhile that other processes wait for. A multiple of 4096; default 1 GiB.
	Chunk uint64
}

func (c *Config) fill() error {
	if c.Chunk == 0 {
		c.Chunk = 1 << 30
	}
	if c.Chunk%4096 != 0 {
		return fmt.Errorf("registering %d bytes at a time: give a multiple of 4096", c.Chunk)
	}
	return nil
}

// AbsentError says that there is no CUDA here, and what was tried.
type AbsentError struct{ Tried []string }

func (e *AbsentError) Error() string { return "no CUDA device here: " + strings.Join(e.Tried, "; ") }

// Error is an error of the driver.
type Error struct {
	Call string
	Code int    // CUresult
	Name string // of the code
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code) }

// fatal says whether a code means that the context will never work again.
func fatal(code int) bool {
	switch code {
	case 4, // the driver is shutting down
		46,                 // device unavailable
		201,                // the context, which is set in each call, is none any more
		214, 220, 226, 227, // memory or link errors that cannot be corrected
		700, 702, 709, 710, 714, 715, 716, 717, 718, 719, // faults; they stay
		999:
		return true
	}
	return false
}
