package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
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
	const one = 3 * (2 << 20) // two instances and a spare
	host := &effects{}
	r := newRuntime(t, runtime.Config{Memory: 2*one + 1000, Hosts: []runtime.HostModule{host}})
	spec := func(version byte) runtime.GuestSpec {
		s := scriptedGuest(t, version)
		s.Limits.Memory = 2 << 20
		return s
	}
	refused := func(err error, taken string) {
		t.Helper()
		var why *runtime.LoadError
		if !errors.As(err, &why) || why.Problems[0].Rule != "limit/guest-memory" || !strings.Contains(err.Error(), "asks for 6291456 bytes (2 instances and a spare with 2097152 bytes of memory and 0 table entries each), and "+taken+" of the 12583912 of all guests are taken") {
			t.Errorf("%v", err)
		}
	}
	if err := r.Load(ctx, spec('1')); err != nil {
		t.Fatal(err)
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
	refused(r.Swap(ctx, spec('4')), "12582912")
	other := spec('5')
	other.Name = "other"
	refused(r.Apply(ctx, []runtime.GuestSpec{other}), "12582912")
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
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}, log.Module{}}}, greedyGuest(t, runtime.Limits{Instances: 1, TableElements: 1000, Memory: 128 << 10}))
	if n, want := reserved(r), uint64(2*(128<<10+8*1000)); n != want {
		t.Errorf("%d bytes are taken, want %d", n, want)
	}
}
