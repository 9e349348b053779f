//go:build wasmtime && amd64

package wasmtime

import (
	"math"

	"github.com/bytecodealliance/wasmtime-go/v39"

	"github.com/kvrt/kvrt/runtime"
)

// val is a slot of the stack as a value of the library. The upper half of one of 32 bits
// is dropped.
func val(kind wasmtime.ValKind, slot uint64) wasmtime.Val {
	switch kind {
	case wasmtime.KindI32:
		return wasmtime.ValI32(int32(uint32(slot)))
	case wasmtime.KindF32:
		return wasmtime.ValF32(math.Float32frombits(uint32(slot)))
	case wasmtime.KindF64:
		return wasmtime.ValF64(math.Float64frombits(slot))
	}
	return wasmtime.ValI64(int64(slot))
}

// slot is a value of the library as a slot of the stack.
func slot(v wasmtime.Val) uint64 {
	switch v.Kind() {
	case wasmtime.KindI32:
		return uint64(uint32(v.I32()))
	case wasmtime.KindF32:
		return uint64(math.Float32bits(v.F32()))
	case wasmtime.KindF64:
		return math.Float64bits(v.F64())
	}
	return uint64(v.I64())
}

// host is a host function as the library calls it. It finds the instance by the store,
// and the Call that it gets is the one that the instance was called with. It may panic,
// but must not end its goroutine (runtime.Goexit, t.FailNow): that would leave the
// library's frames behind.
func host(f runtime.HostFunction) func(*wasmtime.Caller, []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
	results := valTypes(f.Results)
	return func(caller *wasmtime.Caller, args []wasmtime.Val) (out []wasmtime.Val, trap *wasmtime.Trap) {
		in := caller.Data().(*instance)
		in.within = caller
		defer func() {
			in.within = in.store
			if v := recover(); v != nil {
				in.panicked = v
				trap = wasmtime.NewTrap("a host function panicked")
			}
		}()
		stack := make([]uint64, max(len(args), len(results)))
		for i, a := range args {
			stack[i] = slot(a)
		}
		in.call.EnterHost(&f)
		f.Call(in.call, in.Memory(), stack)
		in.call.LeaveHost()
		for i, t := range results {
			out = append(out, val(t.Kind(), stack[i]))
		}
		return out, nil
	}
}
