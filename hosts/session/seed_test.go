package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// TestSeed: the events of a context feed the index of its namespace and kind; without a
// list of events there is none.
func TestSeed(t *testing.T) {
	var set Set
	var refused []string
	seed := func(doc string) {
		t.Helper()
		var c hint.Context
		if err := c.Decode(hint.FormatJSON, []byte(`{"request_id":"r","selected":{"worker_id":7},`+doc+`}`), hint.ContextOptions{}); err != nil {
			t.Fatal(err)
		}
		set.Seed(&c, func(i int, err error) { refused = append(refused, fmt.Sprintf("%d: %v", i, err)) })
	}
	seed(`"namespace":"n"`)
	if set.Index("n") != nil {
		t.Error("no events, and the index is on")
	}
	seed(`"namespace":"n","events":[]`)
	if x := set.Index("n"); x == nil || x.Kind() != abi.HashKindEngine || set.Index("") != nil {
		t.Fatal("an empty list switches the index of the namespace on")
	}
	seed(`"tenant":"t","hash_kind":"sequence","events":[
		{"type":"stored","session_id":"s","worker_id":7,"block_hashes":[1,2,3]},
		{"type":"stored","session_id":"s","worker_id":7,"medium":"CPU","block_hashes":[8]},
		{"type":"stored","session_id":"s","worker_id":7,"parent_block_hash":99,"block_hashes":[4]},
		{"type":"match","session_id":"u","worker_id":"w","block_hash":2},
		{"type":"removed","worker_id":7,"block_hashes":[3]}]`)
	x := set.Index("")
	if x == nil || x.Kind() != abi.HashKindSequence {
		t.Fatal("the kind of the index is the context's")
	}
	if len(refused) != 1 || !strings.HasPrefix(refused[0], "2: ") {
		t.Errorf("refused: %q", refused)
	}
	var paths Paths
	for worker, want := range map[hint.WorkerID][]uint64{hint.UintWorker(7): {1, 2}, hint.NamedWorker("w"): {1, 2}} {
		session := map[bool]string{true: "u", false: "s"}[worker.Text() != ""]
		if err := x.Lineage(&paths, Query{Session: session, Tenant: "t", Worker: hint.Worker{ID: worker}}); err != nil || paths.Len() != 1 {
			t.Fatalf("%v, %d paths", err, paths.Len())
		}
		if got, ok := paths.Append(nil, 0); !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", session, got, want)
		}
	}
	refused = nil
	if seed(`"tenant":"t","hash_kind":"local","events":[{"type":"removed","worker_id":7,"block_hashes":[1]}]`); len(refused) != 1 {
		t.Errorf("hashes of another kind were taken: %q", refused)
	}
	seed(`"tenant":"t","hash_kind":"sequence","block_hashes":[1],"events":[{"type":"cleared","worker_id":7}]`)
	if f, err := x.Frontiers(nil, "s", "t"); err == nil {
		t.Errorf("cleared, and there are %v", f)
	}
	for medium, want := range map[string]Tier{"": TierAbsent, "GPU": TierGPU, "cpu_pinned": TierHost, "disk": TierDisk, "External": TierExternal, "tape": TierOther} {
		if got := TierOf(medium); got != want {
			t.Errorf("%q: %d, want %d", medium, got, want)
		}
	}
}
