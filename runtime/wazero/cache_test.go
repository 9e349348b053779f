package wazero

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// filled is a Compiler with bare.wasm in its cache, the store, and the module's key.
func filled(t *testing.T) (c *Compiler, count func() int, s *store, key string) {
	t.Helper()
	c, count = compiler(t, "")
	works(t, Config{Compiler: c})
	s, err := c.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	key = s.key(readModule(t, "bare.wasm"), options{Pages: 16})
	if s.get(key) == nil {
		t.Fatal("the cache is empty")
	}
	return c, count, s, key
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t interface{ Fatal(...any) }, path string, b []byte) {
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

// TestEveryFlippedByteIsSeen flips one bit in each byte of the code, and shortens and
// lengthens it: nothing of that is handed out, and all of it is removed.
func TestEveryFlippedByteIsSeen(t *testing.T) {
	_, _, s, key := filled(t)
	index, code := s.paths(key)
	goodIndex, good := read(t, index), read(t, code)
	try := func(what string, at int, bad []byte) {
		t.Helper()
		write(t, index, goodIndex)
		write(t, code, bad)
		if s.get(key) != nil {
			t.Fatalf("%s at %d: the code was used", what, at)
		}
		if !absent(index) || !absent(code) {
			t.Fatalf("%s at %d: still there", what, at)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		try("flip", i, bad)
	}
	for i := range good {
		if i%7 == 0 {
			try("cut", i, good[:i])
		}
	}
	try("longer", len(good), append(bytes.Clone(good), 0))
	write(t, index, goodIndex)
	write(t, code, good)
	if s.get(key) == nil {
		t.Fatal("the good code is not used")
	}
}

// TestDamagedIndex: whatever an index entry holds, the code that it gives out has the
// digest that the child's had.
func TestDamagedIndex(t *testing.T) {
	_, _, s, key := filled(t)
	index, code := s.paths(key)
	goodIndex, good := read(t, index), read(t, code)
	rapid.Check(t, func(r *rapid.T) {
		bad := bytes.Clone(goodIndex)
		for range rapid.IntRange(1, 4).Draw(r, "changes") {
			bad[rapid.IntRange(0, len(bad)-1).Draw(r, "at")] = rapid.Byte().Draw(r, "byte")
		}
		bad = bad[:rapid.IntRange(0, len(bad)).Draw(r, "length")]
		write(r, index, bad)
		write(r, code, good)
		if e := s.get(key); e != nil && !bytes.Equal(e.code, good) {
			r.Fatal("other code was used")
		}
	})
}

// TestDamageIsCompiledAgain goes through the engine: the guest works, and it took a new
// child.
func TestDamageIsCompiledAgain(t *testing.T) {
	c, count, s, key := filled(t)
	index, code := s.paths(key)
	want := 1
	for name, damage := range map[string]func(){
		"first byte":     func() { flip(t, code, 0) },
		"function count": func() { flip(t, code, 12) },
		"machine code":   func() { flip(t, code, len(read(t, code))/2) },
		"last byte":      func() { flip(t, code, len(read(t, code))-1) },
		"empty":          func() { write(t, code, nil) },
		"gone":           func() { os.Remove(code) },
		"no index":       func() { os.Remove(index) },
		"index of an older format": func() {
			write(t, index, bytes.Replace(read(t, index), []byte(format), []byte("kvrt-0"), 1))
		},
		"file of another name": func() {
			e := s.get(key)
			write(t, index, bytes.Replace(read(t, index), []byte(e.File), []byte(strings.Repeat("0", 64)), 1))
		},
		"file outside": func() {
			e := s.get(key)
			write(t, index, bytes.Replace(read(t, index), []byte(e.File), []byte("../../x"), 1))
		},
		"directories": func() {
			s.drop(key)
			os.MkdirAll(filepath.Join(index, "x"), 0o700)
			os.MkdirAll(filepath.Join(code, "x"), 0o700)
		},
	} {
		damage()
		works(t, Config{Compiler: c})
		want++
		if n := count(); n != want {
			t.Fatalf("%s: %d children, want %d", name, n, want)
		}
		works(t, Config{Compiler: c})
		children(t, count, want)
	}
	leftovers(t, c)
}

func flip(t testing.TB, path string, at int) {
	b := read(t, path)
	b[at] ^= 0x10
	write(t, path, b)
}

// TestForeignFiles: what others can write, or what is reached in other ways than by its
// own name, is not used.
func TestForeignFiles(t *testing.T) {
	if !permissions {
		t.Skip("modes of files mean nothing here")
	}
	c, count, s, key := filled(t)
	index, code := s.paths(key)
	want := 1
	for _, path := range []string{index, code} {
		for name, change := range map[string]func() error{
			"group may write": func() error { return os.Chmod(path, 0o620) },
			"all may read":    func() error { return os.Chmod(path, 0o604) },
			"second name":     func() error { return os.Link(path, filepath.Join(t.TempDir(), "link")) },
			"symbolic link": func() error {
				target := filepath.Join(t.TempDir(), "elsewhere")
				if err := os.Rename(path, target); err != nil {
					return err
				}
				return os.Symlink(target, path)
			},
			"other owner": func() error {
				if os.Geteuid() != 0 {
					return os.Chmod(path, 0o666)
				}
				return os.Chown(path, 12345, 12345)
			},
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			works(t, Config{Compiler: c})
			want++
			if n := count(); n != want {
				t.Fatalf("%s: %d children, want %d", name, n, want)
			}
		}
	}
}

func TestForeignDirectory(t *testing.T) {
	if !permissions {
		t.Skip("modes of files mean nothing here")
	}
	c, count := compiler(t, "")
	works(t, Config{Compiler: c})
	info, err := os.Stat(c.Dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatal(info.Mode(), err)
	}
	refused := func() {
		t.Helper()
		err := New(Config{Compiler: c}).cfg.Compiler.compile(context.Background(), readModule(t, "bare.wasm"), options{Pages: 16}, nil, func(string) error { return nil })
		if err == nil {
			t.Fatal("it was used")
		}
		t.Log(err)
	}
	for _, mode := range []os.FileMode{0o720, 0o702, 0o777} {
		os.Chmod(c.Dir, mode)
		refused()
	}
	os.Chmod(c.Dir, 0o700)
	works(t, Config{Compiler: c})
	children(t, count, 1)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(c.Dir, link); err != nil {
		t.Fatal(err)
	}
	c.Dir = link
	refused()
	c.Dir = filepath.Join(t.TempDir(), "file")
	write(t, c.Dir, nil)
	refused()
}

// TestStagedCopy: what is loaded is what was verified, in a directory that holds it
// alone and that wazero leaves as it is.
func TestStagedCopy(t *testing.T) {
	_, _, s, key := filled(t)
	e := s.get(key)
	_, code := s.paths(key)
	write(t, code, []byte("changed after it was verified"))
	var staged string
	if err := s.stage(e, func(dir string) error {
		staged = dir
		if err := compileInto(loadOnly(context.Background()), dir, readModule(t, "bare.wasm"), options{Pages: 16}); err != nil {
			return err
		}
		file, err := onlyFile(dir)
		if err != nil {
			return err
		}
		if b := read(t, filepath.Join(dir, file)); !bytes.Equal(b, e.code) {
			t.Error("wazero wrote to it")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !absent(staged) {
		t.Fatal("the copy is still there")
	}
}

func TestSweep(t *testing.T) {
	c, _ := compiler(t, "")
	old, fresh := filepath.Join(c.Dir, tempPrefix+"old"), filepath.Join(c.Dir, tempPrefix+"fresh")
	for _, dir := range []string{c.Dir, old, fresh} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * tempAge)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	works(t, Config{Compiler: c})
	if !absent(old) || absent(fresh) {
		t.Fatal("what a killed process left is there, or what a living one uses is not")
	}
}
