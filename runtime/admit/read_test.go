package admit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestReadWholeModule(t *testing.T) {
	wasm := wholeModule()
	m, err := Read(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t0 := FuncType{Params: []ValType{I32, I32}, Results: []ValType{I64}}
	t1 := FuncType{Params: []ValType{}, Results: []ValType{}}

	check := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
		}
	}
	check("types", m.Types, []FuncType{t0, t1})
	check("imports", m.Imports, []Import{
		{Module: "kvrt_log", Name: "write", Kind: KindFunction, Index: 0, Type: &t0},
		{Module: "env", Name: "base", Kind: KindGlobal, Index: 0},
		{Module: "kvrt_log", Name: "write", Kind: KindFunction, Index: 1, Type: &t1},
	})
	check("imported functions", m.ImportedFunctions, 2)
	check("exports", m.Exports, []Export{
		{Name: "memory", Kind: KindMemory},
		{Name: "handle", Kind: KindFunction, Index: 2, Type: &t0},
		{Name: "log", Kind: KindFunction, Index: 1, Type: &t1},
		{Name: "table", Kind: KindTable},
		{Name: "stack", Kind: KindGlobal, Index: 1},
	})
	check("tables", m.Tables, []TableType{{Element: FuncRef, Min: 4, Max: 9, HasMax: true}})
	check("memories", m.Memories, []MemoryType{{Min: 2}})
	check("globals", m.Globals, []GlobalType{
		{Type: I32, Imported: true}, {Type: I32, Mutable: true}, {Type: F64}, {Type: V128}, {Type: ExternRef}, {Type: I32},
	})
	check("start", m.HasStart, true)
	check("data segments", m.DataSegments, 3)
	check("element segments", m.ElementSegments, 8)
	check("elements", m.Elements, 8)
	check("size", m.Size, len(wasm))
	check("digest", m.SHA256, sha256.Sum256(wasm))

	if len(m.Functions) != 2 {
		t.Fatalf("%d functions, want 2", len(m.Functions))
	}
	f := m.Functions[0]
	check("locals", f.Locals, 302)
	check("type of the body", f.Type, 0)
	check("code of the first body", wasm[f.Code:f.Offset+f.Size], []byte{0x42, 0, opEnd})
	f = m.Functions[1]
	check("second body", wasm[f.Offset:f.Offset+f.Size], []byte{0, opEnd})
	check("code of the second body", wasm[f.Code:f.Offset+f.Size], []byte{opEnd})

	for _, c := range m.Customs {
		if !bytes.Equal(wasm[c.Offset:c.Offset+len(c.Data)], c.Data) {
			t.Errorf("custom section %q is not at its offset %d", c.Name, c.Offset)
		}
	}
	first, ok := m.Custom("first")
	check("first custom section of a name", string(first), "one")
	check("there is one", ok, true)
	last, _ := m.Custom("last")
	check("last custom section", string(last), "two")
	_, ok = m.Custom("none")
	check("there is none", ok, false)
}

// TestReadPadded holds the decision about redundant bytes in integers.
func TestReadPadded(t *testing.T) {
	sized := func(id byte, content []byte) []byte {
		return cat(raw(id), padded(uint64(len(content)), 5), content)
	}
	wasm := module(
		sized(1, cat(padded(1, 5), raw(0x60), padded(1, 5), raw(i32), padded(0, 3))),
		sized(3, cat(padded(1, 2), padded(0, 5))),
		sized(6, cat(padded(1, 5), raw(i32, 0, opI32Const), padded(5, 5), end, raw())),
		sized(7, cat(padded(1, 5), padded(1, 5), []byte("f"), raw(0), padded(0, 5))),
		sized(10, cat(padded(1, 5), padded(8, 5), padded(1, 5), raw(2, i64), end)),
		sized(0, cat(padded(1, 4), []byte("c"), []byte("data"))),
	)
	m, err := Read(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Functions[0].Locals != 2 || m.Exports[0].Name != "f" {
		t.Errorf("padded integers were read as %+v", m)
	}
}

func TestReadSignedBounds(t *testing.T) {
	global := func(typ byte, expr ...byte) []byte {
		return module(section(6, vec(cat(raw(typ, 0), expr, end))))
	}
	for _, ok := range [][]byte{
		global(i32, opI32Const, 0x80, 0x80, 0x80, 0x80, 0x78),                               // lowest
		global(i32, opI32Const, 0xff, 0xff, 0xff, 0xff, 0x07),                               // highest
		global(i32, opI32Const, 0xff, 0xff, 0xff, 0xff, 0x7f),                               // -1, padded
		global(i64, opI64Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), // lowest
		global(i64, opI64Const, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00), // highest
	} {
		if _, err := Read(ok, Limits{}); err != nil {
			t.Errorf("% x: %v", ok, err)
		}
	}
	for _, bad := range [][]byte{
		global(i32, opI32Const, 0x80, 0x80, 0x80, 0x80, 0x08), // positive, sign bits differ
		global(i32, opI32Const, 0xff, 0xff, 0xff, 0xff, 0x77), // negative, sign bits differ
		global(i32, opI32Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00),
		global(i64, opI64Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
		global(i64, opI64Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00),
	} {
		if got := rules(readErr(t, bad, Limits{})); !slices.Equal(got, []string{RuleLEB128}) {
			t.Errorf("% x: rules %q, want %q", bad, got, RuleLEB128)
		}
	}
}

func readErr(t *testing.T, wasm []byte, lim Limits) error {
	t.Helper()
	m, err := Read(wasm, lim)
	if (m == nil) == (err == nil) {
		t.Fatalf("Read gave %v and %v: exactly one must be nil", m, err)
	}
	return err
}

func rules(err error) []string {
	var all []string
	for _, v := range Violations(err) {
		all = append(all, v.Rule)
	}
	return all
}

func TestReadRefuses(t *testing.T) {
	for _, tc := range refusals() {
		t.Run(tc.name, func(t *testing.T) {
			err := readErr(t, tc.wasm, tc.lim)
			if got := rules(err); !slices.Equal(got, tc.rules) {
				t.Fatalf("rules %q, want %q (%v)", got, tc.rules, err)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q does not say %q", err, tc.says)
			}
			for _, v := range Violations(err) {
				if v.Offset < 0 || v.Offset > len(tc.wasm) || v.Item == "" || v.Msg == "" {
					t.Errorf("incomplete violation %+v", v)
				}
			}
		})
	}
}

// TestReadReportsTogether holds that violations which do not hide each other
// come in one error, and that a hostile module cannot make the report long.
func TestReadReportsTogether(t *testing.T) {
	wasm := module(
		section(5, vec(raw(3, 1, 1))),
		section(13, raw(0)),
		section(7, vec(export("memory", 2, 0), export("memory", 2, 0))),
	)
	err := readErr(t, wasm, Limits{})
	if got, want := rules(err), []string{RuleThreads, RuleExceptions, RuleDuplicateExport}; !slices.Equal(got, want) {
		t.Errorf("rules %q, want %q", got, want)
	}
	var one *Error
	if !errors.As(err, &one) || one.Rule != RuleThreads || one.Item != "memory 0" {
		t.Errorf("errors.As gave %+v", one)
	}

	wasm = module(section(5, vec(raw(0, 1))), section(7, many(1000, export("memory", 2, 0))))
	if n := len(Violations(readErr(t, wasm, Limits{}))); n != maxFindings {
		t.Errorf("%d violations, want %d", n, maxFindings)
	}
}

// TestErrorsAreSafeToPrint: names come from strangers and end up in terminals.
func TestErrorsAreSafeToPrint(t *testing.T) {
	name := "\x1b[2J\n" + strings.Repeat("ü", 400)
	wasm := module(section(5, vec(raw(0, 1))), section(7, many(2, export(name, 2, 0))))
	text := readErr(t, wasm, Limits{}).Error()
	if strings.ContainsAny(text, "\x1b\n") {
		t.Errorf("raw control characters in %q", text)
	}
	if len(text) > 400 {
		t.Errorf("a message of %d bytes", len(text))
	}
}

func TestViolationsThroughWrapping(t *testing.T) {
	if got := Violations(nil); got != nil {
		t.Errorf("Violations(nil) = %v", got)
	}
	a, b := &Error{Rule: "a"}, &Error{Rule: "b"}
	err := errors.Join(errors.New("other"), wrapped{errors.Join(a, wrapped{b})})
	if got := rules(err); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("rules %q", got)
	}
}

type wrapped struct{ err error }

func (w wrapped) Error() string { return "wrapped: " + w.err.Error() }
func (w wrapped) Unwrap() error { return w.err }

func TestLimitsWithDefaults(t *testing.T) {
	v := reflect.ValueOf(Limits{}.WithDefaults())
	for i := range v.NumField() {
		if v.Field(i).Int() <= 0 {
			t.Errorf("%s has no default", v.Type().Field(i).Name)
		}
	}
	if got := (Limits{Exports: 3, Imports: -1}).WithDefaults(); got.Exports != 3 || got.Imports != 1024 {
		t.Errorf("set fields do not stay: %+v", got)
	}
}

func TestStrings(t *testing.T) {
	typ := FuncType{Params: []ValType{I32, F32, V128, FuncRef}, Results: []ValType{I64, F64, ExternRef, 0}}
	if got, want := typ.String(), "(i32, f32, v128, funcref) -> (i64, f64, externref, unknown)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	kinds := []string{KindFunction.String(), KindTable.String(), KindMemory.String(), KindGlobal.String(), Kind(9).String()}
	if want := []string{"function", "table", "memory", "global", "unknown"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
}
