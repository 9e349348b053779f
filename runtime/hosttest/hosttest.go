// Package hosttest holds a capability to the contract: its functions are those of the
// ABI's table, and each of them answers the vectors of its module, which a second
// implementation wrote, byte for byte.
package hosttest

import (
	"bytes"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Function is the function of a capability with that name.
func Function(t testing.TB, host runtime.HostModule, name string) *runtime.HostFunction {
	t.Helper()
	for _, f := range host.Functions() {
		if f.Name == name {
			return &f
		}
	}
	t.Fatalf("there is no function %s", name)
	return nil
}

// Table holds the names and the number of a capability's functions to the table, which
// gives them their types.
func Table(t *testing.T, module string, host runtime.HostModule) {
	t.Helper()
	n := 0
	for _, f := range abi.Contract().Functions {
		if f.Module == module && !f.Draft {
			n++
			Function(t, host, f.Name)
		}
	}
	if have := len(host.Functions()); have != n || n == 0 {
		t.Errorf("%d functions, the table has %d", have, n)
	}
}

// Vectors runs the vectors of a module, each on the host that the caller makes of what the
// vector says. After a right answer, settle, if it is not nil, looks at the call's effects.
func Vectors(t *testing.T, module string, host func(*testing.T, vectors.Host) runtime.HostModule, settle func(*testing.T, runtime.HostModule, *runtime.Call, vectors.Call)) {
	calls, err := vectors.Calls()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, v := range calls {
		if v.Module != module {
			continue
		}
		ran++
		t.Run(v.Name, func(t *testing.T) {
			h := host(t, v.Host)
			mem := v.Memory.Bytes()
			want := bytes.Clone(mem)
			for _, r := range v.After {
				copy(want[r.At:], r.Hex)
			}
			stack := make([]uint64, len(v.Args))
			for i, a := range v.Args {
				stack[i] = uint64(a)
			}
			call := runtime.NewCall(runtime.CallConfig{Identity: hint.Identity{RequestID: v.Host.RequestID}})
			Function(t, h, v.Function).Call(call, mem, stack)
			if int64(stack[0]) != int64(*v.Result) {
				_, detail := call.Refusal()
				t.Fatalf("result %d, want %d: %s", int64(stack[0]), *v.Result, detail)
			}
			if !bytes.Equal(mem, want) {
				at := 0
				for mem[at] == want[at] {
					at++
				}
				end := min(at+64, len(mem))
				t.Fatalf("at %d the memory is not what the vector says: have %x, want %x", at, mem[at:end], want[at:end])
			}
			if settle != nil {
				settle(t, h, call, v)
			}
		})
	}
	if ran == 0 {
		t.Error("no vector")
	}
}
