package admit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var errNotGranted = errors.New("the capability kvrt_store is not granted; add it to the guest's grants")

type checkRefusal struct {
	name  string
	wasm  []byte
	check func(*Module) error
	rules []string
	says  string
}

// offer knows kvrt_log.write and refuses kvrt_store.
func offer(module, name string) (FuncType, error) {
	switch {
	case module == "kvrt_store":
		return FuncType{}, errNotGranted
	case module == "kvrt_log" && name == "write":
		return FuncType{Params: []ValType{I32}}, nil
	}
	return FuncType{}, fmt.Errorf("no host function is called %s.%s; build against the headers of this version", module, name)
}

// checkRefusals has at least one module for each rule of the Check methods.
func checkRefusals() []checkRefusal {
	handle := func(m *Module) error { return m.CheckExport("handle", []ValType{I32, I32}, []ValType{I64}) }
	memory := func(pages uint32) func(*Module) error {
		return func(m *Module) error { return m.CheckMemory(pages) }
	}
	imports := func(m *Module) error { return m.CheckImports(offer) }
	manifest := func(m *Module) error { return m.CheckCustom("manifest") }

	types := section(1, vec(funcType(raw(i32), nil)))
	exported := func(name string, kind byte) []byte {
		return module(types, oneFunc, oneTable, oneMemory, section(7, vec(export(name, kind, 0))), oneBody)
	}
	importing := func(entries ...[]byte) []byte { return module(types, section(2, vec(entries...))) }
	ownMemory := func(limits ...byte) []byte {
		return module(section(5, vec(limits)), section(7, vec(export("memory", 2, 0))))
	}
	others := make([][]byte, 9)
	for i := range others {
		others[i] = export(fmt.Sprintf("f%d", i), 0, 0)
	}
	return []checkRefusal{
		{"no export", module(), handle, []string{RuleExportMissing}, "the module exports no function"},
		{"misspelt export", exported("handel", 0), handle, []string{RuleExportMissing}, `the module exports the functions "handel"`},
		{"many others", module(types, oneFunc, section(7, vec(others...)), oneBody), handle, []string{RuleExportMissing}, `"f7", ...`},
		{"export of a memory", exported("handle", 2), handle, []string{RuleExportKind}, "it is a memory"},
		{"export with another signature", exported("handle", 0), handle, []string{RuleExportSignature}, "its signature is (i32) -> () and must be (i32, i32) -> (i64)"},

		{"imports", importing(
			imported("env", "table", 1, raw(byte(FuncRef), 0, 1)),
			imported("kvrt_log", "write", 0, uleb(0)),
			imported("kvrt_store", "get", 0, uleb(0)),
		), imports, []string{RuleImportKind, RuleImportOffer}, `import "kvrt_store.get": the capability kvrt_store is not granted`},
		{"unknown import", importing(imported("env", "abort", 0, uleb(0))), imports, []string{RuleImportOffer}, "no host function is called env.abort"},
		{"import with another signature", module(oneType, section(2, vec(imported("kvrt_log", "write", 0, uleb(0))))), imports,
			[]string{RuleImportSignature}, "its signature is () -> () and must be (i32) -> ()"},

		{"no memory", module(), memory(0), []string{RuleMemoryMissing}, "has none"},
		{"imported memory", importing(imported("env", "memory", 2, raw(0, 1))), memory(0), []string{RuleMemoryImported}, "--import-memory"},
		{"memory not exported", module(oneMemory), memory(0), []string{RuleMemoryExport}, `export "memory"`},
		{"memory exported under another name", exported("mem", 2), memory(0), []string{RuleMemoryExport}, `export "memory"`},
		{"memory is a table", exported("memory", 1), memory(0), []string{RuleMemoryExport}, "it is a table"},
		{"too many pages", ownMemory(0, 17), memory(0), []string{RuleMemoryPages}, "17 pages of 64 KiB, and at most 16"},
		{"too many pages for a grant", ownMemory(0, 64), memory(63), []string{RuleMemoryPages}, "at most 63"},
		{"hidden and too large", module(section(5, vec(raw(0, 17)))), memory(0), []string{RuleMemoryExport, RuleMemoryPages}, "17"},

		{"start section", module(oneType, oneFunc, section(8, uleb(0)), oneBody), (*Module).CheckStart, []string{RuleStart}, "init function"},
		{"no manifest", module(), manifest, []string{RuleCustomMissing}, `custom section "manifest"`},
		{"two manifests", module(custom("manifest"), custom("manifest")), manifest, []string{RuleCustomDuplicate}, "2 of them"},
	}
}

func TestChecksRefuse(t *testing.T) {
	for _, tc := range checkRefusals() {
		t.Run(tc.name, func(t *testing.T) {
			m, err := Read(tc.wasm, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			err = tc.check(m)
			if got := rules(err); !slices.Equal(got, tc.rules) {
				t.Fatalf("rules %q, want %q (%v)", got, tc.rules, err)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q does not say %q", err, tc.says)
			}
		})
	}
}

func TestChecksAccept(t *testing.T) {
	wasm := module(
		custom("manifest", []byte("{}")),
		section(1, vec(funcType(raw(i32, i32), raw(i64)), funcType(raw(i32), nil))),
		section(2, vec(imported("kvrt_log", "write", 0, uleb(1)))),
		oneFunc,
		section(5, vec(cat(raw(1, 16), uleb(65536)))), // the maximum is not the guest's to say
		section(7, vec(export("memory", 2, 0), export("also", 2, 0), export("handle", 0, 1))),
		oneBody,
	)
	m, err := Read(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		m.CheckExport("handle", []ValType{I32, I32}, []ValType{I64}),
		m.CheckImports(offer),
		m.CheckMemory(0),
		m.CheckMemory(16),
		m.CheckStart(),
		m.CheckCustom("manifest"),
	)
	if err != nil {
		t.Error(err)
	}
}

// TestImportCauseCanBeAsked: a caller branches on its own reason.
func TestImportCauseCanBeAsked(t *testing.T) {
	m, err := Read(module(oneType, section(2, vec(imported("kvrt_store", "get", 0, uleb(0))))), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CheckImports(offer); !errors.Is(err, errNotGranted) {
		t.Errorf("%v does not wrap the cause", err)
	}
}
