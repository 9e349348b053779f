package runtime_test

import (
	goruntime "runtime"
	"testing"

	"github.com/kvrt/kvrt/runtime"
)

// TestProcessors: pools are as large as there are processors, whatever GOMAXPROCS a
// program has set since.
func TestProcessors(t *testing.T) {
	r := newRuntime(t, runtime.Config{Processors: 3}, idleGuest(t, runtime.Limits{}))
	if n := statsOf(r, "idle").Instances; n != 6 {
		t.Errorf("%d instances for 3 processors", n)
	}
	before := goruntime.GOMAXPROCS(0)
	r = newRuntime(t, runtime.Config{})
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(4 * before))
	if err := r.Load(t.Context(), idleGuest(t, runtime.Limits{})); err != nil {
		t.Fatal(err)
	}
	if n := statsOf(r, "idle").Instances; n != 2*before {
		t.Errorf("%d instances for %d processors", n, before)
	}
}
