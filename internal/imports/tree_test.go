package imports

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/kvrt/kvrt"
	root   = "../.."
)

// A file is one Go file of the module, of any build tag; testdata is left out.
type file struct {
	name      string // slash path below the root
	pkg       string // its folder, "." for the root
	test      bool
	generated bool
	lines     int
	imports   []string
	syntax    *ast.File
}

func tree(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skip(name, d.Name())
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		f := file{
			name:      rel,
			pkg:       path.Dir(rel),
			test:      strings.HasSuffix(rel, "_test.go"),
			generated: ast.IsGenerated(syntax),
			lines:     bytes.Count(src, []byte("\n")),
			syntax:    syntax,
		}
		for _, spec := range syntax.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imp)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go file found")
	}
	return files
}

// skip passes over what is not part of the module, as the go command does.
func skip(dir, base string) error {
	if dir == root {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// linked maps each package that builds on this machine to all that it links.
func linked(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		deps[inModule(fields[0])] = fields[1:]
	}
	return deps
}

// inModule turns the import path of a package of this module into its folder,
// and anything else into "".
func inModule(imp string) string {
	if imp == module {
		return "."
	}
	dir, _ := strings.CutPrefix(imp, module+"/")
	if dir == imp {
		return ""
	}
	return dir
}

// match reports whether a package matches one pattern, and the folder that the
// pattern names there.
func match(pattern, pkg string) (stem string, ok bool) {
	if pattern == "..." {
		return "", true
	}
	pattern, deep := strings.CutSuffix(pattern, "/...")
	want, have := strings.Split(pattern, "/"), strings.Split(pkg, "/")
	if len(have) < len(want) || len(have) > len(want) && !deep {
		return "", false
	}
	for i, w := range want {
		if w != "*" && w != have[i] {
			return "", false
		}
	}
	return strings.Join(have[:len(want)], "/"), true
}

// matchAny reports whether a package matches one of a list of patterns.
func matchAny(patterns, pkg string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		if _, ok := match(pattern, pkg); ok {
			return true
		}
	}
	return false
}
