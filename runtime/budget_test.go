package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

type runtimeCatcher struct{ runtime.RuntimeStats }

func (c *runtimeCatcher) Runtime(s runtime.RuntimeStats) { c.RuntimeStats = s }
func (*runtimeCatcher) Guest(runtime.GuestStats)         {}

func reserved(r *runtime.Runtime) uint64 {
	var c runtimeCatcher
	r.Observe(&c)
	return c.MemoryReserved
}

// TestMemoryBudget: guests share one budget. What would not fit is refused, and says
// what is asked for, taken and there; what is being replaced counts until its last call
// has ended.
func TestMemoryBudget(t *testing.T) {
	ctx := context.Background()
	const room = 10_000 // for modules, which are small
	host := &effects{}
	r := newRuntime(t, runtime.Config{Memory: 6*(2<<20) + room, Hosts: []runtime.HostModule{host}})
	spec := func(version byte) runtime.GuestSpec {
		s := scriptedGuest(t, version)
		s.Limits.Memory = 2 << 20
		return s
	}
	var module uint64
	refused := func(err error, taken string) {
		t.Helper()
		var why *runtime.LoadError
		if !errors.As(err, &why) || why.Problems[0].Rule != "limit/guest-memory" || !strings.Contains(err.Error(), "(2 instances and a spare with 2097152 bytes of memory and 0 table entries each, and "+fmt.Sprint(module)+" of its module), and "+taken+" of the 12592912 of all guests are taken") {
			t.Errorf("%v", err)
		}
	}
	if err := r.Load(ctx, spec('1')); err != nil {
		t.Fatal(err)
	}
	one := reserved(r) // two instances and a spare, and the module as it was and as it was rewritten
	if module = one - 3*(2<<20); module < 2*uint64(len(spec('1').Module)) || 2*module > room {
		t.Errorf("a module of %d bytes takes %d", len(spec('1').Module), module)
	}
	if err := r.Swap(ctx, spec('2')); err != nil {
		t.Fatal(err)
	}
	if n := reserved(r); n != one {
		t.Errorf("%d bytes are taken, want %d", n, one)
	}

	host.hold = make(chan struct{})
	done := make(chan error)
	go func() { done <- r.Dispatch(&runtime.Request{Body: envelope("e")}, r.NewResponse()) }()
	<-host.hold // a call is in flight
	if err := r.Swap(ctx, spec('3')); err != nil {
		t.Fatal(err)
	}
	if n := reserved(r); n != 2*one {
		t.Errorf("%d bytes are taken during the drain, want %d", n, 2*one)
	}
	refused(r.Swap(ctx, spec('4')), fmt.Sprint(2*one))
	other := spec('5')
	other.Name = "other"
	refused(r.Apply(ctx, []runtime.GuestSpec{other}), fmt.Sprint(2*one))
	host.hold <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := reserved(r); n != one {
		t.Errorf("%d bytes are taken after the drain, want %d", n, one)
	}

	bad := spec('6')
	bad.Limits.InitFuel = 1
	if err := r.Swap(ctx, bad); err == nil || strings.Contains(err.Error(), "guest-memory") {
		t.Errorf("a guest that does not start: %v", err)
	}
	if n := reserved(r); n != one {
		t.Errorf("%d bytes are taken after a refused swap, want %d", n, one)
	}
	if err := r.Unload(ctx, "scripted"); err != nil {
		t.Fatal(err)
	}
	if n := reserved(r); n != 0 {
		t.Errorf("%d bytes are taken by no guest", n)
	}
}

// TestMemoryBudgetCountsTables: a guest's tables count, and its own maximum where that
// is less than the limit.
func TestMemoryBudgetCountsTables(t *testing.T) {
	taken := func(instances int) uint64 {
		g := greedyGuest(t, runtime.Limits{Instances: instances, TableElements: 1000, Memory: 128 << 10})
		return reserved(newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}, log.Module{}}}, g))
	}
	if n, want := taken(3)-taken(1), uint64(2*(128<<10+8*1000)); n != want {
		t.Errorf("two instances take %d bytes, want %d", n, want)
	}
}

// coded is an engine that tells how much machine code a guest has.
type coded struct {
	runtime.Engine
	bytes uint64
}

type codedModule struct {
	runtime.Module
	bytes uint64
}

func (e *coded) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	m, err := e.Engine.Compile(ctx, wasm, opts)
	return &codedModule{m, e.bytes}, err
}

func (m *codedModule) CodeBytes() uint64 { return m.bytes }

// TestMemoryBudgetCountsCode: machine code counts where the engine tells how large it is,
// and a guest whose code does not fit is refused and leaves nothing.
func TestMemoryBudgetCountsCode(t *testing.T) {
	e := &coded{Engine: wazero.New(wazero.Config{}), bytes: 1 << 20}
	r := newRuntime(t, runtime.Config{Engine: e, Memory: 8 << 20, Hosts: []runtime.HostModule{&effects{}}})
	if err := r.Load(t.Context(), scriptedGuest(t, '1')); err != nil {
		t.Fatal(err)
	}
	with := reserved(r)
	if err := r.Unload(t.Context(), "scripted"); err != nil {
		t.Fatal(err)
	}
	e.bytes = 0
	if err := r.Load(t.Context(), scriptedGuest(t, '1')); err != nil {
		t.Fatal(err)
	}
	without := reserved(r)
	if with-without != 1<<20 {
		t.Errorf("%d bytes with a MiB of code, %d without", with, without)
	}
	e.bytes = 8 << 20
	other := scriptedGuest(t, '2')
	if err := r.Swap(t.Context(), other); err == nil || !strings.Contains(err.Error(), "8388608 bytes (its machine code)") {
		t.Errorf("8 MiB of code in a budget of 8: %v", err)
	}
	if n := reserved(r); n != without {
		t.Errorf("%d bytes are taken after the refusal, %d before", n, without)
	}
}
