package admit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// says gives what a comment at the head of a text module says: ;; key: value.
func says(t testing.TB, text, key string) string {
	t.Helper()
	b, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, ";;") {
			break
		}
		if value, ok := strings.CutPrefix(line, ";; "+key+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// attack is a module that means harm, with what must become of it:
//
//	refused RULE     it does not run at all
//	out of fuel
//	out of depth
//	trap TEXT        the engine's words, and neither counter below 0
//	ends VALUE
type attack struct {
	name   string
	wasm   []byte
	expect string
	call   string
	args   []uint64
}

func attacks(t testing.TB) []attack {
	texts, err := filepath.Glob("testdata/hostile/*.wat")
	if err != nil || len(texts) < 30 {
		t.Fatalf("%d attacks in testdata/hostile (%v)", len(texts), err)
	}
	var all []attack
	for _, text := range texts {
		wasm, err := os.ReadFile(strings.TrimSuffix(text, ".wat") + ".wasm")
		if err != nil {
			t.Fatal(err)
		}
		a := attack{name: strings.TrimSuffix(filepath.Base(text), ".wat"), wasm: wasm, expect: says(t, text, "expect")}
		if words := strings.Fields(says(t, text, "call")); len(words) > 0 {
			a.call = words[0]
			for _, w := range words[1:] {
				n, err := strconv.ParseUint(w, 0, 64)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				a.args = append(a.args, n)
			}
		}
		all = append(all, a)
	}
	return append(all, largeAttacks()...)
}

// largeAttacks are made here, since their text would be long.
func largeAttacks() []attack {
	repeat := func(n int, b ...byte) []byte { return bytes.Repeat(b, n) }
	// One function run (i32) -> (i32), with so many locals, after which
	// comes local 0.
	run := func(locals int, code ...[]byte) []byte {
		return module(
			section(1, vec(funcType(raw(i32), raw(i32)))), oneFunc, oneMemory,
			section(7, vec(export("memory", 2, 0), export("run", 0, 0))),
			section(10, vec(body(vec(cat(uleb(uint64(locals)), raw(i32))), cat(code...), raw(opLocalGet, 0), end))))
	}
	// A use of so many locals, from the first one on.
	use := func(n int) (code []byte) {
		for i := range n {
			code = append(append(code, opLocalGet), uleb(uint64(i+1))...)
			code = append(code, opDrop)
		}
		return code
	}
	often := func(n int, b []byte) []byte {
		return module(oneType, functions0(n), oneMemory, section(7, vec(export("memory", 2, 0))), section(10, many(n, b)))
	}
	loop := raw(opLoop, none, opLocalGet, 0, opBrIf, 0, opEnd)
	refused := func(name string, wasm []byte, rule string) attack {
		return attack{name: name, wasm: wasm, expect: "refused " + rule}
	}
	return []attack{
		refused("compile bomb of locals and loops", run(2000, bytes.Repeat(loop, 2000), use(2000)), RuleEffort),
		refused("compile bomb of locals and few loops", run(8000, bytes.Repeat(loop, 30), use(8000)), RuleEffort),
		refused("compile bomb of locals and nested loops", run(500, repeat(32, opLoop, none), repeat(32, opLocalGet, 0, opBrIf, 0, opEnd), repeat(200, opBlock, none, opEnd), use(500), bytes.Repeat(cat(repeat(32, opLoop, none), repeat(32, opLocalGet, 0, opBrIf, 0, opEnd)), 16), use(500)), RuleEffort),
		refused("compile bomb of locals and blocks", run(2000, repeat(300, opBlock, none, opLocalGet, 0, opBrIf, 0, opEnd), use(2000)), RuleEffort),
		refused("compile bomb of branches to one label", run(1, raw(opBlock, none), repeat(20_000, opLocalGet, 0, opBrIf, 0), end), RuleBranches),
		refused("compile bomb of many functions", often(200, body(noLocals, repeat(2040, opBlock, none, opBr, 0, opEnd), end)), RuleAllEffort),
		refused("compile bomb of calls that pass much", module(section(1, vec(funcType(repeat(128, i32), repeat(128, i32)))), oneFunc, oneMemory,
			section(7, vec(export("memory", 2, 0))), section(10, vec(body(noLocals, repeat(128, opI32Const, 0), repeat(100_000, opCall, 0), end)))), RuleEffort),
		refused("compile bomb of growths", run(1, raw(opLocalGet, 0), repeat(100_000, opMemoryGrow, 0), raw(opDrop)), RuleBranches),
		refused("code that multiplies when it is rewritten", often(2000, body(noLocals, raw(opI32Const, 0), repeat(4000, opMemoryGrow, 0), raw(opDrop), end)), RuleAllEffort),
		refused("nesting bomb", run(1, repeat(20_000, opBlock, none), repeat(20_000, opEnd)), RuleNesting),
		refused("nesting bomb of ifs", run(1, repeat(3000, opLocalGet, 0, opIf, none), repeat(3000, opEnd)), RuleNesting),
		refused("br_table bomb", run(1, raw(opBlock, none, opLocalGet, 0, opBrTable), uleb(100_000), repeat(100_001, 0), end), RuleBranchTargets),
		refused("br_table bomb of many functions", often(100, body(noLocals, raw(opBlock, none, opI32Const, 0, opBrTable), uleb(8000), repeat(8001, 0), end, end)), RuleAllTargets),
		refused("operand bomb", run(1, repeat(100_000, opLocalGet, 0), repeat(100_000, opDrop)), RuleOperands),
		refused("long function", run(1, repeat(300_000, opNop, opNop)), RuleFunctionBytes),
		refused("much code", often(30, body(noLocals, repeat(450_000, opNop), end)), RuleCodeBytes),
		refused("element bomb", module(oneType, oneFunc, oneTable, section(9, vec(cat(raw(1, 0), many(100_000, uleb(0))))), oneBody), RuleElements),
		refused("export bomb", module(oneType, oneFunc, section(7, many(5000, export("a", 0, 0))), oneBody), RuleExports),
		refused("type bomb", module(section(1, vec(funcType(repeat(1000, i32), nil)))), RuleParams),
		refused("type bomb of many", module(section(1, many(1000, funcType(repeat(128, i32), nil)))), RuleTypeValues),
		refused("huge data", module(oneMemory, section(11, vec(cat(raw(1), str(strings.Repeat("x", 17<<20)))))), RuleModuleBytes),
		refused("locals by the billion", run(most32, nil), RuleLocals),
		refused("locals of many functions", often(200, body(vec(cat(uleb(8000), raw(i32))), end)), RuleAllLocals),
		refused("functions that are not there", module(oneType, section(3, uleb(30_000)), oneBody), RuleCount),
		refused("bodies that are not there", module(oneType, oneFunc, section(10, uleb(30_000))), RuleCount),
		{
			// A thousand calls deep at little cost, and on the way back
			// each runs for long, without a loop or a call.
			name: "long way back", call: "run", args: []uint64{1000}, expect: "out of fuel",
			wasm: run(1, raw(opLocalGet, 0, opIf, none, opLocalGet, 0, opI32Const, 1, opI32Sub, opCall, 0, opDrop, opEnd),
				raw(opBlock, none, opLocalGet, 0, opI32Const, 0x7f, 0x46 /* eq */, opBrIf, 0), repeat(50_000, opLocalGet, 0, opLocalSet, 1), end),
		},
		{
			name: "long straight line", call: "run", args: []uint64{1}, expect: "out of fuel",
			wasm: run(1, repeat(110_000, opLocalGet, 0, opLocalSet, 0)),
		},
	}
}

const most32 = 1<<32 - 1

func functions0(n int) []byte { return section(3, many(n, uleb(0))) }

// admitted is what a host does with a module that it is offered.
func admitted(wasm []byte) ([]byte, error) {
	m, err := Read(wasm, Limits{})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(m.CheckStart(), m.CheckImports(offer), m.CheckMemory(0)); err != nil {
		return nil, err
	}
	out, _, err := Rewrite(wasm, Options{})
	return out, err
}

// TestHostile runs every attack with the default fuel of a call, on both engines.
func TestHostile(t *testing.T) {
	const fuel = 200_000
	for _, a := range attacks(t) {
		t.Run(a.name, func(t *testing.T) {
			out, err := admitted(a.wasm)
			if rule, ok := strings.CutPrefix(a.expect, "refused "); ok {
				if !slices.Contains(rules(err), rule) {
					t.Fatalf("%v, want %s", err, rule)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var first outcome
			for i, e := range engines {
				got := compile(t, e.cfg(), out, nil).once(fuel, a.call, a.args...)
				if i == 0 {
					first = got
				}
				if got.String() != first.String() {
					t.Errorf("%s: %v, and before %v", e.name, got, first)
				}
				var is string
				switch {
				case got.dry:
					is = "out of fuel"
				case got.deep:
					is = "out of depth"
				case got.trap != "":
					is = "trap " + strings.TrimPrefix(got.trap, "wasm error: ")
				case len(got.values) == 1:
					is = fmt.Sprintf("ends %#x", got.values[0])
				}
				if is != a.expect {
					t.Errorf("%s: %s, want %s (%v)", e.name, is, a.expect, got)
				}
				// The overdraft is a stretch of code, not a multiple.
				if got.used > 2*fuel {
					t.Errorf("%s: %d used of %d", e.name, got.used, fuel)
				}
			}
		})
	}
}
