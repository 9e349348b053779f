package admit

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestNaNs holds which bits of NaNs can be seen. The module's own NaN is
// 0xfff4000000000123, or 0xffa00123.
func TestNaNs(t *testing.T) {
	wasm, err := os.ReadFile("testdata/run/numbers.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const (
		nan64 = canonicalF64
		nan32 = canonicalF32
		twice = nan32<<32 | nan32
		one64 = 0x3ff0000000000000
	)
	want := map[string][]uint64{
		// Bits that are only moved stay.
		"kept64":           {0xfff4000000000123},
		"neg_keeps64":      {0x7ff4000000000123},
		"copysign_keeps32": {0x7fa00123},
		"moves":            {0xfff4000000000123},
		"lanes4_kept":      {0x3f800000_7fa00123, 0x7f800000_7fa00001},
		"lanes2_pmin":      {0xfff4000000000123, 0},
		// Results of arithmetic are canonical.
		"add64": {nan64}, "add32": {nan32}, "infinities": {nan32}, "min": {nan32}, "max": {nan64},
		"round": {0}, "demote": {nan32}, "promote": {nan64}, "stored": {nan64}, "chain": {nan64},
		"through_local": {nan64}, "through_global": {nan64}, "through_call": {nan64},
		"sign_seen":     {0x4000000000000000},
		"lanes4":        {0x40000000_7fc00000, 0xff800000_7fc00000},
		"lanes2":        {nan64, one64},
		"lanes4_min":    {0x00000000_7fc00000, 0xff800000_7fc00000},
		"lanes_mixed":   {nan64, 0xff800000_7fc00000},
		"lanes_chain":   {0x3f800000_7fc00000, twice},
		"lanes_extract": {nan32},
		"lanes_demote":  {0x3f800000_7fc00000, 0},
		"lanes_promote": {nan64, one64},
		"lanes_store":   {nan64}, "lanes_global": {nan64, 0},
	}
	out, info := rewrite(t, wasm, Options{})
	for _, e := range engines {
		m := compile(t, e.cfg(), out, nil)
		for name, values := range want {
			if got := m.once(1000, name); !slices.Equal(got.values, values) {
				t.Errorf("%s: %s gives %x, want %x", e.name, name, got.values, values)
			}
		}
		for name, values := range map[string][2]uint64{
			"zero_by_zero":   {nan64, 0x7ff0000000000000},
			"through_block":  {nan64, nan64},
			"through_select": {one64, nan64},
		} {
			for arg, want := range values {
				if got := m.once(1000, name, uint64(arg)); !slices.Equal(got.values, []uint64{want}) {
					t.Errorf("%s: %s(%d) gives %x, want %x", e.name, name, arg, got.values, want)
				}
			}
		}
	}
	if info.NaNs == 0 {
		t.Error("no instruction is reported")
	}

	kept, info := rewrite(t, wasm, Options{KeepNaNs: true})
	if info.NaNs != 0 || len(kept) >= len(out) {
		t.Errorf("KeepNaNs: %d instructions, %d bytes after %d", info.NaNs, len(kept), len(out))
	}
}

// TestNaNsLazily holds that a result which no one can tell from another NaN costs
// nothing.
func TestNaNsLazily(t *testing.T) {
	f := byte(F64)
	one := cat(raw(opF64Const), make([]byte, 8))
	add, lt, drop := raw(0xa0), raw(0x63), raw(opDrop)
	fn := func(code ...[]byte) []byte {
		return module(section(1, vec(funcType(nil, raw(f)))), oneFunc, section(10, vec(body(vec(raw(1, f)), cat(code...), end))))
	}
	for _, tc := range []struct {
		name string
		wasm []byte
		want int
	}{
		{"result", fn(one, one, add), 1},
		{"sum of sums", fn(one, one, add, one, one, add, add), 1},
		{"compared", fn(one, one, add, one, lt, drop, one), 0},
		{"dropped", fn(one, one, add, drop, one), 0},
		{"local", fn(one, one, add, raw(opLocalSet, 0), raw(opLocalGet, 0)), 1},
		{"local and sum", fn(one, one, add, raw(opLocalTee, 0), one, add), 2},
		{"code that cannot run", fn(one, raw(opReturn), one, one, add), 0},
	} {
		if _, info := rewrite(t, tc.wasm, Options{}); info.NaNs != tc.want {
			t.Errorf("%s: %d results made canonical, want %d", tc.name, info.NaNs, tc.want)
		}
	}
}

// TestOpcodesWithOpenNaNs counts the instructions that the specification says
// may give any NaN, by the tables.
func TestOpcodesWithOpenNaNs(t *testing.T) {
	count := func(list []instruction) (n int) {
		for _, in := range list {
			if in.nan != noLanes {
				n++
			}
		}
		return n
	}
	// f32 and f64: ceil, floor, trunc, nearest, sqrt, add, sub, mul, div,
	// min, max, and one conversion.
	if n := count(numericTable()[:]); n != 2*12 {
		t.Errorf("%d scalar instructions", n)
	}
	if n := count(vectorTable()[:]); n != 2*12 {
		t.Errorf("%d vector instructions", n)
	}
	known := 0
	for _, in := range vectorTable() {
		if in.known {
			known++
		}
	}
	if known != 236 {
		t.Errorf("%d vector instructions, and WebAssembly 2.0 has 236", known)
	}
	for i, in := range numericTable() {
		if !in.known {
			t.Errorf("numeric instruction %d is not described", i)
		}
	}
	if !strings.HasPrefix(CostModel, "fuel/") {
		t.Error(CostModel)
	}
}
