// Package wazero runs guests on wazero, the default engine: pure Go, no cgo. It is
// the only package that imports the library.
//
// Each guest gets an engine runtime of its own, so that names are isolated and
// everything is freed when the guest is replaced. Guests are stopped by the counters
// that admission puts into their code, which this package sets and reads.
//
// # Compilation
//
// Compiling an unknown module can take minutes and gigabytes, and cannot be stopped. So
// the engine has a [Compiler]: a child process compiles, under limits of time and memory
// (defaults: 10 s of CPU time, 512 MiB, two children at once), and tries the guest there before this
// process runs any of it. A program that embeds the runtime says how:
//
//   - Its main begins with [RunChild], and [Compiler].Program is the program itself.
//   - Or Program is the path of another program that does so and is built from the same
//     source.
//   - Or there is no child: with [Config].Interpreter guests are interpreted, a few dozen
//     times slower; with [Config].Trusted those modules alone that the operator trusts
//     are compiled in this process.
//
// Program is never guessed: os.Executable of a program without the hook would start that
// program again. A Config without any of this compiles in this process, for tests and
// for modules of one's own.
//
// What a child compiled is kept in [Compiler].Dir, with its digest, and loaded only when
// it has that digest. Whatever the folder holds, this process compiles nothing: what is
// damaged, foreign, of another version or missing is made again in a child.
package wazero

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
)

// Config configures the engine. The zero value is the one to use.
type Config struct {
	// Deadline, when it is not 0, also stops a call that takes longer, by wazero's own
	// means: about a microsecond and three allocations a call, much slower loops, and
	// no hold on a tree of calls without a loop. It is for modules that are not metered,
	// which could otherwise stop the whole process at the next garbage collection.
	Deadline time.Duration
	// Interpreter interprets instead of compiling.
	Interpreter bool
	// Compiler, when it is not nil, compiles in a child process under limits. Without it
	// guests are compiled in this process, where nothing stops a module that takes the
	// compiler minutes: admission refuses those that it recognises.
	Compiler *Compiler
	// Trusted, when it is not nil, names modules by the SHA-256 of what was handed in, in
	// lower-case hex: those are compiled in this process, and not tried, whatever the
	// fields above say.
	Trusted func(sha256 string) bool
}

// Engine is a runtime.Engine.
type Engine struct {
	cfg Config
	dir string // wazero's own cache, of a process that may compile; empty: none
}

// New makes an engine.
func New(cfg Config) *Engine { return &Engine{cfg: cfg} }

// Name names the engine in errors and metrics.
func (e *Engine) Name() string { return "wazero" }

// Compile compiles a guest in a runtime of its own.
func (e *Engine) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	o := options{Pages: opts.MemoryPages, Terminate: e.cfg.Deadline > 0}
	switch {
	case e.dir != "":
		cache, err := wazero.NewCompilationCacheWithDir(e.dir)
		if err != nil {
			return nil, err
		}
		return e.build(ctx, ctx, wasm, o.runtimeConfig().WithCompilationCache(cache), cache, opts.Hosts)
	case e.trusts(opts.Spec):
		return e.build(ctx, ctx, wasm, o.runtimeConfig(), nil, opts.Hosts)
	case e.cfg.Interpreter:
		return e.build(ctx, ctx, wasm, o.configure(wazero.NewRuntimeConfigInterpreter()), nil, opts.Hosts)
	case e.cfg.Compiler == nil:
		return e.build(ctx, ctx, wasm, o.runtimeConfig(), nil, opts.Hosts)
	}
	var m runtime.Module
	err := e.cfg.Compiler.compile(ctx, wasm, o, opts.Spec, func(dir string) (err error) {
		if dir == "" {
			m, err = e.build(ctx, ctx, wasm, o.configure(wazero.NewRuntimeConfigInterpreter()), nil, opts.Hosts)
			return err
		}
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			return err
		}
		made, err := e.build(ctx, loadOnly(ctx), wasm, o.runtimeConfig().WithCompilationCache(cache), cache, opts.Hosts)
		if err != nil {
			return err
		}
		made.(*module).size = codeSize(dir)
		m = made
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (e *Engine) trusts(spec *runtime.GuestSpec) bool {
	if e.cfg.Trusted == nil || spec == nil {
		return false
	}
	sum := sha256.Sum256(spec.Module)
	return e.cfg.Trusted(hex.EncodeToString(sum[:]))
}

// build makes a guest's runtime with its host modules, and compiles the guest with the
// context compile. The cache, when there is one, is the guest's own and holds its code.
func (e *Engine) build(ctx, compile context.Context, wasm []byte, cfg wazero.RuntimeConfig, cache wazero.CompilationCache, hosts []runtime.HostModule) (runtime.Module, error) {
	m := &module{rt: wazero.NewRuntimeWithConfig(ctx, cfg), cache: cache, deadline: e.cfg.Deadline}
	for _, h := range hosts {
		if err := offer(ctx, m.rt, h); err != nil {
			return nil, errors.Join(fmt.Errorf("host module %s: %w", h.Name(), err), m.Close())
		}
	}
	var err error
	if m.code, err = m.rt.CompileModule(compile, wasm); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// codeSize is the size of the code that a directory of [Compiler].compile holds.
func codeSize(dir string) uint64 {
	file, err := onlyFile(dir)
	if err != nil || file == "" {
		return 0
	}
	info, err := os.Stat(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	return uint64(info.Size())
}

// offer makes a capability importable in one guest's runtime.
func offer(ctx context.Context, rt wazero.Runtime, h runtime.HostModule) error {
	b := rt.NewHostModuleBuilder(h.Name())
	for _, f := range h.Functions() {
		b = b.NewFunctionBuilder().WithGoModuleFunction(&hostFunction{f}, valTypes(f.Params), valTypes(f.Results)).Export(f.Name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// hostFunction is a host function as the engine calls it. The context is the guest's
// own Call, passed on unwrapped.
type hostFunction struct{ runtime.HostFunction }

// Call runs the function. A panic leaves the bracket open, which is how it is told
// apart from a trap.
func (f *hostFunction) Call(ctx context.Context, mod api.Module, stack []uint64) {
	c := ctx.(*runtime.Call)
	c.EnterHost(&f.HostFunction)
	f.HostFunction.Call(c, view(mod.Memory()), stack)
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
	cache    wazero.CompilationCache // nil when the runtime owns its code
	code     wazero.CompiledModule
	deadline time.Duration
	size     uint64 // of the machine code; 0 where it is not known
}

// CodeBytes is how much machine code the guest has, where a child has compiled it.
func (m *module) CodeBytes() uint64 { return m.size }

func (m *module) Close() error {
	err := m.rt.Close(context.Background())
	if m.cache != nil {
		err = errors.Join(err, m.cache.Close(context.Background()))
	}
	return err
}

// Instantiate makes an instance without a name, so that there can be many, and
// without running start functions.
func (m *module) Instantiate(ctx context.Context) (runtime.Instance, error) {
	mod, err := m.rt.InstantiateModule(withOwnMemory(ctx), m.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	in := &instance{mod: mod, mem: mod.Memory(), deadline: m.deadline}
	if in.fuel, _ = mod.ExportedGlobal(admit.ExportFuel).(api.MutableGlobal); in.fuel != nil {
		in.cell = cell(mod, in.fuel)
	}
	in.depth = mod.ExportedGlobal(admit.ExportDepth)
	for i, name := range runtime.ExportNames() {
		in.exports[i] = mod.ExportedFunction(name)
	}
	return in, nil
}

type instance struct {
	mod      api.Module
	mem      api.Memory
	exports  [runtime.NumExports]api.Function
	fuel     api.MutableGlobal // nil in a module that was not rewritten
	cell     *uint64           // where fuel is kept; nil where that is not known
	depth    api.Global
	deadline time.Duration
}

// Fuel and SetFuel reach the counter that admission put into the module.
func (in *instance) Fuel() int64 {
	switch {
	case in.cell != nil:
		return int64(*in.cell)
	case in.fuel != nil:
		return int64(in.fuel.Get())
	}
	return math.MaxInt64
}

func (in *instance) SetFuel(fuel int64) {
	if in.cell != nil {
		*in.cell = uint64(fuel)
	} else if in.fuel != nil {
		in.fuel.Set(uint64(fuel))
	}
}

func (in *instance) Has(f runtime.Export) bool { return in.exports[f] != nil }
func (in *instance) Memory() []byte            { return view(in.mem) }
func (in *instance) Close() error              { return in.mod.Close(context.Background()) }

// Call runs an export. With a deadline, the engine watches c.Done, which is armed for
// the length of the call.
func (in *instance) Call(c *runtime.Call, f runtime.Export, stack []uint64) error {
	if in.deadline > 0 {
		c.Arm(in.deadline)
	}
	err := in.exports[f].CallWithStack(c, stack)
	if in.deadline > 0 {
		if onTime := c.Disarm(); err == nil && !onTime {
			return &runtime.Trap{Kind: runtime.TrapTimeout, Msg: "past its deadline"}
		}
	}
	if err != nil || in.Fuel() < 0 {
		return in.trap(c, err)
	}
	return nil
}

// trap tells apart how a call ended, and keeps the first line of what wazero says.
func (in *instance) trap(c *runtime.Call, err error) *runtime.Trap {
	if in.Fuel() < 0 && !c.InHost() {
		return &runtime.Trap{Kind: runtime.TrapOutOfFuel, Msg: "the call's fuel is used up"}
	}
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
	if in.depth != nil && int32(in.depth.Get()) < 0 {
		msg = "calls nested too deep"
	}
	return &runtime.Trap{Kind: runtime.TrapGuest, Msg: strings.TrimPrefix(msg, "wasm error: ")}
}
