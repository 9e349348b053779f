package outcome

import (
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
)

// TestTickets: what is brought for its own sake has an outcome beside those of the
// request's hints, and neither is in the other's way.
func TestTickets(t *testing.T) {
	clock := int64(1)
	l := NewLedger(Config{Size: 8, TTL: time.Second, Now: func() int64 { return clock }})
	id := request(1)
	l.Accept(id, []byte("m"), 0, 4)
	a, b, c := l.Begin(id, []byte("m"), 1, 3), l.Begin(id, []byte("m"), 2, 3), l.Begin(id, []byte("m"), 3, 3)
	l.Fetched(id, 2, 20)
	a.Fetched(3, 30)
	b.Fetched(1, 10)
	b.Fail(abi.ReasonNotFound)
	b.Complete()
	l.Accept(id, []byte("m"), 4, 4)
	l.Discard(id)
	want := []struct {
		index uint32
		state State
		n     uint32
	}{{4, Discarded, 0}, {3, Open, 0}, {2, Partial, 1}, {1, Completed, 3}, {0, Superseded, 2}}
	for i, o := range l.Query(Filter{Identity: &id}, 9) {
		if w := want[i]; o.Index != w.index || o.State != w.state || o.Fetched != w.n {
			t.Errorf("%+v, want %+v", o, w)
		}
	}
	c.Fail(abi.ReasonUnavailable)
	if st := l.Stats(); st.Accepted != 5 || st.Open != 0 || sum(st) != 5 || st.Failed != 1 {
		t.Errorf("%+v", st)
	}
	// An old ticket says nothing about who has its place now.
	old := l.Begin(request(2), nil, 0, 1)
	for n := range 8 {
		l.Begin(request(10+n), nil, 0, 1)
	}
	old.Complete()
	if st := l.Stats(); st.Overrun != 1 || st.Completed != 1 || st.Open != 8 || sum(st) != st.Accepted {
		t.Errorf("%+v", st)
	}
	last := l.Begin(request(3), nil, 0, 1)
	clock += int64(time.Second)
	last.Complete()
	if o := one(t, l, request(3)); o.State != Expired {
		t.Errorf("%+v", o)
	}
}
