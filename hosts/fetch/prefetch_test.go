package fetch

import (
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// orders are what a host was asked to bring.
type orders struct {
	got    []Order
	refuse abi.Reason
}

func (o *orders) Prefetch(order *Order) (abi.Reason, string) {
	if o.refuse != abi.ReasonNone {
		return o.refuse, "no room"
	}
	o.got = append(o.got, *order)
	return abi.ReasonNone, ""
}

func (g *guest) prefetch(source string, hashes ...uint64) int64 {
	off, n := g.source(source)
	copy(g.mem[2048:], hashBytes(hashes...))
	return g.do("prefetch", off, n, 2048, uint32(len(hashes)), 0)
}

// TestPrefetch: an order is handed over when its action is accepted, with a source that
// the allow list takes and a namespace that the guest has no say in.
func TestPrefetch(t *testing.T) {
	g := newGuest(t, Config{}, request("r"))
	const source = "tcp://10.0.0.1:1"
	g.refused(g.prefetch(source, 1), abi.ReasonUnavailable, "exchanges no blocks")
	var taken orders
	g.host.SetPrefetcher(&taken, func(c *runtime.Call) (string, string) { return "acme", "4:acme" + c.Identity().RequestID })

	for _, accepted := range []bool{false, true} {
		if got := g.prefetch(source, 3, 1, 3); got != 0 || len(taken.got) != 0 {
			t.Fatalf("%d, %v", got, taken.got)
		}
		g.refused(g.submit(source, 1), abi.ReasonLimitExceeded, "one call has one effect")
		if reason, detail := g.call.Settle(accepted); reason != abi.ReasonNone {
			t.Fatal(reason, detail)
		}
		g.call = runtime.NewCall(runtime.CallConfig{Identity: request("r")})
	}
	if len(taken.got) != 1 {
		t.Fatalf("%d orders, want one", len(taken.got))
	}
	o := taken.got[0]
	if o.Tenant != "acme" || o.Namespace != "4:acmer" || o.Source.String() != source || !slices.Equal(o.Hashes, []uint64{3, 1, 3}) || o.Index != -1 || o.Identity != request("r") {
		t.Errorf("%+v", o)
	}
	if st := g.host.store.Status(request("r")); st.State != abi.FetchStateNone {
		t.Errorf("a prefetch is no hint: %v", st)
	}

	g.refused(g.prefetch("tcp://192.168.0.1:1", 1), abi.ReasonSourceNotAllowed, "192.168.0.1")
	if n := g.host.RefusedSources(); n != 1 {
		t.Errorf("%d sources counted as refused", n)
	}
	g.host.SetAllowed(mustParse(t, nil, "tcp://192.168.0.0/16"))
	g.refused(g.prefetch(source, 1), abi.ReasonSourceNotAllowed, "10.0.0.1")
	off, n := g.source("tcp://192.168.0.1:1")
	g.mem = slices.Grow(g.mem, 1<<20)[:1<<20]
	g.refused(g.do("prefetch", off, n, 2048, abi.PrefetchHashes+1, 0), abi.ReasonLimitExceeded, "too many blocks for one call")
	if got := g.do("prefetch", off, n, 2048, abi.PrefetchHashes, 0); got != 0 {
		t.Errorf("as many blocks as are allowed: %d", got)
	}
	taken.refuse = abi.ReasonLimitExceeded
	if reason, detail := g.call.Settle(true); reason != abi.ReasonLimitExceeded || detail != "no room" || len(taken.got) != 1 {
		t.Errorf("%s %s", reason, detail)
	}
}
