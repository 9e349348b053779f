package metrics

import (
	"context"
	"encoding/binary"
	"os"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// TestPolicies: what policies added and what was left out, by name and reason.
func TestPolicies(t *testing.T) {
	var set session.Set
	if _, err := set.Add("", session.Config{}).Apply(&session.Event{Op: session.OpStored, Session: "s", Hashes: []uint64{1, 2}, Worker: hint.Worker{ID: hint.UintWorker(7)}}); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{session.NewHost(&set, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile("../../runtime/testdata/lineage.wasm")
	if err != nil {
		t.Fatal(err)
	}
	section := append([]byte{byte(len(abi.ManifestSection))}, abi.ManifestSection+`{"name":"lineage","abi":1,"roles":["policy"],"capabilities":["kvrt_session"]}`...)
	wasm = append(binary.AppendUvarint(append(wasm, 0), uint64(len(section))), section...)
	spec := runtime.GuestSpec{Name: "lineage", Module: wasm, Grants: []string{"kvrt_session"}, Limits: runtime.Limits{Instances: 1}, Policy: &runtime.PolicyUse{}}
	if err := rt.Apply(context.Background(), []runtime.GuestSpec{spec}); err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, rt: rt, store: fetch.New(fetch.Config{})}
	g.serve()
	res := rt.NewFormulation()
	run := func(body string) error {
		return rt.Formulate(context.Background(), &runtime.FormulateRequest{Body: []byte(body)}, res)
	}
	for _, caps := range []string{`["demo.lineage"]`, `[]`, `null`, `["kv.fetch"]`, `["demo.lineage"]`} {
		if err := run(`{"request_id":"r","session":{"session_id":"s"},"selected":{"worker_id":7,"capabilities":` + caps + `}}`); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(`{}`); err == nil {
		t.Error("no error")
	}
	for labels, want := range map[[3]string]float64{
		{"kvrt_formulations_total"}: 6, {"kvrt_malformed_contexts_total"}: 1, {"kvrt_policy_actions_total", "guest=lineage"}: 3,
		{"kvrt_policy_actions_dropped_total", "guest=lineage", "reason=unsupported_action_type"}: 2,
		{"kvrt_calls_total", "guest=lineage"}:                                                    5,
	} {
		var with []string
		for _, l := range labels[1:] {
			if l != "" {
				with = append(with, l)
			}
		}
		if got := g.value(labels[0], with...); got != want {
			t.Errorf("%s: %v, want %v", labels, got, want)
		}
	}
}
