package runtime_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// laneCatcher keeps what the runtime tells of itself.
type laneCatcher struct{ stats runtime.RuntimeStats }

func (c *laneCatcher) Runtime(s runtime.RuntimeStats) { c.stats = s }
func (c *laneCatcher) Guest(runtime.GuestStats)       {}

func heavyCalls(r *runtime.Runtime) (running, most int) {
	var c laneCatcher
	r.Observe(&c)
	return c.stats.HeavyRunning, c.stats.HeavyMost
}

// TestHeavyGuests: attackers that use up the fuel of each call, and guests that mean well
// and compute for long, are heavy after their first call, keep to the lane and are
// replaced there as anywhere; a guest with short calls is never heavy.
func TestHeavyGuests(t *testing.T) {
	var heavy []runtime.GuestSpec
	for _, a := range attacks(t, "testdata/hostile") {
		if a.name == "endless-loop" || a.name == "pointer-chase" || a.name == "call-tree" {
			g := a.spec(t)
			g.Name, g.Limits.Instances, g.Limits.Fuel = a.name, 4, 300_000
			g.Module = withManifest(t, a.wasm, strings.Replace(hostileHandler, "demo.echo", "demo."+a.name, 1))
			heavy = append(heavy, g)
		}
	}
	g := greedyGuest(t, runtime.Limits{Instances: 4})
	g.Module = withManifest(t, greedy, strings.Replace(greedyManifest, "demo.echo", "demo.greedy", 1))
	heavy = append(heavy, g)
	if len(heavy) != 4 {
		t.Fatalf("%d heavy guests", len(heavy))
	}
	field := newAttacked(t)
	r := field.runtime
	bodies := loadAll(t, r, heavy)
	for _, body := range bodies { // each is known as heavy afterwards
		if err := r.Dispatch(&runtime.Request{Body: body}, r.NewResponse()); err != nil {
			t.Fatal(err)
		}
	}
	var over, calls atomic.Int64
	var wg sync.WaitGroup
	done := make(chan struct{})
	for w := range 6 {
		wg.Go(func() {
			res := r.NewResponse()
			for n := range 40 {
				if err := r.Dispatch(&runtime.Request{Body: bodies[(w+n)%len(bodies)]}, res); err != nil {
					t.Error(err)
				}
				calls.Add(1)
				if running, most := heavyCalls(r); running > most {
					over.Add(1)
				}
			}
		})
	}
	go func() {
		defer close(done)
		wg.Wait()
	}()
	goodTraffic(t, r, done, 1)
	if running, most := heavyCalls(r); running != 0 || most < 1 || over.Load() != 0 {
		t.Errorf("%d heavy calls of %d at the end; more than that %d times", running, most, over.Load())
	}
	for _, g := range heavy {
		s := statsOf(r, g.Name)
		if !s.Heavy || s.Calls == 0 || s.Crowded > s.Unavailable {
			t.Errorf("%s: heavy %v, %d calls, crowded %d of %d", g.Name, s.Heavy, s.Calls, s.Crowded, s.Unavailable)
		}
	}
	if s := statsOf(r, "good"); s.Heavy || s.Unavailable != 0 {
		t.Errorf("the good guest: heavy %v, unavailable %d", s.Heavy, s.Unavailable)
	}
}

// TestHeavyGuestWaits: a call that finds no token in time is answered
// handler_unavailable, which says why; Config.HeavyFuel decides who needs one.
func TestHeavyGuestWaits(t *testing.T) {
	for fuel, waits := range map[uint64]bool{0: false, 1: true} {
		t.Run(fmt.Sprint(fuel), func(t *testing.T) {
			host := &effects{hold: make(chan struct{})}
			spec := scriptedGuest(t, '0')
			r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}, Processors: 1, Wait: time.Millisecond, HeavyFuel: fuel}, spec)
			if err := r.Dispatch(&runtime.Request{Body: envelope("a")}, r.NewResponse()); err != nil {
				t.Fatal(err)
			}
			if s := statsOf(r, "scripted"); s.Heavy != waits {
				t.Fatalf("heavy %v", s.Heavy)
			}
			ended := make(chan error)
			go func() { ended <- r.Dispatch(&runtime.Request{Body: envelope("e")}, r.NewResponse()) }()
			<-host.hold // its effect is being carried out
			res := r.NewResponse()
			if err := r.Dispatch(&runtime.Request{Body: envelope("a")}, res); err != nil {
				t.Fatal(err)
			}
			out := &res.Results[0]
			if refused := out.Reason == abi.ReasonHandlerUnavailable; refused != waits {
				t.Errorf("beside a call with the only token: %s: %s", verdicts(res.Results), out.Detail)
			} else if waits && !strings.Contains(string(out.Detail), "compute for long") {
				t.Errorf("detail %q", out.Detail)
			}
			host.hold <- struct{}{}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
