package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

const root = "../.."

func TestGeneratedFilesAreCurrent(t *testing.T) {
	if err := run(root, true); err != nil {
		t.Error(err)
	}
}

// A stale file is found, whatever it is.
func TestStaleFilesAreFound(t *testing.T) {
	dir := t.TempDir()
	copyFile(t, dir, "abi/SPEC.md")
	for _, name := range []string{"handler.c", "handler.json", "manifest.py", "build.sh", "kvrt.yaml", "echo.json"} {
		copyFile(t, dir, "abi/testdata/"+name)
	}
	if err := run(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, true); err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs(dir) {
		path := filepath.Join(dir, o.path)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Inside the first generated part of the specification, anywhere in the rest.
		bad := strings.Replace(string(good), "_1", "_2", 1)
		if o.path == "abi/abi.txt" {
			bad = string(good[:len(good)-1]) // a lost newline loses no line
		} else if bad == string(good) {
			bad += "\n"
		}
		write(t, path, bad)
		if o.path == "abi/SPEC.md" {
			write(t, path, strings.Replace(string(good), "| 0 | u32 |", "| 1 | u32 |", 1))
		}
		if err := run(dir, true); err == nil || !strings.Contains(err.Error(), o.path) {
			t.Errorf("%s: %v", o.path, err)
		}
		write(t, path, string(good))
	}
}

// The listing only grows: neither abi.txt nor a released listing may lose a line.
func TestListingOnlyGrows(t *testing.T) {
	now, err := listing(abi.Contract())
	if err != nil {
		t.Fatal(err)
	}
	table := abi.Contract()
	for name, c := range map[string]struct {
		line string
		ok   bool
	}{
		"a value that is gone":      {"enum Reason 99 Gone \"gone\"", false},
		"a function that changed":   {"function kvrt_log.write (level i32) fuel 50", false},
		"a draft that is gone":      {"draft function kvrt_gpu.gone () fuel 1", true},
		"a comment":                 {"# function kvrt_log.gone () fuel 50", true},
		"a draft that became final": {"draft function kvrt_log.enabled (level i32) -> i32 fuel 20", true},
	} {
		for _, file := range []string{"abi.txt", "v1.0.txt"} {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "abi"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "abi", file), string(now)+c.line+"\n")
			err := grows(dir, table)
			if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), c.line) {
				t.Errorf("%s in %s: %v", name, file, err)
			}
		}
	}
}

func TestListingIsFrozenOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "abi"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := freeze(dir, abi.Contract()); err != nil {
		t.Fatal(err)
	}
	if err := grows(dir, abi.Contract()); err != nil {
		t.Error(err)
	}
	if err := freeze(dir, abi.Contract()); err == nil {
		t.Error("frozen twice")
	}
}

// The table itself is sound: records without gaps or overlaps, naturally aligned,
// values and names once, costs for every function.
func TestTable(t *testing.T) {
	table := abi.Contract()
	size, align := map[string]int{"u8": 1, "u16": 2, "u32": 4, "u64": 8}, map[string]int{"u8": 1, "u16": 2, "u32": 4, "u64": 8}
	for _, r := range table.Records {
		at := 0
		for _, f := range r.Fields {
			n, known := size[f.Type]
			if !known || f.Off != at || f.Off%align[f.Type] != 0 {
				t.Errorf("%s.%s at %d: type %s, want offset %d", r.Name, f.Name, f.Off, f.Type, at)
			}
			at += n
			align[r.Name] = max(align[r.Name], align[f.Type])
		}
		if at != r.Size || r.Size%align[r.Name] != 0 {
			t.Errorf("%s has %d bytes and says %d", r.Name, at, r.Size)
		}
		size[r.Name] = r.Size
	}
	for _, e := range table.Enums {
		seen := map[any]bool{}
		for i, v := range e.Values {
			if seen[v.Value] || seen[v.Name] || v.Text != "" && seen["text "+v.Text] {
				t.Errorf("%s.%s is there twice", e.Name, v.Name)
			}
			seen[v.Value], seen[v.Name], seen["text "+v.Text] = true, true, true
			if e.Flags && v.Value != 1<<i || !e.Flags && e.Values[0].Value+uint64(i) != v.Value {
				t.Errorf("%s.%s = %d leaves a gap", e.Name, v.Name, v.Value)
			}
		}
	}
	for _, f := range table.Functions {
		if !strings.HasPrefix(f.Module, "kvrt_") || f.Fuel == 0 || f.Doc == "" {
			t.Errorf("%s.%s: no capability, cost or text", f.Module, f.Name)
		}
	}
	for _, v := range table.Enums[reasons(t, table)].Values {
		if host := strings.Contains(v.Doc, "(host only)") || v.Name == "None"; host == abi.Reason(v.Value).FromGuest() {
			t.Errorf("reason %s: FromGuest differs from the table", v.Name)
		}
	}
}

func reasons(t *testing.T, table abi.Table) int {
	for i, e := range table.Enums {
		if e.Name == "Reason" {
			return i
		}
	}
	t.Fatal("no reasons")
	return 0
}

// The specification's table of the manifest names every key.
func TestSpecNamesEveryManifestKey(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "abi", "SPEC.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{abi.Manifest{}, abi.ManifestLimits{}, abi.ActionType{}, abi.Metric{}} {
		for i := range reflect.TypeOf(v).NumField() {
			key, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("json"), ",")
			if !strings.Contains(string(text), "`"+key+"`") && !strings.Contains(string(text), `"`+key+`"`) {
				t.Errorf("SPEC.md does not name the key %s", key)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"DPRank": "dp_rank", "U64s": "u64s", "JSON": "json", "NoRetain": "no_retain", "EnvelopeFrame": "envelope_frame", "GPU": "gpu", "I64": "i64",
		"UnsupportedActionType": "unsupported_action_type",
	} {
		if got := snake(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"action_id": "ActionID", "dp_rank": "DPRank", "submitted_ns": "SubmittedNS", "off": "Off", "abi_minor": "ABIMinor"} {
		if got := camel(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// tool runs a program, and skips the test when it is not there.
func tool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s", name)
	}
	c := exec.Command(path, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func TestCHeader(t *testing.T) {
	header := "sdk/c/include/kvrt_abi.h"
	strict := []string{"-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x"}
	t.Run("wasm32", func(t *testing.T) {
		tool(t, root, "clang-19", append([]string{"--target=wasm32", "-std=c11", "-ffreestanding", "-nostdlib"}, append(strict, "c", header)...)...)
	})
	t.Run("native", func(t *testing.T) {
		tool(t, root, "gcc", append([]string{"-std=c11"}, append(strict, "c", header)...)...)
	})
	t.Run("c++", func(t *testing.T) {
		tool(t, root, "clang-19", append([]string{"--target=wasm32", "-std=c++17", "-ffreestanding"}, append(strict, "c++", header)...)...)
	})
}

func TestRustModule(t *testing.T) {
	rustc := "/usr/bin/rustc" // 1.63: the oldest that an SDK runs on
	dir := t.TempDir()
	path, err := filepath.Abs(filepath.Join(root, "sdk/rust/src/abi.rs"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "lib.rs"), "#![no_std]\n#![deny(warnings)]\n#[path = \""+path+"\"]\npub mod abi;\n")
	t.Run("native", func(t *testing.T) {
		tool(t, dir, rustc, "--edition", "2021", "--crate-type", "lib", "--emit=metadata", "lib.rs")
	})
	t.Run("wasm32", func(t *testing.T) {
		if found, _ := filepath.Glob("/usr/lib/rustlib/wasm32-unknown-unknown/lib/libcore-*.rlib"); len(found) == 0 {
			t.Skip("no standard library for wasm32")
		}
		tool(t, dir, rustc, "--edition", "2021", "--target", "wasm32-unknown-unknown", "--crate-type", "lib", "--emit=metadata", "lib.rs")
	})
}

func copyFile(t *testing.T, dir, name string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(b))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
