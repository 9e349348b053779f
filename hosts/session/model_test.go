package session

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
	"pgregory.net/rapid"
)

// model is the index as its rules are written down, with maps and no thought for cost.
type model struct {
	prune    bool // at once, else never
	max      int  // sessions
	parent   map[uint64]uint64
	known    map[uint64]bool
	fronts   map[string]map[hint.Worker]map[uint64]bool
	use      []string // sessions, the least recently used first
	children map[uint64]int
}

func newModel(prune bool, sessions int) *model {
	return &model{prune, sessions, map[uint64]uint64{}, map[uint64]bool{}, map[string]map[hint.Worker]map[uint64]bool{}, nil, map[uint64]int{}}
}

// path is root first.
func (m *model) path(h uint64) []uint64 {
	out := []uint64{h}
	for {
		p, ok := m.parent[h]
		if !ok {
			slices.Reverse(out)
			return out
		}
		out, h = append(out, p), p
	}
}

func (m *model) validate(parent uint64, hasParent bool, hashes []uint64) error {
	above := map[uint64]bool{}
	unknown := hasParent && !m.known[parent]
	if hasParent {
		above[parent] = true
		if m.known[parent] {
			for _, h := range m.path(parent) {
				above[h] = true
			}
		}
	}
	expected, has := parent, hasParent
	for _, h := range hashes {
		if above[h] {
			return &ChainError{ErrCyclicParent, h}
		}
		p, rooted := m.parent[h]
		if m.known[h] && rooted && (!has || p != expected) {
			return &ChainError{ErrConflictingParent, h}
		}
		if m.known[h] && !rooted {
			unknown = false
		}
		above[h] = true
		expected, has = h, true
	}
	if unknown {
		return &ChainError{ErrUnknownParent, parent}
	}
	return nil
}

func (m *model) stored(sid string, w hint.Worker, parent uint64, hasParent bool, hashes []uint64) (bool, error) {
	if err := m.validate(parent, hasParent, hashes); err != nil {
		return false, err
	}
	if hasParent {
		m.known[parent] = true
	}
	for _, h := range hashes {
		if _, rooted := m.parent[h]; hasParent && !rooted {
			m.parent[h] = parent
			m.children[parent]++
		}
		m.known[h] = true
		parent, hasParent = h, true
	}
	moved := m.advance(sid, w, hashes[len(hashes)-1])
	m.touch(sid)
	m.clean()
	return moved, nil
}

func (m *model) advance(sid string, w hint.Worker, h uint64) bool {
	if m.fronts[sid] == nil {
		m.fronts[sid] = map[hint.Worker]map[uint64]bool{}
	}
	if m.fronts[sid][w] == nil {
		m.fronts[sid][w] = map[uint64]bool{}
	}
	for f := range m.fronts[sid][w] {
		if slices.Contains(m.path(f), h) {
			return false
		}
	}
	for _, a := range m.path(h) {
		delete(m.fronts[sid][w], a)
	}
	m.fronts[sid][w][h] = true
	return true
}

func (m *model) touch(sid string) {
	m.use = slices.DeleteFunc(m.use, func(s string) bool { return s == sid })
	m.use = append(m.use, sid)
	for len(m.use) > m.max {
		delete(m.fronts, m.use[0])
		m.use = m.use[1:]
	}
}

func (m *model) removed(w hint.Worker, hashes []uint64) (moved bool) {
	for _, sid := range slices.Collect(maps.Keys(m.fronts)) {
		for _, f := range slices.Collect(maps.Keys(m.fronts[sid][w])) {
			path := m.path(f)
			i := slices.IndexFunc(path, func(h uint64) bool { return slices.Contains(hashes, h) })
			if i < 0 {
				continue
			}
			moved = true
			delete(m.fronts[sid][w], f)
			if i > 0 {
				m.advance(sid, w, path[i-1])
			}
		}
		m.drop(sid)
	}
	m.clean()
	return moved
}

func (m *model) drop(sid string) {
	for _, set := range m.fronts[sid] {
		if len(set) > 0 {
			return
		}
	}
	delete(m.fronts, sid)
	m.use = slices.DeleteFunc(m.use, func(s string) bool { return s == sid })
}

func (m *model) clear(match func(hint.Worker) bool) (moved bool) {
	for _, sid := range slices.Collect(maps.Keys(m.fronts)) {
		for w, set := range m.fronts[sid] {
			if match(w) {
				moved = moved || len(set) > 0
				delete(m.fronts[sid], w)
			}
		}
		m.drop(sid)
	}
	m.clean()
	return moved
}

// refs are the frontiers on each block.
func (m *model) refs() map[uint64]int {
	out := map[uint64]int{}
	for _, ws := range m.fronts {
		for _, set := range ws {
			for h := range set {
				out[h]++
			}
		}
	}
	return out
}

func (m *model) clean() {
	if !m.prune {
		return
	}
	refs := m.refs()
	for again := true; again; {
		again = false
		for h := range m.known {
			if refs[h] == 0 && m.children[h] == 0 {
				if p, ok := m.parent[h]; ok {
					m.children[p]--
				}
				delete(m.parent, h)
				delete(m.known, h)
				again = true
			}
		}
	}
}

func (m *model) lineage(sid string, w hint.Worker, anchor uint64, has bool) ([][]uint64, error) {
	if has && !m.known[anchor] {
		return nil, ErrUnknownAnchor
	}
	if m.fronts[sid] == nil {
		return nil, ErrUnknownSession
	}
	var out [][]uint64
	for f := range m.fronts[sid][w] {
		path := m.path(f)
		if has {
			i := slices.Index(path, anchor)
			if i < 0 {
				continue
			}
			path = path[i:]
		}
		out = append(out, path)
	}
	return out, nil
}

func (m *model) exclusive(sid string, w hint.Worker) ([]uint64, error) {
	if m.fronts[sid] == nil {
		return nil, ErrUnknownSession
	}
	held := map[uint64]bool{}
	for s, ws := range m.fronts {
		if s != sid {
			for f := range ws[w] {
				for _, h := range m.path(f) {
					held[h] = true
				}
			}
		}
	}
	own := map[uint64]bool{}
	for f := range m.fronts[sid][w] {
		for _, h := range m.path(f) {
			if !held[h] {
				own[h] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(own)), nil
}

var modelWorkers = []hint.Worker{
	{ID: hint.UintWorker(1)}, {ID: hint.UintWorker(1), HasRank: true}, {ID: hint.UintWorker(1), Rank: 1, HasRank: true},
	{ID: hint.NamedWorker("1")}, {ID: hint.IntWorker(-1), HasRank: true},
}

var modelSessions = []string{"a", "b", "c", "d"}

func TestAgainstModel(t *testing.T) {
	for _, prune := range []bool{false, true} {
		t.Run(fmt.Sprintf("prune=%v", prune), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { againstModel(t, prune) })
		})
	}
}

func againstModel(t *rapid.T, prune bool) {
	limit := rapid.IntRange(1, 4).Draw(t, "sessions")
	grace := time.Duration(math.MaxInt64)
	if prune {
		grace = -1
	}
	x, m := New(Config{MaxSessions: limit, Grace: grace}), newModel(prune, limit)
	hashes := rapid.Uint64Range(0, 14)
	worker := rapid.SampledFrom(modelWorkers)
	name := rapid.SampledFrom(modelSessions)
	same := func(moved, want bool, err, wantErr error) {
		if moved != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%v, %v; the model says %v, %v", moved, err, want, wantErr)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"match": func(t *rapid.T) {
			sid, w, h := name.Draw(t, "session"), worker.Draw(t, "worker"), hashes.Draw(t, "hash")
			moved, err := x.Apply(&Event{Op: OpMatched, Worker: w, Session: sid, Hashes: []uint64{99, h}})
			m.known[h] = true
			want := m.advance(sid, w, h)
			m.touch(sid)
			m.clean()
			same(moved, want, err, nil)
		},
		"stored": func(t *rapid.T) {
			sid, w := name.Draw(t, "session"), worker.Draw(t, "worker")
			chain := rapid.SliceOfN(hashes, 1, 5).Draw(t, "chain")
			parent, has := hashes.Draw(t, "parent"), rapid.Bool().Draw(t, "has")
			moved, err := x.Apply(&Event{Op: OpStored, Worker: w, Session: sid, Hashes: chain, Parent: parent, HasParent: has, Tier: TierGPU})
			want, wantErr := m.stored(sid, w, parent, has, chain)
			same(moved, want, err, wantErr)
		},
		"grow": func(t *rapid.T) { // chains that fit what is there
			sid, w := name.Draw(t, "session"), worker.Draw(t, "worker")
			var chain []uint64
			first := rapid.Uint64Range(0, 3).Draw(t, "tree")
			for i, n := uint64(0), rapid.Uint64Range(1, 6).Draw(t, "blocks"); i < n; i++ {
				chain = append(chain, first*100+1000+i*10+i*rapid.Uint64Range(0, 1).Draw(t, "turn"))
			}
			skip := rapid.IntRange(0, len(chain)-1).Draw(t, "skip")
			e := Event{Op: OpStored, Worker: w, Session: sid, Hashes: chain[skip:]}
			if skip > 0 {
				e.Parent, e.HasParent = chain[skip-1], true
			}
			moved, err := x.Apply(&e)
			want, wantErr := m.stored(sid, w, e.Parent, e.HasParent, e.Hashes)
			same(moved, want, err, wantErr)
		},
		"removed": func(t *rapid.T) {
			w := worker.Draw(t, "worker")
			gone := rapid.SliceOfN(rapid.OneOf(hashes, rapid.SampledFrom(append(slices.Sorted(maps.Keys(m.known)), 77))), 1, 3).Draw(t, "hashes")
			moved, err := x.Apply(&Event{Op: OpRemoved, Worker: w, Hashes: gone})
			same(moved, m.removed(w, gone), err, nil)
		},
		"cleared": func(t *rapid.T) {
			w := worker.Draw(t, "worker")
			moved, err := x.Apply(&Event{Op: OpCleared, Worker: w})
			same(moved, m.clear(func(o hint.Worker) bool { return o == w }), err, nil)
		},
		"worker gone": func(t *rapid.T) {
			id := worker.Draw(t, "worker").ID
			same(x.RemoveWorker(id), m.clear(func(o hint.Worker) bool { return o.ID == id }), nil, nil)
		},
		"session gone": func(t *rapid.T) {
			sid := name.Draw(t, "session")
			want := m.fronts[sid] != nil
			delete(m.fronts, sid)
			m.drop(sid)
			m.clean()
			same(x.RemoveSession(sid), want, nil, nil)
		},
		"": func(t *rapid.T) { compare(t, x, m) },
	})
}

// compare holds every answer of the index against the model's.
func compare(t rapid.TB, x *Index, m *model) {
	var paths Paths
	st := x.Stats()
	if st.Sessions != uint64(len(m.fronts)) || st.Nodes != uint64(len(m.known)) {
		t.Fatalf("%d sessions and %d nodes, the model has %d and %d", st.Sessions, st.Nodes, len(m.fronts), len(m.known))
	}
	refs := m.refs()
	for h := range uint64(1600) {
		n, ok, err := x.Node(h)
		p, rooted := m.parent[h]
		if err != nil || ok != m.known[h] || ok && n != (Node{h, p, rooted, refs[h], m.children[h]}) {
			t.Fatalf("node %d: %+v, %v, %v; the model says %v: parent %d, %d frontiers, %d children", h, n, ok, err, m.known[h], p, refs[h], m.children[h])
		}
	}
	for _, sid := range modelSessions {
		fronts, err := x.Frontiers(nil, sid, "")
		want := 0
		for w, set := range m.fronts[sid] {
			for h := range set {
				want++
				if !slices.Contains(fronts, Frontier{w, h, len(m.path(h))}) {
					t.Fatalf("frontiers of %s: %v, no %v at %d", sid, fronts, w, h)
				}
			}
		}
		if len(fronts) != want || (err == nil) != (want > 0) {
			t.Fatalf("frontiers of %s: %v, %v", sid, fronts, err)
		}
		for _, w := range modelWorkers {
			for _, anchor := range []uint64{math.MaxUint64, 0, 1, 2, 3, 5, 8, 1010, 1011, 1220} {
				q := Query{Session: sid, Worker: w, Anchor: anchor, HasAnchor: anchor != math.MaxUint64}
				wantPaths, wantErr := m.lineage(sid, w, anchor, q.HasAnchor)
				err := x.Lineage(&paths, q)
				if got := collect(t, &paths); err != wantErr || !slices.EqualFunc(got, sorted(wantPaths), slices.Equal) {
					t.Fatalf("lineage %+v: %d, %v; the model says %d, %v", q, got, err, wantPaths, wantErr)
				}
			}
			want, wantErr := m.exclusive(sid, w)
			err := x.Exclusive(&paths, Query{Session: sid, Worker: w})
			got := slices.Sorted(slices.Values(slices.Concat(collect(t, &paths)...)))
			if err != wantErr || !slices.Equal(got, want) {
				t.Fatalf("exclusive of %s on %v: %d, %v; the model says %d, %v", sid, w, got, err, want, wantErr)
			}
		}
	}
}

func collect(t rapid.TB, p *Paths) [][]uint64 {
	var out [][]uint64
	blocks := 0
	for i := range p.Len() {
		path, ok := p.Append(nil, i)
		if !ok || len(path) != p.Path(i) {
			t.Fatalf("path %d: %d, %v", i, path, ok)
		}
		out = append(out, path)
		blocks += len(path)
	}
	if blocks != p.Blocks() {
		t.Fatalf("%d blocks, and %d are told", blocks, p.Blocks())
	}
	return sorted(out)
}

func sorted(paths [][]uint64) [][]uint64 {
	slices.SortFunc(paths, func(a, b []uint64) int { return cmp.Or(slices.Compare(a, b), 0) })
	return paths
}
