package main

import (
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

var rustValues = map[abi.ValType]string{abi.I32: "i32", abi.I64: "i64", abi.F32: "f32", abi.F64: "f64"}

// rustModule writes the Rust module: no_std, Rust 1.63.
func rustModule(t abi.Table) ([]byte, error) {
	var p page
	p.line("// %s\n", generated)
	p.line("//! The kvrt ABI, version %d.%d: enums, records and host functions. The words are in", abi.Major, abi.Minor)
	p.line("//! abi/SPEC.md.\n")
	p.line("pub const MAJOR: u32 = %d;\npub const MINOR: u32 = %d;\n", abi.Major, abi.Minor)
	for _, e := range t.Enums {
		p.line("// %s: %s", e.Name, rustDoc(e.Doc))
		for _, v := range e.Values {
			if v.Doc != "" {
				p.line("/// %s", rustDoc(v.Doc))
			}
			p.line("pub const %s_%s: u%d = %d;", upper(e.Name), upper(v.Name), e.Bits, v.Value)
		}
		p.line("")
	}
	for _, r := range t.Records {
		p.line("/// %s\n#[repr(C)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub struct %s {", rustDoc(r.Doc), r.Name)
		for _, f := range r.Fields {
			if f.Doc != "" {
				p.line("    /// %s", rustDoc(f.Doc))
			}
			p.line("    pub %s: %s,", f.Name, f.Type)
		}
		p.line("}\n")
		p.line("const _: () = assert!(core::mem::size_of::<%s>() == SIZE_%s);\n", r.Name, upper(r.Name))
		p.line("// Size of %s and the offsets of its fields.\npub const SIZE_%s: usize = %d;", r.Name, upper(r.Name), r.Size)
		for _, f := range r.Fields {
			p.line("pub const OFF_%s_%s: usize = %d;", upper(r.Name), strings.ToUpper(f.Name), f.Off)
		}
		p.line("")
	}
	module := ""
	for _, f := range stable(t) {
		if f.Module != module {
			if module != "" {
				p.line("    }\n}\n")
			}
			module = f.Module
			p.line("/// Host functions of the capability %s.\n#[cfg(target_arch = \"wasm32\")]\npub mod %s {", module, capability(f))
			p.line("    #[link(wasm_import_module = %q)]\n    extern \"C\" {", module)
		}
		p.line("        /// %s", rustDoc(f.Doc))
		p.line("        #[link_name = %q]\n        pub fn %s(%s)%s;", f.Name, f.Name, rustParams(f), rustResult(f))
	}
	p.line("    }\n}")
	return p.Bytes(), nil
}

// rustDoc keeps rustdoc from reading an index as a link.
func rustDoc(s string) string { return strings.NewReplacer("[", `\[`, "]", `\]`).Replace(s) }

func rustResult(f abi.Function) string {
	if f.Result == 0 {
		return ""
	}
	return " -> " + rustValues[f.Result]
}

func rustParams(f abi.Function) string {
	out := make([]string, len(f.Params))
	for i, q := range f.Params {
		typ := rustValues[q.Type]
		switch pointerOf(f, i) {
		case readBytes:
			typ = "*const u8"
		case readU64s:
			typ = "*const u64"
		case writeBytes:
			typ = "*mut u8"
		case readNode:
			typ = "*const super::Node"
		case noPointer:
			if q.Type == abi.I32 {
				typ = "u32"
			}
		}
		out[i] = fmt.Sprintf("%s: %s", q.Name, typ)
	}
	return strings.Join(out, ", ")
}
