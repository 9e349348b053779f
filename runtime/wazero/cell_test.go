package wazero

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
)

// TestCell holds that the engine's records are still such that the word of the fuel is
// found, and that it is the fuel's.
func TestCell(t *testing.T) {
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

// stuck is a global that never shows what it is set to.
type stuck struct{ api.MutableGlobal }

func (stuck) Set(uint64) {}
