package wazero

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kvrt/kvrt/runtime"
)

// tempAge is when what a killed process left behind is removed.
const tempAge = time.Hour

// folders lists the root and the folders of all targets, those of other versions too.
func (s *store) folders() []string {
	all := []string{s.root}
	found, err := os.ReadDir(s.root)
	if err != nil {
		return nil // the use that follows says so
	}
	for _, f := range found {
		if f.IsDir() && !strings.HasPrefix(f.Name(), tempPrefix) { // and no link
			all = append(all, filepath.Join(s.root, f.Name()))
		}
	}
	return all
}

// files calls do with what is in the folders.
func (s *store) files(do func(path string, info fs.FileInfo)) {
	for _, dir := range s.folders() {
		found, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, f := range found {
			if info, err := f.Info(); err == nil {
				do(filepath.Join(dir, f.Name()), info)
			}
		}
	}
}

// sweep removes what processes left that were killed.
func (s *store) sweep() {
	s.files(func(path string, info fs.FileInfo) {
		if strings.HasPrefix(info.Name(), tempPrefix) && time.Since(info.ModTime()) > tempAge {
			os.RemoveAll(path)
		}
	})
}

// touch notes that a key was used.
func (s *store) touch(key string) {
	index, _ := s.paths(key)
	now := time.Now()
	_ = os.Chtimes(index, now, now) // at worst it is removed too early
}

// noRoom is how an error ends that a full disk causes, also one that a child tells.
var noRoom = regexp.MustCompile(`: (no space left on device|disk quota exceeded)$`)

func full(err error) bool {
	refused := (*runtime.LoadError)(nil) // names of the module's stand in it
	return err != nil && !errors.As(err, &refused) && noRoom.MatchString(err.Error())
}

// withRoom does something, and again where it finds no room on the disk: after half of the
// cache has made room, and then all of it. So a disk that is smaller than the cache may be
// costs compilations, and no guest is refused for what others left.
func (s *store) withRoom(do func() error) error {
	err := do()
	if !full(err) {
		return err
	}
	for _, most := range [...]int64{s.bytes() / 2, 0} {
		s.evict(most, "")
		if err = do(); !full(err) {
			return err
		}
	}
	return fmt.Errorf("the cache %s has no room, with nothing else in it: give it a larger disk: %w", s.root, err)
}

// bytes is what all entries come to.
func (s *store) bytes() (n int64) {
	s.files(func(_ string, info fs.FileInfo) {
		if info.Mode().IsRegular() && ownName.MatchString(info.Name()) {
			n += info.Size()
		}
	})
	return n
}

// kept is what the cache has of one key, perhaps half of it.
type kept struct {
	stem  string // its path without the ending
	bytes int64
	used  time.Time
}

var ownName = regexp.MustCompile(`^[0-9a-f]{64}\.(json|code)$`)

// evict removes what was not used for longest, in the folders of all targets, until at
// most so many bytes are left. The key keep stays. Nobody is disturbed: what is loaded is
// a copy, and whoever finds half an entry compiles again.
func (s *store) evict(most int64, keep string) {
	if s.passing {
		return
	}
	found := map[string]*kept{}
	total := int64(0)
	s.files(func(path string, info fs.FileInfo) {
		if !info.Mode().IsRegular() || !ownName.MatchString(info.Name()) {
			return
		}
		stem := strings.TrimSuffix(path, filepath.Ext(path))
		k := found[stem]
		if k == nil {
			k = &kept{stem: stem}
			found[stem] = k
		}
		k.bytes += info.Size()
		if info.ModTime().After(k.used) {
			k.used = info.ModTime()
		}
		total += info.Size()
	})
	for _, k := range slices.SortedFunc(maps.Values(found), func(a, b *kept) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.stem, b.stem)) }) {
		if total <= most {
			return
		}
		if k.stem == filepath.Join(s.dir, keep) {
			continue
		}
		os.Remove(k.stem + ".json")
		os.Remove(k.stem + ".code")
		total -= k.bytes
		if dir := filepath.Dir(k.stem); dir != s.dir {
			os.Remove(dir) // when it is empty
		}
	}
}
