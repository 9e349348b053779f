package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// faulty is an engine that does one thing wrong.
type faulty struct {
	runtime.Engine
	module   func(wasm []byte, opts *runtime.CompileOptions) []byte // what is compiled
	instance func(runtime.Instance) runtime.Instance                // what is made of it
}

func (e *faulty) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	if e.module != nil {
		wasm = e.module(wasm, &opts)
	}
	m, err := e.Engine.Compile(ctx, wasm, opts)
	if err != nil || e.instance == nil {
		return m, err
	}
	return &faultyModule{m, e}, nil
}

type faultyModule struct {
	runtime.Module
	e *faulty
}

func (m *faultyModule) Instantiate(ctx context.Context) (runtime.Instance, error) {
	in, err := m.Module.Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	return m.e.instance(in), nil
}

// faultyInstance replaces what is not nil.
type faultyInstance struct {
	runtime.Instance
	has     func(runtime.Export) bool
	call    func(c *runtime.Call, f runtime.Export, stack []uint64) error
	memory  func() []byte
	getFuel func() int64
	setFuel func(int64)
	close   func() error
}

func (in *faultyInstance) Has(f runtime.Export) bool {
	if in.has != nil {
		return in.has(f)
	}
	return in.Instance.Has(f)
}

func (in *faultyInstance) Call(c *runtime.Call, f runtime.Export, stack []uint64) error {
	if in.call != nil {
		return in.call(c, f, stack)
	}
	return in.Instance.Call(c, f, stack)
}

func (in *faultyInstance) Memory() []byte {
	if in.memory != nil {
		return in.memory()
	}
	return in.Instance.Memory()
}

func (in *faultyInstance) Fuel() int64 {
	if in.getFuel != nil {
		return in.getFuel()
	}
	return in.Instance.Fuel()
}

func (in *faultyInstance) SetFuel(fuel int64) {
	if in.setFuel != nil {
		in.setFuel(fuel)
		return
	}
	in.Instance.SetFuel(fuel)
}

func (in *faultyInstance) Close() error {
	if in.close != nil {
		return in.close()
	}
	return in.Instance.Close()
}

// onCall changes the stack before a call, or what it gave.
func onCall(before func([]uint64), after func(stack []uint64, err error) error) func(runtime.Instance) runtime.Instance {
	return func(in runtime.Instance) runtime.Instance {
		return &faultyInstance{Instance: in, call: func(c *runtime.Call, f runtime.Export, stack []uint64) error {
			if before != nil {
				before(stack)
			}
			err := in.Call(c, f, stack)
			if after != nil {
				err = after(stack, err)
			}
			return err
		}}
	}
}

// onTrap changes a trap.
func onTrap(change func(*runtime.Trap) error) func(runtime.Instance) runtime.Instance {
	return onCall(nil, func(_ []uint64, err error) error {
		var trap *runtime.Trap
		if errors.As(err, &trap) {
			return change(trap)
		}
		return err
	})
}

// onHost changes how host functions are called.
func onHost(change func(next func(*runtime.Call, []byte, []uint64), c *runtime.Call, mem []byte, stack []uint64)) func([]byte, *runtime.CompileOptions) []byte {
	return func(wasm []byte, opts *runtime.CompileOptions) []byte {
		var hosts []runtime.HostModule
		for _, h := range opts.Hosts {
			var changed []runtime.HostFunction
			for _, f := range h.Functions() {
				next := f.Call
				f.Call = func(c *runtime.Call, mem []byte, stack []uint64) { change(next, c, mem, stack) }
				changed = append(changed, f)
			}
			hosts = append(hosts, offer{h.Name(), changed})
		}
		opts.Hosts = hosts
		return wasm
	}
}

// faults are mistakes of an engine, each with a check that must find it.
func faults() []struct {
	name, check string
	engine      faulty
} {
	swap := func(s []uint64) {
		if len(s) > 1 {
			s[0], s[1] = s[1], s[0]
		}
	}
	dirty := func(s []uint64, err error) error {
		if len(s) > 0 {
			s[0] = uint64(uint32(s[0]))
		}
		return err
	}
	instance := func(change func(*faultyInstance)) func(runtime.Instance) runtime.Instance {
		return func(in runtime.Instance) runtime.Instance {
			f := &faultyInstance{Instance: in}
			change(f)
			return f
		}
	}
	return []struct {
		name, check string
		engine      faulty
	}{
		{"keeps the caller's bytes", "compile", faulty{module: func(wasm []byte, _ *runtime.CompileOptions) []byte { clear(wasm[8:]); return wasm }}},
		{"links what was not granted", "refuse", faulty{module: func(wasm []byte, opts *runtime.CompileOptions) []byte {
			opts.Hosts = []runtime.HostModule{offer{"test", (&hosts{}).functions()}}
			return wasm
		}}},
		{"knows every export", "exports", faulty{instance: instance(func(f *faultyInstance) { f.has = func(runtime.Export) bool { return true } })}},
		{"runs _initialize", "exports", faulty{instance: instance(func(f *faultyInstance) {
			f.SetFuel(plenty)
			if f.Has(runtime.ExportInitialize) {
				_ = f.Instance.Call(runtime.NewCall(runtime.CallConfig{}), runtime.ExportInitialize, nil)
			}
		})}},
		{"swaps arguments", "arguments", faulty{instance: onCall(swap, nil)}},
		{"cuts results", "arguments", faulty{instance: onCall(nil, dirty)}},
		{"keeps a view", "memory", faulty{instance: instance(func(f *faultyInstance) { old := f.Instance.Memory(); f.memory = func() []byte { return old } })}},
		{"views a copy", "memory", faulty{instance: instance(func(f *faultyInstance) { f.memory = func() []byte { return bytes.Clone(f.Instance.Memory()) } })}},
		{"forgets the limit", "memory limit", faulty{module: func(wasm []byte, opts *runtime.CompileOptions) []byte { opts.MemoryPages *= 2; return wasm }}},
		{"passes a Call of its own", "host functions", faulty{module: onHost(func(next func(*runtime.Call, []byte, []uint64), c *runtime.Call, mem []byte, stack []uint64) {
			next(runtime.NewCall(runtime.CallConfig{}), mem, stack)
		})}},
		{"brackets nothing", "host functions", faulty{module: onHost(func(next func(*runtime.Call, []byte, []uint64), c *runtime.Call, mem []byte, stack []uint64) {
			c.LeaveHost()
			next(c, mem, stack)
		})}},
		{"passes a copy of the memory", "host memory", faulty{module: onHost(func(next func(*runtime.Call, []byte, []uint64), c *runtime.Call, mem []byte, stack []uint64) {
			next(c, bytes.Clone(mem), stack)
		})}},
		{"lets no one take fuel", "host fuel", faulty{instance: instance(func(f *faultyInstance) {
			inside := false
			f.call = func(c *runtime.Call, e runtime.Export, stack []uint64) error {
				inside = true
				defer func() { inside = false }()
				return f.Instance.Call(c, e, stack)
			}
			f.setFuel = func(fuel int64) {
				if !inside {
					f.Instance.SetFuel(fuel)
				}
			}
		})}},
		{"lets no one take fuel", "charges", faulty{module: onHost(func(next func(*runtime.Call, []byte, []uint64), c *runtime.Call, mem []byte, stack []uint64) {
			c.EnterHost(&runtime.HostFunction{Fuel: 1}) // charged twice, which the call's own fuel shows
			next(c, mem, stack)
		})}},
		{"blames the guest for a panic", "host panics", faulty{instance: onTrap(func(t *runtime.Trap) error { return &runtime.Trap{Kind: runtime.TrapGuest, Msg: t.Msg} })}},
		{"lets panics through", "host panics", faulty{module: onHost(func(next func(*runtime.Call, []byte, []uint64), c *runtime.Call, mem []byte, stack []uint64) {
			defer func() { _ = recover() }()
			next(c, mem, stack)
		})}},
		{"gives plain errors", "traps", faulty{instance: onTrap(func(t *runtime.Trap) error { return errors.New(t.Msg) })}},
		{"writes many lines", "traps", faulty{instance: onTrap(func(t *runtime.Trap) error { return &runtime.Trap{Kind: t.Kind, Msg: t.Msg + "\nat 0x17"} })}},
		{"has words of its own", "traps", faulty{instance: onTrap(func(t *runtime.Trap) error { return &runtime.Trap{Kind: t.Kind, Msg: "trap: " + t.Msg} })}},
		{"swallows traps", "traps", faulty{instance: onTrap(func(*runtime.Trap) error { return nil })}},
		{"takes want of fuel for a trap", "fuel", faulty{instance: onTrap(func(t *runtime.Trap) error { return &runtime.Trap{Kind: runtime.TrapGuest, Msg: t.Msg} })}},
		{"gives one more", "fuel", faulty{instance: instance(func(f *faultyInstance) { f.setFuel = func(fuel int64) { f.Instance.SetFuel(fuel + 1) } })}},
		{"reads one more", "golden", faulty{instance: instance(func(f *faultyInstance) { f.getFuel = func() int64 { return f.Instance.Fuel() + 1 } })}},
		{"goes less deep", "depth", faulty{module: func(wasm []byte, _ *runtime.CompileOptions) []byte {
			// i32.const 262144, the counter's first value, less by 128
			return bytes.Replace(wasm, []byte{0x41, 0x80, 0x80, 0x10}, []byte{0x41, 0x80, 0xff, 0x0f}, 1)
		}}},
		{"goes deeper", "depth", faulty{module: func(wasm []byte, _ *runtime.CompileOptions) []byte {
			return bytes.Replace(wasm, []byte{0x41, 0x80, 0x80, 0x10}, []byte{0x41, 0x80, 0x82, 0x10}, 1)
		}}},
		{"leaves what was in memory", "canary", faulty{instance: instance(func(f *faultyInstance) { mem := f.Instance.Memory(); mem[len(mem)-1] = 0xaa })}},
		{"cannot close", "many", faulty{instance: instance(func(f *faultyInstance) {
			f.close = func() error { return errors.Join(f.Instance.Close(), errors.New("it is still open")) }
		})}},
		{"has NaNs of its own", "golden", faulty{instance: onCall(nil, func(s []uint64, err error) error {
			if len(s) > 0 && s[0] == 0x7ff8000000000000 {
				s[0] |= 1 << 63
			}
			return err
		})}},
		{"ends calls behind a runtime's back", "dispatch", faulty{instance: onTrap(func(*runtime.Trap) error { return nil })}},
	}
}

// TestFaultsAreFound runs checks on engines that are wrong.
func TestFaultsAreFound(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name+"/"+f.check, func(t *testing.T) {
			f.engine.Engine = wazero.New(wazero.Config{})
			if failed := try(f.check, &f.engine); len(failed) == 0 {
				t.Errorf("the check %q did not find it", f.check)
			}
		})
	}
}

// shared is an engine with one instance for all.
type shared struct{ runtime.Engine }

func (e *shared) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	m, err := e.Engine.Compile(ctx, wasm, opts)
	return &sharedModule{Module: m}, err
}

type sharedModule struct {
	runtime.Module
	one runtime.Instance
}

func (m *sharedModule) Instantiate(ctx context.Context) (_ runtime.Instance, err error) {
	if m.one == nil {
		m.one, err = m.Module.Instantiate(ctx)
	}
	return &faultyInstance{Instance: m.one, close: func() error { return nil }}, err
}

// one is an engine whose modules are all the first one.
type one struct {
	runtime.Engine
	first runtime.Module
}

func (e *one) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (m runtime.Module, err error) {
	if e.first == nil {
		e.first, err = e.Engine.Compile(ctx, wasm, opts)
	}
	return e.first, err
}

func TestSharingIsFound(t *testing.T) {
	for _, check := range []string{"instances", "many", "canary", "fuel"} {
		if failed := try(check, &shared{wazero.New(wazero.Config{})}); len(failed) == 0 {
			t.Errorf("the check %q did not find an instance that all share", check)
		}
	}
	if failed := try("modules", &one{Engine: wazero.New(wazero.Config{})}); len(failed) == 0 {
		t.Error("the check modules did not find a module that all share")
	}
}

// TestCompareFindsDifferences compares an engine with one that is wrong.
func TestCompareFindsDifferences(t *testing.T) {
	right := wazero.New(wazero.Config{})
	odd := func(in runtime.Instance) runtime.Instance {
		n := 0
		return onCall(nil, func(stack []uint64, err error) error {
			if n++; n%7 == 0 && len(stack) > 0 {
				stack[0] ^= 1
			}
			return err
		})(in)
	}
	for name, e := range map[string]*faulty{
		"results": {Engine: right, instance: odd},
		"fuel": {Engine: right, instance: func(in runtime.Instance) runtime.Instance {
			return &faultyInstance{Instance: in, getFuel: func() int64 { return in.Fuel() &^ 64 }}
		}},
		"traps":    {Engine: right, instance: onTrap(func(*runtime.Trap) error { return nil })},
		"messages": {Engine: right, instance: onTrap(func(t *runtime.Trap) error { return &runtime.Trap{Kind: t.Kind, Msg: strings.ToUpper(t.Msg)} })},
	} {
		for part, run := range map[string]func(*duel){
			"walk":   func(d *duel) { d.walk("loops", 16) },
			"cuts":   (*duel).cuts,
			"frames": func(d *duel) { d.frames("kv-retain") },
		} {
			if name == "results" && part == "cuts" || part == "frames" && (name == "traps" || name == "messages") {
				continue // fresh instances, one call each; a guest that does not trap
			}
			r := &recorder{}
			r.run(func() { run(comparing(r, right, e, nil)) })
			if len(r.failed) == 0 {
				t.Errorf("%s that differ were not found by %s", name, part)
			}
		}
		r := &recorder{}
		r.run(func() { comparing(r, right, right, nil).walk("bulk", 10) })
		if len(r.failed) > 0 {
			t.Errorf("an engine differs from itself: %s", r.failed[0])
		}
	}
}

// try runs one check and gives what it found.
func try(name string, e runtime.Engine) []string {
	r := &recorder{}
	for _, c := range checks() {
		if c.name == name {
			r.run(func() { c.run(&exam{tb: r, engine: e}) })
			return r.failed
		}
	}
	panic("no check " + name)
}

// recorder is a tb that keeps what fails.
type recorder struct {
	mu       sync.Mutex
	failed   []string
	cleanups []func()
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	goruntime.Goexit()
}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// run runs f, then what it left to be cleaned up, as a test would. A panic counts as a
// failure.
func (r *recorder) run(f func()) {
	guard := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if v := recover(); v != nil {
					r.Errorf("panic: %v", v)
				}
			}()
			f()
		}()
		<-done
	}
	guard(f)
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		guard(r.cleanups[i])
	}
}
