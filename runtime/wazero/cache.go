package wazero

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
)

// The folder of a target holds two files for each key: the code, and an index entry
// with the code's digest and the name under which wazero looks for it. Both are
// replaced atomically; an entry and a code that do not belong together, as after a
// crash, are no entry. wazero's own check of a file does not cover all of it: it runs
// some damaged files, and refuses others each time anew.

const (
	maxCode    = 256 << 20
	tempPrefix = "tmp-"
)

// store is the folder of one target.
type store struct {
	root, dir string
	target    *target
	passing   bool // it is there for one compilation
}

// close removes a store that is not kept.
func (s *store) close() {
	if s.passing {
		os.RemoveAll(s.root)
	}
}

// entry is an index entry, and code that has its digest.
type entry struct {
	Format string   `json:"format"`
	Key    string   `json:"key"`
	File   string   `json:"file"`
	SHA256 string   `json:"sha256"`
	Trials []string `json:"trials,omitempty"` // digests of the tasks that went well, the newest last
	code   []byte   // of readCode; release it
	aside  bool     // it is not on the heap
}

// release gives the code's memory back.
func (e *entry) release() {
	if e.aside {
		release(e.code)
	}
	e.code, e.aside = nil, false
}

// maxTrials is how many tasks are remembered of one module: as many sets of parameters
// and limits as take turns.
const maxTrials = 16

func taskDigest(task []byte) string {
	sum := sha256.Sum256(task)
	return hex.EncodeToString(sum[:])
}

// tried tells whether a task went well before.
func (e *entry) tried(task []byte) bool { return slices.Contains(e.Trials, taskDigest(task)) }

// passed notes that a task went well.
func (e *entry) passed(task []byte) {
	d := taskDigest(task)
	e.Trials = append(slices.DeleteFunc(e.Trials, func(t string) bool { return t == d }), d)
	e.Trials = e.Trials[max(0, len(e.Trials)-maxTrials):]
}

// key names a module and the options that it is compiled with.
func (s *store) key(wasm []byte, o options) string {
	h := sha256.New()
	io.WriteString(h, format+"\n"+s.target.dir+"\n"+s.target.cpu+"\n")
	options := binary.LittleEndian.AppendUint32(nil, o.Pages)
	if o.Terminate {
		options = append(options, 1)
	} else {
		options = append(options, 0)
	}
	h.Write(options)
	h.Write(wasm)
	return hex.EncodeToString(h.Sum(nil))
}

func (s *store) paths(key string) (index, code string) {
	return filepath.Join(s.dir, key+".json"), filepath.Join(s.dir, key+".code")
}

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// get returns the code of a key, or nil after removing what is there and not right.
func (s *store) get(key string) *entry {
	index, code := s.paths(key)
	e := &entry{}
	raw, err := readOwn(index, 4<<10)
	if errors.Is(err, os.ErrNotExist) {
		return nil // perhaps another process is about to write it
	}
	if err == nil {
		err = json.Unmarshal(raw, e)
	}
	if err != nil || e.Format != format || e.Key != key || !digest.MatchString(e.File) {
		s.drop(key)
		return nil
	}
	err = e.readCode(code)
	if sum := sha256.Sum256(e.code); err != nil || hex.EncodeToString(sum[:]) != e.SHA256 {
		e.release()
		s.drop(key)
		return nil
	}
	return e
}

func (s *store) drop(key string) {
	index, code := s.paths(key)
	os.RemoveAll(index)
	os.RemoveAll(code)
}

// take takes over what a child left.
func (s *store) take(job, file string) (*entry, error) {
	e := &entry{Format: format, File: filepath.Base(file)}
	err := e.readCode(filepath.Join(job, file))
	if err != nil || !digest.MatchString(filepath.Base(file)) {
		e.release()
		return nil, errors.Join(&ChildError{Reason: ChildBroken, Msg: "the compiler's child left no usable file: check that " + s.root + " has room"}, err)
	}
	sum := sha256.Sum256(e.code)
	e.SHA256 = hex.EncodeToString(sum[:])
	return e, nil
}

// put writes an entry.
func (s *store) put(key string, e *entry) error {
	if s.passing {
		return nil
	}
	e.Key = key
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	indexPath, codePath := s.paths(key)
	if err := writeAtomic(s.dir, codePath, e.code); err != nil {
		return err
	}
	return writeAtomic(s.dir, indexPath, raw)
}

// place puts a copy of the code where wazero looks for it in its cache dir.
func (s *store) place(e *entry, dir string) error {
	dir = filepath.Join(dir, s.target.dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, e.File), e.code, 0o600)
}

// stage calls load with a directory that holds a copy of the code, so that what was
// verified is what is loaded, whatever happens to the cache meanwhile.
func (s *store) stage(e *entry, load func(dir string) error) error {
	tmp, err := s.temp()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := s.place(e, tmp); err != nil {
		return err
	}
	return load(tmp)
}

func (s *store) temp() (string, error) { return os.MkdirTemp(s.root, tempPrefix) }

// ownDir makes a directory that only this user may use, or checks that one that is
// there is this user's and that others cannot write to it.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the compilation cache: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("the compilation cache %s is not a directory: name one", dir)
	}
	if !owned(info) || info.Mode().Perm()&0o022 != 0 && permissions {
		return fmt.Errorf("others may write to the compilation cache %s, which holds machine code: make it yours with mode 0700, or name another directory", dir)
	}
	return nil
}

// readOwn reads a regular file that is this user's alone.
func readOwn(path string, most int64) ([]byte, error) {
	f, _, err := openOwn(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// aside is the size from which code is read into memory that does not count as the
// heap's: it is needed for a moment, and the collector would let the heap become twice as
// large for it, and keep that.
const aside = 1 << 20

// readCode reads code, until release.
func (e *entry) readCode(path string) error {
	f, size, err := openOwn(path, maxCode)
	if err != nil {
		return err
	}
	defer f.Close()
	if size >= aside {
		e.code = reserve(uint64(size))
		e.aside = e.code != nil
	}
	if e.code == nil {
		e.code = make([]byte, size)
	}
	_, err = io.ReadFull(f, e.code)
	return err
}

// openOwn opens a regular file that is this user's alone.
func openOwn(path string, most int64) (f *os.File, size int64, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, 0, fmt.Errorf("%s is not a file", path)
	}
	if f, err = os.Open(path); err != nil {
		return nil, 0, err
	}
	opened, err := f.Stat()
	if err == nil && (!os.SameFile(info, opened) || !owned(opened) || permissions && opened.Mode().Perm()&0o077 != 0 || opened.Size() > most) {
		err = fmt.Errorf("%s is not this user's alone, or too large", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, opened.Size(), nil
}

// writeAtomic replaces what is at the path, even a directory, by a file of this user's.
func writeAtomic(dir, path string, b []byte) (err error) {
	f, err := os.CreateTemp(dir, tempPrefix) // with mode 0600
	if err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		os.RemoveAll(path)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// onlyFile returns the path of the one file below dir, relative to it, or "" when there
// is none.
func onlyFile(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) == 0 {
		return "", err
	}
	if len(files) > 1 {
		return "", fmt.Errorf("wazero left %d files where one was due", len(files))
	}
	return filepath.Rel(dir, files[0])
}

// build tells apart builds of wazero that give the same version. A program that does
// not know what it was built with, such as a test, is taken for a build of its own.
func build() (string, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/tetratelabs/wazero" {
				if d.Replace != nil {
					d = d.Replace
				}
				if d.Sum != "" {
					return d.Path + " " + d.Version + " " + d.Sum, nil
				}
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
