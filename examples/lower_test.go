package examples

import (
	"os"
	"path"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
)

// TestLower holds the answers in lower: NAME.ENGINE-VERSION.want is what that engine is
// handed for NAME.json; -update writes it.
func TestLower(t *testing.T) {
	answered := map[string]bool{}
	for _, want := range glob(t, "lower/*.want") {
		name, rest, _ := strings.Cut(strings.TrimSuffix(path.Base(want), ".want"), ".")
		engine, version, _ := strings.Cut(rest, "-")
		answered[name] = true
		kind, err := lower.ParseEngine(engine)
		if err != nil {
			t.Fatal(err)
		}
		l, err := lower.New(lower.Target{Engine: kind, Version: version}, lower.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		request, err := os.ReadFile("lower/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := l.Append(nil, hint.FormatJSON, request)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(want, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if said, err := os.ReadFile(want); err != nil || string(said) != string(got) {
			t.Errorf("%s: got\n%s", want, got)
		}
	}
	for _, name := range glob(t, "lower/*.json") {
		if name := strings.TrimSuffix(path.Base(name), ".json"); !answered[name] {
			t.Errorf("lower/%s.json has no answer", name)
		}
	}
}
