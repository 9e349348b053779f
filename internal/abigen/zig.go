package main

import (
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// zigModule writes the Zig module.
func zigModule(t abi.Table) ([]byte, error) {
	var p page
	p.line("// %s\n", generated)
	p.line("//! The kvrt ABI, version %d.%d: enums, records and host functions. The words are in", abi.Major, abi.Minor)
	p.line("//! abi/SPEC.md.\n")
	p.line("pub const major: u32 = %d;\npub const minor: u32 = %d;\n", abi.Major, abi.Minor)
	for _, e := range t.Enums {
		p.line("// %s: %s", e.Name, e.Doc)
		for _, v := range e.Values {
			if v.Doc != "" {
				p.line("/// %s", v.Doc)
			}
			p.line("pub const %s_%s: u%d = %d;", snake(e.Name), snake(v.Name), e.Bits, v.Value)
		}
		p.line("")
	}
	for _, r := range t.Records {
		p.line("/// %s\npub const %s = extern struct {", r.Doc, r.Name)
		for _, f := range r.Fields {
			if f.Doc != "" {
				p.line("    /// %s", f.Doc)
			}
			p.line("    %s: %s,", f.Name, f.Type)
		}
		p.line("\n    comptime {\n        check(@sizeOf(%s) == %d);", r.Name, r.Size)
		for _, f := range r.Fields {
			p.line("        check(@offsetOf(%s, %q) == %d);", r.Name, f.Name, f.Off)
		}
		p.line("    }\n};\n")
	}
	p.line("fn check(comptime ok: bool) void {\n    if (!ok) @compileError(\"a record is not laid out as the ABI says\");\n}\n")
	module := ""
	for _, f := range stable(t) {
		if f.Module != module {
			if module != "" {
				p.line("};\n")
			}
			module = f.Module
			p.line("/// Host functions of the capability %s.\npub const %s = struct {", module, capability(f))
		}
		params := make([]string, len(f.Params))
		for i, q := range f.Params {
			params[i] = fmt.Sprintf("%s: %s", q.Name, zigType(f, i))
		}
		result := "void"
		if f.Result != 0 {
			result = f.Result.String()
		}
		p.line("    /// %s\n    pub extern %q fn %s(%s) %s;", f.Doc, f.Module, f.Name, strings.Join(params, ", "), result)
	}
	p.line("};")
	return p.Bytes(), nil
}

func zigType(f abi.Function, i int) string {
	switch pointerOf(f, i) {
	case readBytes:
		return "?[*]const u8"
	case readU64s:
		return "[*]const u64"
	case writeBytes:
		return "[*]u8"
	case readNode:
		return "*const Node"
	}
	if f.Params[i].Type == abi.I32 {
		return "u32"
	}
	return f.Params[i].Type.String()
}
