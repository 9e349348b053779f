package session

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
)

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestBytesPerNode measures what a node costs with everything that it needs, hash table
// and spare room included, at every stage of growth: by what the index says of itself and,
// at the end, by the heap, which has the sessions too.
func TestBytesPerNode(t *testing.T) {
	for _, agents := range []bool{true, false} {
		nodes, sessions := 300_000, 2000
		if testing.Short() {
			nodes = 60_000
		}
		trace := newTrace(7, agents, sessions)
		x := New(Config{MaxSessions: 1 << 20, Grace: time.Hour})
		empty, worst := heap(), 0.0
		var err error
		for st := x.Stats(); st.Nodes < uint64(nodes) && err == nil; st = x.Stats() {
			trace.turn(func(e Event) {
				if _, applied := x.Apply(&e); applied != nil {
					err = applied
				}
			})
			if st.Nodes > 20_000 {
				worst = max(worst, float64(st.Bytes)/float64(st.Nodes))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		made := trace.made
		trace = nil
		n := float64(x.Stats().Nodes)
		per := float64(heap()-empty) / n
		t.Logf("agents %v: %.0f nodes of %d sessions: at most %.1f bytes a node, %.1f of the heap with sessions", agents, n, made, worst, per)
		if worst > BytesPerNode {
			t.Errorf("a node takes %.1f bytes, want at most %d", worst, BytesPerNode)
		}
		// A session with its frontier is about 450 bytes.
		if with := BytesPerNode + 450*float64(made)/n; per > with {
			t.Errorf("%.1f bytes a node with sessions, want at most %.1f", per, with)
		}
		runtime.KeepAlive(x)
	}
}

// TestNodeCap: the index stays within its bounds of nodes and memory, whatever comes, and
// takes what is new by letting go of what was used longest ago.
func TestNodeCap(t *testing.T) {
	const limit = 8_000
	for _, agents := range []bool{true, false} {
		x := New(Config{MaxNodes: limit, Grace: time.Hour})
		trace := newTrace(3, agents, 50)
		trace.removed = true
		refused := 0
		for range 2500 {
			trace.turn(func(e Event) {
				_, err := x.Apply(&e)
				switch st := x.Stats(); {
				case st.Nodes > limit || int(st.Bytes) > limit*BytesPerNode*5/4+emptyBytes:
					t.Fatalf("%+v", st)
				case errors.Is(err, ErrFull) || errors.Is(err, ErrUnknownParent):
					refused++ // of a session that was evicted
				case err != nil:
					t.Fatal(err)
				}
			})
		}
		st := x.Stats()
		t.Logf("agents %v: %+v, %d refused", agents, st, refused)
		if st.EvictedSessions == 0 || st.Full > 40 {
			t.Errorf("%d sessions evicted, %d chains refused for room", st.EvictedSessions, st.Full)
		}
	}
	x := New(Config{MaxNodes: 100})
	long := stored(w1, "s")
	for h := range uint64(101) {
		long.Hashes = append(long.Hashes, h)
	}
	if _, err := x.Apply(long); err != ErrFull || x.Stats().Nodes != 0 || x.Stats().Sessions != 0 {
		t.Error(err, x.Stats())
	}
	long.Hashes = long.Hashes[:100]
	apply(t, x, long)
	apply(t, x, stored(w1, "s", 5).below(4)) // nothing is new, so no room is needed
	if _, err := x.Apply(stored(w1, "s", 1000).below(99)); err != ErrFull {
		t.Error("the only session is not evicted for its own sake: ", err)
	}
	apply(t, x, stored(w1, "t", 1000)) // but for another's
	if got := lineage(t, x, "t", w1); got != "[[1000]]" {
		t.Error(got)
	}
}

// TestPruningIsBounded: a large session goes over many updates, a little with each.
func TestPruningIsBounded(t *testing.T) {
	x := New(Config{Grace: -1})
	trace := newTrace(1, true, 1)
	apply(t, x, stored(w1, "large", trace.fresh(nil, 10_000)...))
	x.RemoveSession("large")
	for before := x.Stats().Nodes; before > 0; {
		x.Clear(w2)
		after := x.Stats().Nodes
		if after >= before || before-after > pruneSteps {
			t.Fatalf("from %d to %d nodes in one update", before, after)
		}
		before = after
	}
	if st := x.Stats(); int(st.Bytes) > 4*emptyBytes || x.bytes != 0 {
		t.Errorf("%d bytes are left", st.Bytes)
	}
}

// TestCutsAndBranches: runs that were cut are never written to again, and deep trees of
// short runs are walked as well.
func TestCutsAndBranches(t *testing.T) {
	x := New(Config{Grace: -1})
	x.steps = 1000
	apply(t, x, stored(w1, "s", 1, 2, 3, 4))
	apply(t, x, &Event{Op: OpRemoved, Worker: w1, Hashes: []uint64{3}}, stored(w1, "s", 5, 6).below(2))
	if got := lineage(t, x, "s", w1); got != "[[1 2 5 6]]" || x.Stats().Nodes != 4 {
		t.Error(got)
	}
	const deep, chains = 300, 4
	grow := func(c uint64) (leaf uint64) { // from the leaf up, so that each run has one block
		leaf = c * 100_000
		apply(t, x, &Event{Op: OpMatched, Worker: w2, Session: "d", Hashes: []uint64{leaf}})
		for h := leaf; h < leaf+deep-1; h++ {
			apply(t, x, stored(w2, "d", h).below(h+1))
		}
		return leaf
	}
	last := grow(1)
	fronts, err := x.Frontiers(nil, "d", "")
	if err != nil || len(fronts) != 1 || fronts[0].Depth != deep || fronts[0].Hash != last {
		t.Error(fronts, err)
	}
	// Past what a query may walk through it says so, or leaves blocks out.
	for c := range uint64(chains - 1) {
		grow(c + 2)
	}
	var p Paths
	if _, err := x.Frontiers(nil, "d", ""); err != ErrTooDeep || x.Lineage(&p, Query{Session: "d", Worker: w2}) != ErrTooDeep || p.Len() != 0 {
		t.Error(err)
	}
	if err := x.Exclusive(&p, Query{Session: "d", Worker: w2}); err != nil || p.Blocks() != 256 {
		t.Error("blocks are left out: ", err, p.Blocks())
	}
	x.Clear(w2)
	apply(t, x, stored(w2, "d", last))
	last = grow(9)
	apply(t, x, &Event{Op: OpRemoved, Worker: w2, Hashes: []uint64{last + deep - 10}})
	if fronts, _ = x.Frontiers(nil, "d", ""); len(fronts) != 2 || fronts[1].Depth != 9 {
		t.Error(fronts)
	}
	for i := range 40 { // many frontiers: what hangs below is walked instead
		w := hint.Worker{ID: hint.UintWorker(3), Rank: uint32(i), HasRank: true}
		w.Rank = 0
		apply(t, x, stored(w, string(rune('A'+i)), uint64(20+i)).below(2))
	}
	apply(t, x, &Event{Op: OpRemoved, Worker: hint.Worker{ID: hint.UintWorker(3), HasRank: true}, Hashes: []uint64{2, 25}})
	if got := lineage(t, x, "A", hint.Worker{ID: hint.UintWorker(3), HasRank: true}); got != "[[1]]" {
		t.Error(got)
	}
	if got := lineage(t, x, "s", w1); got != "[[1 2 5 6]]" {
		t.Error("another worker's blocks are its own: ", got)
	}
}

// TestLongNames: a name that no session can have is not looked for, since a guest pays no
// fuel for its length.
func TestLongNames(t *testing.T) {
	var all sessions
	all.init()
	for n, found := range map[int]bool{hint.MaxIdentity: true, hint.MaxIdentity + 1: false} {
		s := &session{id: strings.Repeat("s", n)}
		all.put(s)
		if (all.get(s.id) == s) != found {
			t.Errorf("%d bytes: looked for: %v", n, !found)
		}
	}
}
