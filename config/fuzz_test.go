package config

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse holds that no input panics, that every problem is inside the file, and that
// what is accepted has parameters that are JSON and reads back from its own echo.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		_, sections := readArchive(f, file)
		for _, s := range sections {
			if strings.HasSuffix(s.name, ".yaml") {
				f.Add([]byte(s.text))
			}
		}
	}
	for _, s := range []string{
		"", "\x00", "\xff\xfe", "\xef\xbb\xbfguests: []", "&a *a", "a: &a\n  b: *a", "{}: {}", "? ?\n: :", "- - -", "%YAML 1.2\n---\n...", "|", "--- >-\n x\n...\n#",
		"guests: [{name: a, module: a, parameters: {? [x] : y, \"\": [~, 0x1, 1e1, -0, .5, \"\\U0001f600\\x01\"]}}]", "\"\\ud800\"", "a:\tb", "{a: 1, a: 2", "*x", "!<tag:yaml.org,2002:map> {}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("kvrt.yaml", data)
		if err != nil {
			var list *Error
			if !errors.As(err, &list) || len(list.Problems) == 0 || c != nil {
				t.Fatalf("%T: %v", err, err)
			}
			lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + strings.Count(string(data), "\u0085") + strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029") + 1
			for _, p := range list.Problems {
				if p.Message == "" || p.Line < 0 || len(data) < 1000 && p.Line > lines+1 {
					t.Fatalf("%+v", p)
				}
			}
			return
		}
		for _, g := range c.Guests {
			if g.Parameters != nil && !json.Valid(g.Parameters) {
				t.Fatalf("not JSON: %s", g.Parameters)
			}
		}
		roundTrip(t, c)
	})
}
