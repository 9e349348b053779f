package main

import (
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

var cTypes = map[string]string{"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t"}

var cValues = map[abi.ValType]string{0: "void", abi.I32: "int32_t", abi.I64: "int64_t", abi.F32: "float", abi.F64: "double"}

// cHeader writes the C header: freestanding C11, also read by C++.
func cHeader(t abi.Table) ([]byte, error) {
	var p page
	p.line("/* %s */\n", generated)
	p.line("/* The kvrt ABI, version %d.%d: enums, records and host functions. The words are in abi/SPEC.md.", abi.Major, abi.Minor)
	p.line(" * Freestanding: clang --target=wasm32 -ffreestanding -nostdlib needs nothing else. */")
	p.line("#ifndef KVRT_ABI_H\n#define KVRT_ABI_H\n\n#include <stddef.h>\n#include <stdint.h>\n")
	p.line("#define KVRT_ABI_MAJOR %d\n#define KVRT_ABI_MINOR %d\n", abi.Major, abi.Minor)
	p.line("/* Elsewhere than on Wasm the attributes are left out, so that a guest's code can be\n * tested natively with host functions that the test defines. */")
	p.line("#ifdef __wasm__")
	p.line("#define KVRT_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))")
	p.line("#define KVRT_EXPORT(name) __attribute__((export_name(name)))")
	p.line("#else\n#define KVRT_IMPORT(module, name)\n#define KVRT_EXPORT(name)\n#endif\n")
	p.line("#ifdef __cplusplus\n#define KVRT_ASSERT(what) static_assert(what, #what)\nextern \"C\" {\n#else\n#define KVRT_ASSERT(what) _Static_assert(what, #what)\n#endif\n")
	for _, e := range t.Enums {
		cEnum(&p, e)
	}
	for _, r := range t.Records {
		cRecord(&p, r)
	}
	p.line("/* Host functions. An import is a capability that the operator grants. */\n")
	for _, f := range stable(t) {
		p.line("/* %s */\nKVRT_IMPORT(%q, %q)\n%s %s_%s(%s);\n", f.Doc, f.Module, f.Name, cValues[f.Result], f.Module, f.Name, cParams(f))
	}
	p.line("#ifdef __cplusplus\n}\n#endif\n\n#endif")
	return p.Bytes(), nil
}

func cEnum(p *page, e abi.Enum) {
	p.line("/* %s: %s */", e.Name, e.Doc)
	if !e.Flags {
		p.line("enum {")
	}
	for _, v := range e.Values {
		doc := ""
		if v.Doc != "" {
			doc = " /* " + v.Doc + " */"
		}
		name := "KVRT_" + upper(e.Name) + "_" + upper(v.Name)
		switch {
		case !e.Flags:
			p.line("\t%s = %d,%s", name, v.Value, doc)
		case e.Bits == 64:
			p.line("#define %s UINT64_C(%d)%s", name, v.Value, doc)
		default:
			p.line("#define %s UINT32_C(%d)%s", name, v.Value, doc)
		}
	}
	if !e.Flags {
		p.line("};")
	}
	p.line("")
}

func cName(record string) string { return "kvrt_" + snake(record) + "_t" }

// cField spells a field so that neither C nor C++ reads it as a keyword.
func cField(name string) string {
	if name == "namespace" {
		return "namespace_"
	}
	return name
}

func cRecord(p *page, r abi.Record) {
	name := cName(r.Name)
	p.line("/* %s: %s */\ntypedef struct {", r.Name, r.Doc)
	for _, f := range r.Fields {
		typ, scalar := cTypes[f.Type]
		if !scalar {
			typ = cName(f.Type)
		}
		doc := ""
		if f.Doc != "" {
			doc = ": " + f.Doc
		}
		p.line("\t%s %s; /* %d%s */", typ, cField(f.Name), f.Off, doc)
	}
	p.line("} %s;\nKVRT_ASSERT(sizeof(%s) == %d);", name, name, r.Size)
	for _, f := range r.Fields {
		p.line("KVRT_ASSERT(offsetof(%s, %s) == %d);", name, cField(f.Name), f.Off)
	}
	p.line("")
}

func cParams(f abi.Function) string {
	if len(f.Params) == 0 {
		return "void"
	}
	out := make([]string, len(f.Params))
	for i, q := range f.Params {
		typ := cValues[q.Type] + " "
		switch pointerOf(f, i) {
		case readBytes:
			typ = "const void *"
		case readU64s:
			typ = "const uint64_t *"
		case writeBytes:
			typ = "void *"
		case readNode:
			typ = "const kvrt_node_t *"
		case noPointer:
			if q.Type == abi.I32 { // lengths, flags and the like are unsigned
				typ = "uint32_t "
			}
		}
		out[i] = fmt.Sprintf("%s%s", typ, q.Name)
	}
	return strings.Join(out, ", ")
}
