package runtime_test

import (
	"context"
	_ "embed"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

//go:embed testdata/hostile/memory-kept.wasm
var memoryKept []byte

// resident is what the process has in memory, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc/self/statm here: ", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// takenMemory is the linear memory of all instances.
type takenMemory uint64

func (*takenMemory) Runtime(runtime.RuntimeStats) {}
func (m *takenMemory) Guest(s runtime.GuestStats) { *m += takenMemory(s.MemoryBytes) }

// TestMemoryReturns: what guests take for themselves is given back when they go. Each
// round takes 16 MiB in eight instances; that none of it came back would be 1 GiB.
func TestMemoryReturns(t *testing.T) {
	engine := &counted{Engine: wazero.New(wazero.Config{})}
	r := newRuntime(t, runtime.Config{Engine: engine})
	spec := runtime.GuestSpec{Name: "hostile", Module: withManifest(t, memoryKept, hostileHandler), Limits: runtime.Limits{Instances: 8, Fuel: 1 << 30, Memory: 16 << 20}}
	round := func() {
		if err := r.Load(context.Background(), spec); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			res := r.NewResponse() // each begins at another instance
			if err := r.Dispatch(&runtime.Request{Body: envelope("a b")}, res); err != nil {
				t.Fatal(err)
			}
			if got := verdicts(res.Results); got != "a=ACCEPTED b=ACCEPTED" {
				t.Fatal(got)
			}
		}
		var taken takenMemory
		if r.Observe(&taken); taken < 8*16<<20 {
			t.Fatalf("the guest has %d bytes", taken)
		}
		if err := r.Unload(context.Background(), "hostile"); err != nil {
			t.Fatal(err)
		}
		engine.settled(t, 0, 0)
	}
	round()
	before := resident(t)
	for range 8 {
		round()
	}
	if more := resident(t) - before; more > 128<<20 {
		t.Errorf("%d MiB are in memory that were not before eight rounds", more>>20)
	}
}
