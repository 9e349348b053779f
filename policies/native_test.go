package policies_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool returns the path of a tool, or skips the test. scripts/toolchain.sh brings all.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s here; scripts/toolchain.sh installs it", name)
	}
	return path
}

func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// TestNativeC runs the C SDK's tests, and the cases of each guest in C, natively with
// the sanitizers.
func TestNativeC(t *testing.T) {
	gcc := tool(t, "gcc")
	mains, err := filepath.Glob("*/test/*.c")
	if err != nil || len(mains) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	for _, main := range append(mains, "../sdk/c/test/kvrt_test.c", "../sdk/c/test/kvrt_vectors.c") {
		t.Run(main, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "test")
			run(t, "", nil, gcc, "-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover",
				"-I../sdk/c/include", "-I../sdk/c/test", "-o", program, main)
			args, err := filepath.Glob(filepath.Join(filepath.Dir(main), "..", "cases", "*.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(main, "vectors") {
				args = []string{"../abi/vectors"}
			}
			run(t, "", nil, program, args...)
		})
	}
}

// TestNativeRust runs the tests of the Rust SDK and of each guest in Rust natively.
func TestNativeRust(t *testing.T) {
	t.Parallel()
	cargo, rustc := tool(t, "/usr/bin/cargo"), tool(t, "/usr/bin/rustc")
	crates, err := filepath.Glob("*/Cargo.toml")
	if err != nil || len(crates) == 0 {
		t.Fatalf("no crates: %v", err)
	}
	env := []string{"RUSTC=" + rustc, "RUSTDOC=/usr/bin/rustdoc", "CARGO_TARGET_DIR=" + t.TempDir()}
	for _, crate := range append(crates, filepath.FromSlash("../sdk/rust/Cargo.toml")) {
		run(t, filepath.Dir(crate), env, cargo, "test", "--offline", "--locked", "--quiet")
	}
}

// TestBuildElsewhere builds the guests in another folder: not a byte may differ.
func TestBuildElsewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"clang-19", "wasm-ld-19", "/usr/bin/rustc", "bash"} {
		tool(t, name)
	}
	dir := filepath.Join(t.TempDir(), "some", "other place")
	for _, part := range []string{"go.mod", "go.sum", "abi", "internal/guestbuild", "policies", "sdk/c/include", "sdk/rust/src"} {
		copyTree(t, filepath.Join("..", part), filepath.Join(dir, part))
	}
	run(t, dir, nil, "policies/build.sh", "--check")
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == "target" {
				return fs.SkipDir
			}
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, content, info.Mode())
	})
	if err != nil {
		t.Fatal(err)
	}
}
