//go:build wasmtime && amd64

package wasmtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v39"

	"github.com/kvrt/kvrt/runtime"
)

// trap tells apart how a call ended. The words are those of the WebAssembly
// specification's tests, which the default engine uses too: the detail of a result does
// not tell which engine ran.
func (in *instance) trap(c *runtime.Call, err error) *runtime.Trap {
	if c.InHost() {
		msg, _, _ := strings.Cut(fmt.Sprint(in.panicked), "\n")
		return &runtime.Trap{Kind: runtime.TrapHostPanic, Msg: "a host function panicked: " + msg}
	}
	if in.Fuel() < 0 {
		return &runtime.Trap{Kind: runtime.TrapOutOfFuel, Msg: "the call's fuel is used up"}
	}
	msg := line(err).Error()
	var t *wasmtime.Trap
	if errors.As(err, &t) {
		if code := t.Code(); code != nil {
			msg = words(*code, msg)
		}
		t.Close()
	}
	if in.depth != nil && in.depth.Get(in.within).I32() < 0 {
		msg = "calls nested too deep"
	}
	return &runtime.Trap{Kind: runtime.TrapGuest, Msg: msg}
}

func words(code wasmtime.TrapCode, otherwise string) string {
	switch code {
	case wasmtime.StackOverflow:
		return "stack overflow"
	case wasmtime.MemoryOutOfBounds:
		return "out of bounds memory access"
	case wasmtime.TableOutOfBounds, wasmtime.IndirectCallToNull:
		return "invalid table access"
	case wasmtime.BadSignature:
		return "indirect call type mismatch"
	case wasmtime.IntegerOverflow:
		return "integer overflow"
	case wasmtime.IntegerDivisionByZero:
		return "integer divide by zero"
	case wasmtime.BadConversionToInteger:
		return "invalid conversion to integer"
	case wasmtime.UnreachableCodeReached:
		return "unreachable"
	}
	return otherwise
}

// line keeps the last line of what the library says: those before it say where in the
// module, the last one why.
func line(err error) error {
	msg := strings.TrimSpace(err.Error())
	return errors.New(strings.TrimSpace(msg[strings.LastIndexByte(msg, '\n')+1:]))
}
