//go:build wasmtime && amd64

package wasmtime

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bytecodealliance/wasmtime-go/v39"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
)

const pageSize = 64 << 10

// maxStack is what calls may take of the native stack, in bytes. Calls are stopped by
// the counter that admission puts into the module, at 256 KiB of that counter's own
// weights, which are far from filling this.
const maxStack = 1 << 20

// Engine is a runtime.Engine.
type Engine struct{}

// New makes an engine.
func New() *Engine { return &Engine{} }

// Name names the engine in errors and metrics.
func (e *Engine) Name() string { return "wasmtime" }

// Compile compiles a guest with an engine of the library that is its own, so that
// everything is freed with it.
func (e *Engine) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	shape, err := admit.Read(wasm, limits())
	if err != nil {
		return nil, err
	}
	if shape.HasStart {
		return nil, errors.New("it has a start function: an instance is made without running any code")
	}
	m := &module{engine: wasmtime.NewEngineWithConfig(config()), memory: int64(opts.MemoryPages) * pageSize, tables: int64(len(shape.Tables))}
	for _, t := range shape.Tables {
		m.elements = max(m.elements, int64(t.Min))
		if t.HasMax {
			m.elements = max(m.elements, int64(t.Max))
		}
	}
	m.linker = wasmtime.NewLinker(m.engine)
	for _, h := range opts.Hosts {
		for _, f := range h.Functions() {
			if err := m.linker.FuncNew(h.Name(), f.Name, functype(&f), host(f)); err != nil {
				return nil, errors.Join(fmt.Errorf("host module %s: %w", h.Name(), line(err)), m.Close())
			}
		}
	}
	if m.code, err = wasmtime.NewModule(m.engine, wasm); err != nil {
		return nil, errors.Join(line(err), m.Close())
	}
	return m, nil
}

// limits are admission's, with room for what rewriting adds to a module and for what an
// operator may grant. What is compiled was admitted under the guest's own limits.
func limits() admit.Limits {
	l := admit.Limits{}.WithDefaults()
	for _, field := range []*int{&l.ModuleBytes, &l.FunctionBytes, &l.CodeBytes, &l.Locals, &l.Types, &l.Globals, &l.Exports} {
		*field *= 4
	}
	l.TableElements = 1 << 24
	return l
}

// config turns off what admission refuses, as far as the binding can, and the threads
// that would compile.
func config() *wasmtime.Config {
	c := wasmtime.NewConfig()
	c.SetWasmThreads(false)
	c.SetWasmTailCall(false)
	c.SetWasmFunctionReferences(false)
	c.SetWasmGC(false)
	c.SetWasmMultiMemory(false)
	c.SetWasmMemory64(false)
	c.SetWasmRelaxedSIMD(false)
	c.SetWasmWideArithmetic(false)
	c.SetStrategy(wasmtime.StrategyCranelift)
	c.SetParallelCompilation(false)
	c.SetMaxWasmStack(maxStack)
	return c
}

func functype(f *runtime.HostFunction) *wasmtime.FuncType {
	return wasmtime.NewFuncType(valTypes(f.Params), valTypes(f.Results))
}

func valTypes(ts []abi.ValType) []*wasmtime.ValType {
	kinds := map[abi.ValType]wasmtime.ValKind{abi.I32: wasmtime.KindI32, abi.I64: wasmtime.KindI64, abi.F32: wasmtime.KindF32, abi.F64: wasmtime.KindF64}
	out := make([]*wasmtime.ValType, len(ts))
	for i, t := range ts {
		out[i] = wasmtime.NewValType(kinds[t])
	}
	return out
}

type module struct {
	engine *wasmtime.Engine
	linker *wasmtime.Linker
	code   *wasmtime.Module
	// Limits of an instance.
	memory   int64 // bytes
	tables   int64
	elements int64 // of a table
}

// Close frees everything at once: the garbage collector does not see what the library
// holds.
func (m *module) Close() error {
	if m.code != nil {
		m.code.Close()
	}
	m.linker.Close()
	m.engine.Close()
	return nil
}

// Instantiate makes an instance in a store of its own.
func (m *module) Instantiate(ctx context.Context) (runtime.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in := &instance{}
	in.store = wasmtime.NewStoreWithData(m.engine, in)
	in.within = in.store
	in.store.Limiter(m.memory, m.elements, 1, m.tables, 1)
	inst, err := m.linker.Instantiate(in.store, m.code)
	if err != nil {
		in.store.Close()
		return nil, line(err)
	}
	for i, name := range runtime.ExportNames() {
		in.exports[i] = inst.GetFunc(in.store, name)
	}
	for _, e := range m.code.Exports() {
		switch x := inst.GetExport(in.store, e.Name()); {
		case e.Name() == admit.ExportFuel:
			in.fuel = x.Global()
		case e.Name() == admit.ExportDepth:
			in.depth = x.Global()
		case x.Memory() != nil:
			in.mem = x.Memory()
		}
	}
	return in, nil
}

// instance is used by one goroutine at a time, which a store asks for.
type instance struct {
	store    *wasmtime.Store
	within   wasmtime.Storelike // store, or what a host function that runs is given
	exports  [runtime.NumExports]*wasmtime.Func
	mem      *wasmtime.Memory
	fuel     *wasmtime.Global // nil in a module that was not rewritten
	depth    *wasmtime.Global
	call     *runtime.Call // that runs
	panicked any           // what a host function panicked with
}

// Fuel and SetFuel reach the counter that admission put into the module. The library's
// own fuel is another measure, and is off.
func (in *instance) Fuel() int64 {
	if in.fuel == nil {
		return math.MaxInt64
	}
	return in.fuel.Get(in.within).I64()
}

func (in *instance) SetFuel(fuel int64) {
	if in.fuel == nil {
		return
	}
	if err := in.fuel.Set(in.within, wasmtime.ValI64(fuel)); err != nil {
		panic(err) // admission made it a mutable i64
	}
}

func (in *instance) Has(f runtime.Export) bool { return in.exports[f] != nil }

// Memory is a view of what the library holds: after Close it is not even readable.
func (in *instance) Memory() []byte {
	if in.mem == nil {
		return nil
	}
	return in.mem.UnsafeData(in.within)
}

// Close frees the instance.
func (in *instance) Close() error {
	in.store.Close()
	return nil
}

// Call runs an export.
func (in *instance) Call(c *runtime.Call, f runtime.Export, stack []uint64) error {
	fn := in.exports[f]
	params := fn.Type(in.store).Params()
	args := make([]any, len(params))
	for i, p := range params {
		args[i] = val(p.Kind(), stack[i])
	}
	in.call, in.panicked = c, nil
	result, err := fn.Call(in.store, args...)
	in.call = nil
	if err != nil || in.Fuel() < 0 {
		return in.trap(c, err)
	}
	if v, ok := result.(int64); ok {
		stack[0] = uint64(v)
	} else if v, ok := result.(int32); ok {
		stack[0] = uint64(uint32(v))
	}
	return nil
}
