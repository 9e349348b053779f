package admit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func readFile(t *testing.T, path string) ([]byte, *Module) {
	t.Helper()
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return wasm, m
}

// TestTestdataIsRebuilt holds that each .wasm is what its .wat says.
func TestTestdataIsRebuilt(t *testing.T) {
	texts, err := filepath.Glob("testdata/*.wat")
	if err != nil || len(texts) == 0 {
		t.Fatalf("no text modules in testdata (%v)", err)
	}
	more, err := filepath.Glob("testdata/*/*.wat")
	if err != nil {
		t.Fatal(err)
	}
	texts = append(texts, more...)
	wat2wasm, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed")
	}
	for _, text := range texts {
		binary := strings.TrimSuffix(text, ".wat") + ".wasm"
		out := filepath.Join(t.TempDir(), "out.wasm")
		args := []string{"-o", out, text}
		if filepath.Dir(text) == "testdata" {
			// So that refused features can be written down.
			args = append(args, "--enable-all")
		}
		if flags := says(t, text, "flags"); flags != "" {
			args = append(args, flags)
		}
		if msg, err := exec.Command(wat2wasm, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", text, err, msg)
			continue
		}
		built, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(built, kept) {
			t.Errorf("%s is not what wat2wasm makes of %s", binary, text)
		}
	}
}

func TestReadGuest(t *testing.T) {
	wasm, m := readFile(t, "testdata/guest.wasm")
	for _, err := range []error{
		m.CheckExport("kvrt_init", []ValType{I32, I32}, []ValType{I64}),
		m.CheckExport("kvrt_handle", []ValType{I32, I32, I32}, []ValType{I64}),
		m.CheckMemory(0),
		m.CheckStart(),
		m.CheckImports(func(module, name string) (FuncType, error) {
			return FuncType{Params: []ValType{I32, I32, I32}, Results: []ValType{I32}}, nil
		}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := m.Memories, []MemoryType{{Min: 2}}; !slices.Equal(got, want) {
		t.Errorf("memories %+v, want %+v", got, want)
	}
	if m.DataSegments != 2 || m.ElementSegments != 1 || m.Elements != 2 || m.ImportedFunctions != 1 {
		t.Errorf("counts: %+v", m)
	}
	var locals []int
	for _, f := range m.Functions {
		locals = append(locals, f.Locals)
	}
	if want := []int{0, 3, 1}; !slices.Equal(locals, want) {
		t.Errorf("locals %v, want %v", locals, want)
	}
	if f := m.Functions[0]; wasm[f.Code] != opI64Const {
		t.Errorf("the code of function 1 begins with 0x%02x", wasm[f.Code])
	}
}

// TestReadFeatureModules reads what a toolchain makes of refused features.
func TestReadFeatureModules(t *testing.T) {
	for name, want := range map[string][]string{
		"threads":      {RuleThreads},
		"memory64":     {RuleMemory64},
		"multi-memory": {RuleMultiMemory},
		"exceptions":   {RuleExceptions, RuleExceptions},
	} {
		wasm, err := os.ReadFile("testdata/" + name + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		if got := rules(readErr(t, wasm, Limits{})); !slices.Equal(got, want) {
			t.Errorf("%s: rules %q, want %q", name, got, want)
		}
	}
}

// TestReadStockGo builds a guest with the Go toolchain that runs the test: its
// linker pads section sizes, splits its data and fills a table with every
// function.
func TestReadStockGo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a Go program")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module guest\n\ngo 1.24\n",
		"main.go": `package main

//go:wasmexport kvrt_init
func kvrtInit(offset, size uint32) uint64 { return uint64(offset)<<32 | uint64(size) }

func main() {}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", "guest.wasm", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}

	_, m := readFile(t, filepath.Join(dir, "guest.wasm"))
	if err := m.CheckExport("kvrt_init", []ValType{I32, I32}, []ValType{I64}); err != nil {
		t.Error(err)
	}
	if err := m.CheckExport("_initialize", nil, nil); err != nil {
		t.Error(err)
	}
	if err := m.CheckMemory(64); err != nil { // 4 MiB
		t.Error(err)
	}
	if got := rules(m.CheckMemory(0)); !slices.Equal(got, []string{RuleMemoryPages}) {
		t.Errorf("with the default memory: rules %q", got)
	}
	if err := m.CheckStart(); err != nil {
		t.Error(err)
	}
	for _, imp := range m.Imports {
		if imp.Module != "wasi_snapshot_preview1" || imp.Kind != KindFunction {
			t.Errorf("unexpected import %+v", imp)
		}
	}
	if m.Memories[0].HasMax || len(m.Functions) < 500 || m.DataSegments < 100 {
		t.Errorf("this is not what the Go linker wrote before: memory %+v, %d functions, %d data segments", m.Memories[0], len(m.Functions), m.DataSegments)
	}
	t.Logf("%d bytes, %d functions, %d table entries, %d data segments, %d pages", m.Size, len(m.Functions), m.Tables[0].Min, m.DataSegments, m.Memories[0].Min)
}
