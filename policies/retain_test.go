package policies_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// keeper is kv-retain with a real block store whose clock the test moves.
type keeper struct {
	t        *testing.T
	store    *store.Store
	requests *store.Requests
	runtime  *runtime.Runtime
	now      int64  // ns
	next     uint64 // hash of the next block that makes pressure
}

func newKeeper(t *testing.T, blocks int) *keeper {
	k := &keeper{t: t, now: 1, next: 1 << 40}
	var err error
	k.store, err = store.New(store.Config{Capacity: uint64(blocks) << 12, BlockBytes: []uint64{1 << 12}, Now: func() int64 { return k.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.store.Close() })
	k.requests = store.NewRequests(store.RequestsConfig{})
	k.runtime, err = runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{Interpreter: true}), Hosts: []runtime.HostModule{store.NewHost(k.store, k.requests, nil), log.Module{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.runtime.Close(context.Background()) })
	if err := k.runtime.Apply(context.Background(), []runtime.GuestSpec{newHosts(t, "kv-retain").spec(nil)}); err != nil {
		t.Fatal(err)
	}
	return k
}

var mine = store.Namespace("a", "model")

func (k *keeper) put(hashes ...uint64) {
	k.t.Helper()
	for _, h := range hashes {
		if token, _, err := k.store.Reserve(mine, h, 8); err == nil {
			if err := k.store.Commit(token); err != nil {
				k.t.Fatal(err)
			}
		}
	}
}

// press puts blocks that nobody claims.
func (k *keeper) press(n int) {
	for range n {
		k.put(k.next)
		k.next++
	}
}

// has are those of the blocks that the store still has.
func (k *keeper) has(hashes []uint64) (list []uint64) {
	found := make([]abi.Residency, len(hashes))
	k.store.Residency(mine, hashes, found)
	for i, h := range hashes {
		if found[i] == abi.ResidencyDRAM {
			list = append(list, h)
		}
	}
	return list
}

// retain sends claims of a request and returns the verdicts.
func (k *keeper) retain(id hint.Identity, payloads ...string) (verdicts []abi.Reason) {
	k.t.Helper()
	res := k.runtime.NewResponse()
	if err := k.runtime.Dispatch(&runtime.Request{Body: []byte(envelope("kv.retain", payloads...)), Identity: id}, res); err != nil {
		k.t.Fatal(err)
	}
	for _, r := range res.Results {
		verdicts = append(verdicts, r.Reason)
	}
	return verdicts
}

// TestRetain: of a full store what a claim holds stays, the rest goes, and what the claim
// held goes too when its time is over or it is taken back.
func TestRetain(t *testing.T) {
	const blocks = 16
	id := hint.Identity{Engine: "vllm", RequestID: "r1"}
	request := chain(0, 8) // 128 tokens
	for _, c := range []struct {
		name     string
		payloads []string
		stay     []uint64
	}{
		{"a range", []string{`{"directives":[{"start":0,"end":64,"priority":90,"duration":600}]}`}, request[:4]},
		{"a block with one token of the range", []string{`{"directives":[{"start":15,"end":33,"priority":90,"duration":600}]}`}, request[:3]},
		{"to the end", []string{`{"scope":"s","directives":[{"start":100,"priority":1,"duration":600}]}`}, request[6:]},
		{"several actions", []string{`{"directives":[{"end":32,"priority":90,"duration":600}]}`, `{"directives":[{"start":96,"priority":1,"duration":600}]}`}, append(chain(0, 2), request[6:]...)},
		{"one rejected", []string{`{"directives":[{"end":32,"priority":101}]}`, `{"directives":[{"start":96,"priority":1,"duration":600}]}`}, request[6:]},
		{"behind the request", []string{`{"directives":[{"start":128,"priority":90}]}`}, nil},
		{"nothing", []string{`{"directives":[]}`}, nil},
		{"the output", []string{`{"directives":[{"covers_output":true,"priority":90}]}`}, nil},
		{"released", []string{`{"directives":[{"priority":90}]}`, `{"directives":[]}`}, request},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t, blocks)
			k.requests.Describe(id, store.Request{Namespace: mine, BlockSize: 16, Hashes: request})
			k.put(request...)
			k.retain(id, c.payloads...)
			k.press(2 * blocks)
			if got := k.has(request); !slices.Equal(got, c.stay) {
				t.Fatalf("left are %v, want %v", got, c.stay)
			}
			if c.name == "released" {
				if got := k.retain(id, `{"directives":[{"priority":0}]}`); got[0] != abi.ReasonNone {
					t.Fatal(got)
				}
			}
			k.now += int64(10*time.Minute + time.Second)
			k.press(2 * blocks)
			if got := k.has(request); len(got) > 0 {
				t.Fatalf("left are %v when no claim holds", got)
			}
		})
	}
}

// TestRetainOthers: a claim reaches the request's own tenant and namespace only, holds with
// each scope for itself, and what nobody described is passed on.
func TestRetainOthers(t *testing.T) {
	k := newKeeper(t, 16)
	one, two := hint.Identity{Engine: "vllm", RequestID: "r1"}, hint.Identity{Engine: "vllm", RequestID: "r2"}
	request := chain(0, 4)
	k.put(request...)
	claim := func(scope string, priority int) string {
		return fmt.Sprintf(`{"scope":%q,"directives":[{"priority":%d}]}`, scope, priority)
	}
	if got := k.retain(one, claim("x", 50)); got[0] != abi.ReasonNone {
		t.Fatalf("a request that nobody described: %v", got)
	}
	k.requests.Describe(two, store.Request{Namespace: store.Namespace("b", "model"), BlockSize: 16, Hashes: request})
	k.retain(two, claim("x", 50))
	if n := k.store.Stats().Claims; n != 0 {
		t.Fatalf("%d claims of what is not theirs", n)
	}
	for _, id := range []hint.Identity{one, two} {
		k.requests.Describe(id, store.Request{Namespace: mine, BlockSize: 16, Hashes: request})
	}
	k.retain(one, claim("x", 50))
	k.retain(two, claim("x", 60)) // the same scope: in place of the first
	k.retain(two, claim("y", 40))
	if n := k.store.Stats().Claims; n != 8 {
		t.Fatalf("%d claims on four blocks of two scopes", n)
	}
	k.retain(one, claim("x", 0))
	k.press(32)
	if got := k.has(request); !slices.Equal(got, request) {
		t.Fatalf("left are %v with a claim of one scope", got)
	}
	k.retain(one, claim("y", 0))
	k.press(32)
	if got := k.has(request); len(got) > 0 {
		t.Fatalf("left are %v without a claim", got)
	}
}

// TestRetainModel holds random claims against what each block should get: the highest
// priority of the directives that have one of its tokens.
func TestRetainModel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for round := range 60 {
		k := newKeeper(t, 24)
		id := hint.Identity{Engine: "vllm", RequestID: fmt.Sprint(round)}
		size, n := 1+r.IntN(20), 1+r.IntN(12)
		request := chain(0, n)
		k.requests.Describe(id, store.Request{Namespace: mine, BlockSize: size, Hashes: request})
		k.put(request...)
		priorities := make([]int, n)
		var list string
		for at, priority := 0, 100; priority > 0 && r.IntN(5) > 0; priority -= r.IntN(60) {
			at += r.IntN(2 * size)
			end := at + 1 + r.IntN(4*size)
			list += fmt.Sprintf(`,{"start":%d,"end":%d,"priority":%d,"duration":9}`, at, end, priority)
			for b := range n {
				if at < (b+1)*size && end > b*size {
					priorities[b] = max(priorities[b], priority)
				}
			}
		}
		var want []uint64
		for b, p := range priorities {
			if p > 0 {
				want = append(want, request[b])
			}
		}
		if list != "" {
			list = list[1:]
		}
		if got := k.retain(id, `{"directives":[`+list+`]}`); got[0] != abi.ReasonNone {
			t.Fatalf("%s: %s", list, got[0])
		}
		k.press(48)
		if got := k.has(request); !slices.Equal(got, want) {
			t.Fatalf("%d blocks of %d tokens, %s: left are %v, want %v", n, size, list, got, want)
		}
	}
}

// TestRetainFuel: the longest request that is retained, and the most directives that are
// looked at before, fit into the fuel that the manifest asks for.
func TestRetainFuel(t *testing.T) {
	k := newKeeper(t, 16)
	id := hint.Identity{Engine: "vllm", RequestID: "r1"}
	request := chain(0, 16384)
	k.requests.Describe(id, store.Request{Namespace: mine, BlockSize: 16, Hashes: request})
	k.put(request[:8]...)
	directive := `{"start":1,"end":64,"priority":50,"duration":600,"covers_output":false}`
	vain := `{"directives":[` + strings.Repeat(directive+",", 127) + `{"priority":101}]}`
	last := `{"directives":[` + strings.Repeat(directive+",", 127) + directive + `]}`
	got := k.retain(id, vain, vain, vain, last)
	if got[3] != abi.ReasonNone || k.store.Stats().Claims != 4 {
		t.Fatalf("%v, %d claims", got, k.store.Stats().Claims)
	}
}
