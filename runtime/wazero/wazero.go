// Package wazero runs guests on wazero, the default engine: pure Go, no cgo. It is
// the only package that imports the library.
//
// Each guest gets an engine runtime of its own, so that names are isolated and
// everything is freed when the guest is replaced. Until modules are metered, a guest
// is stopped by wazero's own deadline, which is on by default. It costs about a
// microsecond and a few allocations a call, makes tight loops many times slower, and
// a tree of calls without a loop can outrun it. Turn it off only for guests that are
// trusted: one endless loop then stops the whole process at the next garbage
// collection.
package wazero

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// Config configures the engine. The zero value is the safe default.
type Config struct {
	// NoDeadline compiles guests without the checks that stop them at their deadline.
	// For trusted guests only.
	NoDeadline bool
	// Interpreter interprets instead of compiling.
	Interpreter bool
}

// Engine is a runtime.Engine.
type Engine struct{ cfg Config }

// New makes an engine.
func New(cfg Config) *Engine { return &Engine{cfg} }

// Name names the engine in errors and metrics.
func (e *Engine) Name() string { return "wazero" }

// Compile compiles a guest in a runtime of its own.
func (e *Engine) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	cfg := wazero.NewRuntimeConfig()
	if e.cfg.Interpreter {
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	cfg = cfg.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(opts.MemoryPages).
		WithDebugInfoEnabled(false).WithCloseOnContextDone(!e.cfg.NoDeadline)
	rt := wazero.NewRuntimeWithConfig(ctx, cfg)
	m := &module{rt: rt, deadline: !e.cfg.NoDeadline}
	for _, h := range opts.Hosts {
		if err := offer(ctx, rt, h); err != nil {
			return nil, errors.Join(fmt.Errorf("host module %s: %w", h.Name(), err), rt.Close(ctx))
		}
	}
	var err error
	if m.code, err = rt.CompileModule(ctx, wasm); err != nil {
		return nil, errors.Join(err, rt.Close(ctx))
	}
	return m, nil
}

// offer makes a capability importable in one guest's runtime.
func offer(ctx context.Context, rt wazero.Runtime, h runtime.HostModule) error {
	b := rt.NewHostModuleBuilder(h.Name())
	for _, f := range h.Functions() {
		b = b.NewFunctionBuilder().WithGoModuleFunction(hostFunction(f.Call), valTypes(f.Params), valTypes(f.Results)).Export(f.Name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// hostFunction is a host function as the engine calls it. The context is the guest's
// own Call, passed on unwrapped.
type hostFunction func(c *runtime.Call, mem []byte, stack []uint64)

// Call runs the function. A panic leaves the bracket open, which is how it is told
// apart from a trap.
func (f hostFunction) Call(ctx context.Context, mod api.Module, stack []uint64) {
	c := ctx.(*runtime.Call)
	c.EnterHost()
	f(c, view(mod.Memory()), stack)
	c.LeaveHost()
}

func view(m api.Memory) []byte {
	b, _ := m.Read(0, m.Size())
	return b
}

func valTypes(ts []abi.ValType) []api.ValueType {
	out := make([]api.ValueType, len(ts))
	for i, t := range ts {
		out[i] = api.ValueType(t)
	}
	return out
}

type module struct {
	rt       wazero.Runtime
	code     wazero.CompiledModule
	deadline bool
}

func (m *module) Close() error { return m.rt.Close(context.Background()) }

// Instantiate makes an instance without a name, so that there can be many, and
// without running start functions.
func (m *module) Instantiate(ctx context.Context) (runtime.Instance, error) {
	mod, err := m.rt.InstantiateModule(withOwnMemory(ctx), m.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	in := &instance{mod: mod, mem: mod.Memory(), deadline: m.deadline}
	for i, name := range runtime.ExportNames() {
		in.exports[i] = mod.ExportedFunction(name)
	}
	return in, nil
}

type instance struct {
	mod      api.Module
	mem      api.Memory
	exports  [runtime.NumExports]api.Function
	deadline bool
}

func (in *instance) Has(f runtime.Export) bool { return in.exports[f] != nil }
func (in *instance) Memory() []byte            { return view(in.mem) }
func (in *instance) Close() error              { return in.mod.Close(context.Background()) }

// Call runs an export. With the deadline on, the engine watches c.Done, which is
// armed for the length of the call.
func (in *instance) Call(c *runtime.Call, f runtime.Export, stack []uint64) error {
	if !in.deadline {
		if err := in.exports[f].CallWithStack(c, stack); err != nil {
			return trap(c, err)
		}
		return nil
	}
	c.Arm()
	err := in.exports[f].CallWithStack(c, stack)
	if onTime := c.Disarm(); err == nil && !onTime {
		return &runtime.Trap{Kind: runtime.TrapTimeout, Msg: "past its deadline"}
	}
	if err != nil {
		return trap(c, err)
	}
	return nil
}

// trap tells apart how a call ended, and keeps the first line of what wazero says.
func trap(c *runtime.Call, err error) *runtime.Trap {
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == sys.ExitCodeDeadlineExceeded || exit.ExitCode() == sys.ExitCodeContextCanceled {
			return &runtime.Trap{Kind: runtime.TrapTimeout, Msg: "past its deadline"}
		}
		return &runtime.Trap{Kind: runtime.TrapGuest, Msg: fmt.Sprintf("the guest exited with code %d", exit.ExitCode())}
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	if c.InHost() {
		return &runtime.Trap{Kind: runtime.TrapHostPanic, Msg: "a host function panicked: " + msg}
	}
	return &runtime.Trap{Kind: runtime.TrapGuest, Msg: strings.TrimPrefix(msg, "wasm error: ")}
}
