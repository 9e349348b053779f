package runtime_test

import (
	"context"
	_ "embed"
	"strings"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

//go:embed testdata/idle.wasm
var idle []byte

const idleManifest = `{"name":"idle","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.echo"}]}`

func idleGuest(t testing.TB, l runtime.Limits) runtime.GuestSpec {
	return runtime.GuestSpec{Name: "idle", Module: withManifest(t, idle, idleManifest), Limits: l}
}

// TestIdleIsCalledInTime: a guest that traps after 256 calls without kvrt_idle does not,
// however many callers there are and however long their envelopes. What is due in
// between is not held up by it.
func TestIdleIsCalledInTime(t *testing.T) {
	for _, instances := range []int{1, 3} {
		r := newRuntime(t, runtime.Config{}, idleGuest(t, runtime.Limits{Instances: instances}))
		long := envelope(strings.Repeat("a ", 600))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				res := r.NewResponse()
				for n := range 300 {
					body := envelope("a b c")
					if n%50 == 0 {
						body = long
					}
					if err := r.Dispatch(&runtime.Request{Body: body}, res); err != nil {
						t.Error(err)
						return
					}
					for i := range res.Results {
						if out := &res.Results[i]; out.Status != abi.StatusAccepted {
							t.Errorf("%s: %s", out.Reason, out.Detail)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		s := statsOf(r, "idle")
		if s.Idle.Calls < s.Calls/256 || s.Idle.Fuel < 5*s.Calls/2 || s.Idle.Traps != [runtime.NumTraps]uint64{} || s.Traps != [runtime.NumTraps]uint64{} {
			t.Errorf("%d calls, %+v", s.Calls, s.Idle)
		}
	}
}

// TestIdleFuel: kvrt_idle has a budget of its own; an instance that uses it up is
// replaced, and the callers know nothing of it.
func TestIdleFuel(t *testing.T) {
	r, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	if err := r.Load(context.Background(), idleGuest(t, runtime.Limits{IdleFuel: 500})); err == nil || !strings.Contains(err.Error(), "kvrt_idle: the call's fuel is used up") {
		t.Errorf("a start that leaves more garbage than kvrt_idle may collect: %v", err)
	}
}

type statsCatcher map[string]runtime.GuestStats

func (statsCatcher) Runtime(runtime.RuntimeStats) {}
func (c statsCatcher) Guest(s runtime.GuestStats) { c[s.Name] = s }

func statsOf(r *runtime.Runtime, name string) runtime.GuestStats {
	c := statsCatcher{}
	r.Observe(c)
	return c[name]
}
