package policies_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// TestEvict holds kv-evict with a real block store against a model: what is gone is what
// was named, of the request's namespace and no other, and not before its time.
func TestEvict(t *testing.T) {
	const blocks = 40
	s, err := store.New(store.Config{Capacity: 1 << 20, BlockBytes: []uint64{1 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	requests := store.NewRequests(store.RequestsConfig{})
	host := store.NewHost(s, requests, nil)
	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{Interpreter: true}), Hosts: []runtime.HostModule{host, log.Module{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	if err := rt.Apply(context.Background(), []runtime.GuestSpec{newHosts(t, "kv-evict").spec(nil)}); err != nil {
		t.Fatal(err)
	}
	mine, other := store.Namespace("a", "model"), store.Namespace("b", "model")
	put := func(namespace string) {
		for h := range uint64(blocks) {
			if token, _, err := s.Reserve(namespace, h, 8); err == nil {
				if err := s.Commit(token); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	has := func(namespace string) (list []uint64) {
		found := make([]abi.Residency, blocks)
		s.Residency(namespace, chain(0, blocks), found)
		for h, r := range found {
			if r == abi.ResidencyDRAM {
				list = append(list, uint64(h))
			}
		}
		return list
	}
	put(other)
	r := rand.New(rand.NewPCG(3, 5))
	res := rt.NewResponse()
	for round := range 300 {
		put(mine)
		id := hint.Identity{Engine: "vllm", RequestID: fmt.Sprint(round)}
		request := chain(uint64(r.IntN(30)), r.IntN(10))
		requests.Describe(id, store.Request{Namespace: mine, BlockSize: 16, Hashes: request})
		gone := map[uint64]bool{}
		named := []any{}
		later, include, slice := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(4) == 0
		payload := map[string]any{"execute_at": "now"}
		if later {
			payload["execute_at"] = "request_completion"
		}
		if slice {
			start, count := r.IntN(12), 1+r.IntN(12)
			payload["current_request_block_start"], payload["current_request_block_count"], include = start, count, false
			for i := start; i < min(start+count, len(request)); i++ {
				gone[request[i]] = true
			}
		} else {
			for range r.IntN(6) {
				h := r.Uint64N(50)
				gone[h] = true
				named = append(named, pick(newWorld(uint64(round)), any(h), any(fmt.Sprint(h))))
			}
		}
		for _, h := range request {
			gone[h] = gone[h] || include
		}
		payload["include_current_request"], payload["block_hashes"] = include, named
		if err := rt.Dispatch(&runtime.Request{Body: []byte(envelope("kv.evict", text(payload))), Identity: id}, res); err != nil {
			t.Fatal(err)
		}
		verdict, want := res.Results[0].Reason, abi.ReasonNone
		if !include && !slice && len(named) == 0 {
			want = abi.ReasonInvalidPayload
		}
		if verdict != want {
			t.Fatalf("%v: %s %s", payload, verdict, res.Results[0].Detail)
		}
		if later && len(has(mine)) != blocks {
			t.Fatalf("%v: evicted before the request has ended", payload)
		}
		host.Ended(id)
		left := slices.DeleteFunc(chain(0, blocks), func(h uint64) bool { return gone[h] })
		if got := has(mine); !slices.Equal(got, left) {
			t.Fatalf("%v of %v: left %v, want %v", payload, request, got, left)
		}
		if len(has(other)) != blocks {
			t.Fatal("blocks of another namespace are gone")
		}
	}
}
