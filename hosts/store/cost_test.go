package store

import (
	goruntime "runtime"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

// TestScopesAreCharged: a scope is read to its end, so its length costs what lists cost.
func TestScopesAreCharged(t *testing.T) {
	for length, allowed := range map[uint64]bool{1000: true, 2000: false} {
		c := runtime.NewCall(runtime.CallConfig{Limits: runtime.Limits{HostBytes: 1500}})
		stack := []uint64{0, 1, 0, 0, 0, length}
		hosttest.Function(t, NewHost(small(t, 4), nil, nil), "retain").Call(c, memoryOf(1), stack)
		if refused := int64(stack[0]) == -int64(abi.ReasonLimitExceeded); refused == allowed {
			t.Errorf("a scope of %d bytes, where 1,500 may be copied: %d", length, int64(stack[0]))
		}
		c.Settle(false)
	}
}

// TestManyEvictionsAfterARequest: one more block costs the same however many there are
// already, and there is an end to them.
func TestManyEvictionsAfterARequest(t *testing.T) {
	h := NewHost(small(t, 4), nil, nil)
	after := func(mem []byte, n uint64) abi.Reason {
		c := called("r")
		hosttest.Function(t, h, "evict_after").Call(c, mem, []uint64{0, n})
		reason, _ := c.Settle(true)
		return reason
	}
	const most = abi.StoreHashes
	if got := after(make([]byte, 8*most), most-1000); got != abi.ReasonNone {
		t.Fatal(got)
	}
	var before, behind goruntime.MemStats
	goruntime.ReadMemStats(&before)
	for range 1000 {
		if got := after(make([]byte, 8), 1); got != abi.ReasonNone {
			t.Fatal(got)
		}
	}
	goruntime.ReadMemStats(&behind)
	if n := behind.TotalAlloc - before.TotalAlloc; n > 200<<20 { // a Call of its own takes 60 KB
		t.Errorf("%d bytes allocated for 1,000 blocks after %d", n, most-1000)
	}
	if got := after(make([]byte, 8), 1); got != abi.ReasonLimitExceeded {
		t.Errorf("one too many: %s", got)
	}
	if req, _ := h.after.Of(hint.Identity{RequestID: "r"}); len(req.Hashes) != most || h.after.hashes != most {
		t.Errorf("%d hashes are kept, and %d counted", len(req.Hashes), h.after.hashes)
	}
}
