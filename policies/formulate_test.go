package policies_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/runtime"
)

// formulator runs one policy on contexts.
type formulator struct {
	t       testing.TB
	runtime *runtime.Runtime
	res     *runtime.Formulation
	// sessions are the lineage that the policy asks about; with keep it stays from one
	// context to the next.
	sessions *session.Set
	keep     bool
}

// newFormulator loads a policy, with a limit of memory where one is given.
func newFormulator(t testing.TB, name, params string, memory ...uint64) *formulator {
	t.Helper()
	hs := newHosts(t, name)
	for _, m := range memory {
		hs.limits.Memory = m
	}
	var raw json.RawMessage
	if params != "" {
		raw = json.RawMessage(params)
	}
	h, err := hs.load(context.Background(), raw)
	if err != nil {
		t.Fatal(err)
	}
	return &formulator{t: t, runtime: h.runtime, res: h.runtime.NewFormulation(), sessions: &h.Sessions}
}

// run formulates for one context. The result holds until the next call.
func (f *formulator) run(body string) (envelope string, p *hint.PolicyResult) {
	f.t.Helper()
	if !f.keep {
		f.sessions.Each(func(namespace string, _ *session.Index) { f.sessions.Drop(namespace) })
	}
	req := runtime.FormulateRequest{Body: []byte(body), Output: abi.FormatJSON, Seed: func(c *hint.Context) error {
		f.sessions.Seed(c, func(event int, err error) { f.t.Errorf("events[%d]: %v in %s", event, err, body) })
		return nil
	}}
	if err := f.runtime.Formulate(context.Background(), &req, f.res); err != nil {
		f.t.Fatalf("%v: %.2000s", err, body)
	}
	return string(f.res.Envelope), &f.res.Policies[0]
}

// chain is n hashes from one on.
func chain(first uint64, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = first + uint64(i)
	}
	return out
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
