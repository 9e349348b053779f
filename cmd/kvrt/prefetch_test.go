package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/server"
)

// TestPrefetchAndEvict: two daemons of the default guests. A kv.prefetch brings blocks from
// one to the other before anybody asks for them, of the request's tenant and no other, and a
// kv.evict lets go of them when its request has ended.
func TestPrefetchAndEvict(t *testing.T) {
	from, to, _ := startPeers(t, "namespaces: [{tenant: a, namespace: m}]")
	block := func(h uint64) []byte { return bytes.Repeat([]byte{byte(h), 1, 2, 3}, 10_000) }
	for h := uint64(1); h <= 4; h++ {
		for _, tenant := range []string{"a", "b"} {
			if stored, err := from.PutBlock(t.Context(), tenant, "m", h, block(h)); !stored || err != nil {
				t.Fatal(stored, err)
			}
		}
	}
	describe := func(id hint.Identity, tenant string) {
		t.Helper()
		if kept, err := to.Describe(t.Context(), id, server.Description{Tenant: tenant, Namespace: "m", BlockSize: 16, Hashes: []uint64{1, 2}}); !kept || err != nil {
			t.Fatal(kept, err)
		}
	}
	submit := func(id hint.Identity, typ, payload string) hint.Result {
		t.Helper()
		body := fmt.Sprintf(`{"protocol_version":"0.1","message_id":"m-%s","actions":[{"action_id":"a","action_type":"%s","action_version":"1.0","payload":%s}]}`, id.RequestID, typ, payload)
		got, err := to.Submit(t.Context(), server.Submit{Identity: id, Body: []byte(body)})
		if err != nil || len(got.Results) != 1 {
			t.Fatalf("%+v %v", got, err)
		}
		return got.Results[0]
	}
	ended := func(id hint.Identity) (out []outcome.Outcome) {
		t.Helper()
		var err error
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if out, err = to.Outcomes(t.Context(), server.OutcomesQuery{Identity: id}); err != nil || len(out) == 1 && out[0].State != outcome.Open {
				return out
			}
		}
		t.Fatalf("no outcome: %+v", out)
		return nil
	}
	has := func(tenant string, h uint64) bool {
		t.Helper()
		b, err := to.GetBlock(t.Context(), tenant, "m", h)
		if err != nil && !errors.Is(err, server.ErrNoBlock) || err == nil && !bytes.Equal(b, block(h)) {
			t.Errorf("block %d: %d bytes, %v", h, len(b), err)
		}
		return err == nil
	}

	id := hint.Identity{Engine: "vllm", RequestID: "r1"}
	describe(id, "a")
	prefetch := func(src, hashes string) string {
		return fmt.Sprintf(`{"source_control_endpoint":"%s","block_hashes":%s}`, src, hashes)
	}
	if r := submit(id, "kv.prefetch", prefetch(source, "[1,2,3]")); r.Status != abi.StatusAccepted {
		t.Fatalf("%+v", r)
	}
	if out := ended(id); out[0].State != outcome.Completed || out[0].Fetched != 3 || out[0].MessageID != "m-r1" {
		t.Errorf("%+v", out)
	}
	for h := uint64(1); h <= 3; h++ {
		if !has("a", h) || has("b", h) {
			t.Errorf("block %d is not where it should be", h)
		}
	}
	if r := submit(id, "kv.prefetch", prefetch("tcp://192.0.2.1:1", "[4]")); r.Reason != abi.ReasonSourceNotAllowed {
		t.Errorf("%+v", r)
	}

	other := hint.Identity{Engine: "vllm", RequestID: "r2"}
	describe(other, "b")
	if r := submit(other, "kv.prefetch", prefetch(source, "[4]")); r.Status != abi.StatusAccepted {
		t.Fatalf("%+v", r)
	}
	if out := ended(other); out[0].State != outcome.Failed || out[0].Reason != abi.ReasonSourceNotAllowed || has("b", 4) {
		t.Errorf("a tenant that the source does not serve: %+v", out)
	}

	if r := submit(id, "kv.evict", `{"execute_at":"request_completion","include_current_request":true,"block_hashes":[]}`); r.Status != abi.StatusAccepted {
		t.Fatalf("%+v", r)
	}
	if !has("a", 1) {
		t.Error("evicted before the request has ended")
	}
	if err := to.Finish(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	if has("a", 1) || has("a", 2) || !has("a", 3) {
		t.Error("what was left is not what the request did not have")
	}
}
