package admit

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// TestCarriedValuesCost: a branch costs what it carries beyond one value, and a block
// what it takes or gives, whichever is more. What carries one value or none costs as
// before.
func TestCarriedValuesCost(t *testing.T) {
	body := func(code ...byte) []byte { return code }
	three := body(opI32Const, 1, opI32Const, 2, opI32Const, 3) // costs 3
	drop3 := body(opDrop, opDrop, opDrop)                      // and 3 more
	for name, c := range map[string]struct {
		code []byte
		cost int64
	}{
		"no values":       {body(opBlock, 0x40, opBr, 0, opEnd), 1},
		"one value":       {body(opBlock, byte(I32), opI32Const, 1, opBr, 0, opEnd, opDrop), 3},
		"a block":         {append(append(append(body(opBlock, 1), three...), opEnd), drop3...), 3 + 3 + 2},
		"br":              {append(append(append(body(opBlock, 1), three...), opBr, 0, opEnd), drop3...), 3 + 3 + 2 + 1 + 2},
		"br_if":           {append(append(append(body(opBlock, 1), three...), opI32Const, 0, opBrIf, 0, opEnd), drop3...), 3 + 3 + 2 + 2 + 2},
		"br_table":        {append(append(append(body(opBlock, 1), three...), opI32Const, 0, opBrTable, 1, 0, 0, opEnd), drop3...), 3 + 3 + 2 + 2 + 2},
		"what a loop has": {append(append(three[:len(three):len(three)], opLoop, 2), append(drop3[:3:3], opEnd)...), 3 + 3 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			// Types: () -> (), () -> (i32 i32 i32), (i32 i32 i32) -> ().
			wasm := append([]byte("\x00asm\x01\x00\x00\x00"), 1, 14, 3, 0x60, 0, 0, 0x60, 0, 3, byte(I32), byte(I32), byte(I32), 0x60, 3, byte(I32), byte(I32))
			wasm = append(wasm, byte(I32), 0)
			wasm[9] = byte(len(wasm) - 10)
			wasm = append(wasm, 3, 2, 1, 0, 7, 5, 1, 1, 'f', 0, 0)
			code := append(append([]byte{0}, c.code...), opEnd)
			wasm = append(wasm, 10, byte(len(code)+2), 1, byte(len(code)))
			wasm = append(wasm, code...)
			counted, _, err := Rewrite(wasm, Options{Fuel: 1000})
			if err != nil {
				t.Fatal(err)
			}
			rt := wazero.NewRuntime(context.Background())
			defer rt.Close(context.Background())
			for how, wasm := range map[string][]byte{"rewritten": counted, "naive": naive(t, wasm)} {
				m, err := rt.InstantiateWithConfig(context.Background(), wasm, wazero.NewModuleConfig().WithName(how))
				if err != nil {
					t.Fatal(err)
				}
				fuel := m.ExportedGlobal(ExportFuel).(api.MutableGlobal)
				fuel.Set(1000)
				if _, err := m.ExportedFunction("f").Call(context.Background()); err != nil {
					t.Fatal(err)
				}
				if got := 1000 - int64(fuel.Get()); got != c.cost {
					t.Errorf("%s: it costs %d, want %d", how, got, c.cost)
				}
			}
		})
	}
}
