package admit

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// withBody is a module with one of everything that a body may name, and one
// function (i32) -> (i32) of that code.
func withBody(code ...[]byte) []byte {
	return withLocals(noLocals, code...)
}

func withLocals(locals []byte, code ...[]byte) []byte {
	return module(
		section(1, vec(
			funcType(raw(i32), raw(i32)),
			funcType(nil, nil),
			funcType(raw(i64), raw(i64)),
			funcType(nil, raw(i32, i64)),
		)),
		section(2, vec(imported("kvrt_log", "write", 0, uleb(1)))),
		section(3, vec(uleb(0))),
		section(4, vec(raw(byte(FuncRef), 0, 1), raw(byte(ExternRef), 0, 1))),
		section(5, vec(raw(0, 1))),
		section(6, vec(cat(raw(i32, 0), zero), cat(raw(i32, 1), zero))),
		section(7, vec(export("f", 0, 1))),
		section(9, vec(cat(raw(1, 0), vec(uleb(1))))),
		section(12, uleb(1)),
		section(10, vec(body(locals, cat(code...), end))),
		section(11, vec(cat(raw(1), str("d")))),
	)
}

const (
	get0 = opLocalGet
	none = 0x40 // the type of a block
)

// bodyRefusals has at least one module for each rule of Validate, and of
// Rewrite.
func bodyRefusals() []refusal {
	one := func(name string, wasm []byte, rule, says string) refusal {
		return refusal{name: name, wasm: wasm, rules: []string{rule}, says: says}
	}
	limit := func(wasm []byte, lim Limits, rule, says string) refusal {
		return refusal{name: rule, wasm: wasm, lim: lim, rules: []string{rule}, says: says}
	}
	op := func(b ...byte) []byte { return withBody(b) }
	zero3 := raw(opI32Const, 0, opI32Const, 0, opI32Const, 0)
	nested := func(n int) []byte {
		return withBody(bytes.Repeat(raw(opBlock, none), n), bytes.Repeat(end, n), raw(get0, 0))
	}
	allLocals := func(n int) []byte {
		var code []byte
		for i := range n {
			code = cat(code, raw(opLocalGet), uleb(uint64(i+1)), raw(opDrop))
		}
		return code
	}
	table := func(n int) []byte {
		return cat(raw(opBlock, none, get0, 0, opBrTable), uleb(uint64(n)), make([]byte, n+1), end)
	}
	return []refusal{
		one("no result", op(), RuleOperandType, "lacks an operand"),
		one("too many results", op(get0, 0, get0, 0), RuleOperandType, "1 values too many"),
		one("result of another type", op(opI64Const, 0), RuleOperandType, "of type i64, and i32"),
		one("operand of another type", op(get0, 0, opI64Const, 0, opI32Add), RuleOperandType, "of type i64"),
		one("operand from around a block", op(get0, 0, opBlock, none, opDrop, opEnd), RuleOperandType, "lacks"),
		one("values too many in a block", op(opBlock, none, get0, 0, opEnd, get0, 0), RuleOperandType, "too many"),
		one("values too many before an else", op(get0, 0, opIf, none, get0, 0, opElse, opEnd, get0, 0), RuleOperandType, "before an else"),
		one("if that should have an else", op(get0, 0, opIf, i32, get0, 0, opEnd), RuleOperandType, "without an else"),
		one("select of two types", op(get0, 0, opI64Const, 0, get0, 0, opSelect), RuleOperandType, "select between"),
		one("select of references", op(opRefNull, 0x70, opRefNull, 0x70, get0, 0, opSelect), RuleOperandType, "without a type"),
		one("select of two results", op(get0, 0, get0, 0, get0, 0, opSelectTyped, 2, i32, i32), RuleOperandType, "2 types"),
		one("is_null of a number", op(get0, 0, opRefIsNull), RuleOperandType, "ref.is_null"),
		one("call of another type", op(get0, 0, get0, 0, opCallIndirect, 2, 0), RuleOperandType, "of type i32, and i64"),
		one("call through externref", op(get0, 0, get0, 0, opCallIndirect, 0, 1), RuleOperandType, "externref"),
		one("branch with another type", op(opBlock, i32, opI64Const, 0, opBr, 0, opEnd), RuleOperandType, "of type i64"),
		one("table branch to labels that differ", op(opBlock, none, get0, 0, get0, 0, opBrTable, 1, 0, 1, opEnd, get0, 0), RuleOperandType, "take 0 and 1"),
		one("table branch without the value", op(get0, 0, opBrTable, 0, 0), RuleOperandType, "other types"),
		one("elements of another type", withBody(zero3, raw(opMisc, miscTableInit, 0, 1, get0, 0)), RuleOperandType, "element segment 0"),
		one("copy between tables of two types", withBody(zero3, raw(opMisc, miscTableCopy, 0, 1, get0, 0)), RuleOperandType, "table 1"),
		one("else outside of an if", op(opBlock, none, opElse, opEnd, get0, 0), RuleControl, "else"),
		one("second else", op(get0, 0, opIf, none, opElse, opElse, opEnd, get0, 0), RuleControl, "else"),
		one("block without an end", op(get0, 0, opBlock, none), RuleControl, "inside of a block"),
		one("code after the end", op(get0, 0, opEnd, opNop), RuleControl, "follow the end"),

		one("label", op(get0, 0, opBr, 1), RuleIndex, "no label 1"),
		one("local", op(get0, 1), RuleIndex, "no local 1"),
		one("global", op(opGlobalGet, 2), RuleIndex, "no global 2"),
		one("called function", op(opCall, 2), RuleIndex, "no function 2"),
		one("type of a call", op(opCallIndirect, 9, 0), RuleIndex, "no type 9"),
		one("type of a block", op(opBlock, 9), RuleIndex, "no type 9"),
		one("table", op(opCallIndirect, 0, 2), RuleIndex, "no table 2"),
		one("data segment", withBody(zero3, raw(opMisc, miscMemoryInit, 1, 0, get0, 0)), RuleIndex, "no data segment 1"),
		one("element segment", op(opMisc, miscElemDrop, 1), RuleIndex, "no element segment 1"),
		one("access without a memory", module(oneType, oneFunc, section(10, vec(body(noLocals, raw(opMemorySize, 0, opDrop), end)))), RuleIndex, "memory 0"),
		one("data without an announcement", module(oneType, oneFunc, oneMemory, section(10, vec(body(noLocals, raw(opMisc, miscDataDrop, 0), end))), section(11, vec(cat(raw(1), str("d"))))), RuleDataCount, "announces"),
		one("immutable global", op(get0, 0, opGlobalSet, 0), RuleImmutable, "global 0"),
		one("undeclared function", op(opRefFunc, 0, opDrop, get0, 0), RuleUndeclared, "function 0"),
		one("alignment", op(get0, 0, 0x28, 3, 0), RuleAlignment, "2 to the power of 3"),
		one("lane", withBody(raw(opVector, vecV128Const), make([]byte, 16), raw(opVector, 21, 16)), RuleLane, "no lane 16"),
		one("shuffled lane", withBody(bytes.Repeat(cat(raw(opVector, vecV128Const), make([]byte, 16)), 2), raw(opVector, vecShuffle), bytes.Repeat(raw(32), 16)), RuleLane, "lane 32"),

		one("unknown instruction", op(0xff), RuleOpcode, "0xff"),
		one("instruction between others", op(0xc5), RuleOpcode, "0xc5"),
		one("unknown instruction 0xfc", op(opMisc, 18), RuleOpcode, "0xfc 18"),
		one("unknown vector instruction", op(opVector, 0xa2, 1), RuleOpcode, "vector instruction 162"),
		one("instruction cut short", op(opCall), RuleIndex, "no function 11"),

		one("atomics", op(opAtomic, 0), RuleThreads, "atomic"),
		one("throw", op(0x08, 0), RuleExceptions, "exceptions"),
		one("try_table", op(0x1f, none, 0), RuleExceptions, "exceptions"),
		one("return_call", op(0x12, 0), RuleTailCalls, "tail calls"),
		one("call_ref", op(0x14, 0), RuleFunctionReferences, "typed references"),
		one("ref.as_non_null", op(0xd4), RuleFunctionReferences, "typed references"),
		one("struct.new", op(opGC, 0, 0), RuleGC, "GC"),
		one("ref.eq", op(0xd3), RuleGC, "GC"),
		one("relaxed vector instruction", op(opVector, 0x80, 2), RuleRelaxedSIMD, "relaxed SIMD"),
		one("128-bit addition", op(opMisc, 19), RuleWideArithmetic, "wide-arithmetic"),
		one("resume", op(0xe3, 0, 0), RuleStackSwitching, "stack switching"),
		one("numbered memory", op(get0, 0, 0x28, 0x40, 1, 0), RuleMultiMemory, "numbered memory"),
		one("size of a numbered memory", op(opMemorySize, 1), RuleMultiMemory, "numbered memory"),
		one("block of a typed reference", op(opBlock, 0x64, 0), RuleFunctionReferences, "typed references"),

		limit(withBody(raw(get0, 0)), Limits{CodeBytes: 3}, RuleCodeBytes, "reach 4 bytes with it, at most 3"),
		limit(nested(2049), Limits{}, RuleNesting, "deeper than 2048"),
		limit(withBody(bytes.Repeat(raw(get0, 0), 9)), Limits{Operands: 8}, RuleOperands, "more than 8 values"),
		limit(withBody(table(8192), raw(get0, 0)), Limits{}, RuleBranchTargets, "8193 targets"),
		limit(withBody(bytes.Repeat(raw(opBlock, none, get0, 0, opBrIf, 0, opEnd), 2049), raw(get0, 0)), Limits{}, RuleBranches, "more than 4096"),
		limit(module(oneType, section(3, many(20, uleb(0))), section(10, many(20, body(noLocals, bytes.Repeat(raw(opBlock, none, opBr, 0, opEnd), 2048), end)))), Limits{}, RuleAllEffort, "reach an effort of"),
		limit(withBody(table(9), table(9), raw(get0, 0)), Limits{AllBranchTargets: 19}, RuleAllTargets, "reach 20 targets"),
		limit(withLocals(cat(uleb(1), uleb(1999), raw(i32)), bytes.Repeat(raw(opLoop, none, opEnd), 2000), allLocals(1999), raw(get0, 0)), Limits{}, RuleEffort, "2000 locals that carry values between 2000 blocks"),
		limit(withBody(raw(get0, 0)), Limits{RewrittenBytes: 10}, RuleRewrittenBytes, "at most 10"),
		one("a counter's name", module(oneMemory, section(7, vec(export("kvrt:fuel", 2, 0)))), RuleExportReserved, `"kvrt:"`),
		limit(module(oneMemory, section(7, vec(export("kvrt:", 2, 0)))), Limits{}, RuleExportReserved, `"kvrt:"`),
	}
}

// TestBodiesRefused expects that Rewrite refuses what Read accepts.
func TestBodiesRefused(t *testing.T) {
	for _, tc := range bodyRefusals() {
		t.Run(tc.name, func(t *testing.T) {
			m, err := Read(tc.wasm, tc.lim)
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			_, _, err = Rewrite(tc.wasm, Options{Limits: tc.lim})
			if got := rules(err); !slices.Equal(got, tc.rules) {
				t.Fatalf("rules %q, want %q (%v)", got, tc.rules, err)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q does not say %q", err, tc.says)
			}
			if tc.rules[0] == RuleExportReserved || tc.rules[0] == RuleRewrittenBytes {
				return // that is no matter of the bodies as they are
			}
			if got := m.Validate(tc.wasm, tc.lim); got == nil || got.Error() != err.Error() {
				t.Errorf("Validate says %v, Rewrite %v", got, err)
			}
		})
	}
}

// TestBodiesReportTogether holds that each function is judged by itself.
func TestBodiesReportTogether(t *testing.T) {
	bad := body(noLocals, raw(0xff), end)
	wasm := module(oneType, section(3, many(40, uleb(0))), section(10, many(40, bad)))
	m, err := Read(wasm, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	err = m.Validate(wasm, Limits{})
	if n := len(Violations(err)); n != maxFindings {
		t.Errorf("%d violations, want %d", n, maxFindings)
	}
	if !strings.Contains(err.Error(), "function 3 at byte") {
		t.Errorf("%v does not name function 3", err)
	}
}

func TestValidateRealModules(t *testing.T) {
	wasm, m := readFile(t, "testdata/guest.wasm")
	if err := m.Validate(wasm, Limits{}); err != nil {
		t.Error(err)
	}
}
