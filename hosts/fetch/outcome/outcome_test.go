package outcome

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func request(n int) hint.Identity {
	return hint.Identity{Engine: "vllm", RequestID: fmt.Sprint("r", n), Leg: abi.LegDecode}
}

func sum(s Stats) uint64 {
	return s.Open + s.Completed + s.Partial + s.Failed + s.Superseded + s.Discarded + s.Expired
}

func one(t *testing.T, l *Ledger, id hint.Identity) Outcome {
	t.Helper()
	out := l.Query(Filter{Identity: &id}, 10)
	if len(out) == 0 {
		t.Fatal("the hint is not known")
	}
	return out[0]
}

func TestEnds(t *testing.T) {
	clock := int64(1000)
	l := NewLedger(Config{Size: 100, TTL: time.Second, Now: func() int64 { return clock }})
	steps := []struct {
		name   string
		do     func(id hint.Identity)
		state  State
		reason abi.Reason
		n      uint32
	}{
		{"nothing", func(hint.Identity) {}, Open, abi.ReasonNone, 0},
		{"some", func(id hint.Identity) { l.Fetched(id, 3, 30) }, Open, abi.ReasonNone, 3},
		{"all", func(id hint.Identity) { l.Fetched(id, 3, 30); l.Fetched(id, 2, 20) }, Completed, abi.ReasonNone, 5},
		{"more than all", func(id hint.Identity) { l.Fetched(id, 9, 90); l.Fetched(id, 9, 90) }, Completed, abi.ReasonNone, 5},
		{"here", func(id hint.Identity) { l.Complete(id) }, Completed, abi.ReasonNone, 0},
		{"some, then no more", func(id hint.Identity) { l.Fetched(id, 3, 30); l.Fail(id, abi.ReasonUnavailable) }, Partial, abi.ReasonUnavailable, 3},
		{"none", func(id hint.Identity) { l.Fail(id, abi.ReasonUnavailable) }, Failed, abi.ReasonUnavailable, 0},
		{"the end of the request", func(id hint.Identity) { l.Discard(id); l.Fail(id, abi.ReasonUnavailable) }, Discarded, abi.ReasonNone, 0},
		{"time", func(id hint.Identity) { clock += int64(time.Second) }, Expired, abi.ReasonNone, 0},
	}
	for i, s := range steps {
		id := request(i)
		l.Accept(id, []byte("m"), 7, 5)
		s.do(id)
		o := one(t, l, id)
		if o.State != s.state || o.Reason != s.reason || o.Fetched != s.n || o.Identity != id || o.MessageID != "m" || o.Index != 7 || o.Blocks != 5 {
			t.Errorf("%s: %+v", s.name, o)
		}
		if (o.Ended == 0) != (o.State == Open) {
			t.Errorf("%s: ended at %d", s.name, o.Ended)
		}
	}
	id := request(0)
	l.Accept(id, nil, 0, 5)
	l.Fail(id, 1000) // a code that this version does not know
	if st := l.Stats(); st.FailedBy != [NumReasons]uint64{abi.ReasonNone: 1, abi.ReasonUnavailable: 1} || st.PartialBy != [NumReasons]uint64{abi.ReasonUnavailable: 1} {
		t.Errorf("by reason: %+v", st)
	}
	l.Accept(id, []byte("first"), 0, 5)
	l.Accept(id, []byte("second"), 0, 5)
	l.Complete(id)
	if out := l.Query(Filter{Identity: &id}, 2); out[0].State != Completed || out[1].State != Superseded || out[1].MessageID != "first" {
		t.Errorf("%+v", out)
	}
	if out := l.Query(Filter{Identity: &id, MessageID: "first"}, 9); len(out) != 1 {
		t.Errorf("by message: %+v", out)
	}
	l.Accept(hint.Identity{}, nil, 0, 1)
	if o := one(t, l, hint.Identity{}); o.State != Discarded {
		t.Errorf("without a request id: %+v", o)
	}
}

// TestOverrun: a place that is needed ends the hint that has it.
func TestOverrun(t *testing.T) {
	l := NewLedger(Config{Size: 4})
	for i := range 10 {
		l.Accept(request(i), nil, 0, 1)
	}
	st := l.Stats()
	if st.Open != 4 || st.Expired != 6 || st.Overrun != 6 || sum(st) != st.Accepted {
		t.Errorf("%+v", st)
	}
	if len(l.newest) != 4 {
		t.Errorf("the index has %d requests", len(l.newest))
	}
	if out := l.Query(Filter{}, 100); len(out) != 4 || out[0].Identity != request(9) || out[3].Identity != request(6) {
		t.Errorf("%+v", out)
	}
}

func TestSubscription(t *testing.T) {
	l := NewLedger(Config{})
	id := request(1)
	all, slow, mine := l.Subscribe(Filter{}, 100), l.Subscribe(Filter{}, 2), l.Subscribe(Filter{Identity: &id}, 100)
	for i := range 10 {
		l.Accept(request(i), nil, 0, 1)
		l.Complete(request(i))
	}
	all.Close()
	all.Close()
	n := 0
	for o := range all.Outcomes() {
		if o.Identity != request(n) || o.State != Completed {
			t.Errorf("%+v", o)
		}
		n++
	}
	if n != 10 || all.Dropped() != 0 {
		t.Errorf("%d outcomes came, %d were dropped", n, all.Dropped())
	}
	if len(slow.ch) != 2 || slow.Dropped() != 8 || l.Stats().Dropped != 8 {
		t.Errorf("the slow one: %d, dropped %d", len(slow.ch), slow.Dropped())
	}
	if len(mine.ch) != 1 || (<-mine.Outcomes()).Identity != id {
		t.Error("the filter")
	}
	slow.Close()
	mine.Close()
	l.Accept(id, nil, 0, 1)
	l.Complete(id)
	if len(l.subs) != 0 {
		t.Error("a subscription is left")
	}
}

// TestModel runs random histories against a map.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := int64(1)
		size := rapid.IntRange(1, 8).Draw(t, "size")
		l := NewLedger(Config{Size: size, TTL: 100, Now: func() int64 { return clock }})
		sub := l.Subscribe(Filter{}, 1<<12)
		type model struct {
			id      hint.Identity
			state   State
			fetched uint32
			born    int64
		}
		var all []*model // in order of acceptance
		ended := 0
		end := func(m *model, s State) { m.state = s; ended++ }
		open := func(id hint.Identity) *model {
			for _, m := range all {
				if m.id == id && m.state == Open {
					return m
				}
			}
			return nil
		}
		expire := func() {
			for _, m := range all {
				if m.state == Open && clock-m.born >= 100 {
					end(m, Expired)
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := request(rapid.IntRange(0, 4).Draw(t, "request"))
			op := rapid.IntRange(0, 6).Draw(t, "op")
			expire()
			m := open(id)
			switch op {
			case 0, 1:
				if m != nil {
					end(m, Superseded)
				}
				if n := len(all) - size; n >= 0 && all[n].state == Open {
					end(all[n], Expired)
				}
				all = append(all, &model{id: id, born: clock})
				l.Accept(id, nil, 0, 4)
			case 2:
				if m != nil {
					if m.fetched = min(4, m.fetched+2); m.fetched == 4 {
						end(m, Completed)
					}
				}
				l.Fetched(id, 2, 20)
			case 3:
				if m != nil {
					end(m, map[bool]State{true: Partial, false: Failed}[m.fetched > 0])
				}
				l.Fail(id, abi.ReasonUnavailable)
			case 4:
				if m != nil {
					end(m, Discarded)
				}
				l.Discard(id)
			case 5:
				clock += int64(rapid.IntRange(0, 60).Draw(t, "time"))
			case 6:
				if m != nil {
					end(m, Completed)
				}
				l.Complete(id)
			}
		}
		expire()
		want := Stats{Accepted: uint64(len(all))}
		for _, m := range all {
			*want.of(m.state)++
		}
		want.FailedBy[abi.ReasonUnavailable], want.PartialBy[abi.ReasonUnavailable] = want.Failed, want.Partial
		got := l.Stats()
		got.Overrun = 0
		if got != want || sum(got) != got.Accepted {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if len(sub.ch) != ended {
			t.Fatalf("%d outcomes were streamed, want %d", len(sub.ch), ended)
		}
		out := l.Query(Filter{}, 1<<20)
		if len(out) != min(size, len(all)) {
			t.Fatalf("%d are kept of %d", len(out), len(all))
		}
		for i, o := range out {
			if m := all[len(all)-1-i]; o.Identity != m.id || o.State != m.state || o.Fetched != m.fetched {
				t.Fatalf("%+v, want %+v", o, m)
			}
		}
		for n := range 5 {
			id, want := request(n), 0
			for _, m := range all[max(0, len(all)-size):] {
				if m.id == id {
					want++
				}
			}
			if got := l.Query(Filter{Identity: &id}, 1<<20); len(got) != want {
				t.Fatalf("%d outcomes of %v, want %d", len(got), id, want)
			}
		}
	})
}

// TestCountsAddUp: they do while many change them.
func TestCountsAddUp(t *testing.T) {
	l := NewLedger(Config{Size: 64})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			sub := l.Subscribe(Filter{}, 8)
			defer sub.Close()
			for range 3000 {
				id := request(r.IntN(50))
				switch r.IntN(6) {
				case 0, 1:
					l.Accept(id, []byte("m"), 0, 3)
				case 2:
					l.Fetched(id, 2, 1)
				case 3:
					l.Fail(id, abi.ReasonUnavailable)
				case 4:
					l.Discard(id)
				case 5:
					if st := l.Stats(); sum(st) != st.Accepted {
						t.Errorf("%+v", st)
					}
				}
			}
		})
	}
	wg.Wait()
	if st := l.Stats(); sum(st) != st.Accepted || st.Accepted == 0 {
		t.Errorf("%+v", st)
	}
}

func TestAllocatesNothing(t *testing.T) {
	l := NewLedger(Config{Size: 128})
	ids := make([]hint.Identity, 1000)
	for i := range ids {
		ids[i] = request(i)
	}
	n := 0
	once := func() {
		id := ids[n%len(ids)]
		n++
		l.Accept(id, []byte("message"), 1, 4)
		l.Fetched(id, 2, 1)
		l.Fetched(id, 2, 1)
		l.Discard(id)
	}
	for range 2000 {
		once()
	}
	if a := testing.AllocsPerRun(1000, once); a != 0 {
		t.Errorf("%v allocations for a hint and its end", a)
	}
}
