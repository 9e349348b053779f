package wazero

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Compiler compiles guests in a child process, so that a module that takes the compiler
// minutes or gigabytes costs a bounded share of both and never stops this process, and
// keeps what came out in a directory. This process then only loads: it never compiles
// a guest, whatever the directory holds. A Compiler may be used by many engines.
//
// On Linux and macOS the child has limits of CPU time and memory and a low priority,
// on Linux it also dies with its parent; elsewhere only Wall limits it. Where wazero
// has no compiler for the machine, guests are interpreted, and no child is started.
type Compiler struct {
	// Program is the path of the program to start as the child, and Args are its
	// arguments. It calls [RunChild] first thing in main, and is built with the same
	// version of wazero: most simply it is this program.
	Program string
	Args    []string
	// Dir is the cache. It is made with mode 0700, and refused when others may write
	// to it or own it: it holds machine code.
	Dir string
	// Wall and CPU limit one compilation; the default is 10 s each.
	Wall, CPU time.Duration
	// Memory limits what the child takes beyond what its program needs at its start,
	// in bytes; the default is 512 MiB.
	Memory uint64

	mu     sync.Mutex
	busy   map[string]chan struct{} // one for each key that is being compiled
	target *target                  // nil before the first use
}

// target is what compiled code depends on beside the module.
type target struct {
	dir    string // the name that wazero gives the folder: its version, and the machine
	cpu    string // the name of the file of an empty module, which depends on the CPU's features
	suffix string // the last part of the name of our folder: a digest of the two, and of our format
}

// options are what compiled code depends on in the engine's configuration.
type options struct {
	Pages     uint32 `json:"pages"`
	Terminate bool   `json:"terminate"`
}

// runtimeConfig is the same in both processes.
func (o options) runtimeConfig() wazero.RuntimeConfig {
	return o.configure(wazero.NewRuntimeConfig())
}

func (o options) configure(cfg wazero.RuntimeConfig) wazero.RuntimeConfig {
	return cfg.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(o.Pages).WithDebugInfoEnabled(false).WithCloseOnContextDone(o.Terminate)
}

// loadOnly is a context with which wazero takes a module from its cache or fails: its
// parallel compiler looks at the context before each function, and its cache does not
// look at it at all. TestLoadOnlyNeverCompiles holds the library to that.
func loadOnly(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel()
	return experimental.WithCompilationWorkers(ctx, 2)
}

// format is the version of how the cache is laid out.
const format = "kvrt-1"

// probe finds the target out by letting wazero compile an empty module, since it tells
// in no other way. It returns nil where wazero only interprets.
func probe(ctx context.Context, dir string) (*target, error) {
	if err := compileInto(ctx, dir, []byte("\x00asm\x01\x00\x00\x00"), options{Pages: 1}); err != nil {
		return nil, err
	}
	file, err := onlyFile(dir)
	if file == "" || err != nil {
		return nil, err
	}
	t := &target{dir: filepath.Dir(file), cpu: filepath.Base(file)}
	b, err := build()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(format + "\n" + t.dir + "\n" + t.cpu + "\n" + b))
	t.suffix = hex.EncodeToString(sum[:8])
	return t, nil
}

// compileInto compiles a module with dir as wazero's cache, or with the context of
// loadOnly loads it from there.
func compileInto(ctx context.Context, dir string, wasm []byte, o options) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	rt := wazero.NewRuntimeWithConfig(ctx, o.runtimeConfig().WithCompilationCache(cache))
	_, err = rt.CompileModule(ctx, wasm)
	return errors.Join(err, rt.Close(ctx), cache.Close(ctx))
}

// compile calls load with a fresh private directory from which wazero loads the module:
// it holds the module's code and nothing else. Without usable code in the cache, the
// child compiles.
func (c *Compiler) compile(ctx context.Context, wasm []byte, o options, load func(dir string) error) error {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		return load("")
	}
	key := s.key(wasm, o)
	leave, err := c.enter(ctx, key)
	if err != nil {
		return err
	}
	defer leave()
	if e := s.get(key); e != nil {
		if err := s.stage(e, load); err == nil {
			return nil
		}
		s.drop(key) // no code for this module and engine, whatever its digest
	}
	job, err := s.temp()
	if err != nil {
		return err
	}
	defer os.RemoveAll(job)
	file, err := c.spawn(ctx, job, wasm, o)
	if err != nil {
		return err
	}
	if filepath.Dir(file) != s.target.dir {
		return &ChildError{Reason: ChildBroken, Msg: fmt.Sprintf("%s compiles for %s and this program needs %s: build both from the same source", c.Program, filepath.Dir(file), s.target.dir)}
	}
	e, err := s.put(key, job, file)
	if err != nil {
		return err
	}
	if err = s.stage(e, load); errors.Is(err, context.Canceled) {
		s.drop(key)
		return &ChildError{Reason: ChildBroken, Err: err, Msg: fmt.Sprintf("%s leaves code that this program does not find: build both from the same source", c.Program)}
	}
	return err
}

// open checks the directory, each time, and finds the target out the first time. It
// returns nil where wazero only interprets.
func (c *Compiler) open(ctx context.Context) (*store, error) {
	if c.Program == "" || c.Dir == "" {
		return nil, errors.New("a Compiler needs a Program and a Dir")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if err := ownDir(dir); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &store{root: dir}
	if c.target == nil {
		s.sweep()
		tmp, err := s.temp()
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(tmp)
		if c.target, err = probe(context.WithoutCancel(ctx), tmp); err != nil {
			return nil, fmt.Errorf("try %s as compilation cache: %w", dir, err)
		}
		if c.target == nil {
			c.target = &target{}
		}
	}
	if c.target.dir == "" {
		return nil, nil
	}
	s.target = c.target
	s.dir = filepath.Join(dir, s.target.dir+"-"+s.target.suffix)
	return s, ownDir(s.dir)
}

// enter waits until nobody else in this process works on the key.
func (c *Compiler) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		c.mu.Lock()
		other := c.busy[key]
		if other == nil {
			if c.busy == nil {
				c.busy = map[string]chan struct{}{}
			}
			done := make(chan struct{})
			c.busy[key] = done
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.busy, key)
				c.mu.Unlock()
				close(done)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
