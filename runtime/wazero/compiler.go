package wazero

import (
	"cmp"
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

	"github.com/kvrt/kvrt/runtime"
)

// Compiler compiles guests in a child process, so that a module that takes the compiler
// minutes or gigabytes costs a bounded share of both and never stops this process, and
// keeps what came out in a directory. This process then only loads: it never compiles
// a guest, whatever the directory holds. A Compiler may be used by many engines.
//
// On Linux and macOS the child has limits of CPU time and memory and a low priority,
// on Linux it also dies with its parent; elsewhere only Wall limits it. Where wazero
// has no compiler for the machine, guests are interpreted, and a child only tries them.
type Compiler struct {
	// Program is the path of the program to start as the child, and Args are its
	// arguments. It calls [RunChild] first thing in main, and is built with the same
	// version of wazero: most simply it is this program.
	Program string
	Args    []string
	// Dir is the cache. It is made with mode 0700, and refused when others may write
	// to it or own it: it holds machine code. Empty: nothing is kept.
	Dir string
	// Size is how many bytes the cache may have: what was not used for longest is removed
	// first. The default is 1 GiB.
	Size int64
	// Wall and CPU limit one child. CPU time is what bounds it, 10 s by default; the wall
	// clock, 30 s by default, is for a child that waits: children have a low priority.
	Wall, CPU time.Duration
	// Memory limits what the child takes beyond what its program needs at its start,
	// in bytes; the default is 512 MiB.
	Memory uint64
	// Children is how many children may run at once; the default is 2. Further ones wait
	// for as long as their caller's context lets them.
	Children int
	// Trial, when it is not nil, makes the task with which a child tries a guest after it
	// has compiled it ([Child.Work]); the guest is loaded here only when that went well.
	// What passed is remembered with the code: the same task is not done again for it. A
	// nil task is none.
	Trial func(spec *runtime.GuestSpec) (task []byte, err error)

	mu     sync.Mutex
	busy   map[string]chan struct{} // one for each key that is being compiled
	target *target                  // nil before the first use
	slots  chan struct{}            // one for each child that may run
}

const (
	defaultCPU      = 10 * time.Second
	defaultWall     = 3 * defaultCPU
	defaultMemory   = 512 << 20
	defaultSize     = 1 << 30
	defaultChildren = 2
)

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
// child compiles; and unless it did so before, it tries the guest.
func (c *Compiler) compile(ctx context.Context, wasm []byte, o options, spec *runtime.GuestSpec, load func(dir string) error) error {
	var task []byte
	if c.Trial != nil && spec != nil {
		var err error
		if task, err = c.Trial(spec); err != nil {
			return fmt.Errorf("describe the guest's trial: %w", err)
		}
	}
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if s.target.dir == "" {
		if task != nil {
			if _, err := c.child(ctx, s, job{}, nil, nil, task); err != nil {
				return err
			}
		}
		return load("")
	}
	key := s.key(wasm, o)
	leave, err := c.enter(ctx, key)
	if err != nil {
		return err
	}
	defer leave()
	return s.withRoom(func() error { return c.provide(ctx, s, key, wasm, o, task, load) })
}

// provide is compile for one who has entered the key.
func (c *Compiler) provide(ctx context.Context, s *store, key string, wasm []byte, o options, task []byte, load func(dir string) error) error {
	e := s.get(key)
	defer func() {
		if e != nil {
			e.release()
		}
	}()
	staged := func(dir string) error { // what is read from there need not be held twice
		e.release()
		return load(dir)
	}
	if e != nil && (task == nil || e.tried(task)) {
		if err := s.stage(e, staged); err == nil {
			s.touch(key)
			return nil
		}
		s.drop(key) // no code for this module and engine, whatever its digest
		e = nil
	}
	made, err := c.child(ctx, s, job{Compile: true, options: o}, e, wasm, task)
	if broken := (*ChildError)(nil); e != nil && errors.As(err, &broken) && broken.Reason == ChildBroken {
		s.drop(key) // perhaps for what the cache held
		e.release()
		made, err = c.child(ctx, s, job{Compile: true, options: o}, nil, wasm, task)
	}
	if err != nil {
		return err
	}
	e = made
	if err := s.put(key, e); err != nil {
		return err
	}
	s.evict(c.size(), key)
	if err = s.stage(e, staged); errors.Is(err, context.Canceled) {
		s.drop(key)
		return &ChildError{Reason: ChildBroken, Err: err, Msg: fmt.Sprintf("%s leaves code that this program does not find: build both from the same source", c.Program)}
	}
	return err
}

// child has a child compile and try a guest, and takes over what it left. Verified code
// that there is already is handed to it, and only tried.
func (c *Compiler) child(ctx context.Context, s *store, j job, e *entry, wasm, task []byte) (*entry, error) {
	var err error
	if j.Dir, err = s.temp(); err != nil {
		return nil, err
	}
	defer os.RemoveAll(j.Dir)
	if e != nil {
		if err := s.place(e, j.Dir); err != nil {
			return nil, err
		}
	}
	r, err := c.spawn(ctx, j, wasm, task)
	switch {
	case err != nil:
		return nil, err
	case !j.Compile:
		return nil, nil
	case filepath.Dir(r.File) != s.target.dir:
		return nil, &ChildError{Reason: ChildBroken, Msg: fmt.Sprintf("%s compiles for %s and this program needs %s: build both from the same source", c.Program, filepath.Dir(r.File), s.target.dir)}
	}
	if e == nil {
		if e, err = s.take(j.Dir, r.File); err != nil {
			return nil, err
		}
	}
	if task != nil {
		e.passed(task)
	}
	return e, nil
}

// Do has a child do a task by itself: nothing is compiled before, and nothing of it is
// kept. A *runtime.LoadError names the rules that the guest breaks; a [ChildError] that
// is none is a fault of the program or the machine.
func (c *Compiler) Do(ctx context.Context, task []byte) (answer []byte, err error) {
	dir, err := os.MkdirTemp("", "kvrt-"+tempPrefix)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r, err := c.spawn(ctx, job{Dir: dir}, nil, task)
	return r.Answer, err
}

func (c *Compiler) size() int64 { return cmp.Or(c.Size, defaultSize) }

// open checks the directory, each time, and finds the target out the first time. The
// target has no dir where wazero only interprets.
func (c *Compiler) open(ctx context.Context) (s *store, err error) {
	if c.Program == "" {
		return nil, errors.New("a Compiler needs a Program")
	}
	made := &store{}
	s = made
	if c.Dir == "" {
		s.passing = true
		s.root, err = os.MkdirTemp("", "kvrt-"+tempPrefix)
	} else if s.root, err = filepath.Abs(c.Dir); err == nil {
		err = ownDir(s.root)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			made.close()
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target == nil {
		s.sweep()
		s.evict(c.size(), "")
		if err := s.withRoom(func() error {
			tmp, err := s.temp()
			if err != nil {
				return err
			}
			defer os.RemoveAll(tmp)
			c.target, err = probe(context.WithoutCancel(ctx), tmp)
			return err
		}); err != nil {
			return nil, fmt.Errorf("try %s as compilation cache: %w", s.root, err)
		}
		if c.target == nil {
			c.target = &target{}
		}
	}
	if s.target = c.target; s.target.dir == "" {
		return s, nil
	}
	s.dir = filepath.Join(s.root, s.target.dir+"-"+s.target.suffix)
	return s, ownDir(s.dir)
}

// slot waits until a child may run.
func (c *Compiler) slot(ctx context.Context) (leave func(), err error) {
	c.mu.Lock()
	if c.slots == nil {
		c.slots = make(chan struct{}, cmp.Or(max(c.Children, 0), defaultChildren))
	}
	slots := c.slots
	c.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
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
