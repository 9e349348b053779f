package abi_test

import (
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

// TestContextFields: the names are those that a manifest may require, each field of a
// full context is found under its own name, and a context without it lacks it.
func TestContextFields(t *testing.T) {
	names := abi.ContextFieldNames()
	for _, name := range names {
		m := `{"name":"p","abi":1,"roles":["policy"],"requires":["` + name + `"]}`
		if _, err := abi.ParseManifest([]byte(m)); err != nil {
			t.Errorf("a manifest cannot require %s: %v", name, err)
		}
	}
	least := abi.Context{}
	frame := func(x *abi.Context, request, selection abi.Node) abi.ContextFields {
		return abi.ContextFrame(abi.FinishContext(abi.BeginContext(nil, x), request, selection)).Fields()
	}
	if got := frame(&least, abi.Node{}, abi.Node{}); got != 0 {
		t.Errorf("an empty context has %v", got.Names())
	}
	for name, set := range map[string]func(x *abi.Context){
		"request_id": func(x *abi.Context) { x.RequestID = "r" }, "attempt": func(x *abi.Context) { x.Present = abi.HasAttempt },
		"leg": func(x *abi.Context) { x.Leg = abi.LegDecode }, "model": func(x *abi.Context) { x.Model = "m" }, "group": func(x *abi.Context) { x.Group = "g" },
		"worker_type": func(x *abi.Context) { x.WorkerType = "w" }, "tenant": func(x *abi.Context) { x.Tenant = "t" }, "namespace": func(x *abi.Context) { x.Namespace = "n" },
		"prompt_tokens":          func(x *abi.Context) { x.Present = abi.HasPromptTokens },
		"expected_output_tokens": func(x *abi.Context) { x.Present = abi.HasExpectedOutputTokens },
		"tools_declared":         func(x *abi.Context) { x.Present = abi.HasToolsDeclared },
		"block_size":             func(x *abi.Context) { x.Present = abi.HasBlockSize },
		"candidates":             func(x *abi.Context) { x.Present = abi.HasCandidates },
		"block_hashes":           func(x *abi.Context) { x.Present = abi.HasBlockHashes },
		"session_id":             func(x *abi.Context) { x.SessionID = "s" },
		"parent_session_id":      func(x *abi.Context) { x.ParentSessionID = "p" },
		"session_final":          func(x *abi.Context) { x.Present = abi.HasSessionFinal },
		"input_trigger":          func(x *abi.Context) { x.InputTrigger = abi.TriggerOther },
		"selected":               func(x *abi.Context) { x.Selected = &abi.Worker{ID: abi.Uint(7)} },
	} {
		x := least
		set(&x)
		if got := frame(&x, abi.Node{}, abi.Node{}).Names(); !slices.Equal(got, []string{name}) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	both := abi.Context{Present: abi.HasBlockHashes, HashKind: abi.HashKindLocal}
	if got := frame(&both, abi.Node{Tag: abi.TagMap}, abi.Node{Tag: abi.TagMap}).Names(); !slices.Equal(got, []string{"hash_kind", "block_hashes", "request_hint", "selection_hint"}) {
		t.Errorf("got %v", got)
	}
	all := abi.ContextFieldSet(append([]string{"no_such_field"}, names...))
	if !slices.Equal(all.Names(), names) {
		t.Errorf("got %v", all.Names())
	}
	if got := abi.ContextFieldSet([]string{"session_id"}).Names(); !slices.Equal(got, []string{"session_id"}) {
		t.Errorf("got %v", got)
	}
}
