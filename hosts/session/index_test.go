package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

var (
	w1 = hint.Worker{ID: hint.UintWorker(1)}
	w2 = hint.Worker{ID: hint.UintWorker(2)}
)

func stored(w hint.Worker, session string, hashes ...uint64) *Event {
	return &Event{Op: OpStored, Worker: w, Session: session, Hashes: hashes}
}

func (e *Event) below(parent uint64) *Event {
	e.Parent, e.HasParent = parent, true
	return e
}

func apply(t *testing.T, x *Index, events ...*Event) {
	t.Helper()
	for _, e := range events {
		if _, err := x.Apply(e); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
	}
}

// lineage prints a session's paths on a worker.
func lineage(t *testing.T, x *Index, session string, w hint.Worker) string {
	t.Helper()
	var p Paths
	if err := x.Lineage(&p, Query{Session: session, Worker: w}); err != nil {
		return err.Error()
	}
	return fmt.Sprint(collect(t, &p))
}

func TestChainErrors(t *testing.T) {
	x := New(Config{})
	apply(t, x, stored(w1, "s", 1, 2, 3), stored(w1, "s", 50))
	apply(t, x, &Event{Op: OpMatched, Worker: w1, Session: "s", Hashes: []uint64{9}})
	for _, c := range []struct {
		event *Event
		rule  error
		block uint64
	}{
		{stored(w1, "s", 5).below(4), ErrUnknownParent, 4},
		{stored(w1, "s", 5, 6).below(4), ErrUnknownParent, 4},
		{stored(w1, "s", 2).below(3), ErrCyclicParent, 2}, // an ancestor of its parent
		{stored(w1, "s", 1).below(3), ErrCyclicParent, 1}, // the root of its parent
		{stored(w1, "s", 3).below(1), ErrConflictingParent, 3},
		{stored(w1, "s", 2), ErrConflictingParent, 2}, // no parent is another parent, too
		{stored(w1, "s", 7, 3), ErrConflictingParent, 3},
		{stored(w1, "s", 7, 8, 7), ErrCyclicParent, 7},
		{stored(w1, "s", 0, 0), ErrCyclicParent, 0},
		{stored(w1, "s", 4).below(4), ErrCyclicParent, 4},          // its own parent
		{stored(w1, "s", 7, 3).below(4), ErrConflictingParent, 3},  // told before the unknown parent
		{stored(w1, "s", 9, 10, 9).below(4), ErrCyclicParent, 9},   // a graft does not help
		{stored(w1, "s", 50, 51, 2).below(3), ErrCyclicParent, 2},  // behind a graft
		{stored(w1, "s", 60, 61, 9, 60), ErrCyclicParent, 60},      // around a graft
		{stored(w1, "s", 70, 3).below(2), ErrConflictingParent, 3}, // a block between
	} {
		before := x.Stats().Nodes
		moved, err := x.Apply(c.event)
		var chain *ChainError
		if moved || !errors.Is(err, c.rule) || !errors.As(err, &chain) || chain.Block != c.block {
			t.Errorf("%d below %d: %v, %v, want %v of %d", c.event.Hashes, c.event.Parent, moved, err, c.rule, c.block)
		}
		if x.Stats().Nodes != before {
			t.Errorf("%v: a refused chain changed the tree", c.event.Hashes)
		}
	}
	if got := lineage(t, x, "s", w1); got != "[[1 2 3] [9] [50]]" {
		t.Error(got)
	}
	st := x.Stats()
	if st.UnknownParent != 2 || st.CyclicParent != 8 || st.ConflictingParent != 5 {
		t.Errorf("%+v", st)
	}
}

func TestGraft(t *testing.T) {
	x := New(Config{})
	match := func(h uint64) *Event { return &Event{Op: OpMatched, Worker: w1, Session: "s", Hashes: []uint64{h}} }
	apply(t, x, match(3))                       // known as a root
	apply(t, x, stored(w1, "s", 2, 3).below(1)) // its parents turn up, the first unknown so far
	if got := lineage(t, x, "s", w1); got != "[[1 2 3]]" {
		t.Error(got)
	}
	apply(t, x, match(7), stored(w1, "s", 7, 8).below(3))
	if got := lineage(t, x, "s", w1); got != "[[1 2 3 7 8]]" {
		t.Error(got)
	}
	if n, ok, err := x.Node(3); !ok || err != nil || n != (Node{Hash: 3, Parent: 2, HasParent: true, Children: 1}) {
		t.Errorf("%+v", n)
	}
}

func TestEventsThatArePassedOver(t *testing.T) {
	x := New(Config{})
	apply(t, x, stored(w1, "s", 1, 2))
	tier := func(e Event, tier Tier) *Event { e.Tier = tier; return &e }
	group := func(e Event, g Group) *Event { e.Group = g; return &e }
	removed := Event{Op: OpRemoved, Worker: w1, Hashes: []uint64{1}}
	for _, e := range []*Event{
		tier(*stored(w1, "s", 1, 9), TierHost), tier(*stored(w1, "s", 1, 9), TierDisk), tier(*stored(w1, "s", 1, 9), TierOther),
		tier(removed, TierExternal), group(removed, GroupOther), group(*stored(w1, "s", 1, 9), GroupOther),
		stored(w1, "", 1, 9), stored(w1, "s"), {Op: OpRemoved, Worker: w1},
	} {
		if moved, err := x.Apply(e); moved || err != nil {
			t.Errorf("%+v: %v, %v", e, moved, err)
		}
	}
	if st := x.Stats(); st.OtherTier != 4 || st.OtherGroup != 2 || st.NoSession != 1 || st.Moved != 1 || st.Events != 10 || st.Nodes != 2 {
		t.Errorf("%+v", st)
	}
	for _, c := range []struct {
		e    *Event
		want error
	}{
		{&Event{Op: OpStored, Worker: w1, Session: "s", Kind: abi.HashKindLocal, Hashes: []uint64{1}}, ErrHashKind},
		{&Event{Op: OpRemoved, Worker: w1, Kind: abi.HashKindSequence, Hashes: []uint64{1}}, ErrHashKind},
		{&Event{Op: OpStored, Session: "s", Hashes: []uint64{1}}, ErrInvalid},
		{&Event{Op: OpMatched, Worker: w1, Hashes: []uint64{1}}, ErrInvalid},
		{&Event{Worker: w1, Hashes: []uint64{1}}, ErrInvalid},
		{stored(w1, strings.Repeat("x", hint.MaxIdentity+1), 1), ErrInvalid},
	} {
		if moved, err := x.Apply(c.e); moved || !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, %v", c.e, moved, err)
		}
	}
	e := group(*tier(*stored(w1, "s", 3).below(2), TierGPU), GroupFull)
	e.Kind = abi.HashKindEngine
	apply(t, x, e)
	if got := lineage(t, x, "s", w1); got != "[[1 2 3]]" {
		t.Error(got)
	}
}

func TestRanksAndWorkersAreApart(t *testing.T) {
	x := New(Config{})
	rank := func(r uint32) hint.Worker { return hint.Worker{ID: hint.UintWorker(1), Rank: r, HasRank: true} }
	text := hint.Worker{ID: hint.NamedWorker("1")}
	for _, w := range []hint.Worker{w1, rank(0), rank(1), text} {
		apply(t, x, stored(w, "s", 1, 2))
	}
	apply(t, x, &Event{Op: OpCleared, Worker: rank(1), Session: "any"}, &Event{Op: OpRemoved, Worker: rank(0), Hashes: []uint64{2}})
	for w, want := range map[hint.Worker]string{w1: "[[1 2]]", rank(0): "[[1]]", rank(1): "[]", text: "[[1 2]]", w2: "[]"} {
		if got := lineage(t, x, "s", w); got != want {
			t.Errorf("%s: %s, want %s", w, got, want)
		}
	}
	x.RemoveWorker(hint.UintWorker(1))
	if fronts, err := x.Frontiers(nil, "s", ""); err != nil || len(fronts) != 1 || fronts[0].Worker != text || x.Stats().Workers != 1 {
		t.Error(fronts, err)
	}
	x.RemoveWorker(text.ID)
	if _, err := x.Frontiers(nil, "s", ""); err != ErrUnknownSession || x.Stats().Sessions != 0 {
		t.Error(err)
	}
}

func TestTenants(t *testing.T) {
	x := New(Config{})
	e := stored(w1, "s", 1)
	apply(t, x, e)
	see := func(tenant string) error {
		var p Paths
		_, err := x.Frontiers(nil, "s", tenant)
		for _, other := range []error{x.Lineage(&p, Query{Session: "s", Tenant: tenant, Worker: w1}), x.Exclusive(&p, Query{Session: "s", Tenant: tenant, Worker: w1})} {
			if other != err {
				t.Errorf("%v and %v", err, other)
			}
		}
		return err
	}
	if see("") != nil || see("a") != ErrUnknownSession {
		t.Error("a session that nobody owns is seen by a program without tenants only")
	}
	apply(t, x, &Event{Op: OpMatched, Worker: w1, Session: "s", Tenant: "a", Hashes: []uint64{1}}, e)
	if see("a") != nil || see("b") != ErrUnknownSession || see("") != ErrUnknownSession {
		t.Error("a session is its tenant's")
	}
	none := func(session, tenant string) error {
		_, err := x.Apply(&Event{Op: OpMatched, Worker: w1, Session: session, Tenant: tenant})
		return err
	}
	apply(t, x, stored(w1, "u", 2))
	if none("u", "b") != nil || none("u", "a") != ErrOtherTenant || none("nobody", "a") != nil || x.Stats().Sessions != 2 {
		t.Error("a match of nothing binds a session that is known")
	}
	x.RemoveSession("u")
	if _, err := x.Apply(&Event{Op: OpStored, Worker: w1, Session: "s", Tenant: "b", Hashes: []uint64{5}}); err != ErrOtherTenant || x.Stats().Nodes != 2 {
		t.Error(err, x.Stats().Nodes)
	}
}

func TestOff(t *testing.T) {
	var x *Index
	var p Paths
	_, err := x.Apply(stored(w1, "s", 1))
	_, fronts := x.Frontiers(nil, "s", "")
	_, _, node := x.Node(1)
	for _, err := range []error{err, fronts, node, x.Lineage(&p, Query{HasAnchor: true}), x.Exclusive(&p, Query{})} {
		if err != ErrOff {
			t.Error(err)
		}
	}
	if x.Clear(w1) || x.RemoveWorker(w1.ID) || x.RemoveSession("s") {
		t.Error("nothing is there")
	}
	var set Set
	if set.Index("") != nil {
		t.Error("a namespace that nobody made is off")
	}
	a, b := set.Add("a", Config{}), set.Add("b", Config{})
	if a == b || set.Add("a", Config{}) != a || set.Index("a") != a {
		t.Error("a namespace has one index")
	}
	apply(t, a, stored(w1, "s", 1))
	apply(t, b, stored(w1, "s", 1))
	if set.Drop("b"); set.Index("b") != nil {
		t.Error("dropped")
	}
	if set.RemoveWorker(w1.ID); a.Stats().Frontiers != 0 || b.Stats().Frontiers != 1 {
		t.Error("a worker is removed from all indexes of the set")
	}
}

func TestSessionCap(t *testing.T) {
	x := New(Config{MaxSessions: 2, Grace: -1})
	apply(t, x, stored(w1, "a", 1), stored(w1, "b", 2), &Event{Op: OpMatched, Worker: w1, Session: "a", Hashes: []uint64{1}}, stored(w1, "c", 3))
	if lineage(t, x, "a", w1) != "[[1]]" || lineage(t, x, "b", w1) != ErrUnknownSession.Error() || lineage(t, x, "c", w1) != "[[3]]" {
		t.Error("the session that was used longest ago goes, and a match that moves nothing is a use")
	}
	if st := x.Stats(); st.Sessions != 2 || st.EvictedSessions != 1 || st.Nodes != 2 {
		t.Errorf("%+v", st)
	}
}

func TestFrontierCap(t *testing.T) {
	x := New(Config{})
	for h := range uint64(MaxFrontiers + 3) {
		apply(t, x, stored(w1, "s", h))
	}
	fronts, err := x.Frontiers(nil, "s", "")
	if st := x.Stats(); err != nil || len(fronts) != MaxFrontiers || fronts[0].Hash != 3 || st.LostFrontiers != 3 || st.Frontiers != MaxFrontiers {
		t.Errorf("%d frontiers, %v, %+v", len(fronts), err, st)
	}
}

func TestGrace(t *testing.T) {
	now := int64(0)
	x := New(Config{Grace: time.Second, Now: func() int64 { return now }})
	apply(t, x, stored(w1, "s", 1, 2, 3), &Event{Op: OpRemoved, Worker: w1, Hashes: []uint64{2}})
	// Block 3 is still there although nobody has it, so what follows it has a parent.
	apply(t, x, stored(w1, "s", 4).below(3))
	if got := lineage(t, x, "s", w1); got != "[[1 2 3 4]]" {
		t.Error(got)
	}
	apply(t, x, &Event{Op: OpRemoved, Worker: w1, Hashes: []uint64{2}})
	if now += int64(time.Second) - 1; x.Clear(w2) || x.Stats().Nodes != 4 {
		t.Error("within the time of grace nothing goes")
	}
	if now++; x.Clear(w2) || x.Stats().Nodes != 1 {
		t.Errorf("%d nodes", x.Stats().Nodes)
	}
	if _, err := x.Apply(stored(w1, "s", 5).below(3)); !errors.Is(err, ErrUnknownParent) {
		t.Error(err)
	}
}
