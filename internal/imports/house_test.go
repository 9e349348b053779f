package imports

import (
	"go/ast"
	"strings"
	"testing"
)

// A file that is read in one sitting has about softLines lines. Past hardLines
// it is split, tests too.
const (
	softLines = 400
	hardLines = 600
)

func TestFileLength(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range tree(t) {
		if f.generated {
			continue
		}
		switch {
		case f.lines > hardLines:
			t.Errorf("%s has %d lines: split it, %d is the limit", f.name, f.lines, hardLines)
		case f.lines > softLines && !f.test:
			seen[f.name] = true
			if long[f.name] == "" {
				t.Errorf("%s has %d lines: split it, or give a reason in the table long", f.name, f.lines)
			}
		}
	}
	for name := range long {
		if !seen[name] {
			t.Errorf("%s is not long: remove it from the table long", name)
		}
	}
}

func TestPackageComments(t *testing.T) {
	documented := make(map[string]bool)
	for _, f := range tree(t) {
		doc := f.syntax.Doc.Text() != "" && !f.test
		documented[f.pkg] = documented[f.pkg] || doc
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc comment", pkg)
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, f := range tree(t) {
		switch name := strings.TrimSuffix(f.syntax.Name.Name, "_test"); name {
		case "util", "utils", "common", "types", "helper", "helpers", "misc":
			t.Errorf("%s: package %s says nothing; name it after what it does", f.name, name)
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, f := range tree(t) {
		if matchAny(withInit, f.pkg) {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function: let the caller construct or register it", f.name)
			}
		}
	}
}
