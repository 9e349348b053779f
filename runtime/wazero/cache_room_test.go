package wazero

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kvrt/kvrt/runtime"
)

// TestNoRoomToBegin: a cache that nothing can be made in is an error from the first use on.
func TestNoRoomToBegin(t *testing.T) {
	dir := t.TempDir()
	for len(dir) < 4000 { // so that what lies in it has too long a path
		dir = filepath.Join(dir, strings.Repeat("d", min(200, 4090-len(dir))))
	}
	c := Compiler{Program: "unused", Dir: dir}
	for range 2 {
		if s, err := c.open(t.Context()); err == nil {
			s.close()
			t.Error("no error")
		}
	}
}

// TestFullDisk: where the disk has no room, half of the cache makes some, then all of it;
// what has another cause, or is the module's doing, costs no entry.
func TestFullDisk(t *testing.T) {
	var disk error = &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	for name, c := range map[string]struct {
		most  int // entries beside which there is room
		err   error
		left  int
		fails string
	}{
		"room":           {most: 8, left: 8},
		"after half":     {most: 4, left: 4},
		"after all":      {most: 3, left: 0},
		"never":          {most: -1, left: 0, fails: "larger disk"},
		"told by child":  {most: 4, err: errors.New("write x: no space left on device"), left: 4},
		"another cause":  {most: 4, err: errors.New("no space left on device: really"), left: 8, fails: "really"},
		"what it names":  {most: 4, err: &runtime.LoadError{Guest: "g", Problems: []runtime.Problem{{Rule: "r", Msg: "export: no space left on device"}}}, left: 8, fails: "export"},
		"quota exceeded": {most: 4, err: &os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, left: 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{root: t.TempDir()}
			s.dir = filepath.Join(s.root, "target")
			if err := os.Mkdir(s.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for i := range 8 {
				_, code := s.paths(fmt.Sprintf("%064x", i))
				if err := os.WriteFile(code, make([]byte, 1000), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			entries := func() int {
				all, err := os.ReadDir(s.dir)
				if err != nil {
					t.Fatal(err)
				}
				return len(all)
			}
			err := s.withRoom(func() error {
				switch {
				case entries() <= c.most:
					return nil
				case c.err != nil:
					return c.err
				}
				return disk
			})
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || entries() != c.left {
				t.Errorf("%d entries left, %v", entries(), err)
			}
		})
	}
}
