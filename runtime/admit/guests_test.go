package admit

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// tool gives the path of a compiler, or skips the test.
func tool(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

func build(t *testing.T, env []string, out, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, msg)
	}
	return read(t, out)
}

// behaves runs an export plain, rewritten on both engines, and with each
// instruction counted by itself, and expects the same of all. init is called
// first where it is not empty. It gives the rewritten module.
func behaves(t *testing.T, wasm []byte, opts Options, with hosts, init, name string, args ...uint64) *machine {
	t.Helper()
	const ample = 1 << 40
	out, _ := rewrite(t, wasm, opts)
	begin := func(m *machine) *guest {
		g := m.guest()
		if init != "" {
			if got := g.call(ample, init); got.trap != "" {
				t.Fatalf("%s: %v", init, got)
			}
		}
		return g
	}
	run := func(cfg wazero.RuntimeConfig, wasm []byte) (*machine, outcome) {
		m := compile(t, cfg.WithMemoryLimitPages(max(opts.MemoryPages, 16)), wasm, with)
		return m, begin(m).call(ample, name, args...)
	}
	_, plain := run(engines[0].cfg(), wasm)
	m, full := run(engines[0].cfg(), out)
	if !full.same(plain) || full.dry || full.deep || full.trap != "" {
		t.Fatalf("plain %v, rewritten %v", plain, full)
	}
	if _, got := run(engines[1].cfg(), out); got.String() != full.String() {
		t.Errorf("compiled %v, interpreted %v", full, got)
	}
	if _, got := run(engines[0].cfg(), naive(t, wasm)); got.used != full.used || !got.same(plain) {
		t.Errorf("%d used, counted one by one %d", full.used, got.used)
	}
	t.Logf("%d bytes became %d; %s%v took %d", len(wasm), len(out), name, args, full.used)
	// With less it does not come to a good end.
	for _, fuel := range []int64{full.used - 1, full.used / 2, 100, 0} {
		if got := begin(m).call(fuel, name, args...); !got.dry {
			t.Errorf("with %d of %d: %v", fuel, full.used, got)
		}
	}
	return m
}

func wasi(t testing.TB) hosts {
	return func(rt wazero.Runtime) {
		if _, err := wasi_snapshot_preview1.Instantiate(context.Background(), rt); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGoGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles 2 MB")
	}
	out := filepath.Join(t.TempDir(), "guest.wasm")
	wasm := build(t, []string{"GOOS=wasip1", "GOARCH=wasm"}, out, tool(t, "go"), "build", "-buildmode=c-shared", "-o", out, "testdata/go/guest.go")
	g := behaves(t, wasm, Options{MemoryPages: 256}, wasi(t), "_initialize", "run", 20).guest()
	g.call(1<<40, "_initialize")
	if got := g.call(1<<40, "recurse", 1_000_000); !got.deep && got.trap == "" {
		t.Errorf("a million calls: %v", got)
	}
}

// TestZigGuest takes the committed module: Zig is not among the pinned compilers.
func TestZigGuest(t *testing.T) {
	behaves(t, read(t, "testdata/zig/guest.wasm"), Options{MemoryPages: 256}, nil, "", "run", 40)
}

// TestAssemblyScriptGuest takes what scripts/assemblyscript.sh builds, and compares.
func TestAssemblyScriptGuest(t *testing.T) {
	wasm := read(t, "../../sdk/assemblyscript/test/vectors.wasm")
	behaves(t, wasm, Options{MemoryPages: 256}, nil, "_initialize", "write")
	behaves(t, wasm, Options{MemoryPages: 256}, nil, "_initialize", "spell", 5, 0, 0)
}

func TestRustGuest(t *testing.T) {
	// The stock installation of rustc 1.63, whose idea of linking takes the
	// metadata in its own libraries for broken objects.
	const rustc = "/usr/bin/rustc"
	if _, err := os.Stat(rustc); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	script := "#!/bin/sh\nfor a do shift; [ \"$a\" = --fatal-warnings ] || set -- \"$@\" \"$a\"; done\nexec " + tool(t, "wasm-ld-19") + " \"$@\"\n"
	if err := os.WriteFile(link, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"0", "3", "s"} {
		t.Run("O"+level, func(t *testing.T) {
			out := filepath.Join(dir, "guest.wasm")
			wasm := build(t, nil, out, rustc, "--edition", "2021", "--crate-type", "cdylib", "--target", "wasm32-unknown-unknown",
				"-C", "opt-level="+level, "-C", "panic=abort", "-C", "linker="+link, "-C", "linker-flavor=wasm-ld",
				"--out-dir", dir, "-o", out, "testdata/rust/guest.rs")
			m := behaves(t, wasm, Options{MemoryPages: 32}, nil, "", "run", 60)
			if got := m.once(1<<40, "recurse", 100_000); got.dry || got.trap == "" {
				t.Errorf("deep recursion: %v", got)
			}
		})
	}
}

func TestCGuest(t *testing.T) {
	clang := tool(t, "clang-19")
	for _, flags := range [][]string{
		{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-Os"},
		{"-O3", "-msimd128", "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint", "-mmultivalue", "-mreference-types"},
	} {
		t.Run(flags[0]+flags[len(flags)-1], func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "guest.wasm")
			args := append([]string{"--target=wasm32", "-ffreestanding", "-nostdlib", "-Wl,--no-entry", "-o", out, "testdata/cost/json.c"}, flags...)
			wasm := build(t, nil, out, clang, args...)
			behaves(t, wasm, Options{}, nil, "", "json", 1)
			behaves(t, wasm, Options{}, nil, "", "dedupe", 1)
		})
	}
	out := filepath.Join(t.TempDir(), "guest.wasm")
	if got := build(t, nil, out, clang, "--target=wasm32", "-O2", "-ffreestanding", "-nostdlib", "-Wl,--no-entry,--strip-all", "-o", out, "testdata/cost/json.c"); !bytes.Equal(got, read(t, "testdata/cost/json.wasm")) {
		t.Error("testdata/cost/json.wasm is not what clang-19 makes of json.c")
	}
}

// TestPolicies rewrites the committed guests, and calls their exports against
// hosts that answer 0 to everything.
func TestPolicies(t *testing.T) {
	files, err := filepath.Glob("../../policies/*/*.wasm")
	if err != nil || len(files) == 0 {
		t.Fatalf("no policies (%v)", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			wasm := read(t, file)
			m, err := Read(wasm, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			out, info := rewrite(t, wasm, Options{})
			t.Logf("%d bytes became %d, and a call weighs at most %d", len(wasm), len(out), info.Heaviest)
			plainly := compile(t, engines[0].cfg().WithMemoryLimitPages(DefaultMemoryPages), wasm, silent(t, m))
			compiled := compile(t, engines[0].cfg(), out, silent(t, m))
			interpreted := compile(t, engines[1].cfg(), out, silent(t, m))
			for _, exp := range m.Exports {
				if exp.Kind != KindFunction {
					continue
				}
				for _, a := range []uint64{0, 64, 1 << 12, 1 << 31} {
					args := make([]uint64, len(exp.Type.Params))
					for i := range args {
						args[i] = a * uint64(i+1)
					}
					plain := plainly.once(0, exp.Name, args...)
					full := compiled.once(1<<30, exp.Name, args...)
					if !full.same(plain) || full.dry || full.deep {
						t.Errorf("%s%v: plain %v, rewritten %v", exp.Name, args, plain, full)
					}
					if got := interpreted.once(1<<30, exp.Name, args...); got.String() != full.String() {
						t.Errorf("%s%v: compiled %v, interpreted %v", exp.Name, args, full, got)
					}
				}
			}
		})
	}
}

// silent offers whatever functions a module imports.
func silent(t testing.TB, m *Module) hosts {
	return func(rt wazero.Runtime) {
		types := func(list []ValType) (all []api.ValueType) {
			for _, v := range list {
				all = append(all, api.ValueType(v))
			}
			return all
		}
		builders := map[string]wazero.HostModuleBuilder{}
		for _, imp := range m.Imports {
			b := builders[imp.Module]
			if b == nil {
				b = rt.NewHostModuleBuilder(imp.Module)
				builders[imp.Module] = b
			}
			results := len(imp.Type.Results)
			b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
				clear(stack[:results])
			}), types(imp.Type.Params), types(imp.Type.Results)).Export(imp.Name)
		}
		for _, b := range builders {
			if _, err := b.Instantiate(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
