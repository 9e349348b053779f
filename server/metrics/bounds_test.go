package metrics

import (
	"os"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// collecting is a guest that collects its garbage in kvrt_idle.
func collecting(t *testing.T, version string) runtime.GuestSpec {
	t.Helper()
	wasm, err := os.ReadFile("../../runtime/testdata/idle.wasm")
	if err != nil {
		t.Fatal(err)
	}
	wasm, err = abi.AppendManifest(wasm, []byte(`{"name":"idle","version":"`+version+`","abi":1,"roles":["handler"],"action_types":[{"type":"nobody"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.GuestSpec{Name: "idle", Module: wasm, Limits: runtime.Limits{Instances: 1, IdleCalls: 2}}
}

// TestBounds: what holds guests in their bounds is shown: memory, kvrt_idle, quarantine.
// Totals go on over a swap.
func TestBounds(t *testing.T) {
	g := newRig(t)
	g.apply(guest(t, "1.0.0"), collecting(t, "1.0.0"))
	const idle, demo = "guest=idle", "guest=demo"
	for name, want := range map[string]float64{
		"kvrt_guest_memory_budget_bytes":   float64(1 << 30),
		"kvrt_guest_memory_reserved_bytes": 3*(1<<20) + 2*(1<<20), // two instances and a spare, one and a spare
	} {
		if got := g.value(name); got < want {
			t.Errorf("%s is %g, want %g or more", name, got, want)
		}
	}
	idles := func(more float64) float64 {
		for range 1000 { // kvrt_idle is called beside the calls
			g.dispatch("x x x x x x x x x x")
			if n := g.value("kvrt_idle_calls_total", idle); n >= more {
				return n
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("kvrt_idle is not called, %g times after 10,000 calls", g.value("kvrt_idle_calls_total", idle))
		return 0
	}
	first := idles(3)
	if f := g.value("kvrt_idle_fuel_total", idle); f <= 0 {
		t.Errorf("fuel %g", f)
	}
	if s := g.value("kvrt_idle_seconds_total", idle); s <= 0 {
		t.Errorf("%g s", s)
	}
	if n := g.value("kvrt_idle_traps_total", idle, "kind=out_of_fuel"); n != 0 {
		t.Errorf("%g traps", n)
	}
	g.apply(guest(t, "1.0.0"), collecting(t, "1.0.1"))
	if n := g.value("kvrt_idle_calls_total", idle); n < first {
		t.Errorf("kvrt_idle %g times, before the swap %g", n, first)
	}
	if n := idles(first + 1); n <= first {
		t.Errorf("kvrt_idle %g times, before the swap %g", n, first)
	}

	for n := 0; g.value("kvrt_quarantined", demo) != 1; n++ {
		if g.dispatch("t"); n > 100 {
			t.Fatal("100 traps and no quarantine")
		}
	}
	if n := g.value("kvrt_quarantines_total", demo); n != 1 {
		t.Errorf("%g quarantines", n)
	}
	if err := g.rt.Resume("demo"); err != nil || g.value("kvrt_quarantined", demo) != 0 {
		t.Errorf("resumed: %v, quarantined %g", err, g.value("kvrt_quarantined", demo))
	}
	if n := g.value("kvrt_instances", demo, "state=stuck"); n != 0 {
		t.Errorf("%g instances are stuck", n)
	}
}
