package peers_test

import (
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
)

func TestDispatched(t *testing.T) {
	n := newNode(t, peers.Config{})
	id, other := hint.Identity{RequestID: "a"}, hint.Identity{RequestID: "b"}
	for _, id := range []hint.Identity{id, other} {
		n.submit(t, id, "tcp://127.0.0.1:1", []uint64{1, 2, 2})
	}
	n.Dispatched(id, []byte("m2"), []hint.Result{
		{Index: 0, ActionType: []byte("kv.retain"), Status: abi.StatusAccepted},
		{Index: 1, ActionType: []byte("kv.fetch"), Status: abi.StatusAccepted},
		{Index: 2, ActionType: []byte("kv.fetch"), Status: abi.StatusRejected, Reason: abi.ReasonInvalidPayload},
	})
	out := n.Outcomes.Query(outcome.Filter{Identity: &id}, 9)
	if len(out) != 2 || out[0].MessageID != "m2" || out[0].Index != 1 || out[0].Blocks != 2 || out[0].State != outcome.Open || out[1].State != outcome.Superseded {
		t.Errorf("%+v", out)
	}
	n.Dispatched(other, nil, []hint.Result{{ActionType: []byte("kv.fetch"), Status: abi.StatusRejected, Reason: abi.ReasonConflictingSource}})
	if out := n.Outcomes.Query(outcome.Filter{Identity: &other}, 1); out[0].State != outcome.Failed || out[0].Reason != abi.ReasonConflictingSource {
		t.Errorf("%+v", out)
	}
	n.hints.Finish(id, false)
	n.hints.Discard(other)
	if out := n.Outcomes.Query(outcome.Filter{Identity: &id}, 1); out[0].State != outcome.Discarded {
		t.Errorf("%+v", out)
	}
	for _, id := range []hint.Identity{id, other} {
		if st := n.hints.Status(id); st.State != abi.FetchStateFinished {
			t.Errorf("%+v", st)
		}
	}
	n.Sweep()
	if _, _, st := n.Stats(); st.Accepted != 3 || st.Open != 0 {
		t.Errorf("%+v", st)
	}
}

// TestEndedMeanwhile: a hint that ends between its acceptance and the telling of it.
func TestEndedMeanwhile(t *testing.T) {
	n := newNode(t, peers.Config{})
	for name, c := range map[string]struct {
		end    func(hint.Identity)
		state  outcome.State
		reason abi.Reason
	}{
		"finished": {func(id hint.Identity) { n.hints.Finish(id, false) }, outcome.Discarded, abi.ReasonNone},
		"failed":   {func(id hint.Identity) { n.hints.Fail(id, abi.ReasonUnavailable) }, outcome.Failed, abi.ReasonUnavailable},
		"live":     {func(hint.Identity) {}, outcome.Open, abi.ReasonNone},
	} {
		id := hint.Identity{RequestID: name}
		n.submit(t, id, "tcp://127.0.0.1:1", []uint64{1})
		n.Outcomes.Discard(id) // that of submit
		c.end(id)
		n.Dispatched(id, []byte("m"), []hint.Result{{ActionType: []byte("kv.fetch"), Status: abi.StatusAccepted}})
		if out := n.Outcomes.Query(outcome.Filter{Identity: &id}, 1); out[0].MessageID != "m" || out[0].State != c.state || out[0].Reason != c.reason {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// TestDispatchedAllocatesNothing: once the ledger's places have been used, hints are free.
func TestDispatchedAllocatesNothing(t *testing.T) {
	n := newNode(t, peers.Config{Outcomes: outcome.Config{Size: 16}})
	id, message := hint.Identity{Engine: "vllm", RequestID: "a"}, []byte("m")
	n.submit(t, id, "tcp://127.0.0.1:1", []uint64{1})
	results := []hint.Result{{ActionType: []byte("kv.fetch"), Status: abi.StatusAccepted}}
	once := func() { n.Dispatched(id, message, results) }
	for range 64 {
		once()
	}
	if a := testing.AllocsPerRun(200, once); a != 0 {
		t.Errorf("%v allocations for a hint", a)
	}
}
