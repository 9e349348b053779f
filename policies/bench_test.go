package policies_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

// BenchmarkFormulate is a whole formulation in msgpack: the context decoded, the policy's
// call with its question to the lineage index, the answer read and the envelope written.
func BenchmarkFormulate(b *testing.B) {
	for _, c := range []struct{ name, policy, params, context string }{
		{"empty", "retain-on-tool-call", `{"ttl_seconds":60}`, `{"request_id":"r1","selected":{"worker_id":7},"tools_declared":false,"session":{"session_id":"s1"` + isTool + `}}`},
		{"small", "retain-on-tool-call", `{"ttl_seconds":60}`, toolText},
		{"blocks=16/ranges", "retain-session", `{}`, sessionContext(16, true, "")},
		{"blocks=1024/ranges", "retain-session", `{}`, sessionContext(1024, true, "")},
		{"blocks=1024/places", "retain-session", `{"variant":"request_blocks"}`, sessionContext(1024, true, "")},
		{"blocks=1024/integers", "retain-session", `{"variant":"blocks","hashes":"integer"}`, sessionContext(1024, false, "")},
		{"blocks=1024/decimals", "retain-session", `{"variant":"blocks"}`, sessionContext(1024, false, "")},
		{"blocks=1024/evict", "evict-on-final", `{}`, sessionContext(1024, false, isFinal)},
		{"candidates=64/fetch", "fetch-longest-prefix", `{}`, fleetContext(64, "worker-")},
	} {
		b.Run(c.name, func(b *testing.B) { formulateBench(b, c.policy, c.params, c.context) })
	}
	b.Run("copy", func(b *testing.B) { // 8 KiB, once
		from, to := make([]byte, 8<<10), make([]byte, 8<<10)
		for b.Loop() {
			copy(to, from)
		}
	})
}

func formulateBench(b *testing.B, name, params, document string) {
	wasm, _ := policyModule(b, name)
	kit := &tck.Kit{Engine: wazero.New(wazero.Config{})}
	rec := &tck.Recorder{}
	rt, err := runtime.New(kit.Config(rec))
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close(context.Background())
	spec := runtime.GuestSpec{Name: name, Module: wasm, Grants: []string{abi.ModuleSession}, Parameters: json.RawMessage(params), Policy: &runtime.PolicyUse{}}
	if err := rt.Apply(context.Background(), []runtime.GuestSpec{spec}); err != nil {
		b.Fatal(err)
	}
	var c hint.Context
	if err := c.Decode(abi.FormatJSON, []byte(document), hint.ContextOptions{}); err != nil {
		b.Fatal(err)
	}
	rec.Sessions.Seed(&c, func(_ int, err error) { b.Fatal(err) })
	var doc map[string]json.RawMessage
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		b.Fatal(err)
	}
	delete(doc, "events")
	base, root, err := hint.AppendTree(nil, abi.FormatJSON, []byte(text(doc)))
	if err != nil {
		b.Fatal(err)
	}
	body, err := hint.AppendTreeMsgpack(nil, base, root)
	if err != nil {
		b.Fatal(err)
	}
	req := &runtime.FormulateRequest{Body: body, Format: abi.FormatMsgpack}
	res := rt.NewFormulation()
	b.ReportAllocs()
	call := int64(0)
	for b.Loop() {
		if err := rt.Formulate(context.Background(), req, res); err != nil {
			b.Fatal(err)
		}
		call += res.Policies[0].DurationNS
	}
	if p := &res.Policies[0]; p.Reason != abi.ReasonNone {
		b.Fatalf("%s %s", p.Reason, p.Detail)
	}
	b.ReportMetric(float64(call)/float64(b.N), "policy-ns")
	b.ReportMetric(float64(res.Policies[0].Fuel), "fuel")
}

func policyModule(tb testing.TB, name string) ([]byte, *abi.Manifest) {
	h := newHosts(tb, name)
	return h.wasm, h.manifest
}
