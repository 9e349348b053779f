package admit

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// FuzzGenerated runs made-up modules rewritten on both engines, and those
// without floating-point numbers also plain and counted one by one.
func FuzzGenerated(f *testing.F) {
	for seed := range 100 {
		f.Add(noise(uint64(seed), 600))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		g := &generator{data: data}
		judge(t, g.module(), !g.floats)
	})
}

// TestGenerated is some of that.
func TestGenerated(t *testing.T) {
	ended := 0
	n := 500
	if testing.Short() {
		n = 100
	}
	for seed := range n {
		g := &generator{data: noise(uint64(seed)+1000, 300+seed)}
		ended += judge(t, g.module(), !g.floats)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d calls came to their end", ended)
	if ended < n/2 {
		t.Errorf("only %d calls of %d modules came to their end", ended, n)
	}
}

// noise is a repeatable sequence of bytes.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}

// judge gives how many calls came to their end.
func judge(t *testing.T, wasm []byte, exact bool) (ended int) {
	ctx := context.Background()
	opts := Options{MemoryPages: 3}
	out, info, err := Rewrite(wasm, opts)
	if err != nil {
		t.Errorf("a generated module is refused: %v", err)
		return 0
	}
	start := func(cfg wazero.RuntimeConfig, wasm []byte) (*guest, func()) {
		rt := wazero.NewRuntimeWithConfig(ctx, cfg.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(3).WithDebugInfoEnabled(false))
		mod, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			t.Fatalf("the engine refuses it: %v", err)
		}
		g := &guest{t: t, mod: mod}
		if d := mod.ExportedGlobal(ExportDepth); d != nil {
			g.counted, g.depth = true, d.Get()
		}
		return g, func() { _ = rt.Close(ctx) }
	}
	compiled, done := start(wazero.NewRuntimeConfigCompiler(), out)
	defer done()
	interpreted, done := start(wazero.NewRuntimeConfigInterpreter(), out)
	defer done()
	plain, done := start(wazero.NewRuntimeConfigCompiler(), wasm)
	defer done()
	slow, done := start(wazero.NewRuntimeConfigInterpreter(), naive(t, wasm))
	defer done()
	const fuel = 50_000
	for _, exp := range info.Source.Exports {
		if exp.Kind != KindFunction {
			continue
		}
		var args []uint64
		for i, p := range exp.Type.Params {
			args = append(args, uint64(i+2))
			if p == V128 {
				args = append(args, uint64(i))
			}
		}
		got := compiled.call(fuel, exp.Name, args...)
		if again := interpreted.call(fuel, exp.Name, args...); got.String() != again.String() {
			t.Errorf("%s: compiled %v, interpreted %v", exp.Name, got, again)
		}
		if got.used > fuel+int64(len(wasm)) {
			t.Errorf("%s: %d used of %d, by a module of %d bytes", exp.Name, got.used, fuel, len(wasm))
		}
		if got.dry || got.deep {
			return ended // plain it may go on for ever
		}
		if exact {
			if was := plain.call(0, exp.Name, args...); !got.same(was) {
				t.Errorf("%s: plain %v, rewritten %v", exp.Name, was, got)
			}
			was := slow.call(fuel, exp.Name, args...)
			if got.trap == "" && was.used != got.used {
				t.Errorf("%s: %d used, counted one by one %d", exp.Name, got.used, was.used)
			}
			if got.trap == "" {
				ended++
			}
		}
		if got.trap != "" {
			return ended // state may differ from here on: fuel is charged in advance
		}
	}
	return ended
}
