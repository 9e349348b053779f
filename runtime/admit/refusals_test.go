package admit

import (
	"bytes"
	"strings"
)

type refusal struct {
	name  string
	wasm  []byte
	lim   Limits
	rules []string
	says  string // part of the error's text
}

// refusals has at least one module for each rule of Read.
func refusals() []refusal {
	return append(append(formatRefusals(), featureRefusals()...), limitRefusals()...)
}

var (
	oneType   = section(1, vec(funcType(nil, nil)))
	oneFunc   = section(3, vec(uleb(0)))
	oneBody   = section(10, vec(body(noLocals, end)))
	oneTable  = section(4, vec(raw(byte(FuncRef), 0, 1)))
	oneMemory = section(5, vec(raw(0, 1)))
)

func formatRefusals() []refusal {
	one := func(name string, wasm []byte, rule, says string) refusal {
		return refusal{name: name, wasm: wasm, rules: []string{rule}, says: says}
	}
	global := func(expr ...[]byte) []byte { return module(section(6, vec(cat(raw(i32, 0), cat(expr...))))) }
	elements := func(segment ...[]byte) []byte {
		return module(oneType, oneFunc, oneTable, section(9, vec(cat(segment...))), oneBody)
	}
	code := func(content ...[]byte) []byte {
		return module(oneType, oneFunc, section(10, vec(cat(content...))))
	}
	return []refusal{
		one("nothing", nil, RuleMagic, "not a WebAssembly binary"),
		one("half a magic number", []byte("\x00as"), RuleMagic, "not a WebAssembly binary"),
		one("an executable", []byte("\x7fELF\x02\x01\x01\x00"), RuleMagic, "not a WebAssembly binary"),
		one("text", []byte("\n (module)"), RuleMagic, "wat2wasm"),
		one("commented text", []byte(";; hello\n(module)"), RuleMagic, "wat2wasm"),
		one("header cut short", []byte("\x00asm\x01\x00"), RuleTruncated, "cut short"),
		one("version 2", []byte("\x00asm\x02\x00\x00\x00"), RuleVersion, "version 2"),
		one("component", []byte("\x00asm\x0d\x00\x01\x00"), RuleComponent, "wasm32-wasip1"),
		one("layer 2", []byte("\x00asm\x01\x00\x02\x00"), RuleVersion, "layer 2"),

		one("section without a size", module(raw(1)), RuleTruncated, "type section"),
		one("section longer than the file", module(raw(1, 5, 0)), RuleSectionSize, "only 1 follow"),
		one("section of 4 GiB", module(cat(raw(1), uleb(1<<32-1))), RuleSectionSize, "4294967295"),
		one("section too long", module(section(1, vec(funcType(nil, nil)), raw(0))), RuleSectionSize, "1 bytes are left over"),
		one("section too short", module(raw(1, 3, 1, 0x60, 0, 0)), RuleCount, "only 2 bytes follow"),
		one("unknown section", module(section(14, raw(0))), RuleSectionID, "section with id 14"),
		one("section twice", module(oneType, oneType), RuleSectionOrder, "type section"),
		one("section late", module(oneMemory, oneType), RuleSectionOrder, "out of order"),
		one("data count late", module(oneType, oneFunc, oneBody, section(12, uleb(0))), RuleSectionOrder, "data count section"),
		one("data before code", module(oneType, oneFunc, section(11, vec()), oneBody), RuleSectionOrder, "code section"),

		one("LEB128 of six bytes", module(cat(raw(0), padded(1, 6), raw(0))), RuleLEB128, "32 bits"),
		one("LEB128 beyond its width", module(raw(0, 0x80, 0x80, 0x80, 0x80, 0x10)), RuleLEB128, "32 bits"),
		one("LEB128 without an end", module(raw(0, 0x80, 0x80)), RuleTruncated, "custom section"),
		one("count beyond the section", module(section(3, uleb(30000))), RuleCount, "30000 functions"),
		one("custom name not UTF-8", module(custom("a\xff")), RuleUTF8, `a\xff`),
		one("surrogate in an export", module(oneMemory, section(7, vec(export("\xed\xa0\x80", 2, 0)))), RuleUTF8, "export 0"),
		one("overlong UTF-8 in an import", module(oneType, section(2, vec(imported("\xc0\xaf", "f", 0, uleb(0))))), RuleUTF8, "import 0"),
		one("name beyond its section", module(section(0, uleb(9), raw('a'))), RuleTruncated, "9 bytes are needed"),

		one("type form", module(section(1, vec(raw(0x40, 0, 0)))), RuleTypeForm, "0x40"),
		one("value type", module(section(1, vec(funcType(raw(0x01), nil)))), RuleValueType, "0x01"),
		one("table of integers", module(section(4, vec(raw(i32, 0, 1)))), RuleValueType, "no reference type"),
		one("kind of import", module(section(2, vec(imported("a", "b", 9, uleb(0))))), RuleKind, `"a.b"`),
		one("kind of export", module(section(7, vec(export("a", 7, 0)))), RuleKind, `export 0 "a"`),
		one("kind of element", elements(raw(1, 1), vec(uleb(0))), RuleKind, "element segment 0"),
		one("limit flags", module(section(5, vec(raw(0x10, 1)))), RuleFlags, "0x10"),
		one("mutability", module(section(6, vec(cat(raw(i32, 9), zero)))), RuleFlags, "mutability"),
		one("element flags", elements(raw(8), zero), RuleFlags, "0x8"),
		one("data flags", module(oneMemory, section(11, vec(raw(3, 0)))), RuleFlags, "0x3"),
		one("memory larger than 4 GiB", module(section(5, vec(cat(raw(0), uleb(65537))))), RuleRange, "65537"),
		one("maximum larger than 4 GiB", module(section(5, vec(cat(raw(1, 1), uleb(65537))))), RuleRange, "65537"),
		one("maximum below minimum", module(section(5, vec(raw(1, 2, 1)))), RuleRange, "from 2 to 1"),

		one("type of a function", module(oneType, section(3, vec(uleb(1)))), RuleIndex, "no type 1"),
		one("type of an import", module(section(2, vec(imported("a", "b", 0, uleb(0))))), RuleIndex, "no type 0"),
		one("function of an export", module(oneType, section(7, vec(export("a", 0, 0)))), RuleIndex, "no function 0"),
		one("table of an export", module(section(7, vec(export("a", 1, 0)))), RuleIndex, "no table 0"),
		one("memory of an export", module(section(7, vec(export("a", 2, 0)))), RuleIndex, "no memory 0"),
		one("global of an export", module(section(7, vec(export("a", 3, 0)))), RuleIndex, "no global 0"),
		one("start function", module(section(8, uleb(0))), RuleIndex, "start section"),
		one("start function that takes something", module(section(1, vec(funcType(raw(i32), nil))), oneFunc, section(8, uleb(0)), oneBody), RuleStartType, "(i32)"),
		one("element's function", elements(raw(0), zero, vec(uleb(1))), RuleIndex, "no function 1"),
		one("element's table", elements(raw(2), uleb(1), zero, raw(0), vec()), RuleIndex, "no table 1"),
		one("elements without a table", module(section(9, vec(cat(raw(0), zero, vec())))), RuleIndex, "table 0"),
		one("data without a memory", module(section(11, vec(cat(raw(0), zero, str(""))))), RuleIndex, "memory 0"),
		one("global of a constant", global(raw(opGlobalGet, 0, opEnd)), RuleIndex, "no global 0"),

		one("empty constant", global(raw(opEnd, opEnd, opEnd)), RuleConstExpr, "0x0b does not begin"),
		one("constant without an end", global(raw(opI32Const, 0, 0)), RuleConstExpr, "should end"),
		one("constant of another type", global(raw(opI64Const, 0, opEnd)), RuleConstExpr, "of type i64, and i32"),
		one("vector arithmetic", global(raw(opVector, 13, opEnd)), RuleConstExpr, "vector instruction 13"),
		one("mutable constant", module(
			section(2, vec(imported("a", "b", 3, raw(i32, 1)))),
			section(6, vec(raw(i32, 0, opGlobalGet, 0, opEnd)))), RuleConstExpr, "mutable"),
		one("element of another type", elements(raw(5, byte(ExternRef)), vec(raw(opRefFunc, 0, opEnd))), RuleConstExpr, "of type funcref, and externref"),

		one("export twice", module(oneMemory, section(7, vec(export("a", 2, 0), export("a", 2, 0)))), RuleDuplicateExport, `export 1 "a"`),
		one("functions without code", module(oneType, oneFunc), RuleCodeCount, "0 bodies"),
		one("code without functions", module(oneBody), RuleCodeCount, "0 functions"),
		one("data that was not announced", module(oneMemory, section(12, uleb(0)), section(11, vec(cat(raw(1), str(""))))), RuleDataCount, "0 segments are announced"),
		one("announced data that is missing", module(section(12, uleb(1<<32-1))), RuleDataCount, "4294967295 segments"),
		one("body beyond the section", code(uleb(9), noLocals, end), RuleTruncated, "9 bytes is declared"),
		one("body without an end", code(body(noLocals, raw(0x01))), RuleBody, "function 0"),
		one("body of declarations", code(body(vec(raw(1, i32)))), RuleBody, "function 0"),
		one("local groups beyond the body", code(body(uleb(2), raw(1, i32), end)), RuleCount, "2 groups"),
		one("type of a local", code(body(vec(raw(1, 0x40)), end)), RuleValueType, "0x40"),
	}
}

func featureRefusals() []refusal {
	one := func(name string, wasm []byte, rule, says string) refusal {
		return refusal{name: name, wasm: wasm, rules: []string{rule}, says: says}
	}
	param := func(types ...byte) []byte { return module(section(1, vec(funcType(types, nil)))) }
	form := func(b byte) []byte { return module(section(1, vec(raw(b, 0, 0)))) }
	return []refusal{
		one("shared memory", module(section(5, vec(raw(3, 1, 1)))), RuleThreads, "threads"),
		one("shared memory imported", module(section(2, vec(imported("a", "b", 2, raw(3, 1, 1))))), RuleThreads, `import 0 "a.b"`),
		one("shared global", module(section(6, vec(cat(raw(i32, 3), zero)))), RuleThreads, "global 0"),
		one("shared type", form(0x65), RuleThreads, "type 0"),
		one("memory64", module(section(5, vec(cat(raw(5), uleb(1), uleb(1<<40))))), RuleMemory64, "wasm32"),
		one("table64", module(section(4, vec(raw(byte(FuncRef), 4, 1)))), RuleMemory64, "table 0"),
		one("two memories", module(section(5, vec(raw(0, 1), raw(0, 1)))), RuleMultiMemory, "memory 1"),
		one("own memory beside an imported one", module(section(2, vec(imported("a", "b", 2, raw(0, 1)))), oneMemory), RuleMultiMemory, "memory 1"),
		one("two memories imported", module(section(2, many(2, imported("a", "b", 2, raw(0, 1))))), RuleMultiMemory, "import 1"),
		one("data for a second memory", module(oneMemory, section(11, vec(cat(raw(2, 1), zero, str(""))))), RuleMultiMemory, "data segment 0"),
		one("pages of one byte", module(section(5, vec(cat(raw(8), uleb(70000), raw(0))))), RuleCustomPageSizes, "64 KiB"),
		one("struct type", form(0x5f), RuleGC, "GC"),
		one("array type", form(0x5e), RuleGC, "GC"),
		one("recursive types", form(0x4e), RuleGC, "GC"),
		one("anyref", param(0x6e), RuleGC, "0x6e"),
		one("GC constant", module(section(6, vec(cat(raw(i32, 0, opGC, 0), zero)))), RuleGC, "global 0"),
		one("typed reference", param(0x64, 0x00), RuleFunctionReferences, "typed references"),
		one("table with a value", module(section(4, vec(cat(raw(0x40, 0, byte(FuncRef), 0, 1), raw(opRefNull, byte(FuncRef), opEnd))))), RuleFunctionReferences, "table 0"),
		one("tag section", module(section(13, vec(raw(0, 0)))), RuleExceptions, "tag section"),
		one("imported tag", module(section(2, vec(imported("a", "b", 4, raw(0, 0))))), RuleExceptions, `"a.b"`),
		one("exported tag", module(section(7, vec(export("a", 4, 0)))), RuleExceptions, `"a"`),
		one("exnref", param(0x69), RuleExceptions, "exception"),
		one("continuation type", form(0x5d), RuleStackSwitching, "stack switching"),
		one("contref", param(0x68), RuleStackSwitching, "stack switching"),
		one("arithmetic in a constant", module(section(6, vec(raw(i32, 0, opI32Const, 1, opI32Const, 1, opI32Add, opEnd)))), RuleExtendedConst, "arithmetic"),
		one("constant from an own global", module(section(6, vec(cat(raw(i32, 0), zero), raw(i32, 0, opGlobalGet, 0, opEnd)))), RuleExtendedConst, "global 1"),
	}
}

func limitRefusals() []refusal {
	one := func(wasm []byte, lim Limits, rule, says string) refusal {
		return refusal{name: rule + ": " + says, wasm: wasm, lim: lim, rules: []string{rule}, says: says}
	}
	long := strings.Repeat("n", 1025)
	functions := func(n int, b []byte) []byte {
		return module(oneType, section(3, many(n, uleb(0))), section(10, many(n, b)))
	}
	locals := func(groups ...[]byte) []byte { return functions(1, body(vec(groups...), end)) }
	billions := cat(uleb(1<<32-1), raw(i32))
	return []refusal{
		one(module(custom("a", make([]byte, 100))), Limits{ModuleBytes: 111}, RuleModuleBytes, "112 bytes, at most 111"),
		one(make([]byte, 16<<20+1), Limits{}, RuleModuleBytes, "at most 16777216"),
		one(module(section(1, many(8193, funcType(nil, nil)))), Limits{}, RuleTypes, "8193 types"),
		one(module(section(1, uleb(1<<32-1))), Limits{}, RuleTypes, "4294967295 types"),
		one(module(section(1, vec(funcType(bytes.Repeat(raw(i32), 129), nil)))), Limits{}, RuleParams, "129 parameters"),
		one(module(section(1, vec(funcType(nil, bytes.Repeat(raw(i32), 129))))), Limits{}, RuleResults, "129 results"),
		one(module(section(1, many(2, funcType(raw(i32), raw(i32))))), Limits{TypeValues: 3}, RuleTypeValues, "reach 4 parameters and results"),
		one(module(oneType, section(2, many(3, imported("a", "b", 0, uleb(0))))), Limits{Imports: 2}, RuleImports, "3 imports"),
		one(functions(3, body(noLocals, end)), Limits{Functions: 2}, RuleFunctions, "3 functions"),
		one(module(section(4, many(17, raw(byte(FuncRef), 0, 1)))), Limits{}, RuleTables, "17 tables"),
		one(module(section(2, many(17, imported("a", "b", 1, raw(byte(FuncRef), 0, 1))))), Limits{}, RuleTables, "at most 16 tables"),
		one(module(section(4, many(3, cat(raw(byte(FuncRef), 0), uleb(16384))))), Limits{}, RuleTableElements, "reach 49152 entries"),
		one(module(section(4, vec(cat(raw(byte(FuncRef), 0), uleb(50_000_000))))), Limits{}, RuleTableElements, "50000000"),
		one(module(section(6, many(3, cat(raw(i32, 0), zero)))), Limits{Globals: 2}, RuleGlobals, "3 globals"),
		one(module(oneMemory, section(7, many(3, export("a", 2, 0)))), Limits{Exports: 2}, RuleExports, "3 exports"),
		one(module(section(9, many(3, raw(1, 0, 0)))), Limits{ElementSegments: 2}, RuleElementSegments, "3 element segments"),
		one(module(oneType, oneFunc, section(9, many(2, cat(raw(1, 0), many(40000, uleb(0))))), oneBody), Limits{}, RuleElements, "reach 80000"),
		one(module(section(11, many(3, raw(1, 0)))), Limits{DataSegments: 2}, RuleDataSegments, "3 data segments"),
		one(locals(cat(uleb(8193), raw(i32))), Limits{}, RuleLocals, "8193 locals"),
		one(locals(billions, billions), Limits{Locals: 1 << 30}, RuleLocals, "8589934590 locals"),
		one(locals(cat(uleb(8000), raw(i32))), Limits{AllLocals: 7999}, RuleAllLocals, "reach 8000 locals"),
		one(functions(1, body(noLocals, make([]byte, 99), end)), Limits{FunctionBytes: 100}, RuleFunctionBytes, "101 bytes, at most 100"),
		one(module(custom(long)), Limits{}, RuleNameBytes, "custom section 0"),
		one(module(oneMemory, section(7, vec(export(long, 2, 0)))), Limits{}, RuleNameBytes, "1025 bytes"),
		one(module(oneType, section(2, vec(imported(long, "f", 0, uleb(0))))), Limits{}, RuleNameBytes, "1025 bytes"),
		one(module(bytes.Repeat(custom("a"), 3)), Limits{CustomSections: 2}, RuleCustomSections, "at most 2"),
		one(module(bytes.Repeat(custom("a", make([]byte, 48)), 3)), Limits{CustomBytes: 100}, RuleCustomBytes, "reach 150 bytes"),
	}
}
