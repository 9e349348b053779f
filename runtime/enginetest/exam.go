package enginetest

import (
	"context"
	"embed"
	"errors"
	"slices"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
)

//go:embed testdata
var testdata embed.FS

// plenty is fuel that no call here uses up, but for those that never end.
const plenty = runtime.DefaultFuel

// pages is the memory limit of the modules here: 1 MiB.
const pages = 16

// exam is an engine that is being tested.
type exam struct {
	tb
	engine runtime.Engine
	guests map[string][]byte // modules that are not of testdata
}

// source reads a module of testdata.
func (x *exam) source(name string) []byte {
	x.Helper()
	if wasm := x.guests[name]; wasm != nil {
		return wasm
	}
	wasm, err := testdata.ReadFile("testdata/" + name + ".wasm")
	if err != nil {
		x.Fatalf("%v", err)
	}
	return wasm
}

// metered rewrites a module of testdata, as every guest is.
func (x *exam) metered(name string) ([]byte, *admit.Rewritten) {
	x.Helper()
	wasm, info, err := admit.Rewrite(x.source(name), admit.Options{MemoryPages: pages, DropCustoms: true})
	if err != nil {
		x.Fatalf("%s: %v", name, err)
	}
	return wasm, info
}

// compiled compiles a metered module, which the caller closes. h is what its imports
// reach.
func (x *exam) compiled(name string, h *hosts) runtime.Module {
	x.Helper()
	if h == nil {
		h = &hosts{}
	}
	wasm, info := x.metered(name)
	m, err := x.engine.Compile(context.Background(), wasm, runtime.CompileOptions{Hosts: h.granted(info.Source), MemoryPages: pages})
	if err != nil {
		x.Fatalf("compiling %s: %v", name, err)
	}
	return m
}

// module compiles a metered module, which is closed at the end of the test.
func (x *exam) module(name string, h *hosts) runtime.Module {
	x.Helper()
	m := x.compiled(name, h)
	x.Cleanup(func() { x.closeModule(m) })
	return m
}

func (x *exam) closeModule(m runtime.Module) {
	x.Helper()
	if err := m.Close(); err != nil {
		x.Errorf("closing a module: %v", err)
	}
}

// instance makes an instance that is closed at the end of the test, before its module.
func (x *exam) instance(m runtime.Module) *guest {
	x.Helper()
	g := x.open(m)
	x.Cleanup(func() { g.close() })
	return g
}

// open makes an instance that the caller closes.
func (x *exam) open(m runtime.Module) *guest {
	x.Helper()
	in, err := m.Instantiate(context.Background())
	if err != nil {
		x.Fatalf("instantiating: %v", err)
	}
	return &guest{Instance: in, x: x, c: runtime.NewCall(runtime.CallConfig{Guest: "test"})}
}

// start compiles a module and makes an instance of it.
func (x *exam) start(name string, h *hosts) *guest {
	x.Helper()
	return x.instance(x.module(name, h))
}

// guest is an instance with the Call that goes with it.
type guest struct {
	runtime.Instance
	x *exam
	c *runtime.Call
}

func (g *guest) close() {
	g.x.Helper()
	if err := g.Close(); err != nil {
		g.x.Errorf("closing an instance: %v", err)
	}
}

// outcome is how a call ended.
type outcome struct {
	result uint64        // 0 of an export without one
	trap   *runtime.Trap // nil where the call ended with its result
	fuel   int64         // used
}

// run calls an export with so much fuel and tells how it ended. Arguments that are left
// out are 0.
func (g *guest) run(f runtime.Export, fuel int64, args ...uint64) outcome {
	g.x.Helper()
	if !g.Has(f) {
		g.x.Fatalf("no export %s", runtime.ExportNames()[f])
	}
	var stack [4]uint64
	copy(stack[:], args)
	g.SetFuel(fuel)
	err := g.Call(g.c, f, stack[:stackOf(f)])
	out := outcome{fuel: fuel - g.Fuel()}
	if err != nil {
		if !errors.As(err, &out.trap) {
			g.x.Fatalf("%s: %v is a %T and not a *runtime.Trap", runtime.ExportNames()[f], err, err)
		}
		if msg := out.trap.Msg; msg == "" || strings.ContainsAny(msg, "\r\n") || out.trap.Error() != msg {
			g.x.Errorf("%s: the message of a trap is one line, not %q", runtime.ExportNames()[f], msg)
		}
		return out
	}
	if fuel < out.fuel {
		g.x.Errorf("%s came to its end with fuel below 0 and no trap", runtime.ExportNames()[f])
	}
	out.result = stack[0] * uint64(results(f))
	return out
}

// want calls an export that must give a result.
func (g *guest) want(f runtime.Export, want uint64, args ...uint64) {
	g.x.Helper()
	switch out := g.run(f, plenty, args...); {
	case out.trap != nil:
		g.x.Errorf("%s%x: trap %q, want %#x", runtime.ExportNames()[f], args, out.trap.Msg, want)
	case out.result != want:
		g.x.Errorf("%s%x: %#x, want %#x", runtime.ExportNames()[f], args, out.result, want)
	}
}

// results is the number of results of an export.
func results(f runtime.Export) int {
	if f == runtime.ExportInitialize || f == runtime.ExportIdle {
		return 0
	}
	return 1
}

// stackOf is the length of the stack that a caller needs: no longer one is given, so
// that an engine that wants more is found.
func stackOf(f runtime.Export) int {
	switch f {
	case runtime.ExportInitialize, runtime.ExportIdle:
		return 0
	case runtime.ExportArena:
		return 1
	case runtime.ExportHandle:
		return 3
	}
	return 2
}

// hosts are the host modules that the modules here import. The zero value answers every
// function in the same way on every engine; a test replaces those that it looks at.
type hosts struct {
	nothing func(c *runtime.Call, mem []byte)
	mix     func(a uint32, b uint64, c uint32) uint64
}

// granted gives the modules that m imports. What nobody here looks at answers 0.
func (h *hosts) granted(m *admit.Module) []runtime.HostModule {
	type calls map[string]func(*runtime.Call, []byte, []uint64)
	answers := map[string]calls{
		abi.ModuleFetch: {"submit": submit},
		abi.ModuleSession: {
			"lineage":   func(_ *runtime.Call, mem []byte, stack []uint64) { stack[0] = blocks(mem, stack[6], stack[7]) },
			"exclusive": func(_ *runtime.Call, mem []byte, stack []uint64) { stack[0] = blocks(mem, stack[4], stack[5]) },
		},
	}
	for _, f := range abi.Contract().Functions {
		if answers[f.Module] == nil {
			answers[f.Module] = calls{}
		}
		if answers[f.Module][f.Name] == nil {
			answers[f.Module][f.Name] = func(_ *runtime.Call, _ []byte, stack []uint64) {
				if f.Result != 0 {
					stack[0] = 0
				}
			}
		}
	}
	offers := []runtime.HostModule{offer{"test", h.functions()}}
	for module, calls := range answers {
		offers = append(offers, offer{module, runtime.Functions(module, calls)})
	}
	return slices.DeleteFunc(offers, func(host runtime.HostModule) bool {
		return !slices.ContainsFunc(m.Imports, func(i admit.Import) bool { return i.Module == host.Name() })
	})
}

// offer is a host module.
type offer struct {
	name      string
	functions []runtime.HostFunction
}

func (o offer) Name() string                      { return o.name }
func (o offer) Functions() []runtime.HostFunction { return o.functions }

// blocks writes a Lineage of one path, the blocks 1 and 2^64-1, where there is room.
func blocks(mem []byte, off, size uint64) uint64 {
	const n = abi.SizeLineage + abi.SizePath + 16
	if at := uint64(uint32(off)); uint64(uint32(size)) >= n && at+n <= uint64(len(mem)) {
		b := mem[at : at+n]
		clear(b)
		abi.PutU32(b, abi.OffLineageHashKind, uint32(abi.HashKindEngine))
		abi.PutU32(b, abi.OffLineagePathsCount, 1)
		abi.PutU32(b, abi.OffLineagePaths, abi.SizeLineage)
		abi.PutU32(b, abi.OffLineageBlocks, 2)
		abi.PutU32(b, abi.SizeLineage+abi.OffPathHashes, abi.SizeLineage+abi.SizePath)
		abi.PutU32(b, abi.SizeLineage+abi.OffPathHashesCount, 2)
		abi.PutU64(b, n-16, 1)
		abi.PutU64(b, n-8, 1<<64-1)
	}
	return n
}

// submit refuses a hint whose hashes are not in memory, by the ABI's own codes.
func submit(_ *runtime.Call, mem []byte, stack []uint64) {
	at, n := uint64(uint32(stack[2])), uint64(uint32(stack[3]))
	stack[0] = 0
	if at+8*n > uint64(len(mem)) {
		reason := -int32(abi.ReasonInvalidPayload)
		stack[0] = uint64(uint32(reason))
	}
}
