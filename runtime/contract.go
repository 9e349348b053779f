package runtime

import (
	"context"

	"github.com/kvrt/kvrt/abi"
)

// Engine is a Wasm engine. Compile is called once per loaded guest, never on the
// dispatch path, and must not let one guest see another: names, memories and host
// modules are its own. An error that is a [LoadError] names the rules that the guest
// breaks; any other is put under the rule engine/compile.
type Engine interface {
	Name() string
	Compile(ctx context.Context, wasm []byte, opts CompileOptions) (Module, error)
}

// CompileOptions is what a guest gets.
type CompileOptions struct {
	// Hosts are the granted capabilities that the module imports. Before a host
	// function runs, the engine calls EnterHost of the call, and LeaveHost after it.
	Hosts []HostModule
	// MemoryPages caps the linear memory, in pages of 64 KiB.
	MemoryPages uint32
	// Spec is the guest as it was given, for an engine that has it tried elsewhere before
	// this process runs any of it. Nil where there is none.
	Spec *GuestSpec
}

// Module is a compiled guest.
type Module interface {
	// Instantiate makes an instance without running any of its code.
	Instantiate(ctx context.Context) (Instance, error)
	// Close frees the code. No instance is alive any more.
	Close() error
}

// Instance is one instance of a guest. It is used by one goroutine at a time.
type Instance interface {
	// Has tells whether the module exports f.
	Has(f Export) bool
	// Fuel and SetFuel reach the counter that admission put into the module: the
	// instructions that the guest may still execute. Below 0 it is used up.
	Fuel() int64
	SetFuel(fuel int64)
	// Call runs an export. stack holds the arguments and receives the result. c goes
	// to the host functions unwrapped. A failure, fuel below 0 included, is a *Trap;
	// the instance is then never called again.
	Call(c *Call, f Export, stack []uint64) error
	// Memory is a view of the whole linear memory, valid until the guest runs again.
	Memory() []byte
	Close() error
}

// Export is one of the functions that the runtime calls.
type Export uint8

// The exports, in the order of [ExportNames].
const (
	ExportInitialize Export = iota
	ExportArena
	ExportInit
	ExportParse
	ExportHandle
	ExportFormulate
	ExportIdle
	NumExports
)

// ExportNames returns the names that the ABI gives to the exports.
func ExportNames() [NumExports]string {
	return [NumExports]string{"_initialize", "kvrt_arena", "kvrt_init", "kvrt_parse", "kvrt_handle", "kvrt_formulate", "kvrt_idle"}
}

// HostModule is one capability: an import module that an operator may grant.
type HostModule interface {
	Name() string
	Functions() []HostFunction
}

// HostFunction is one function of a capability, as abi.Contract describes it.
//
// Call reads its arguments from stack and leaves its result in stack[0]. The upper
// halves of 32-bit arguments may be dirty: truncate before use. mem is a view of the
// guest's memory for the length of this call only. An effect is not carried out but
// handed to [Call.Defer].
type HostFunction struct {
	Name    string
	Params  []abi.ValType
	Results []abi.ValType
	Call    func(c *Call, mem []byte, stack []uint64)
	// Fuel is charged for each call, and PerB for each 64 bytes that it says it
	// copies, with [Call.ChargeCopy].
	Fuel, PerB uint64
}

// Functions makes the host functions of an import module, with the signatures and costs
// of the ABI's table. A name that the table does not have is a mistake of the program.
func Functions(module string, calls map[string]func(c *Call, mem []byte, stack []uint64)) []HostFunction {
	var out []HostFunction
	t := abi.Contract()
	for _, f := range append(t.Functions, t.Stubs...) {
		if call := calls[f.Name]; f.Module == module && call != nil {
			h := HostFunction{Name: f.Name, Call: call, Fuel: f.Fuel, PerB: f.PerB}
			for _, p := range f.Params {
				h.Params = append(h.Params, p.Type)
			}
			if f.Result != 0 {
				h.Results = []abi.ValType{f.Result}
			}
			out = append(out, h)
		}
	}
	if len(out) != len(calls) {
		panic("runtime.Functions: " + module + " has functions that the ABI's table does not")
	}
	return out
}

// Effect is what a host function does to the world. It is committed when the call's
// action is accepted, and dropped otherwise. Exactly one of the two is called, on the
// dispatching goroutine.
type Effect interface {
	// Commit carries the effect out. A reason other than none rejects the action.
	Commit() (abi.Reason, string)
	Drop()
}

// Observer receives counters from [Runtime.Observe], typically once per scrape. The
// values are totals since the guest was loaded.
type Observer interface {
	Runtime(RuntimeStats)
	Guest(GuestStats)
}
