package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Each file of testdata holds kvrt.yaml, perhaps env (NAME=value lines), and what comes
// of it: problems or effective.yaml, and whether the schema for editors accepts the file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	check := schemaCheck(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			comment, sections := readArchive(t, file)
			want := writeArchive(comment, sections)
			in := map[string]string{}
			sections = slices.DeleteFunc(sections, func(s section) bool {
				in[s.name] = s.text
				return s.name != "kvrt.yaml" && s.name != "env"
			})
			for line := range strings.Lines(in["env"]) {
				name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				t.Setenv(name, value)
			}
			data := []byte(in["kvrt.yaml"])
			name, out := outcome(t, data)
			verdict := "accepts\n"
			if err := check(data); err != nil {
				verdict = "rejects\n"
				if name == "effective.yaml" {
					t.Errorf("the schema rejects a good file: %v", err)
				}
			}
			got := writeArchive(comment, append(sections, section{name, out}, section{"schema", verdict}))
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// outcome parses data and returns the golden section that it leads to.
func outcome(t *testing.T, data []byte) (section, text string) {
	c, err := Parse("kvrt.yaml", data)
	if err != nil {
		var list *Error
		if !errors.As(err, &list) || len(list.Problems) == 0 {
			t.Fatalf("error is %T: %v", err, err)
		}
		return "problems", err.Error() + "\n"
	}
	return "effective.yaml", strings.ReplaceAll(string(roundTrip(t, c)), DefaultSocket(), "DEFAULT_SOCKET")
}

// roundTrip writes c, reads it back, demands the same configuration and returns the text.
func roundTrip(t testing.TB, c *Config) []byte {
	t.Helper()
	out, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("echo.yaml", out)
	if err != nil {
		t.Fatalf("the effective configuration does not read back: %v\n%s", err, out)
	}
	a, b := *c, *again
	a.file, a.root, b.file, b.root = "", nil, "", nil
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("the effective configuration reads back as\n%+v\nnot\n%+v\n%s", b, a, out)
	}
	return out
}
