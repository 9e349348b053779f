// Package clock is the capability kvrt_clock. Both clocks are read at most once a
// call and stay the same throughout it, so that a recorded call can be replayed.
package clock

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// Module offers kvrt_clock. The zero value is ready.
type Module struct{}

// Name is the import module.
func (Module) Name() string { return abi.ModuleClock }

// Functions lists the host functions.
func (Module) Functions() []runtime.HostFunction {
	return runtime.Functions(abi.ModuleClock, map[string]func(*runtime.Call, []byte, []uint64){
		"now":       func(c *runtime.Call, _ []byte, stack []uint64) { stack[0] = uint64(c.Now()) },
		"monotonic": func(c *runtime.Call, _ []byte, stack []uint64) { stack[0] = uint64(c.Monotonic()) },
	})
}
