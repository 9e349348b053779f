package tck_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
	"github.com/kvrt/kvrt/sdk/tck"
)

// TestRecorderAnswersLikeTheRealOne: the same arguments get the same answer, text
// included, from the kit's kvrt_fetch as from a store that allows the source.
func TestRecorderAnswersLikeTheRealOne(t *testing.T) {
	allow, err := fetch.ParseAllowList(t.Context(), []string{"tcp://127.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	real := fetch.NewHost(fetch.New(fetch.Config{}), allow)
	real.SetPrefetcher(taker{}, func(*runtime.Call) (string, string) { return "", "0:" })
	const source = "tcp://127.0.0.1:1"
	for _, c := range []struct {
		function string
		args     []uint32
	}{
		{"submit", []uint32{0, 0, 64, 2, 0}},
		{"submit", []uint32{8, uint32(len(source)), 64, 2, 1}},
		{"submit", []uint32{0, 0, 64, 0, 0}},
		{"submit", []uint32{8, 0, 64, 1, 0}},
		{"submit", []uint32{0, 0, 64, 1, 2}},
		{"submit", []uint32{0xffffffff, 1, 64, 1, 0}},
		{"submit", []uint32{0, 0, 4096, 1, 0}},
		{"submit", []uint32{0, 0, 8, 0xffffffff, 0}},
		{"prefetch", []uint32{8, uint32(len(source)), 64, 2, 0}},
		{"prefetch", []uint32{0, 0, 64, 2, 0}},
		{"prefetch", []uint32{8, uint32(len(source)), 64, 0, 0}},
		{"prefetch", []uint32{8, uint32(len(source)), 64, 2, 1}},
		{"prefetch", []uint32{0xffffffff, 1, 64, 1, 0}},
		{"prefetch", []uint32{8, uint32(len(source)), 4096, 1, 0}},
		{"prefetch", []uint32{8, uint32(len(source)), 8, 0xffffffff, 0}},
		{"discard", nil},
		{"finish", []uint32{0}},
		{"finish", []uint32{1}},
		{"finish", []uint32{2}},
		{"status", []uint32{0, 4096}},
		{"status", []uint32{0, 31}},
		{"status", []uint32{4080, 32}},
		{"status", []uint32{0xfffffff0, 0x20}},
	} {
		answer := func(h runtime.HostModule) string {
			call := runtime.NewCall(runtime.CallConfig{Identity: hint.Identity{RequestID: "r1"}})
			mem := make([]byte, 4096)
			for i := range mem {
				mem[i] = 0xff
			}
			copy(mem[8:], source)
			stack := make([]uint64, 5)
			for i, a := range c.args {
				stack[i] = 0xdead<<32 | uint64(a)
			}
			i := slices.IndexFunc(h.Functions(), func(f runtime.HostFunction) bool { return f.Name == c.function })
			f := h.Functions()[i]
			f.Call(call, mem, stack)
			second := make([]uint64, 5)
			h.Functions()[slices.IndexFunc(h.Functions(), func(f runtime.HostFunction) bool { return f.Name == "discard" })].Call(call, mem, second)
			reason, detail := call.Refusal()
			call.Settle(false)
			return fmt.Sprintf("%#x, then %#x %s %q, memory %x", stack[0], second[0], reason, detail, mem[:40])
		}
		if got, want := answer(&tck.Recorder{}), answer(real); got != want {
			t.Errorf("%s%v:\n got %s\nwant %s", c.function, c.args, got, want)
		}
	}
}

// taker is a Prefetcher that does nothing.
type taker struct{}

func (taker) Prefetch(*fetch.Order) (abi.Reason, string) { return abi.ReasonNone, "" }

// TestRecorderHasAnEmptyStore: kvrt_store answers as a block store does that has no block
// and was told of the request.
func TestRecorderHasAnEmptyStore(t *testing.T) {
	id := hint.Identity{RequestID: "r1"}
	blocks, err := store.New(store.Config{Capacity: 1 << 20, BlockBytes: []uint64{1 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	defer blocks.Close()
	requests := store.NewRequests(store.RequestsConfig{})
	requests.Describe(id, store.Request{Namespace: store.Namespace("", ""), BlockSize: 16, Hashes: []uint64{1, 2, 3}})
	real := store.NewHost(blocks, requests, nil)
	rec := &tck.Recorder{Answers: tck.Answers{Request: []uint64{1, 2, 3}}}
	cfg := kit().Config(rec)
	ours := cfg.Hosts[slices.IndexFunc(cfg.Hosts, func(h runtime.HostModule) bool { return h.Name() == abi.ModuleStore })]
	hosttest.Table(t, abi.ModuleStore, ours)
	hosttest.Table(t, abi.ModuleGPU, cfg.Hosts[slices.IndexFunc(cfg.Hosts, func(h runtime.HostModule) bool { return h.Name() == abi.ModuleGPU })])
	for _, c := range []struct {
		function, id string
		args         []uint32
	}{
		{"request", "r1", []uint32{64, 24}}, {"request", "r1", []uint32{64, 23}}, {"request", "r1", []uint32{0, 0}}, {"request", "r1", []uint32{4090, 24}},
		{"residency", "r1", []uint32{0, 0, 64, 3}}, {"residency", "r1", []uint32{8, 2, 64, 1}}, {"residency", "r1", []uint32{4090, 1, 64, 3}}, {"residency", "r1", []uint32{8, 1, 4096, 1}},
		{"evict", "r1", []uint32{8, 2}}, {"evict", "r1", []uint32{0, 0}}, {"evict", "r1", []uint32{4090, 1}}, {"evict", "r1", []uint32{8, 0xffffffff}},
		{"evict_after", "r1", []uint32{8, 2}}, {"evict_after", "", []uint32{8, 2}}, {"evict_after", "r1", []uint32{0, 0}},
		{"retain", "r1", []uint32{8, 2, 0, 0, 0, 0}}, {"retain", "r1", []uint32{8, 2, 4090, 24, 0, 0}}, {"retain", "r1", []uint32{8, 2, 0, 0, 4096, 1}},
	} {
		answer := func(h runtime.HostModule) string {
			call := runtime.NewCall(runtime.CallConfig{Identity: hint.Identity{RequestID: c.id}})
			mem := bytes.Repeat([]byte{0xff}, 4096)
			stack := make([]uint64, 6)
			for i, a := range c.args {
				stack[i] = 0xdead<<32 | uint64(a)
			}
			hosttest.Function(t, h, c.function).Call(call, mem, stack)
			reason, detail := call.Refusal()
			call.Settle(true)
			return fmt.Sprintf("%d %s %q, memory %x", int64(stack[0]), reason, detail, mem[:96])
		}
		if got, want := answer(ours), answer(real); got != want {
			t.Errorf("%s%v of %q:\n got %s\nwant %s", c.function, c.args, c.id, got, want)
		}
	}
	want := "[{kvrt_store.evict { [18446744073709551615 18446744073709551615]}} {kvrt_store.evict { [1 2 3]}}]"
	if got := rec.Done(); len(got) < 3 || fmt.Sprint(got[:2]) != want {
		t.Errorf("got %v, want %s and more", got, want)
	}
}

// TestRecorder: effects are told with what became of them.
func TestRecorder(t *testing.T) {
	rec := &tck.Recorder{}
	do := func(name string, accepted bool, args ...uint64) {
		call := runtime.NewCall(runtime.CallConfig{})
		stack := append(args, make([]uint64, 5)...)
		for _, f := range rec.Functions() {
			if f.Name == name {
				f.Call(call, make([]byte, 64), stack)
			}
		}
		call.Settle(accepted)
	}
	do("submit", true, 0, 0, 8, 1, 1)
	do("submit", false, 0, 0, 8, 2, 0)
	do("finish", true, 1)
	do("discard", false)
	want := []tck.Effect{
		{"kvrt_fetch.submit", tck.Submit{Hashes: []uint64{0}, NoRetain: true}, true}, {"kvrt_fetch.submit", tck.Submit{Hashes: []uint64{0, 0}}, false},
		{"kvrt_fetch.finish", tck.Finish{Aborted: true}, true}, {"kvrt_fetch.discard", nil, false},
	}
	if fmt.Sprint(rec.Effects) != fmt.Sprint(want) || len(rec.Submits()) != 1 {
		t.Errorf("got %v, want %v", rec.Effects, want)
	}
	rec.Reset(tck.Answers{Submit: abi.ReasonSuperseded})
	do("submit", true, 0, 0, 8, 1, 1)
	if len(rec.Effects) != 0 {
		t.Errorf("%v", rec.Effects)
	}
}
