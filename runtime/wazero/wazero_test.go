package wazero

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// testClock is kvrt_clock with a function that does what the test wants.
type testClock struct{ now func(c *runtime.Call) int64 }

func (testClock) Name() string { return abi.ModuleClock }
func (k testClock) Functions() []runtime.HostFunction {
	return []runtime.HostFunction{{Name: "now", Results: []abi.ValType{abi.I64}, Call: func(c *runtime.Call, _ []byte, stack []uint64) {
		stack[0] = uint64(k.now(c))
	}}}
}

func constant(*runtime.Call) int64 { return 42 }

func instantiate(t testing.TB, cfg Config, file string, now func(*runtime.Call) int64) runtime.Instance {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(cfg).Compile(context.Background(), wasm, runtime.CompileOptions{Hosts: []runtime.HostModule{testClock{now}}, MemoryPages: 16})
	if err != nil {
		t.Fatal(err)
	}
	in, err := m.Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), m.Close()); err != nil {
			t.Error(err)
		}
	})
	return in
}

func call() *runtime.Call { return runtime.NewCall(runtime.CallConfig{Guest: "test"}) }

func TestCallEnds(t *testing.T) {
	for name, c := range map[string]struct {
		export runtime.Export
		now    func(*runtime.Call) int64
		want   runtime.TrapKind
		msg    string
	}{
		"trap":       {runtime.ExportParse, constant, runtime.TrapGuest, "unreachable"},
		"deadline":   {runtime.ExportFormulate, constant, runtime.TrapTimeout, "past its deadline"},
		"host panic": {runtime.ExportHandle, func(*runtime.Call) int64 { panic("boom") }, runtime.TrapHostPanic, "a host function panicked: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			in := instantiate(t, Config{Deadline: 20 * time.Millisecond}, "bare.wasm", c.now)
			var stack [3]uint64
			err := in.Call(call(), c.export, stack[:])
			var trap *runtime.Trap
			if !errors.As(err, &trap) || trap.Kind != c.want || !strings.HasPrefix(trap.Msg, c.msg) || strings.Contains(trap.Msg, "\n") {
				t.Fatalf("got %#v, want kind %d and %q", err, c.want, c.msg)
			}
		})
	}
}

func TestCallPassesTheCall(t *testing.T) {
	c := call()
	in := instantiate(t, Config{}, "bare.wasm", func(got *runtime.Call) int64 {
		if got != c || !got.InHost() {
			t.Error("the host function got another call")
		}
		return 7
	})
	stack := [3]uint64{1, 2, 3}
	if err := in.Call(c, runtime.ExportHandle, stack[:]); err != nil || stack[0] != 7 || c.InHost() {
		t.Fatalf("%v, result %d", err, stack[0])
	}
	if in.Has(runtime.ExportInitialize) || !in.Has(runtime.ExportIdle) {
		t.Fatal("Has does not know the exports")
	}
	if n := len(in.Memory()); n != 64<<10 {
		t.Fatalf("memory of %d bytes", n)
	}
}

// TestGuestsAreIsolated loads two guests that each import a capability of the same
// name: each reaches its own.
func TestGuestsAreIsolated(t *testing.T) {
	a := instantiate(t, Config{}, "bare.wasm", func(*runtime.Call) int64 { return 1 })
	b := instantiate(t, Config{}, "bare.wasm", func(*runtime.Call) int64 { return 2 })
	var stack [3]uint64
	for want, in := range map[uint64]runtime.Instance{1: a, 2: b} {
		if err := in.Call(call(), runtime.ExportHandle, stack[:]); err != nil || stack[0] != want {
			t.Fatalf("%v, got %d, want %d", err, stack[0], want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	e := New(Config{})
	if e.Name() != "wazero" {
		t.Error(e.Name())
	}
	for name, wasm := range map[string]string{"garbage": "not a module", "empty": ""} {
		if _, err := e.Compile(context.Background(), []byte(wasm), runtime.CompileOptions{MemoryPages: 1}); err == nil {
			t.Errorf("%s was compiled", name)
		}
	}
}

// TestGuestsAreWhatTheirSourcesGive rebuilds the guests of this folder.
func TestGuestsAreWhatTheirSourcesGive(t *testing.T) {
	for _, name := range []string{"sdk", "sdk-host"} {
		if _, err := exec.LookPath("clang-19"); err != nil {
			t.Skip("clang-19 is not installed: run make tools")
		}
		out := filepath.Join(t.TempDir(), "out.wasm")
		build := exec.Command("clang-19", "--target=wasm32", "-std=c11", "-O2", "-mbulk-memory", "-ffreestanding", "-fno-builtin", "-nostdlib", "-Wall", "-Wextra", "-Werror",
			"-I../../sdk/c/include", "-Wl,--no-entry,--stack-first,-z,stack-size=16384,--strip-all", "-o", out, filepath.Join("testdata", name+".c"))
		if msg, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, msg)
		}
		want, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
		if err != nil || string(have) != string(want) {
			t.Errorf("%s.wasm is not what its source gives (%v): build it as this test does", name, err)
		}
	}
}
