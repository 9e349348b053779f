package main

import (
	"log/slog"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

// TestWhoeverEndsARequest: a request that a guest finishes or discards has ended for its
// blocks and for its hint, as one that its engine finishes has.
func TestWhoeverEndsARequest(t *testing.T) {
	cfg, err := config.Parse("kvrt.yaml", []byte("guests: []\ncompile: {cache: 'off'}\nstore: {capacity: 1MiB, block_bytes: [64KiB]}\npeers: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := wireDaemon(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{stack: s, flags: &serveFlags{}, started: cfg}
	srv, err := d.server()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.fleet.Close()
		if err := d.stop(srv, cfg.DrainTimeout); err != nil {
			t.Error(err)
		}
	})
	blocks, space := s.blocks.Store(), store.Namespace("a", "m")
	// by calls a function of a capability as a guest would, for an action that is accepted
	// or not.
	by := func(h runtime.HostModule, id hint.Identity, accepted bool, name string, args ...uint64) {
		t.Helper()
		c := runtime.NewCall(runtime.CallConfig{Identity: id})
		stack := append(args, 0)
		hosttest.Function(t, h, name).Call(c, make([]byte, 64), stack)
		if int32(uint32(stack[0])) < 0 {
			t.Fatalf("%s: %d", name, int32(uint32(stack[0])))
		}
		c.Settle(accepted)
	}
	for name, end := range map[string]func(hint.Identity){
		"a guest finishes": func(id hint.Identity) { by(s.fetch, id, true, "finish", 0) },
		"a guest aborts":   func(id hint.Identity) { by(s.fetch, id, true, "finish", 1) },
		"a guest discards": func(id hint.Identity) { by(s.fetch, id, true, "discard") },
		"the engine ends":  func(id hint.Identity) { s.store.Finish(id, false) },
	} {
		id := hint.Identity{Engine: "vllm", RequestID: name, Leg: abi.LegDecode}
		token, _, err := blocks.Reserve(space, 7, 100)
		if err == nil {
			err = blocks.Commit(token)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		here := func() bool {
			token, _, err := blocks.Acquire(space, 7)
			return err == nil && blocks.Release(token) == nil
		}
		s.blocks.Requests().Describe(id, store.Request{Namespace: space, BlockSize: 16, Hashes: []uint64{7}})
		s.peers.Outcomes.Accept(id, []byte("m"), 0, 1)
		by(s.blocks, id, true, "evict_after", 0, 0)
		by(s.fetch, id, false, "finish", 0) // its action was rejected
		if out := s.peers.Outcomes.Query(outcome.Filter{Identity: &id}, 1); !here() || out[0].State != outcome.Open {
			t.Errorf("%s: before the end: %+v", name, out)
		}
		end(id)
		if out := s.peers.Outcomes.Query(outcome.Filter{Identity: &id}, 1); out[0].State != outcome.Discarded {
			t.Errorf("%s: %+v", name, out)
		}
		if here() {
			t.Errorf("%s: the block that was to be evicted after the request is still there", name)
		}
		if _, known := s.blocks.Requests().Of(id); known {
			t.Errorf("%s: the description is still there", name)
		}
	}
}
