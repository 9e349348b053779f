package runtime_test

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

//go:embed testdata/greedy.wasm
var greedy []byte

const greedyManifest = `{"name":"greedy","version":"1.0.0","abi":1,"roles":["handler","parser","policy"],"action_types":[{"type":"demo.echo"}],"dialects":["greedy"],"capabilities":["kvrt_fetch","kvrt_log"]}`

func greedyGuest(t testing.TB, l runtime.Limits) runtime.GuestSpec {
	return runtime.GuestSpec{Name: "greedy", Module: withManifest(t, greedy, greedyManifest), Grants: []string{"kvrt_fetch", "kvrt_log"}, Limits: l}
}

// TestLimits: one guest under each limit by itself. What crosses it has the reason, the
// counters and no effect; without the limit, and beside it, the same call is accepted.
func TestLimits(t *testing.T) {
	none := runtime.TrapKind(runtime.NumTraps)
	for _, c := range []struct {
		id      string
		limits  runtime.Limits
		reason  abi.Reason
		detail  string
		trap    runtime.TrapKind
		dropped uint64
	}{
		{id: "c", limits: runtime.Limits{HostCalls: 20}, reason: abi.ReasonLimitExceeded, detail: "limits.host_calls allows 20 calls", trap: runtime.TrapQuota}, // and submit
		{id: "c", limits: runtime.Limits{HostCalls: 21}},
		{id: "b", limits: runtime.Limits{HostBytes: 19_999}, reason: abi.ReasonLimitExceeded, detail: "limits.host_bytes allows host functions to copy 19999 bytes", trap: runtime.TrapQuota, dropped: 3},
		{id: "b", limits: runtime.Limits{HostBytes: 20_000}, dropped: 4},
		{id: "l", dropped: 4},
		{id: "l", limits: runtime.Limits{LogLines: 3}, dropped: 17},
		{id: "l", limits: runtime.Limits{LogLines: 20}},
		{id: "l", limits: runtime.Limits{LogBytes: 12}, dropped: 18},
		{id: "b", limits: runtime.Limits{LogLines: 100}, dropped: 4},
		{id: "b", limits: runtime.Limits{LogLines: 100, LogBytes: 20_000}},
		{id: "d", limits: runtime.Limits{CallDepth: 2000}, reason: abi.ReasonHandlerTrap, detail: "calls nested too deep", trap: runtime.TrapGuest},
		{id: "d", limits: runtime.Limits{CallDepth: 4000}},
		{id: "t", limits: runtime.Limits{TableElements: 101}, reason: abi.ReasonUnavailable, trap: none}, // it could not grow it
		{id: "t", limits: runtime.Limits{TableElements: 102}},
		{id: "o", limits: runtime.Limits{OutputBytes: 3999}, reason: abi.ReasonHandlerError, detail: "an answer of 4000 bytes: limits.output_bytes allows 3999", trap: none},
		{id: "o", limits: runtime.Limits{OutputBytes: 4000}},
		{id: "f", limits: runtime.Limits{Fuel: 10_000}, reason: abi.ReasonHandlerOutOfFuel, detail: "the call's fuel is used up", trap: runtime.TrapOutOfFuel},
		{id: "f", limits: runtime.Limits{ParseFuel: 10_000, FormulateFuel: 10_000}},
	} {
		c.limits.Instances = 1
		fx := &effects{}
		r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{fx, log.Module{}}, Log: noisy()}, greedyGuest(t, c.limits))
		res := r.NewResponse()
		if err := r.Dispatch(&runtime.Request{Body: envelope("x " + c.id + " y")}, res); err != nil {
			t.Fatal(err)
		}
		out := &res.Results[1]
		if out.Reason != c.reason || !strings.Contains(string(out.Detail), c.detail) {
			t.Errorf("%s %+v: got %s: %s", c.id, c.limits, out.Reason, out.Detail)
		}
		if res.Results[0].Status != abi.StatusAccepted || res.Results[2].Status != abi.StatusAccepted {
			t.Errorf("%s %+v: the actions beside it: %s", c.id, c.limits, verdicts(res.Results))
		}
		want := runtime.GuestStats{Calls: 3, Accepted: 3, LogDropped: c.dropped}
		if c.reason != abi.ReasonNone {
			want.Accepted, want.Rejected[c.reason] = 2, 1
			if c.trap != none {
				want.Traps[c.trap] = 1
			}
		}
		s := statsOf(r, "greedy")
		if s.Calls != want.Calls || s.Accepted != want.Accepted || s.Rejected != want.Rejected || s.Traps != want.Traps || s.LogDropped != want.LogDropped {
			t.Errorf("%s %+v: counters %+v, want %+v", c.id, c.limits, s, want)
		}
		if n := fx.committed.Load(); n != int64(want.Accepted) || fx.dropped.Load() != 3-n {
			t.Errorf("%s %+v: %d effects carried out and %d dropped, want %d and %d", c.id, c.limits, n, fx.dropped.Load(), want.Accepted, 3-want.Accepted)
		}
	}
}

// TestLimitsOfParsers: the fuel of a parser, and the actions that it may emit.
func TestLimitsOfParsers(t *testing.T) {
	for _, c := range []struct {
		limits runtime.Limits
		reason abi.Reason
		detail string
	}{
		{limits: runtime.Limits{Fuel: 10_000, ParseFuel: 100_000}},
		{runtime.Limits{ParseFuel: 10_000}, abi.ReasonHandlerOutOfFuel, ""},
		{limits: runtime.Limits{Actions: 3}},
		{runtime.Limits{Actions: 2}, abi.ReasonLimitExceeded, "3 actions: limits.actions allows 2"},
	} {
		c.limits.Instances = 1
		r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}, log.Module{}}}, greedyGuest(t, c.limits))
		res := r.NewResponse()
		err := r.Dispatch(&runtime.Request{Body: []byte("{}"), Dialect: "greedy"}, res)
		var refused *runtime.ParseError
		switch {
		case c.reason == abi.ReasonNone:
			if err != nil || len(res.Results) != 3 {
				t.Errorf("%+v: %v, %d results", c.limits, err, len(res.Results))
			}
		case !errors.As(err, &refused) || refused.Reason != c.reason || !strings.Contains(refused.Detail, c.detail) || refused.Malformed():
			t.Errorf("%+v: %v", c.limits, err)
		case statsOf(r, "greedy").Rejected[c.reason] != 1:
			t.Errorf("%+v: %+v", c.limits, statsOf(r, "greedy"))
		}
	}
}

// TestLimitsOfPolicies: a policy has fuel of its own.
func TestLimitsOfPolicies(t *testing.T) {
	for fuel, want := range map[uint64]abi.Reason{10_000: abi.ReasonHandlerOutOfFuel, 100_000: abi.ReasonNone} {
		solo, err := runtime.NewSolo(context.Background(), runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{&effects{}, log.Module{}}},
			greedyGuest(t, runtime.Limits{Fuel: 110_000 - fuel, FormulateFuel: fuel}))
		if err != nil {
			t.Fatal(err)
		}
		res, err := solo.Call(context.Background(), runtime.SoloCall{Role: abi.RolePolicy, Frame: make([]byte, abi.SizeContextFrame)})
		if err != nil || res.Reason != want {
			t.Errorf("fuel %d: %v, %s: %s", fuel, err, res.Reason, res.Detail)
		}
		solo.Close()
	}
}

// TestLimitsAtStart: what a guest cannot live with is found before it is offered.
func TestLimitsAtStart(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}, log.Module{}}})
	for rule, l := range map[string]runtime.Limits{
		"limit/table-elements": {TableElements: 1},
		"guest/init":           {CallDepth: 64},
		"guest/smoke":          {InitFuel: 20_000},
		"limit/memory":         {Memory: 64 << 10},
	} {
		var refused *runtime.LoadError
		if err := r.Load(context.Background(), greedyGuest(t, l)); !errors.As(err, &refused) || refused.Problems[0].Rule != rule {
			t.Errorf("%+v: %v, want %s", l, err, rule)
		}
	}
	if err := r.Load(context.Background(), greedyGuest(t, runtime.Limits{TableElements: 100_000, CallDepth: 1 << 20})); err != nil {
		t.Errorf("more than the defaults: %v", err)
	}
}

// TestLimitsOfFormulate: a policy that emits more actions than it may, or takes more fuel,
// adds none, and its effect is dropped; the others add theirs.
func TestLimitsOfFormulate(t *testing.T) {
	for limits, want := range map[runtime.Limits]string{
		{Actions: 2}:                "p:2 steady:1",
		{Actions: 1}:                "p:0/limit_exceeded steady:1",
		{Fuel: 1, InitFuel: 10_000}: "p:0/handler_out_of_fuel steady:1",
		{Fuel: 1, InitFuel: 10_000, FormulateFuel: 10_000}: "p:2 steady:1",
		{FormulateFuel: 1, InitFuel: 10_000}:               "p:0/handler_out_of_fuel steady:1",
	} {
		fx := &effects{}
		p := policyGuest(t, "p", echo("1"), echo("2"))
		p.Limits = limits
		p.Limits.Instances = 1
		r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{fx}}, p, policyGuest(t, "steady", echo("3")))
		policies, _ := formulate(t, r, routed("e", ""))
		if policies != want {
			t.Errorf("%+v: %s, want %s", limits, policies, want)
		}
		committed := int64(0)
		if strings.HasPrefix(want, "p:2") {
			committed = 1
		}
		if fx.committed.Load() != committed {
			t.Errorf("%+v: %d effects, want %d", limits, fx.committed.Load(), committed)
		}
		if s := statsOf(r, "p"); s.Calls != 1 || s.Accepted != uint64(committed) {
			t.Errorf("%+v: %+v", limits, s)
		}
	}
}
