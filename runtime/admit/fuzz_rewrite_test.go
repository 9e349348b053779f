package admit

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// FuzzRewrite mutates modules that are valid or nearly so. Nothing may panic.
// What passes must be valid to the engine too, plain and rewritten; and where it
// is small, its exports must do the same on both engines, within their fuel.
func FuzzRewrite(f *testing.F) {
	for _, pattern := range []string{"testdata/*.wasm", "testdata/run/*.wasm", "testdata/cost/*.wasm", "testdata/hostile/*.wasm"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no modules %s (%v)", pattern, err)
		}
		for _, file := range files {
			wasm, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			if len(wasm) < 8192 {
				f.Add(wasm)
			}
		}
	}
	f.Add(wholeModule())
	for _, tc := range bodyRefusals() {
		if len(tc.wasm) < 1024 {
			f.Add(tc.wasm)
		}
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		lim := Limits{
			ModuleBytes: 16 << 10, FunctionBytes: 4 << 10, Functions: 64, Nesting: 64, Branches: 256,
			BranchTargets: 256, Operands: 256, Locals: 256, Params: 16, Results: 16, TableElements: 64,
		}
		out, info, err := Rewrite(wasm, Options{Limits: lim, MemoryPages: 4})
		if err != nil {
			if len(Violations(err)) == 0 {
				t.Fatalf("an error without a violation: %v", err)
			}
			return
		}
		fuzzRun(t, wasm, out, info.Source)
	})
}

func fuzzRun(t *testing.T, wasm, out []byte, m *Module) {
	for i := range m.Imports {
		// wazero wants a name where the specification does not, and
		// silent offers functions only, each once.
		if m.Imports[i].Module == "" || m.Imports[i].Kind != KindFunction {
			return
		}
		for _, imp := range m.Imports[:i] {
			if imp.Module == m.Imports[i].Module && imp.Name == m.Imports[i].Name {
				return
			}
		}
	}
	ctx := context.Background()
	start := func(cfg wazero.RuntimeConfig, wasm []byte) (*guest, error) {
		rt := wazero.NewRuntimeWithConfig(ctx, cfg.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(4).WithDebugInfoEnabled(false))
		t.Cleanup(func() { _ = rt.Close(ctx) })
		code, err := rt.CompileModule(ctx, wasm)
		if err != nil {
			t.Fatalf("the engine refuses it: %v", err)
		}
		silent(t, m)(rt)
		mod, err := rt.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
		if err != nil {
			return nil, err
		}
		g := &guest{t: t, mod: mod}
		if d := mod.ExportedGlobal(ExportDepth); d != nil {
			g.counted, g.depth = true, d.Get()
		}
		return g, nil
	}
	// A start section runs without fuel, and plain without a bound.
	if m.HasStart {
		return
	}
	compiled, err := start(wazero.NewRuntimeConfigCompiler(), out)
	interpreted, err2 := start(wazero.NewRuntimeConfigInterpreter(), out)
	plain, err3 := start(wazero.NewRuntimeConfigInterpreter().WithCloseOnContextDone(true), wasm)
	if (err == nil) != (err2 == nil) || (err == nil) != (err3 == nil) {
		t.Fatalf("instantiation: %v, %v, %v", err, err2, err3)
	}
	if err != nil {
		return
	}
	// Plain tables grow without a bound.
	grows := bytes.Contains(wasm, raw(opMisc, miscTableGrow))
	calls := 0
	for _, exp := range m.Exports {
		if exp.Kind != KindFunction || calls == 16 {
			continue
		}
		args := make([]uint64, 0, len(exp.Type.Params))
		for _, p := range exp.Type.Params {
			switch p {
			case V128:
				args = append(args, 1, 2)
			case FuncRef, ExternRef:
				args = append(args, 0)
			default:
				args = append(args, uint64(len(args)+3))
			}
		}
		for _, r := range exp.Type.Results {
			if r == FuncRef || r == ExternRef {
				return // addresses of the engine's
			}
		}
		calls++
		got := compiled.call(20_000, exp.Name, args...)
		if again := interpreted.call(20_000, exp.Name, args...); got.String() != again.String() {
			t.Fatalf("%s: compiled %v, interpreted %v", exp.Name, got, again)
		}
		if got.dry || got.deep || grows {
			return // the plain one may go on for ever, and differs from here on
		}
		timed, cancel := context.WithTimeout(ctx, 10*time.Second)
		was := plain.callWithin(timed, 0, exp.Name, args...)
		cancel()
		if strings.Contains(was.trap, "context deadline exceeded") {
			return // a table that grows without the bound that the rewritten one has takes long
		}
		// NaN bits may differ: the plain run only must end the same way.
		if was.trap != got.trap {
			t.Fatalf("%s: plain %v, rewritten %v", exp.Name, was, got)
		}
	}
}
