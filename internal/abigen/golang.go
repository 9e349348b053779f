package main

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// goConstants writes the Go constants: a type per enum with String, the offset and
// size of every record, and the names of the import modules.
func goConstants(t abi.Table) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// " + generated + "\n\npackage abi\n\n")
	for _, e := range t.Enums {
		fmt.Fprintf(&b, "// %s: %s\ntype %s uint%d\n\nconst (\n", e.Name, e.Doc, e.Name, e.Bits)
		for _, v := range e.Values {
			fmt.Fprintf(&b, "\t%s%s %s = %d", e.Name, v.Name, e.Name, v.Value)
			if v.Doc != "" {
				fmt.Fprintf(&b, " // %s", v.Doc)
			}
			b.WriteByte('\n')
		}
		b.WriteString(")\n\n")
		if !e.Flags {
			fmt.Fprintf(&b, "// String returns the text that people and JSON see.\nfunc (v %s) String() string {\n\tswitch v {\n", e.Name)
			for _, v := range e.Values {
				fmt.Fprintf(&b, "\tcase %s%s:\n\t\treturn %q\n", e.Name, v.Name, v.Text)
			}
			b.WriteString("\t}\n\treturn \"unknown\"\n}\n\n")
		}
	}
	for _, r := range t.Records {
		fmt.Fprintf(&b, "// %s: %s\nconst (\n\tSize%s = %d\n", r.Name, r.Doc, r.Name, r.Size)
		for _, f := range r.Fields {
			fmt.Fprintf(&b, "\tOff%s%s = %d // %s", r.Name, camel(f.Name), f.Off, f.Type)
			if f.Doc != "" {
				fmt.Fprintf(&b, ": %s", f.Doc)
			}
			b.WriteByte('\n')
		}
		b.WriteString(")\n\n")
	}
	b.WriteString("// The import modules: each is a capability that the operator grants.\nconst (\n")
	seen := ""
	for _, f := range t.Functions {
		if f.Module != seen {
			seen = f.Module
			fmt.Fprintf(&b, "\tModule%s = %q\n", camel(strings.TrimPrefix(f.Module, "kvrt_")), f.Module)
		}
	}
	b.WriteString(")\n")
	return format.Source(b.Bytes())
}
