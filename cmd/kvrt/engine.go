package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// compileCache is the environment variable that says where compiled guests are kept. It
// wins over the configuration.
const compileCache = "KVRT_COMPILE_CACHE"

// newEngine makes the engine. Guests are compiled and tried in a child process of this
// program, under limits, before this process runs any of them, and kept in a private
// folder. Where there is none, nothing is kept; where this program cannot start itself,
// guests are interpreted; and where the operator says off, they are compiled here.
func newEngine(log *slog.Logger, cfg config.Compile, cases bool) runtime.Engine {
	dir := os.Getenv(compileCache)
	if dir == "" {
		dir = cfg.Cache
	}
	if dir == config.CacheOff {
		return wazero.New(wazero.Config{})
	}
	c, err := newCompiler(cfg)
	if err != nil {
		log.Warn("guests are interpreted, which is slow: this program cannot start itself to compile them", "error", err)
		return wazero.New(wazero.Config{Interpreter: true})
	}
	if dir == "" {
		if dir, err = defaultCompileCache(); err != nil {
			log.Warn("compiled guests are not kept; set "+compileCache+" or compile.cache to a private folder", "error", err)
		}
	}
	c.Dir = dir
	c.Trial = func(spec *runtime.GuestSpec) ([]byte, error) { return trialOf(spec, cases) }
	return wazero.New(wazero.Config{Compiler: c})
}

// newCompiler makes what starts this program as a child.
func newCompiler(cfg config.Compile) (*wazero.Compiler, error) {
	self, err := os.Executable()
	return &wazero.Compiler{
		Program: self, Wall: 3 * cfg.Timeout, CPU: cfg.Timeout, Memory: uint64(cfg.Memory), Size: int64(cfg.CacheSize), Children: cfg.Children,
	}, err
}

// defaultCompileCache is the folder in the user's cache folder, made if need be.
func defaultCompileCache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "kvrt")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	probe, err := os.CreateTemp(dir, "tmp-") // the folder may be there and not writable
	if err != nil {
		return "", err
	}
	probe.Close()
	return dir, os.Remove(probe.Name())
}

// task is what a child of this program is asked to do with a guest. What a trial's task
// consists of is what a trial that went well is remembered by.
type task struct {
	Trial  *runtime.GuestSpec `json:"trial,omitempty"`
	Verify *verifyTask        `json:"verify,omitempty"`
	Cases  *caseFolder        `json:"cases,omitempty"`
	Build  build              `json:"build"` // another program may know other rules
}

// trialOf is the task of trying a guest. Its own cases are tried as well, when they lie
// beside the file that the guest was read from.
func trialOf(spec *runtime.GuestSpec, cases bool) ([]byte, error) {
	tried := *spec
	tried.Source, tried.Limits.Instances, tried.Module = "", 1, nil // the first two do not change what the guest does
	t := task{Trial: &tried, Build: thisBuild()}
	if cases && isFile(spec.Source, spec.Module) {
		var err error
		if t.Cases, err = listCases(filepath.Join(filepath.Dir(spec.Source), "cases")); err != nil {
			return nil, err
		}
	}
	return t.encode(spec.Module)
}

// encode writes the task as a line, and the module that it is about behind it.
func (t *task) encode(module []byte) ([]byte, error) {
	line, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return append(append(slices.Grow(line, 1+len(module)), '\n'), module...), nil
}

func (t *task) decode(raw []byte) (module []byte, err error) {
	line, module, _ := bytes.Cut(raw, []byte("\n"))
	return module, json.Unmarshal(line, t)
}

// isFile tells whether a path names a file with this content. A guest that came over the
// network says where it came from as well, on another machine perhaps.
func isFile(path string, content []byte) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(content)) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for part := make([]byte, 64<<10); ; {
		n, err := f.Read(part)
		if n > len(content) || !bytes.Equal(part[:n], content[:n]) {
			return false
		}
		content = content[n:]
		if err != nil {
			return err == io.EOF && len(content) == 0
		}
	}
}

// caseFolder is a folder with case files, and what they looked like.
type caseFolder struct {
	Path  string     `json:"path"`
	Files []caseFile `json:"files"`
}

type caseFile struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	Changed int64  `json:"changed"` // nanoseconds since 1970
}

// listCases looks at a folder with case files; nil when there is none.
func listCases(folder string) (*caseFolder, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, nil
	}
	files, err := fs.Glob(os.DirFS(path), "*.jsonl")
	if err != nil {
		return nil, err
	}
	c := &caseFolder{Path: path}
	for _, name := range files {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		c.Files = append(c.Files, caseFile{name, info.Size(), info.ModTime().UnixNano()})
	}
	return c, nil
}

// open opens the folder for the kit.
func (c *caseFolder) open() fs.FS {
	if c == nil {
		return nil
	}
	return os.DirFS(c.Path)
}
