package main

import (
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// assemblyScript writes the AssemblyScript module. A record is its size and the
// offsets of its fields, for load and store.
func assemblyScript(t abi.Table) ([]byte, error) {
	var p page
	p.line("// %s\n", generated)
	p.line("// The kvrt ABI, version %d.%d: enums, records and host functions. The words are in abi/SPEC.md.\n", abi.Major, abi.Minor)
	p.line("export const MAJOR: u32 = %d;\nexport const MINOR: u32 = %d;\n", abi.Major, abi.Minor)
	for _, e := range t.Enums {
		p.line("// %s: %s", e.Name, e.Doc)
		for _, v := range e.Values {
			p.line("export const %s_%s: u%d = %d;%s", upper(e.Name), upper(v.Name), e.Bits, v.Value, slashes(v.Doc))
		}
		p.line("")
	}
	for _, r := range t.Records {
		p.line("// %s: %s\nexport const SIZE_%s: usize = %d;", r.Name, r.Doc, upper(r.Name), r.Size)
		for _, f := range r.Fields {
			p.line("export const OFF_%s_%s: usize = %d;%s", upper(r.Name), strings.ToUpper(f.Name), f.Off, slashes(typed(f)))
		}
		p.line("")
	}
	for _, f := range stable(t) {
		params := make([]string, len(f.Params))
		for i, q := range f.Params {
			typ := q.Type.String()
			switch {
			case pointerOf(f, i) != noPointer:
				typ = "usize"
			case q.Type == abi.I32:
				typ = "u32"
			}
			params[i] = q.Name + ": " + typ
		}
		result := "void"
		if f.Result != 0 {
			result = f.Result.String()
		}
		p.line("// %s\n// @ts-ignore: decorator\n@external(%q, %q)", f.Doc, f.Module, f.Name)
		p.line("export declare function %s_%s(%s): %s;\n", f.Module, f.Name, strings.Join(params, ", "), result)
	}
	return trimmed(p), nil
}

func slashes(doc string) string {
	if doc == "" {
		return ""
	}
	return " // " + doc
}

// typed is a field's type and doc.
func typed(f abi.Field) string {
	if f.Doc == "" {
		return f.Type
	}
	return fmt.Sprintf("%s: %s", f.Type, f.Doc)
}

// trimmed ends the page with exactly one newline.
func trimmed(p page) []byte { return append([]byte(strings.TrimRight(p.String(), "\n")), '\n') }
