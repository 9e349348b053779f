package policies_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/tck"
)

// TestCases runs the cases of every guest through the runtime, in JSON and msgpack.
func TestCases(t *testing.T) {
	for _, name := range policies.Guests() {
		files, err := filepath.Glob(filepath.Join(name, "cases", "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no cases: %v", name, err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runner, err := kit().NewRunner(newHosts(t, name).spec(nil))
			if err != nil {
				t.Fatal(err)
			}
			defer runner.Close()
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
					for _, c := range readCases(t, file) {
						t.Run(c.Name, func(t *testing.T) {
							for _, failure := range runner.Run(context.Background(), &c).Failures {
								t.Error(failure)
							}
						})
					}
				})
			}
		})
	}
}

func readCases(t *testing.T, file string) []tck.Case {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases, err := tck.ReadCases(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return cases
}

// TestGuests holds the embedded modules to what their folders say.
func TestGuests(t *testing.T) {
	folders, err := filepath.Glob("*/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range folders {
		names = append(names, filepath.Dir(f))
	}
	if got := policies.Guests(); !slices.Equal(got, names) {
		t.Fatalf("embedded are %v, the folders with a manifest are %v: run policies/build.sh", got, names)
	}
	for _, name := range names {
		if m := newHosts(t, name).manifest; m.Name != name {
			t.Errorf("%s: the manifest names it %s", name, m.Name)
		}
	}
	for _, name := range []string{"", ".", "none", "kv-fetch/", "kv-fetch/kv-fetch", "../policies/kv-fetch"} {
		if _, ok := policies.Module(name); ok {
			t.Errorf("there is a module %q", name)
		}
	}
}

// Loading and dispatching must work at the default limits of memory and fuel too.
func TestDefaultLimits(t *testing.T) {
	for _, name := range policies.Guests() {
		h := newHosts(t, name)
		h.limits.Memory = runtime.DefaultMemory
		if _, err := h.load(context.Background(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
