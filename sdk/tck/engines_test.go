package tck_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

// wrong is an engine with one fault.
type wrong struct {
	runtime.Engine
	fault string
}

func (*wrong) Name() string { return "wrong" }

func (w *wrong) Compile(ctx context.Context, wasm []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	if w.fault == "compile" {
		return nil, errors.New("it does not know loops")
	}
	m, err := w.Engine.Compile(ctx, wasm, opts)
	return &wrongModule{m, w.fault}, err
}

type wrongModule struct {
	runtime.Module
	fault string
}

func (m *wrongModule) Instantiate(ctx context.Context) (runtime.Instance, error) {
	in, err := m.Module.Instantiate(ctx)
	return &wrongInstance{in, m.fault}, err
}

type wrongInstance struct {
	runtime.Instance
	fault string
}

func (in *wrongInstance) Call(c *runtime.Call, f runtime.Export, stack []uint64) error {
	err := in.Instance.Call(c, f, stack)
	switch {
	case in.fault == "start" && f == runtime.ExportInit, in.fault == "fuel" && f == runtime.ExportHandle:
		in.SetFuel(in.Fuel() - 1)
	case in.fault == "answer" && f == runtime.ExportHandle && stack[0] == 0:
		stack[0] = ^uint64(0)
	case in.fault == "traps" && f == runtime.ExportHandle && err != nil:
		return &runtime.Trap{Kind: runtime.TrapGuest, Msg: "another reason"}
	}
	return err
}

// TestEnginesAgree: a guest that both engines run alike passes, and where they differ in
// anything that can be seen it does not, in a trial neither.
func TestEnginesAgree(t *testing.T) {
	interpreter := wazero.New(wazero.Config{Interpreter: true})
	for _, c := range []struct{ guest, fault, want string }{
		{"good", "", ""},
		{"costly", "", ""},
		{"good", "compile", "wazero loads the guest and wrong does not: engine/compile: wrong: it does not know loops"},
		{"good", "start", "a start takes "},
		{"good", "fuel", "on wazero, and then on wrong: it used "},
		{"good", "answer", "on wazero, and then on wrong: ACCEPTED, then REJECTED "},
		{"trap", "traps", `handler_trap "unreachable", then REJECTED handler_trap "another reason"`},
		{"trap", "", ""},
	} {
		k := kit()
		k.Second = &wrong{interpreter, c.fault}
		spec := faultyGuest(t, c.guest, faultyManifest)
		tried, err := k.Trial(context.Background(), spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		verified, err := k.Verify(context.Background(), spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*tck.Report{tried, verified} {
			var found []string
			for _, p := range r.Problems {
				if p.Rule == tck.RuleEngines {
					found = append(found, p.Msg)
				}
			}
			if (c.want == "") != (len(found) == 0) || c.want != "" && !strings.Contains(found[0], c.want) || r.Second != "wrong" || (r.Compared > 0) == (c.fault == "compile") {
				t.Errorf("%s with %q: %d calls compared, %q", c.guest, c.fault, r.Compared, found)
			}
		}
	}
}

// TestTrial: a trial is the load and the guest's own cases, which get no parameters but
// their own; the probes are no part of it.
func TestTrial(t *testing.T) {
	cases := fstest.MapFS{"a.jsonl": {Data: []byte(`{"name":"one","payload":{},"results":[{"status":"ACCEPTED"}]}`)}}
	bad := fstest.MapFS{"a.jsonl": {Data: []byte(`{"name":"one","payload":{},"results":[{"status":"REJECTED","reason":"superseded"}]}`)}}
	for _, c := range []struct {
		spec  runtime.GuestSpec
		cases fstest.MapFS
		want  string
	}{
		{faultyGuest(t, "good", faultyManifest), cases, ""},
		{faultyGuest(t, "good", faultyManifest), bad, tck.RuleCaseFailed},
		{faultyGuest(t, "state", faultyManifest), nil, ""},
		{runtime.GuestSpec{Name: "g", Module: faulty}, cases, "abi/manifest capability/not-granted"},
	} {
		c.spec.Limits.Fuel = 100 // that a load does with, and a case does not
		if c.want == "" {
			c.spec.Parameters = []byte(`{"a":1}`)
		}
		r, err := kit().Trial(context.Background(), c.spec, c.cases)
		if got := strings.Join(rules(r.Problems), " "); err != nil || got != c.want {
			t.Errorf("%s: %v, broken are %q, want %q: %v", c.spec.Name, err, got, c.want, r.Problems)
		}
		if r.Cases.Cases != len(c.cases) && r.Limits.Fuel > 0 {
			t.Errorf("%s: %+v", c.spec.Name, r.Cases)
		}
	}
}
