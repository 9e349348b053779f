package admit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The core specification's own tests, as wazero ships them: scripts of modules
// and of calls with what they must give.

type specCommand struct {
	Type       string `json:"type"`
	Line       int    `json:"line"`
	Name       string `json:"name"`
	Filename   string `json:"filename"`
	As         string `json:"as"`
	ModuleType string `json:"module_type"`
	Text       string `json:"text"`
	Action     struct {
		Type   string      `json:"type"`
		Args   []specValue `json:"args"`
		Field  string      `json:"field"`
		Module string      `json:"module"`
	} `json:"action"`
	Expected []specValue `json:"expected"`
}

type specValue struct {
	Type  string `json:"type"`
	Lane  string `json:"lane_type"`
	Value any    `json:"value"`
}

func specDir(t testing.TB) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Skipf("where wazero's source lies is not known: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "internal/integration_test/spectest")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("wazero comes without the specification's tests: %v", err)
	}
	return dir
}

// TestSpec runs each script three times: plain, and rewritten on both engines.
func TestSpec(t *testing.T) {
	dir := specDir(t)
	host, err := os.ReadFile(filepath.Join(dir, "testdata/spectest.wasm"))
	if err != nil {
		t.Skip(err)
	}
	for _, version := range []string{"v1", "v2"} {
		files, err := filepath.Glob(filepath.Join(dir, version, "testdata/*.json"))
		if err != nil || len(files) < 50 {
			t.Fatalf("%d scripts in %s (%v)", len(files), version, err)
		}
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(dir, "v2/testdata", filepath.Base(file))); err == nil && version == "v1" {
				continue // version 2 has it, with more
			}
			t.Run(version+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				runScript(t, host, file)
			})
		}
	}
}

// specLine is what one command gave.
type specLine struct {
	line    int
	values  []uint64
	types   []string // of values; a lane type for each half of a v128
	failure string
	fuel    int64 // used, of a rewritten module
	deep    bool
}

func runScript(t *testing.T, host []byte, file string) {
	var script struct {
		Commands []specCommand `json:"commands"`
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &script); err != nil {
		t.Fatal(err)
	}
	run := func(cfg wazero.RuntimeConfig, rewrite bool) []specLine {
		ctx := context.Background()
		s := &specRun{t: t, ctx: ctx, dir: filepath.Dir(file), rewrite: rewrite, named: map[string]api.Module{}}
		s.rt = wazero.NewRuntimeWithConfig(ctx, cfg.WithCoreFeatures(api.CoreFeaturesV2))
		defer s.rt.Close(ctx)
		if _, err := s.rt.Instantiate(ctx, host); err != nil {
			t.Fatal(err)
		}
		for i := range script.Commands {
			c := &script.Commands[i]
			name := ""
			if c.Type == "module" && i+1 < len(script.Commands) && script.Commands[i+1].Type == "register" {
				name = script.Commands[i+1].As
			}
			s.command(c, name)
		}
		return s.lines
	}
	plain := run(wazero.NewRuntimeConfigCompiler(), false)
	counted := run(wazero.NewRuntimeConfigCompiler(), true)
	interpreted := run(wazero.NewRuntimeConfigInterpreter(), true)
	if len(plain) != len(counted) || len(plain) != len(interpreted) {
		t.Fatalf("%d, %d and %d outcomes", len(plain), len(counted), len(interpreted))
	}
	for i := range plain {
		p, c, n := plain[i], counted[i], interpreted[i]
		if c.deep && strings.Contains(p.failure, "stack overflow") {
			p.failure = c.failure
		}
		if p.failure != c.failure || !sameValues(p, c) {
			t.Errorf("line %d: plain gives %x %q, rewritten %x %q", p.line, p.values, p.failure, c.values, c.failure)
		}
		if fmt.Sprint(c) != fmt.Sprint(n) {
			t.Errorf("line %d: compiled gives %+v, interpreted %+v", p.line, c, n)
		}
	}
}

type specRun struct {
	t       *testing.T
	ctx     context.Context
	rt      wazero.Runtime
	dir     string
	rewrite bool
	named   map[string]api.Module
	last    api.Module
	counted []api.Module
	lines   []specLine
}

// wide are limits that the specification's tests fit.
func wide() Limits {
	return Limits{TableElements: math.MaxInt32, Locals: 100_000, AllLocals: math.MaxInt32, Types: 100_000, TypeValues: math.MaxInt32, Functions: 100_000, Nesting: 100_000, BranchTargets: 1 << 20, Params: 1000, Effort: math.MaxInt32, AllEffort: math.MaxInt32, Branches: 1 << 20}
}

const specFuel = 1 << 40

// load gives the module that is to run, and whether it is refused.
func (s *specRun) load(c *specCommand) ([]byte, error) {
	wasm, err := os.ReadFile(filepath.Join(s.dir, c.Filename))
	if err != nil {
		s.t.Fatal(err)
	}
	if !s.rewrite {
		return wasm, nil
	}
	out, _, err := Rewrite(wasm, Options{Limits: wide(), Fuel: specFuel, MemoryPages: maxPages, TableElements: math.MaxUint32, Depth: 128 << 10})
	if err != nil {
		return nil, err
	}
	again, _, err := Rewrite(wasm, Options{Limits: wide(), Fuel: specFuel, MemoryPages: maxPages, TableElements: math.MaxUint32, Depth: 128 << 10})
	if err != nil || string(again) != string(out) {
		s.t.Errorf("line %d: rewriting twice differs (%v)", c.Line, err)
	}
	m, err := Read(out, wide())
	if err == nil {
		err = m.Validate(out, wide())
	}
	if err != nil {
		s.t.Errorf("line %d: the rewritten module is not valid: %v", c.Line, err)
	}
	return out, nil
}

func (s *specRun) instantiate(wasm []byte, name string) (api.Module, error) {
	mod, err := s.rt.InstantiateWithConfig(s.ctx, wasm, wazero.NewModuleConfig().WithName(name))
	if err == nil && s.rewrite {
		s.counted = append(s.counted, mod)
	}
	return mod, err
}

func (s *specRun) global(mod api.Module, name string) api.MutableGlobal {
	g, _ := mod.ExportedGlobal(name).(api.MutableGlobal)
	if g == nil {
		s.t.Fatalf("no mutable global %s", name)
	}
	return g
}

func (s *specRun) command(c *specCommand, name string) {
	line := specLine{line: c.Line}
	switch c.Type {
	case "register":
		return
	case "module":
		wasm, err := s.load(c)
		if err != nil {
			s.t.Fatalf("line %d: %s: %v", c.Line, c.Filename, err)
		}
		mod, err := s.instantiate(wasm, name)
		if err != nil {
			s.t.Fatalf("line %d: %s: %v", c.Line, c.Filename, err)
		}
		s.last = mod
		if c.Name != "" {
			s.named[c.Name] = mod
		}
		return
	case "assert_malformed", "assert_invalid":
		if c.ModuleType == "text" {
			return
		}
		wasm, err := s.load(c)
		if !s.rewrite || err != nil || c.Text == "multiple tables" {
			return
		}
		// Version 1 refuses some of what version 2 has, as is the above.
		if _, err := s.rt.CompileModule(s.ctx, wasm); err != nil {
			s.t.Errorf("line %d: %s is accepted, and must not be: %s", c.Line, c.Filename, c.Text)
		}
		return
	case "assert_unlinkable", "assert_uninstantiable":
		wasm, err := s.load(c)
		if err != nil {
			s.t.Errorf("line %d: %s: %v", c.Line, c.Filename, err)
			return
		}
		if _, err := s.instantiate(wasm, ""); err != nil {
			line.failure = "does not link"
		}
	default:
		s.act(c, &line)
	}
	s.lines = append(s.lines, line)
}

func (s *specRun) act(c *specCommand, line *specLine) {
	mod := s.last
	if c.Action.Module != "" {
		mod = s.named[c.Action.Module]
	}
	for _, e := range c.Expected {
		line.types = append(line.types, e.kinds()...)
	}
	// Engines may leave the upper halves of 32-bit values dirty.
	defer func() {
		for i := range line.values {
			if i < len(line.types) && strings.HasSuffix(line.types[i], "32") && c.Expected[0].Type != "v128" {
				line.values[i] &= math.MaxUint32
			}
		}
	}()
	if c.Action.Type == "get" {
		line.values = []uint64{mod.ExportedGlobal(c.Action.Field).Get()}
		return
	}
	for _, m := range s.counted {
		s.global(m, ExportFuel).Set(specFuel)
		s.global(m, ExportDepth).Set(128 << 10)
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.bits()...)
	}
	var err error
	line.values, err = mod.ExportedFunction(c.Action.Field).Call(s.ctx, args...)
	if err != nil {
		line.failure, _, _ = strings.Cut(err.Error(), "\n")
	}
	for _, e := range c.Expected {
		if e.Type == "funcref" || e.Type == "externref" && e.Value == nil {
			line.values = nil // an address of the engine's
		}
	}
	for _, m := range s.counted {
		line.fuel += specFuel - int64(s.global(m, ExportFuel).Get())
		depth := int32(s.global(m, ExportDepth).Get())
		line.deep = line.deep || depth < 0
		if err == nil && depth != 128<<10 {
			s.t.Errorf("line %d: the depth is %d after the call", c.Line, depth)
		}
	}
	if line.fuel < 0 {
		s.t.Errorf("line %d: fuel grew", c.Line)
	}
}

// kinds names how each half of 64 bits is to be compared.
func (v specValue) kinds() []string {
	if v.Type == "v128" {
		return []string{v.Lane, v.Lane}
	}
	return []string{v.Type}
}

func (v specValue) bits() []uint64 {
	parse := func(x any, width int) uint64 {
		text, _ := x.(string)
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic(errors.Join(err, fmt.Errorf("argument %v", x)))
		}
		return uint64(n) & (1<<width - 1)
	}
	switch v.Type {
	case "v128":
		list := v.Value.([]any)
		width := 128 / len(list)
		var out [2]uint64
		for i, x := range list {
			out[i*width/64] |= parse(x, width) << (i * width % 64)
		}
		return out[:]
	case "externref", "funcref":
		if v.Value == "null" {
			return []uint64{0}
		}
		return []uint64{parse(v.Value, 64) + 1}
	case "i32", "f32":
		return []uint64{parse(v.Value, 32)}
	}
	return []uint64{parse(v.Value, 64)}
}

// sameValues compares what a plain run gave with what a rewritten one did, whose
// NaNs are canonical.
func sameValues(p, c specLine) bool {
	if len(p.values) != len(c.values) {
		return false
	}
	nan32 := func(b uint32) bool { return b&0x7f800000 == 0x7f800000 && b&0x7fffff != 0 }
	for i := range p.values {
		a, b := p.values[i], c.values[i]
		kind := ""
		if i < len(p.types) {
			kind = p.types[i]
		}
		switch {
		case a == b:
		case kind == "f32" && (nan32(uint32(a)) && nan32(uint32(b)) || uint32(a) == uint32(b)) &&
			(nan32(uint32(a>>32)) && nan32(uint32(b>>32)) || a>>32 == b>>32):
		case kind == "f64" && math.IsNaN(math.Float64frombits(a)) && math.IsNaN(math.Float64frombits(b)):
		default:
			return false
		}
	}
	return true
}
