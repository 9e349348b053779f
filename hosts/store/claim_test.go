package store

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// survivors puts new blocks into a full store until none of the old ones is left, and
// returns these in the order in which they went.
func survivors(t *testing.T, s *Store, old ...uint64) (order []uint64) {
	t.Helper()
	for next := uint64(1000); len(order) < len(old); next++ {
		token, _, err := s.Reserve("n", next, 100)
		must(t, err)
		must(t, s.Commit(token))
		if _, err := s.Retain("n", []uint64{next}, Claim{Owner: 9, Priority: MaxPriority}, nil); err != nil {
			t.Fatal(err)
		}
		for _, h := range old {
			if !slices.Contains(order, h) && !there(s, "n", h)[0] {
				order = append(order, h)
			}
		}
	}
	return order
}

func claimed(t testing.TB, s *Store, hash, owner uint64, priority int, ttl time.Duration) {
	t.Helper()
	out := make([]Outcome, 1)
	_, err := s.Retain("n", []uint64{hash}, Claim{owner, priority, ttl}, out)
	must(t, err)
	if out[0] != Applied && out[0] != Deferred {
		t.Fatal(out[0])
	}
}

func TestEvictionOrder(t *testing.T) {
	s := small(t, 5)
	for h := range uint64(5) {
		put(t, s, "n", h)
	}
	claimed(t, s, 0, 1, 50, 0)
	claimed(t, s, 1, 1, 10, 0)
	must(t, s.Release(acquire(t, s, "n", 2))) // used last
	if got := survivors(t, s, 0, 1, 2, 3, 4); !slices.Equal(got, []uint64{3, 4, 2, 1, 0}) {
		t.Errorf("went in the order %v", got)
	}
}

// One owner's priority is never combined with another's time.
func TestClaimsAreJudgedWhole(t *testing.T) {
	c := &ticking{}
	s := small(t, 3, with(c))
	for h := range uint64(3) {
		put(t, s, "n", h)
	}
	claimed(t, s, 0, 1, 90, 10) // high, and short
	claimed(t, s, 0, 2, 20, 1000)
	claimed(t, s, 1, 1, 50, 0)
	claimed(t, s, 2, 1, 10, 0)
	prio := func(want int) {
		t.Helper()
		s.Sweep()
		if got := s.has("n", []uint64{0})[0]; got != want {
			t.Errorf("priority %d, want %d", got, want)
		}
	}
	prio(90)
	c.ns.Store(9)
	prio(90)
	must(t, s.Release(acquire(t, s, "n", 0))) // use renews nothing
	c.ns.Store(10)
	prio(20)
	if got := survivors(t, s, 0, 1, 2); !slices.Equal(got, []uint64{2, 0, 1}) {
		t.Errorf("went in the order %v", got)
	}
}

// A claim whose time is over does not count, even when nobody has swept.
func TestAnExpiredClaimDoesNotProtect(t *testing.T) {
	c := &ticking{}
	s := small(t, 2, with(c))
	put(t, s, "n", 0)
	put(t, s, "n", 1)
	claimed(t, s, 0, 1, 100, 10)
	c.ns.Store(10)
	if got := survivors(t, s, 0, 1); !slices.Equal(got, []uint64{0, 1}) {
		t.Errorf("went in the order %v", got)
	}
	if st := s.Stats(); st.Claims != 2 {
		t.Errorf("%d claims", st.Claims)
	}
}

func TestTimeBeginsWithThePublication(t *testing.T) {
	c := &ticking{}
	s := small(t, 2, with(c))
	token, _, err := s.Reserve("n", 1, 100)
	must(t, err)
	claimed(t, s, 1, 1, 50, 10)
	c.ns.Store(100)
	s.Sweep()
	must(t, s.Commit(token))
	c.ns.Store(109)
	s.Sweep()
	if got := s.has("n", []uint64{1})[1]; got != 50 {
		t.Errorf("priority %d", got)
	}
	c.ns.Store(110)
	s.Sweep()
	if got := s.has("n", []uint64{1})[1]; got != 0 {
		t.Errorf("priority %d after its time", got)
	}
	token, _, err = s.Reserve("n", 2, 100)
	must(t, err)
	claimed(t, s, 2, 1, 50, 10)
	must(t, s.Abort(token))
	put(t, s, "n", 2)
	if got := s.has("n", []uint64{2})[2]; got != 0 {
		t.Errorf("a claim for a block that was given up holds for another: %d", got)
	}
}

func TestAClockThatGoesBackStandsStill(t *testing.T) {
	c := &ticking{}
	c.ns.Store(1000)
	s := small(t, 1, with(c))
	put(t, s, "n", 1)
	claimed(t, s, 1, 1, 50, 10)
	c.ns.Store(math.MinInt64)
	s.Sweep()
	if got := s.has("n", []uint64{1})[1]; got != 50 {
		t.Errorf("priority %d", got)
	}
	c.ns.Store(1009)
	s.Sweep()
	if got := s.has("n", []uint64{1})[1]; got != 50 {
		t.Errorf("priority %d", got)
	}
	c.ns.Store(math.MaxInt64)
	claimed(t, s, 1, 2, 60, MaxTTL) // the sum would overflow
	if got := s.has("n", []uint64{1})[1]; got != 60 {
		t.Errorf("priority %d", got)
	}
}

func TestClaimsThatAreRefused(t *testing.T) {
	s := small(t, 1)
	put(t, s, "n", 1)
	for _, c := range []Claim{{Priority: -1}, {Priority: 101}, {Priority: 1, TTL: -1}, {Priority: 1, TTL: MaxTTL + 1}} {
		_, err := s.Retain("n", []uint64{1}, c, nil)
		wants(t, err, ErrClaim)
	}
	for _, seconds := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 2592000.5, 1e300} {
		if _, err := TTLSeconds(seconds); !errors.Is(err, ErrClaim) {
			t.Errorf("%v seconds: %v", seconds, err)
		}
	}
	for seconds, want := range map[float64]time.Duration{0: 1, 1e-300: 1, 0.5: time.Second / 2, 2592000: MaxTTL} {
		if got, err := TTLSeconds(seconds); got != want || err != nil {
			t.Errorf("%v seconds: %v, %v", seconds, got, err)
		}
	}
	out := []Outcome{9, 9}
	if n, err := s.Retain("m", []uint64{1, 2}, Claim{Priority: 1}, out); n != 0 || err != nil || out[0] != Missing || out[1] != Missing {
		t.Errorf("another namespace: %d %v %v", n, err, out)
	}
}

// Of more claims than a block keeps, those stay that protect it most, now and later.
func TestMoreClaimsThanABlockKeeps(t *testing.T) {
	c := &ticking{}
	s := small(t, 1, with(c))
	put(t, s, "n", 1)
	for i := range uint64(MaxClaims) {
		claimed(t, s, 1, i, 10+int(i), time.Duration(1000-i)) // higher, and shorter: none covers another
	}
	out := make([]Outcome, 1)
	if _, err := s.Retain("n", []uint64{1}, Claim{100, 5, 10}, out); err != nil || out[0] != Clipped {
		t.Errorf("%v %v", out, err)
	}
	claimed(t, s, 1, 101, 99, 0) // covers all others
	claimed(t, s, 1, 102, 98, 0) // for which one that is covered goes
	if cs := s.slots[0].claims; cs.n != MaxClaims || cs.of(101) < 0 || cs.of(102) < 0 {
		t.Errorf("%+v", cs)
	}
	if st := s.Stats(); st.Claims != MaxClaims {
		t.Errorf("%d claims", st.Claims)
	}
	s.Evict("n", []uint64{1}, nil)
	put(t, s, "n", 1)
	if st := s.Stats(); st.Claims != 0 || s.has("n", []uint64{1})[1] != 0 {
		t.Error("claims outlive their block")
	}
}

func TestRuns(t *testing.T) {
	for _, v := range []struct {
		what       string
		directives []Directive
		size, n    int
		want       []Run
	}{
		{"nothing", nil, 16, 4, nil},
		{"all", []Directive{{0, -1, 5, 0}}, 16, 4, []Run{{0, 4, 5, 0}}},
		{"a part of a block is the block", []Directive{{15, 17, 5, 7}}, 16, 4, []Run{{0, 2, 5, 7}}},
		{"borders", []Directive{{16, 32, 5, 7}}, 16, 4, []Run{{1, 2, 5, 7}}},
		{"falling, with a shared block", []Directive{{0, 24, 9, 1}, {24, 64, 3, 2}}, 16, 4, []Run{{0, 2, 9, 1}, {2, 4, 3, 2}}},
		{"of equals the longer", []Directive{{0, 32, 5, 1}, {16, 48, 5, 0}}, 16, 4, []Run{{0, 1, 5, 1}, {1, 3, 5, 0}}},
		{"past the end", []Directive{{1000, -1, 5, 0}, {48, 1 << 62, 5, 0}}, 16, 4, []Run{{3, 4, 5, 0}}},
		{"joined", []Directive{{0, 16, 5, 7}, {16, 32, 5, 7}}, 16, 4, []Run{{0, 2, 5, 7}}},
		{"a hole", []Directive{{0, 16, 5, 7}, {32, 48, 5, 7}}, 16, 4, []Run{{0, 1, 5, 7}, {2, 3, 5, 7}}},
		{"none of them", []Directive{{-1, 5, 5, 0}, {5, 5, 5, 0}, {9, 3, 5, 0}}, 16, 4, nil},
		{"no block size", []Directive{{0, -1, 5, 0}}, 0, 4, nil},
	} {
		if got := Runs(nil, v.directives, v.size, v.n); !slices.Equal(got, v.want) {
			t.Errorf("%s: %v, want %v", v.what, got, v.want)
		}
	}
}

// Runs is the same as asking each block.
func TestRunsByBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, blocks := rapid.IntRange(1, 9).Draw(t, "size"), rapid.IntRange(0, 12).Draw(t, "blocks")
		var ds []Directive
		for range rapid.IntRange(0, 5).Draw(t, "directives") {
			ds = append(ds, Directive{rapid.Int64Range(-2, 100).Draw(t, "start"), rapid.Int64Range(-1, 120).Draw(t, "end"),
				rapid.IntRange(0, 3).Draw(t, "priority"), time.Duration(rapid.IntRange(0, 3).Draw(t, "ttl"))})
		}
		got := make([]*Run, blocks)
		end := 0
		for _, r := range Runs(nil, ds, size, blocks) {
			if r.From < end || r.To <= r.From || r.To > blocks {
				t.Fatalf("%+v", r)
			}
			end = r.To
			for i := r.From; i < r.To; i++ {
				got[i] = &r
			}
		}
		for i := range blocks {
			var best *Directive
			for _, d := range ds {
				valid := d.Start >= 0 && (d.End < 0 || d.End > d.Start)
				if from, to := int64(i*size), int64((i+1)*size); !valid || d.Start >= to || d.End >= 0 && d.End <= from {
					continue
				}
				if best == nil || d.over(best) {
					best = &d
				}
			}
			switch {
			case (best == nil) != (got[i] == nil):
				t.Fatalf("block %d: %v, want %v", i, got[i], best)
			case best != nil && (got[i].Priority != best.Priority || got[i].TTL != best.TTL):
				t.Fatalf("block %d: %v, want %v", i, got[i], best)
			}
		}
	})
}
