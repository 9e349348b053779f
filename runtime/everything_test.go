package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// TestEverythingAtOnce: guests that compute for long in calls, starts and kvrt_idle, that
// trap and are quarantined, are called, loaded, swapped, rolled back, unloaded, resumed and
// looked at from many sides, with room for one heavy call. Nothing waits for ever, and
// nothing is held at the end.
func TestEverythingAtOnce(t *testing.T) {
	for _, processors := range []int{1, 4} {
		everythingAtOnce(t, processors)
	}
}

func everythingAtOnce(t *testing.T, processors int) {
	long := map[string]runtime.GuestSpec{}
	for _, a := range attacks(t, "testdata/hostile") {
		if a.name == "idle-as-long-as-it-may" || a.name == "init-as-long-as-it-may" {
			g := a.spec(t)
			g.Name, g.Limits.Instances, g.Limits.IdleCalls = a.name, 2, 1
			g.Module = withManifest(t, a.wasm, strings.Replace(hostileHandler, "demo.echo", "demo."+a.name, 1))
			long[a.name] = g
		}
	}
	idles, starts := long["idle-as-long-as-it-may"], long["init-as-long-as-it-may"]
	if idles.Name == "" || starts.Name == "" {
		t.Fatal("attacks are gone")
	}
	greedyOne := greedyGuest(t, runtime.Limits{Instances: 2})
	greedyOne.Module = withManifest(t, greedy, strings.Replace(greedyManifest, "demo.echo", "demo.greedy", 1))
	host := &effects{}
	r, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{host, log.Module{}}, Processors: processors, Wait: time.Millisecond, HeavyFuel: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(t.Context(), []runtime.GuestSpec{scriptedGuest(t, '0'), idles, greedyOne, policyGuest(t, "policy", `{"action_type":"kv.fetch","payload":{}}`)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var callers, changers sync.WaitGroup
	for w := range 4 {
		callers.Go(func() {
			res, out := r.NewResponse(), r.NewFormulation()
			for n := 0; ctx.Err() == nil; n++ {
				body := envelope([]string{"a t", "e a l", "demo.idle-as-long-as-it-may:a", "demo.init-as-long-as-it-may:a demo.greedy:f"}[(n+w)%4])
				if err := r.Dispatch(&runtime.Request{Body: body, Identity: hint.Identity{RequestID: "r"}, Forward: n%2 == 0}, res); err != nil {
					t.Error(err)
					return
				}
				if err := r.Formulate(ctx, &runtime.FormulateRequest{Body: routed("a", "")}, out); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	change := func(do ...func(context.Context) error) {
		changers.Go(func() {
			for range 12 {
				for _, d := range do {
					short, end := context.WithTimeout(context.Background(), 30*time.Second)
					err := d(short)
					end()
					if err != nil && !errors.Is(err, runtime.ErrUnknownGuest) && !errors.Is(err, runtime.ErrNoHistory) {
						t.Error(err)
					}
				}
			}
		})
	}
	change(func(c context.Context) error { return r.Load(c, starts) }, func(c context.Context) error { return r.Unload(c, starts.Name) })
	change(func(c context.Context) error { return r.Swap(c, scriptedGuest(t, '1')) }, func(c context.Context) error { return r.Rollback(c, "scripted") })
	change(func(c context.Context) error {
		g := idles
		g.Limits.IdleCalls = 2
		return r.Swap(c, g)
	}, func(c context.Context) error { return r.Swap(c, idles) }, func(context.Context) error { return r.Resume("scripted") })
	change(func(context.Context) error { heavyCalls(r); return r.Resume(idles.Name) })
	changers.Wait()
	cancel()
	callers.Wait()
	if running, most := heavyCalls(r); most != max(1, processors/2) {
		t.Errorf("%d heavy calls of %d", running, most)
	}
	if err := r.Apply(context.Background(), nil); err != nil {
		t.Error(err)
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		var c laneCatcher
		if r.Observe(&c); c.stats.MemoryReserved == 0 && c.stats.HeavyRunning == 0 {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("without guests %d bytes and %d tokens are held", c.stats.MemoryReserved, c.stats.HeavyRunning)
		}
	}
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if d, c, dr := host.deferred.Load(), host.committed.Load(), host.dropped.Load(); d != c+dr {
		t.Errorf("%d effects, of which %d were committed and %d dropped", d, c, dr)
	}
}
