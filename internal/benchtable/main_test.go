package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile("testdata/"+name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, name); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	err := run(strings.NewReader(read(t, "bench.txt")), &out, read(t, "budgets.txt"), false)
	if err == nil {
		t.Error("rows without a figure passed")
	}
	golden(t, "table.golden", out.String())
}

func TestPartialTable(t *testing.T) {
	var out bytes.Buffer
	if err := run(strings.NewReader(read(t, "bench.txt")), &out, read(t, "budgets.txt"), true); err != nil {
		t.Error(err)
	}
	golden(t, "partial.golden", out.String())
}

func TestFailedBenchmarkIsAnError(t *testing.T) {
	for _, line := range []string{"--- FAIL: BenchmarkX", "FAIL\tgithub.com/kvrt/kvrt/runtime [build failed]", "panic: no"} {
		in := read(t, "bench.txt") + line + "\n"
		err := run(strings.NewReader(in), new(bytes.Buffer), read(t, "budgets.txt"), true)
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: got %v", line, err)
		}
	}
}

func TestBudgetsAreWellFormed(t *testing.T) {
	rows, err := readRows(budgets)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		t.Fatal("no rows")
	}
}

func TestMalformedRows(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"a | b", "2 cells"},
		{"a | runtime.Thing | none | abs<=1", "want PACKAGE.BenchmarkName"},
		{"a | r.BenchmarkX@0 | none | abs<=1", "count of cores"},
		{"a | r.BenchmarkX | many * r.BenchmarkY | ratio<=1", "no number"},
		{"a | r.BenchmarkX | none | ratio<=1", "needs a floor"},
		{"a | r.BenchmarkX | none | soon", "none of"},
		{"a | r.BenchmarkX | none | abs<=1 parsec", "parsec"},
		{"a | r.BenchmarkX one two | none | abs<=1", "with a unit"},
	} {
		_, err := readRows("# first\n" + c.line)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: got %v, want line 2 and %q", c.line, err, c.want)
		}
	}
}
