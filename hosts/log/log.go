// Package log is the capability kvrt_log: a guest's lines go to the host's log, with
// the guest's name and the request id, at most 16 lines a call and 1,024 bytes a line.
package log

import (
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// Module offers kvrt_log. The zero value is ready.
type Module struct{}

// Name is the import module.
func (Module) Name() string { return abi.ModuleLog }

// Functions lists the host functions.
func (Module) Functions() []runtime.HostFunction {
	return runtime.Functions(abi.ModuleLog, map[string]func(*runtime.Call, []byte, []uint64){"enabled": enabled, "write": write})
}

func enabled(c *runtime.Call, _ []byte, stack []uint64) {
	on := c.LogEnabled(abi.Level(uint32(stack[0])))
	stack[0] = 0
	if on {
		stack[0] = 1
	}
}

// write keeps nothing of a line that lies outside the guest's memory or is not UTF-8.
func write(c *runtime.Call, mem []byte, stack []uint64) {
	level, off, n := abi.Level(uint32(stack[0])), uint64(uint32(stack[1])), uint64(uint32(stack[2]))
	if off+n > uint64(len(mem)) || !c.ChargeCopy(min(n, abi.MaxLogLine)) || !c.LogEnabled(level) {
		return
	}
	line := mem[off : off+min(n, abi.MaxLogLine)]
	for n > abi.MaxLogLine && len(line) > abi.MaxLogLine-utf8.UTFMax && !utf8.Valid(line) {
		line = line[:len(line)-1]
	}
	if utf8.Valid(line) {
		c.Log(level, line)
	}
}
