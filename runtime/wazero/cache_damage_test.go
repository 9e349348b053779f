//go:build linux || darwin

package wazero

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kvrt/kvrt/runtime"
)

// tiny is a module whose function f returns n, made without admission.
func tiny(n byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00\x0a\x06\x01\x04\x00\x41"), n, 0x0b)
}

// shelf is a cache with a few modules.
type shelf struct {
	modules  int
	t        *testing.T
	c        *Compiler
	count    func() int
	s        *store
	inParent int // compilations in this process
}

func newShelf(t *testing.T, modules int) *shelf {
	s := &shelf{t: t, modules: modules}
	s.c, s.count = compiler(t, "")
	task := "answer 1"
	tries(s.c, &task)
	for i := range s.modules {
		s.use(i)
	}

	var err error
	if s.s, err = s.c.open(context.Background()); err != nil || s.count() != modules {
		t.Fatalf("%d children, %v", s.count(), err)
	}
	return s
}

// use loads a module as the engine does and runs it. What this process compiled would lie
// beside the verified code, or in its place.
func (s *shelf) use(i int) {
	s.t.Helper()
	wasm := tiny(byte(i + 1))
	err := s.c.compile(context.Background(), wasm, options{Pages: 1}, &runtime.GuestSpec{Name: "tiny"}, func(dir string) error {
		before, err := onlyFile(dir)
		if err != nil {
			return err
		}
		code := read(s.t, filepath.Join(dir, before))
		if _, err := run(loadOnly(context.Background()), dir, wasm); err != nil {
			return err
		}
		if after, err := onlyFile(dir); after != before || err != nil || !bytes.Equal(code, read(s.t, filepath.Join(dir, after))) {
			s.inParent++
		}
		got, err := run(loadOnly(context.Background()), dir, wasm)
		if err != nil || got != uint64(i+1) {
			s.t.Errorf("module %d answers %d, %v", i, got, err)
		}
		return err
	})
	if err != nil {
		s.t.Fatalf("module %d: %v", i, err)
	}
}

// files lists what lies in the cache.
func (s *shelf) files() (all []string) {
	s.s.files(func(path string, info fs.FileInfo) {
		if info.Mode().IsRegular() {
			all = append(all, path)
		}
	})
	slices.Sort(all)
	return all
}

// TestDamagedCache damages every file of a cache in every way: whatever it holds, the
// answers are right, this process compiles nothing, and one child more makes a damaged
// entry whole again.
func TestDamagedCache(t *testing.T) {
	s := newShelf(t, 2)
	r := rand.New(rand.NewPCG(3, 4))
	damages := map[string]func(path string, b []byte){
		"a flipped byte": func(path string, b []byte) {
			b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
			write(t, path, b)
		},
		"many flipped bytes": func(path string, b []byte) {
			for range 20 {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			write(t, path, b)
		},
		"cut":          func(path string, b []byte) { write(t, path, b[:r.IntN(len(b))]) },
		"longer":       func(path string, b []byte) { write(t, path, append(b, byte(r.Uint32()))) },
		"of no length": func(path string, b []byte) { write(t, path, nil) },
		"another's": func(path string, _ []byte) {
			for _, other := range s.files() {
				if other != path && filepath.Ext(other) == filepath.Ext(path) {
					write(t, path, read(t, other))
					return
				}
			}
		},
		"the other half": func(path string, b []byte) {
			other := path[:len(path)-len(filepath.Ext(path))] + map[string]string{".json": ".code", ".code": ".json"}[filepath.Ext(path)]
			mine := read(t, other)
			write(t, other, b)
			write(t, path, mine)
		},
		"gone":            func(path string, _ []byte) { os.Remove(path) },
		"for a group":     func(path string, _ []byte) { os.Chmod(path, 0o660) },
		"of another user": func(path string, _ []byte) { disown(t, path) },
		"behind a link":   func(path string, _ []byte) { relink(t, path) },
		"a folder":        func(path string, _ []byte) { os.Remove(path); os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"a pipe":          func(path string, _ []byte) { os.Remove(path); pipe(t, path) },
	}
	for name, damage := range damages {
		for at := range s.files() {
			files := s.files()
			if len(files) != 2*s.modules {
				t.Fatalf("%s: the cache holds %d files", name, len(files))
			}
			damage(files[at], read(t, files[at]))
			before := s.count()
			for i := range s.modules {
				s.use(i)
			}
			// A flipped digest of a trial, or white space, may leave the entry good.
			if more := s.count() - before; more > 1 || more == 0 && filepath.Ext(files[at]) == ".code" {
				t.Errorf("%s: %s: %d children", name, filepath.Base(files[at]), more)
			}
			before = s.count()
			for i := range s.modules {
				s.use(i)
			}
			children(t, s.count, before)
		}
	}
	if s.inParent > 0 {
		t.Errorf("this process compiled %d times", s.inParent)
	}
	leftovers(t, s.c)
}

// TestShuffledCache exchanges whole entries, so that each file is one that a child left,
// under another's name.
func TestShuffledCache(t *testing.T) {
	s := newShelf(t, 3)
	files := s.files()
	for _, ending := range []string{".json", ".code", ""} {
		held := map[string][]byte{}
		var names []string
		for _, f := range files {
			if ending == "" || filepath.Ext(f) == ending {
				held[f] = read(t, f)
				names = append(names, f)
			}
		}
		for i, f := range names {
			next := (i + 1) % len(names)
			if ending == "" {
				next = (i + 2) % len(names) // both halves of one entry go to the next
			}
			write(t, f, held[names[next]])
		}
		before := s.count()
		for i := range s.modules {
			s.use(i)
		}
		children(t, s.count, before+s.modules)
	}
	if s.inParent > 0 {
		t.Errorf("this process compiled %d times", s.inParent)
	}
}

// TestEviction: what was not used for longest goes first, from the folders of other
// versions too; what is being loaded is not disturbed, and what is new stays.
func TestEviction(t *testing.T) {
	s := newShelf(t, 3)
	old := filepath.Join(s.c.Dir, "another-version")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	stem := filepath.Join(old, taskDigest(nil))
	foreign := filepath.Join(old, "notes.txt")
	write(t, stem+".code", make([]byte, 1000))
	write(t, foreign, make([]byte, 1<<20))
	age := func(path string, hours int) {
		then := time.Now().Add(-time.Duration(hours) * time.Hour)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	age(stem+".code", 9)
	total := int64(1000)
	stems := make([]string, s.modules)
	for i := range s.modules {
		index, code := s.s.paths(s.s.key(tiny(byte(i+1)), options{Pages: 1}))
		stems[i] = index
		for _, path := range []string{index, code} {
			age(path, 5-i) // the first is the oldest
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
	}
	s.use(0) // and now the youngest
	s.s.evict(total, "")
	if absent(stem + ".code") {
		t.Fatal("removed without need")
	}
	s.s.evict(total-1, "")
	if !absent(stem+".code") || absent(stems[1]) || absent(foreign) {
		t.Fatal("another version's is there, or what was used later is not, or what is not the cache's")
	}
	s.s.evict(total-1001, "")
	if !absent(stems[1]) || absent(stems[2]) || absent(stems[0]) {
		t.Fatal("the wrong one went")
	}
	// While one is loaded everything is removed.
	err := s.c.compile(context.Background(), tiny(1), options{Pages: 1}, nil, func(dir string) error {
		s.s.evict(0, "")
		got, err := run(loadOnly(context.Background()), dir, tiny(1))
		if got != 1 {
			err = errors.Join(err, fmt.Errorf("answers %d", got))
		}
		return err
	})
	if err != nil || len(s.files()) != 1 {
		t.Fatalf("%v; left are %v", err, s.files())
	}
	// One that is larger than all that there may be stays until the next comes.
	s.c.Size = 1
	before := s.count()
	for _, i := range []int{0, 0, 1, 1, 0} {
		s.use(i)
	}
	children(t, s.count, before+3)
	if files := s.files(); len(files) != 3 {
		t.Fatalf("left are %v", files)
	}
}
