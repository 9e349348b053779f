package kvevents

import (
	"testing"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
)

// TestIndex feeds the lineage index: only the device's blocks of full attention move it.
func TestIndex(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), nil)
	x := session.New(session.Config{})
	man := New(quick(l))
	t.Cleanup(man.Close)
	if err := man.Set(rank0, e, x); err != nil {
		t.Fatal(err)
	}
	l.wait(t, "replayed 0 0")
	p.Do("subscribed", nil)
	frontier := func(want ...session.Frontier) {
		t.Helper()
		until(t, "the batches", func() bool {
			s := man.Stats()[0]
			return s.Sequence == uint64(p.Do("publish", m{"batches": []m{}})["next"].(float64))
		})
		got, _ := x.Frontiers(nil, "s", "")
		if len(got) != len(want) || len(got) == 1 && got[0] != want[0] {
			t.Errorf("frontiers %+v, want %+v", got, want)
		}
	}
	at := func(hash uint64, depth int) session.Frontier {
		return session.Frontier{Worker: rank0, Hash: hash, Depth: depth}
	}
	full := m{"type": "stored", "block_hashes": []any{1, 2, 3}, "medium": "GPU", "session_id": "s", "group_idx": 1, "kv_cache_spec_kind": "full_attention"}
	p.publish(nil, []m{full})
	frontier(at(3, 3))
	with := func(e m, kv ...any) m {
		c := m{}
		for k, v := range e {
			c[k] = v
		}
		for i := 0; i < len(kv); i += 2 {
			c[kv[i].(string)] = kv[i+1]
		}
		return c
	}
	gone := m{"type": "removed", "block_hashes": []any{3}, "medium": "GPU", "group_idx": 1}
	p.publish(nil, []m{
		with(full, "parent_block_hash", 3, "block_hashes", []any{4}, "medium", "CPU"),
		with(full, "parent_block_hash", 3, "block_hashes", []any{4}, "group_idx", 0, "kv_cache_spec_kind", "sliding_window"),
		with(full, "parent_block_hash", 3, "block_hashes", []any{4}, "locality", "REMOTE"),
		with(gone, "medium", "CPU"), with(gone, "group_idx", 0), with(gone, "locality", "REMOTE"),
	})
	frontier(at(3, 3))
	p.publish(nil, []m{gone})
	frontier(at(2, 2))
	p.publish(nil, []m{with(full, "block_hashes", []any{5, 5})})
	frontier(at(2, 2))
	if s := man.Stats()[0]; s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	other := hint.Worker{ID: rank0.ID, Rank: 1, HasRank: true}
	if moved, err := x.Apply(&session.Event{Op: session.OpStored, Worker: other, Session: "s2", Hashes: []uint64{1}}); !moved || err != nil {
		t.Fatal(err)
	}
	man.Remove(rank0.ID)
	if got, _ := x.Frontiers(nil, "s", ""); len(got) != 0 {
		t.Errorf("frontiers %+v of a worker that was removed", got)
	}
	if got, _ := x.Frontiers(nil, "s2", ""); len(got) != 1 {
		t.Errorf("frontiers %+v of a rank that was not", got)
	}
}
