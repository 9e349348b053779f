package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
)

// TestGuestPrefetches: the built-in handler of kv.prefetch brings blocks to the device, and
// only when its action is accepted.
func TestGuestPrefetches(t *testing.T) {
	cfg := parse(t, `
guests: [{name: kv-prefetch, module: "embedded:kv-prefetch", grants: [kvrt_fetch, kvrt_gpu, kvrt_log], limits: {instances: 1}}]
store: {capacity: 1MiB, block_bytes: [16KiB]}
gpu: {capacity: 128KiB}
`)
	s, err := wireDaemon(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.fleet.Close()
		if err := errors.Join(s.runtime.Close(context.Background()), s.closeMemory(context.Background())); err != nil {
			t.Error(err)
		}
	})
	namespace := store.Namespace("a", "llama")
	hashes := []uint64{11, 1<<64 - 1}
	for _, h := range hashes {
		token, _, err := s.blocks.Store().Reserve(namespace, h, 5000)
		if err == nil {
			err = s.blocks.Store().Commit(token)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	id := hint.Identity{Engine: "vllm", RequestID: "r-1"}
	s.blocks.Requests().Describe(id, store.Request{Namespace: namespace, BlockSize: 16, Hashes: hashes})
	there := func() int {
		if err := s.onDevice.Tier().Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.onDevice.Tier().Residency(namespace, hashes, make([]abi.Residency, len(hashes)))
	}
	send := func(id hint.Identity, payload string) hint.Result {
		res := s.runtime.NewResponse()
		body := fmt.Sprintf(`{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"a","action_type":"kv.prefetch","action_version":"1.0","payload":%s}]}`, payload)
		if err := s.runtime.Dispatch(&runtime.Request{Body: []byte(body), Identity: id}, res); err != nil {
			t.Fatal(err)
		}
		return res.Results[0]
	}
	if r := send(id, `{"tier":"device","block_hashes":[11,"x"]}`); r.Status != abi.StatusRejected || there() != 0 {
		t.Errorf("%+v, %d on the device", r, there())
	}
	if r := send(id, `{"tier":"device","block_hashes":[11]}`); r.Status != abi.StatusAccepted || there() != 1 {
		t.Errorf("%+v, %d on the device", r, there())
	}
	if r := send(id, `{"tier":"device","include_current_request":true}`); r.Status != abi.StatusAccepted || there() != 2 {
		t.Errorf("%+v, %d on the device", r, there())
	}
	other := hint.Identity{Engine: "vllm", RequestID: "another"}
	if r := send(other, `{"tier":"device","include_current_request":true}`); r.Reason != abi.ReasonNotFound {
		t.Errorf("a request that nobody described: %+v", r)
	}
	if st := s.onDevice.Tier().Stats(); st.Loaded != 2 || st.Prefetches != 2 || st.BytesIn != 10_000 {
		t.Errorf("%+v", st)
	}
}
