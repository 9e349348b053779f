package wazero

import (
	"context"
	"errors"
	"os"
	goruntime "runtime"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
)

// TestCell holds that the engine's records are still such that the word of the fuel is
// found, and that it is the fuel's.
func TestCell(t *testing.T) {
	m := counting(t)
	defer m.Close()
	var last *instance
	for range 3 {
		mod, err := m.Instantiate(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		in := mod.(*instance)
		if in.cell == nil || last != nil && in.cell == last.cell {
			t.Fatal("the word of the fuel is not found")
		}
		in.SetFuel(1000)
		if err := in.Call(call(), runtime.ExportArena, []uint64{64}); err != nil {
			t.Fatal(err)
		}
		if in.Fuel() != int64(in.fuel.Get()) || in.Fuel() >= 1000 || in.Fuel() < 900 {
			t.Error(in.Fuel(), in.fuel.Get())
		}
		in.SetFuel(1)
		var trap *runtime.Trap
		if err := in.Call(call(), runtime.ExportArena, []uint64{64}); !errors.As(err, &trap) || trap.Kind != runtime.TrapOutOfFuel {
			t.Error(err)
		}
		last = in
	}
	if p := cell(last.mod, stuck{last.fuel}); p != nil {
		t.Error("a word is taken for a global that is none")
	}
	if p := cell(nil, last.fuel); p != nil {
		t.Error("a word is found in no records")
	}
}

// TestCellOutlivesItsInstance: the word is memory of Go's that the pointer alone holds,
// wherever the guest's memory goes and whatever is closed.
func TestCellOutlivesItsInstance(t *testing.T) {
	m := counting(t)
	mod, err := m.Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	in := mod.(*instance)
	if _, ok := in.mem.Grow(1); !ok {
		t.Fatal("the memory does not grow")
	}
	in.SetFuel(1000)
	if err := in.Call(call(), runtime.ExportArena, []uint64{64}); err != nil {
		t.Fatal(err)
	}
	if in.Fuel() != int64(in.fuel.Get()) || in.Fuel() >= 1000 {
		t.Error(in.Fuel(), in.fuel.Get())
	}
	if err := errors.Join(in.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	in = &instance{cell: in.cell}
	for range 3 {
		goruntime.GC()
		in.SetFuel(in.Fuel() + 1)
	}
}

// TestCellOfOtherEngines: where the records are others, the fuel goes through the
// engine's interface.
func TestCellOfOtherEngines(t *testing.T) {
	// (module (global (export "g") (mut i64) (i64.const 7)))
	wasm := []byte("\x00asm\x01\x00\x00\x00\x06\x06\x01\x7e\x01\x42\x07\x0b\x07\x05\x01\x01g\x03\x00")
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(ctx)
	mod, err := rt.Instantiate(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	g := mod.ExportedGlobal("g").(api.MutableGlobal)
	if p := cell(mod, g); p != nil || g.Get() != 7 {
		t.Error(p, g.Get())
	}
	in := &instance{fuel: g}
	if in.SetFuel(5); in.Fuel() != 5 || g.Get() != 5 {
		t.Error(in.Fuel(), g.Get())
	}
}

// counting is a guest as admission rewrites it.
func counting(t *testing.T) runtime.Module {
	t.Helper()
	wasm, err := os.ReadFile("testdata/sdk.wasm")
	if err != nil {
		t.Fatal(err)
	}
	wasm, _, err = admit.Rewrite(wasm, admit.Options{MemoryPages: 16})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{}).Compile(context.Background(), wasm, runtime.CompileOptions{MemoryPages: 16})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stuck is a global that never shows what it is set to.
type stuck struct{ api.MutableGlobal }

func (stuck) Set(uint64) {}
