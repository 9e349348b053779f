package imports

import (
	"fmt"
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	for _, f := range tree(t) {
		if f.test {
			continue // what a test imports, no program links
		}
		for _, imp := range f.imports {
			if err := direct(f.pkg, imp); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
	}
}

func TestEveryPackageIsOnTheMap(t *testing.T) {
	for _, f := range tree(t) {
		if _, _, err := ruleOf(f.pkg); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

func TestLinks(t *testing.T) {
	deps := linked(t)
	if len(deps["abi"]) == 0 {
		t.Fatal("go list says that abi links nothing")
	}
	for pkg, all := range deps {
		for _, dep := range all {
			if why := banned(pkg, dep); why != "" {
				t.Errorf("%s links %s: %s", pkg, dep, why)
			}
		}
	}
}

// direct judges one import of one package.
func direct(pkg, imp string) error {
	if target := inModule(imp); target != "" {
		may, why, err := ruleOf(pkg)
		if err != nil {
			return err
		}
		if !matchAny(may, target) {
			return fmt.Errorf("%s must not import %s: %s", pkg, target, why)
		}
		return nil
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return nil // the standard library, and "C"
	}
	for _, m := range modules {
		if imp != m.module && !strings.HasPrefix(imp, m.module+"/") {
			continue
		}
		if !matchAny(m.importers, pkg) {
			return fmt.Errorf("%s must not import %s: %s", pkg, imp, m.why)
		}
		return nil
	}
	return fmt.Errorf("%s imports %s: no line for its module in the table modules", pkg, imp)
}

// ruleOf finds the rule for a package, with "own" spelled out.
func ruleOf(pkg string) (may, why string, err error) {
	for _, r := range rules {
		if stem, ok := match(r.pkgs, pkg); ok {
			return strings.ReplaceAll(r.may, "own", stem+"/..."), r.why, nil
		}
	}
	return "", "", fmt.Errorf("package %s is not on the map: add a line to the table rules", pkg)
}

// banned says why a package must not link another, "" if it may.
func banned(pkg, dep string) string {
	for _, l := range links {
		if matchAny(l.pkgs, pkg) && matchAny(l.banned, dep) {
			return l.why
		}
	}
	return ""
}

// TestRules holds the rules themselves: what each of them is there to stop.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		pkg, imp string
		ok       bool
	}{
		{"abi", "strings", true},
		{"abi", module + "/hint", false},
		{"abi", "github.com/vmihailenco/msgpack/v5", false},
		{"hint", module + "/abi", true},
		{"hint", module + "/runtime", false},
		{"runtime", module + "/runtime/admit", true},
		{"runtime", module + "/runtime/wazero", false},
		{"runtime", module + "/hosts/fetch", false},
		{"runtime", "github.com/tetratelabs/wazero", false},
		{"runtime/admit", module + "/hint", false},
		{"runtime/wazero", "github.com/tetratelabs/wazero/api", true},
		{"runtime/wazero", module + "/runtime", true},
		{"runtime/wazero", module + "/hosts/fetch", false},
		{"hosts/fetch", module + "/runtime", true},
		{"hosts/fetch", module + "/runtime/wazero", false},
		{"hosts/fetch", module + "/hosts/store", false},
		{"hosts/gpu", module + "/hosts/gpu/hostmem", true},
		{"kvevents", module + "/hosts/session", true},
		{"kvevents", module + "/hosts/store", false},
		{"config", "gopkg.in/yaml.v3", true},
		{"server", "gopkg.in/yaml.v3", false},
		{"server", module + "/runtime/wazero", false},
		{"server", module + "/cmd/kvrt", false},
		{"policies", module + "/abi", false},
		{"policies/kv-fetch", module + "/sdk/go", true},
		{"sdk/go", module + "/hint", false},
		{"sdk/tck", module + "/hosts/log", true},
		{"sdk/tck", module + "/runtime/wazero", false},
		{"cmd/kvrt", module + "/runtime/wazero", true},
		{"util", "strings", true}, // TestEveryPackageIsOnTheMap refuses it
		{"util", module + "/abi", false},
		{"cmd/kvrt", "example.com/new", false},
	} {
		if err := direct(c.pkg, c.imp); (err == nil) != c.ok {
			t.Errorf("%s imports %s: got %v, want ok=%v", c.pkg, c.imp, err, c.ok)
		}
	}
	if banned("hosts/fetch", "net/http") == "" || banned("server", "net/http") != "" {
		t.Error("net/http is for the server, not for hosts")
	}
	if banned("runtime", "github.com/tetratelabs/wazero/internal/wasm") == "" {
		t.Error("the runtime may link an engine")
	}
	if _, _, err := ruleOf("util"); err == nil {
		t.Error("a new folder at the top needs no line")
	}
}
