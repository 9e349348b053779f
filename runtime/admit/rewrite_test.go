package admit

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestCosts holds what is charged by length. The bodies have 4 instructions with
// three operands, or 2 with one, and what comes after.
func TestCosts(t *testing.T) {
	out, _ := rewrite(t, read(t, "testdata/run/bulk.wasm"), Options{MemoryPages: 3, TableElements: 11})
	m := compile(t, engines[0].cfg(), out, nil)
	const any = -1
	for _, tc := range []struct {
		name string
		args []uint64
		used int64
		gave int64 // the first result
	}{
		{"fill", []uint64{0, 0}, 4, any},
		{"fill", []uint64{0, 15}, 4, any},
		{"fill", []uint64{0, 16}, 5, any},
		{"fill", []uint64{0, 65536}, 4 + 4096, any},
		{"copy", []uint64{0, 33}, 6 + 2, any},
		{"init", []uint64{0, 32}, 6 + 2, any},
		{"grow", []uint64{0}, 66, 1},
		{"grow", []uint64{2}, 66 + 2*4096, 1},
		{"grow", []uint64{3}, 66, 0xffffffff},             // beyond the grant
		{"grow", []uint64{1<<32 - 1}, 66, 0xffffffff},     // beyond all
		{"table_grow", []uint64{0}, 67, 4},                // null, length, grow, and size
		{"table_grow", []uint64{2}, 67 + 2, 4},            // 11 - 6 entries for two tables
		{"table_grow", []uint64{3}, 67, 0xffffffff},       // beyond the share
		{"table_grow_extern", []uint64{2}, 66 + 2, 2},     //
		{"table_grow_extern", []uint64{3}, 66, 1<<32 - 1}, //
		{"table_fill", []uint64{1, 3}, 4 + 63 + 3, any},
		{"table_copy", []uint64{1, 2}, 4 + 3 + 2, any},
		{"table_init", []uint64{0, 3}, 4 + 2 + 1 + 3, any}, // it calls what it wrote
	} {
		got := m.once(1<<20, tc.name, tc.args...)
		if got.trap != "" || got.used != tc.used {
			t.Errorf("%s%v: %v, want %d used", tc.name, tc.args, got, tc.used)
		}
		if tc.gave != any && (len(got.values) == 0 || got.values[0] != uint64(tc.gave)) {
			t.Errorf("%s%v gives %v, want %d", tc.name, tc.args, got.values, tc.gave)
		}
	}
	// A growth is paid before it happens.
	for fuel, grown := range map[int64]bool{66 + 4096: true, 66 + 4095: false} {
		g := m.guest()
		if got := g.call(fuel, "grow", 1); got.dry == grown || (g.mod.Memory().Size() == 2<<16) != grown {
			t.Errorf("growing with %d: %v, and %d bytes", fuel, got, g.mod.Memory().Size())
		}
	}
}

// TestDepth holds what an entry weighs, and that a trap says why.
func TestDepth(t *testing.T) {
	// A function of 3 parameters and locals and 2 operands that calls itself
	// so many times, and one of 400 locals.
	recursive := func(locals int) []byte {
		return module(
			section(1, vec(funcType(raw(i32), nil))), oneFunc,
			section(7, vec(export("f", 0, 0))),
			section(10, vec(body(vec(cat(uleb(uint64(locals)), raw(i32))),
				raw(opLocalGet, 0, opIf, none, opLocalGet, 0, opI32Const, 1, opI32Sub, opCall, 0, opEnd), end))))
	}
	for _, tc := range []struct {
		locals, weight int
	}{
		{2, 144},
		{3, 160},
		{400, 16*403 + 64},
	} {
		wasm := recursive(tc.locals)
		out, info := rewrite(t, wasm, Options{})
		if info.Heaviest != tc.weight {
			t.Errorf("%d locals weigh %d, want %d", tc.locals, info.Heaviest, tc.weight)
		}
		if info.Depth != DefaultDepth {
			t.Errorf("a depth of %d", info.Depth)
		}
		calls := DefaultDepth / tc.weight
		for _, e := range engines {
			m := compile(t, e.cfg(), out, nil)
			if got := m.once(1<<20, "f", uint64(calls-1)); got.trap != "" || got.deep {
				t.Errorf("%s: %d calls of %d bytes: %v", e.name, calls, tc.weight, got)
			}
			if got := m.once(1<<20, "f", uint64(calls)); got.trap != "wasm error: unreachable" || !got.deep || got.dry {
				t.Errorf("%s: %d calls of %d bytes: %v", e.name, calls+1, tc.weight, got)
			}
			if got := m.once(100, "f", uint64(calls)); got.deep || !got.dry {
				t.Errorf("%s: without fuel: %v", e.name, got)
			}
		}
	}
	small, info := rewrite(t, recursive(2), Options{Depth: 1440})
	m := compile(t, engines[0].cfg(), small, nil)
	if got := m.once(1<<20, "f", 9); info.Depth != 1440 || got.deep {
		t.Errorf("10 calls in a depth of %d: %v", info.Depth, got)
	}
	if got := m.once(1<<20, "f", 10); !got.deep {
		t.Errorf("11 calls in a depth of %d: %v", info.Depth, got)
	}
}

// TestRewrittenModule looks at all but the code.
func TestRewrittenModule(t *testing.T) {
	wasm := module(
		section(1, vec(funcType(nil, nil), funcType(nil, raw(i32, i64)))),
		custom(".debug_info", []byte("locates code")),
		section(3, vec(uleb(1))),
		section(4, vec(raw(byte(FuncRef), 0, 2), raw(byte(ExternRef), 1, 1, 5))),
		section(5, vec(raw(0, 3))),
		section(12, uleb(0)),
		// Branches out of the body need a block of its type.
		section(10, vec(body(noLocals, raw(opI32Const, 1, opI64Const, 2, opI32Const, 0, opBrIf, 0), end))),
		section(11, vec()),
		custom("name", raw(0, 1, 0)),
		custom("producers", raw(0)),
		custom("manifest", []byte("kept")),
		custom("reloc.CODE", []byte("locates code")),
	)
	out, info := rewrite(t, wasm, Options{MemoryPages: 8, TableElements: 103, Fuel: 77})
	m, err := Read(out, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []MemoryType{{Min: 3, Max: 8, HasMax: true}}; !slices.Equal(m.Memories, want) || info.MemoryPages != 8 {
		t.Errorf("memories %+v, want %+v; %d pages", m.Memories, want, info.MemoryPages)
	}
	tables := []TableType{{Element: FuncRef, Min: 2, Max: 52, HasMax: true}, {Element: ExternRef, Min: 1, Max: 5, HasMax: true}}
	if !slices.Equal(m.Tables, tables) {
		t.Errorf("tables %+v, want %+v", m.Tables, tables)
	}
	if want := []GlobalType{{Type: I64, Mutable: true}, {Type: I32, Mutable: true}}; !slices.Equal(m.Globals, want) {
		t.Errorf("globals %+v", m.Globals)
	}
	for i, name := range []string{ExportFuel, ExportDepth} {
		if e, ok := m.Export(name); !ok || e.Kind != KindGlobal || e.Index != i {
			t.Errorf("export %s: %+v", name, e)
		}
	}
	if len(m.Types) != 3 || m.Types[2].String() != "() -> (i32, i64)" {
		t.Errorf("types %v", m.Types)
	}
	names := func(m *Module) (all []string) {
		for _, c := range m.Customs {
			all = append(all, c.Name)
		}
		return all
	}
	if got, want := names(m), []string{"name", "producers", "manifest"}; !slices.Equal(got, want) {
		t.Errorf("custom sections %q, want %q", got, want)
	}
	if kept, _ := m.Custom("manifest"); string(kept) != "kept" {
		t.Errorf("a custom section became %q", kept)
	}
	guest := compile(t, engines[0].cfg(), out, nil).guest()
	if got := guest.global(ExportFuel).Get(); got != 77 {
		t.Errorf("it begins with a fuel of %d", got)
	}

	dropped, _ := rewrite(t, wasm, Options{MemoryPages: 8, DropCustoms: true})
	if m, err = Read(dropped, Limits{}); err != nil {
		t.Fatal(err)
	}
	if got, want := names(m), []string{"name", "producers"}; !slices.Equal(got, want) {
		t.Errorf("custom sections %q, want %q", got, want)
	}

	// Maxima of the module's own stay where they are smaller.
	out, _ = rewrite(t, module(section(5, vec(raw(1, 1, 2)))), Options{})
	if m, err = Read(out, Limits{}); err != nil || m.Memories[0].Max != 2 {
		t.Errorf("memories %+v (%v)", m.Memories, err)
	}
	for _, tc := range []struct {
		wasm []byte
		opts Options
		rule string
	}{
		{wasm, Options{MemoryPages: 2}, RuleMemoryPages},
		{wasm, Options{MemoryPages: 8, TableElements: 2}, RuleTableElements},
		{wasm, Options{MemoryPages: 8, Limits: Limits{ModuleBytes: 10}}, RuleModuleBytes},
	} {
		if _, _, err := Rewrite(tc.wasm, tc.opts); !slices.Equal(rules(err), []string{tc.rule}) {
			t.Errorf("%v, want %s", err, tc.rule)
		}
	}
}

// TestRewriteNothing: modules without code, or without any section.
func TestRewriteNothing(t *testing.T) {
	for name, wasm := range map[string][]byte{
		"nothing":  module(),
		"custom":   module(custom("a")),
		"memory":   module(oneMemory),
		"empty":    module(oneType, oneFunc, oneBody),
		"sections": module(section(1, vec()), section(3, vec()), section(4, vec()), section(5, vec()), section(6, vec()), section(7, vec()), section(10, vec())),
	} {
		out, _ := rewrite(t, wasm, Options{})
		m := compile(t, engines[0].cfg(), out, nil).guest()
		if m.global(ExportFuel).Get() != 0 || m.global(ExportDepth).Get() != DefaultDepth {
			t.Errorf("%s: wrong counters", name)
		}
	}
	// What was rewritten has the names of the counters, so it is not again.
	out, _ := rewrite(t, module(), Options{})
	if _, _, err := Rewrite(out, Options{}); !slices.Equal(rules(err), []string{RuleExportReserved, RuleExportReserved}) {
		t.Errorf("rewriting twice: %v", err)
	}
}

// TestGuestCannotReachCounters: a module that names the globals that are going to
// be there is refused.
func TestGuestCannotReachCounters(t *testing.T) {
	for _, code := range [][]byte{
		raw(opI64Const, 100, opGlobalSet, 0),
		raw(opGlobalGet, 0, opDrop),
		raw(opI32Const, 100, opGlobalSet, 1),
	} {
		wasm := module(oneType, oneFunc, section(10, vec(body(noLocals, code, end))))
		if _, _, err := Rewrite(wasm, Options{}); !slices.Equal(rules(err), []string{RuleIndex}) {
			t.Errorf("% x: %v", code, err)
		}
	}
	for _, sections := range [][]byte{
		section(7, vec(export("f", 3, 0))),
		section(6, vec(raw(byte(I64), 0, opGlobalGet, 1, opEnd))),
	} {
		if _, _, err := Rewrite(module(sections), Options{}); !slices.Equal(rules(err), []string{RuleIndex}) {
			t.Errorf("% x: %v", sections, err)
		}
	}
}

// TestLocalsOfEveryForm: declarations may be padded, empty or many, and their
// indices stay.
func TestLocalsOfEveryForm(t *testing.T) {
	for _, groups := range [][]byte{
		noLocals,
		vec(raw(0, i32)),
		vec(raw(1, i32), raw(1, i32), raw(2, i64)),
		cat(padded(1, 5), padded(3, 5), raw(i64)),
	} {
		wasm := module(section(1, vec(funcType(raw(i32), raw(i32)))), oneFunc, section(7, vec(export("f", 0, 0))),
			section(10, vec(body(groups, raw(opLoop, none, opLocalGet, 0, opI32Const, 3, opI32Sub, opLocalTee, 0, opI32Const, 0, 0x4a /* gt_s */, opBrIf, 0, opEnd, opLocalGet, 0), end))))
		out, _ := rewrite(t, wasm, Options{})
		if got := compile(t, engines[0].cfg(), out, nil).once(1000, "f", 7); len(got.values) != 1 || int32(got.values[0]) != -2 || got.used != 3*7+1 {
			t.Errorf("locals % x: %v", groups, got)
		}
	}
}

// TestHostChargesFuel: the counter is in its global while a host function runs,
// and what that takes is taken.
func TestHostChargesFuel(t *testing.T) {
	wasm := module(oneType, section(2, vec(imported("host", "work", 0, uleb(0)))), oneFunc,
		section(7, vec(export("f", 0, 1))),
		section(10, vec(body(noLocals, raw(opCall, 0, opI32Const, 0, opIf, none, opEnd, opCall, 0), end))))
	out, _ := rewrite(t, wasm, Options{})
	for _, e := range engines {
		var seen []int64
		take := int64(10)
		m := compile(t, e.cfg(), out, hostWork(t, func(fuel int64) int64 {
			seen = append(seen, fuel)
			return fuel - take
		}))
		if got := m.once(100, "f"); got.used != 4+2*take || got.trap != "" {
			t.Errorf("%s: %v", e.name, got)
		}
		// All that is going to be executed is charged at once.
		if want := []int64{96, 86}; !slices.Equal(seen, want) {
			t.Errorf("%s: the host saw %d, want %d", e.name, seen, want)
		}
		seen, take = nil, 97
		if got := m.once(100, "f"); !got.dry || len(seen) != 1 {
			t.Errorf("%s: the host took all, and was called %d times: %v", e.name, len(seen), got)
		}
		seen = nil
		if got := m.once(3, "f"); !got.dry || len(seen) != 0 {
			t.Errorf("%s: there was not enough, and the host was called %d times: %v", e.name, len(seen), got)
		}
	}
}

func TestRewriteKeepsUnknownSections(t *testing.T) {
	wasm := read(t, "testdata/guest.wasm")
	out, info := rewrite(t, wasm, Options{})
	if info.Source.Size != len(wasm) || info.CostModel != CostModel {
		t.Errorf("%+v", info)
	}
	for _, s := range spans(wasm) {
		if s.id == sectionData || s.id == sectionElement || s.id == sectionImport {
			if !bytes.Contains(out, wasm[s.start:s.to]) {
				t.Errorf("the %s changed", sectionName(s.id))
			}
		}
	}
	if strings.Contains(string(out), "kvrt:fuel") == strings.Contains(string(wasm), "kvrt:fuel") {
		t.Error("the counter is not exported")
	}
}
