package admit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// guest is an instance on one engine.
type guest struct {
	t       testing.TB
	mod     api.Module
	counted bool // it was rewritten
	depth   uint64
}

// outcome is what a call did.
type outcome struct {
	values []uint64
	trap   string
	used   int64 // fuel
	dry    bool  // out of fuel
	deep   bool  // out of depth
	memory [32]byte
}

func (o outcome) String() string {
	return fmt.Sprintf("values %x trap %q used %d dry %v deep %v memory %x", o.values, o.trap, o.used, o.dry, o.deep, o.memory[:4])
}

// same reports whether a plain call did the same.
func (o outcome) same(plain outcome) bool {
	return slices.Equal(o.values, plain.values) && o.trap == plain.trap && o.memory == plain.memory
}

// engines are those of wazero.
var engines = []struct {
	name string
	cfg  func() wazero.RuntimeConfig
}{
	{"compiler", wazero.NewRuntimeConfigCompiler},
	{"interpreter", wazero.NewRuntimeConfigInterpreter},
}

// host modules that a test offers.
type hosts func(wazero.Runtime)

// machine is a module on one engine.
type machine struct {
	t    testing.TB
	rt   wazero.Runtime
	code wazero.CompiledModule
}

func compile(t testing.TB, cfg wazero.RuntimeConfig, wasm []byte, with hosts) *machine {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, cfg.WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
	t.Cleanup(func() { _ = rt.Close(ctx) })
	if with != nil {
		with(rt)
	}
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return &machine{t, rt, code}
}

// guest makes an instance, without running any of its code.
func (m *machine) guest() *guest {
	m.t.Helper()
	mod, err := m.rt.InstantiateModule(context.Background(), m.code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		m.t.Fatal(err)
	}
	g := &guest{t: m.t, mod: mod}
	if d := mod.ExportedGlobal(ExportDepth); d != nil {
		g.counted, g.depth = true, d.Get()
	}
	return g
}

// once calls an export of a new instance.
func (m *machine) once(fuel int64, name string, args ...uint64) outcome {
	g := m.guest()
	defer g.mod.Close(context.Background())
	return g.call(fuel, name, args...)
}

func (g *guest) global(name string) api.MutableGlobal {
	return g.mod.ExportedGlobal(name).(api.MutableGlobal)
}

// call runs an export, within so much fuel where it was rewritten.
func (g *guest) call(fuel int64, name string, args ...uint64) outcome {
	return g.callWithin(context.Background(), fuel, name, args...)
}

func (g *guest) callWithin(ctx context.Context, fuel int64, name string, args ...uint64) outcome {
	fn := g.mod.ExportedFunction(name)
	if fn == nil {
		g.t.Fatalf("no export %s", name)
	}
	if g.counted {
		g.global(ExportFuel).Set(uint64(fuel))
		g.global(ExportDepth).Set(g.depth)
	}
	values, err := fn.Call(ctx, args...)
	o := outcome{values: values}
	if err != nil {
		o.trap, _, _ = strings.Cut(err.Error(), "\n")
		if strings.Contains(o.trap, "runtime error") {
			g.t.Fatalf("%s: the engine failed: %v", name, err)
		}
	}
	// Engines may leave the upper halves of 32-bit values dirty.
	pos := 0
	for _, typ := range fn.Definition().ResultTypes() {
		switch {
		case len(values) == 0:
		case typ == api.ValueTypeI32 || typ == api.ValueTypeF32:
			values[pos] &= math.MaxUint32
		case ValType(typ) == V128:
			pos++
		}
		pos++
	}
	if g.counted {
		left := int64(g.global(ExportFuel).Get())
		o.used, o.dry = fuel-left, left < 0
		switch depth := int32(g.global(ExportDepth).Get()); {
		case depth < 0:
			o.deep = true
		case err == nil && uint64(uint32(depth)) != g.depth:
			g.t.Errorf("%s%v returns and leaves a depth of %d, not %d", name, args, depth, g.depth)
		}
	}
	if m := g.mod.Memory(); !reflect.ValueOf(m).IsNil() {
		bytes, _ := m.Read(0, m.Size())
		o.memory = sha256.Sum256(bytes)
	}
	return o
}

// rewrite is Rewrite, and checks what holds of each module that comes out.
func rewrite(t testing.TB, wasm []byte, opts Options) ([]byte, *Rewritten) {
	t.Helper()
	out, info, err := Rewrite(wasm, opts)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Rewrite(wasm, opts)
	if err != nil || string(again) != string(out) {
		t.Fatalf("rewriting twice gives two modules (%v)", err)
	}
	// The code grows, and the limits are meant for what comes in.
	m, err := Read(out, wide())
	if err == nil {
		err = m.Validate(out, wide())
	}
	if err != nil {
		t.Fatalf("what comes out is not valid: %v", err)
	}
	if info.SHA256 != sha256.Sum256(out) || info.Size != len(out) {
		t.Error("size or digest do not match")
	}
	return out, info
}

// arguments are those that a function of up to two i32 is called with.
func arguments(n int) [][]uint64 {
	some := []uint64{0, 1, 2, 3, 4, 5, 9, 17, 49, 64, 65529, math.MaxUint32}
	few := []uint64{0, 1, 2, 4, 33, math.MaxUint32}
	switch n {
	case 0:
		return [][]uint64{nil}
	case 1:
		var all [][]uint64
		for _, a := range some {
			all = append(all, []uint64{a})
		}
		return all
	}
	var all [][]uint64
	for _, a := range few {
		for _, b := range few {
			all = append(all, []uint64{a, b})
		}
	}
	return all
}

// TestConstructs calls every export of testdata/run: plain and rewritten, on both
// engines, with every budget up to what it takes.
func TestConstructs(t *testing.T) {
	files, err := filepath.Glob("testdata/run/*.wasm")
	if err != nil || len(files) == 0 {
		t.Fatalf("no modules in testdata/run (%v)", err)
	}
	const ample = 1 << 40
	for _, file := range files {
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Read(wasm, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := rewrite(t, wasm, Options{})
		plainly := compile(t, engines[0].cfg(), wasm, nil)
		compiled := compile(t, engines[0].cfg(), out, nil)
		interpreted := compile(t, engines[1].cfg(), out, nil)
		slowly := compile(t, engines[1].cfg(), naive(t, wasm), nil)
		for _, exp := range m.Exports {
			if exp.Kind != KindFunction {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".wasm")+"/"+exp.Name, func(t *testing.T) {
				for _, args := range arguments(len(exp.Type.Params)) {
					plain := plainly.once(0, exp.Name, args...)
					full := compiled.once(ample, exp.Name, args...)
					if strings.HasPrefix(file, "testdata/run/numbers") {
						plain.values = full.values // judged in TestNaNs
						plain.memory = full.memory
					}
					if !full.same(plain) || full.dry || full.deep {
						t.Fatalf("%v: plain %v, rewritten %v", args, plain, full)
					}
					if got := interpreted.once(ample, exp.Name, args...); got.String() != full.String() {
						t.Errorf("%v: compiled %v, interpreted %v", args, full, got)
					}
					if full.trap == "" {
						if got := slowly.once(ample, exp.Name, args...); got.used != full.used {
							t.Errorf("%v: %d used, counted one by one %d", args, full.used, got.used)
						}
					}
					budgets(t, interpreted, exp.Name, args, full)
				}
			})
		}
	}
}

// budgets calls a function with each amount of fuel up to what it needs and a few
// beyond, or with some of them where they are many.
func budgets(t *testing.T, m *machine, name string, args []uint64, full outcome) {
	last := full.used + 2
	if full.trap != "" {
		last = 200 // what has been used by then is not known
	}
	step := max(1, last/60)
	sufficed := false
	for fuel := int64(0); fuel <= last; fuel += step {
		if step > 1 && last-fuel <= 5 {
			step = 1
		}
		got := m.once(fuel, name, args...)
		enough := fuel >= full.used
		switch {
		case full.trap != "":
			if (got.trap != full.trap || got.used != full.used) && (!got.dry || sufficed) {
				t.Errorf("%v with %d: %v, want %v", args, fuel, got, full)
			}
			sufficed = sufficed || !got.dry
		case enough && got.String() != full.String():
			t.Errorf("%v with %d: %v, want %v", args, fuel, got, full)
		case !enough && !got.dry:
			t.Errorf("%v with %d of %d: %v", args, fuel, full.used, got)
		}
	}
}

// hostWork offers host.work, which may change the fuel of its caller.
func hostWork(t testing.TB, work func(fuel int64) int64) hosts {
	return func(rt wazero.Runtime) {
		_, err := rt.NewHostModuleBuilder("host").NewFunctionBuilder().WithGoModuleFunction(
			api.GoModuleFunc(func(_ context.Context, mod api.Module, _ []uint64) {
				fuel := mod.ExportedGlobal(ExportFuel).(api.MutableGlobal)
				fuel.Set(uint64(work(int64(fuel.Get()))))
			}), nil, nil).Export("work").Instantiate(context.Background())
		if err != nil {
			t.Fatal(err)
		}
	}
}
