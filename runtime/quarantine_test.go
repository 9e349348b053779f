package runtime

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestHistoryLoops(t *testing.T) {
	for _, c := range []struct {
		ends string // t: trapped, a: answered
		want bool
	}{
		{"tttttttttttttt", false},                                         // 14 calls are too few
		{"ttttttttttttttt" + "t", true},                                   // 16
		{"atatatatatatatat", true},                                        // half
		{"aatatatatatatata", false},                                       // less than half
		{"tttttttttttttttttttttttttttttttt" + "aaaaaaaaaaaaaaaaa", false}, // long ago
	} {
		var h history
		for _, e := range c.ends {
			h.note(e == 't')
		}
		if h.looping() != c.want {
			t.Errorf("%s: looping %v", c.ends, h.looping())
		}
	}
}

// TestQuarantine: a guest whose calls all trap is left alone for a while, then tried
// again, and left alone for twice as long.
func TestQuarantine(t *testing.T) {
	p, _ := newFakePool(t, 1)
	r := p.guest.runtime
	var lines bytes.Buffer
	r.log = slog.New(slog.NewTextHandler(&lines, nil))
	trap := func() bool {
		s, _ := p.acquire(0, time.Second)
		if s != nil {
			p.poison(s)
		}
		return s != nil
	}
	for i := range quarantineMin {
		if !trap() {
			t.Fatalf("call %d was refused", i)
		}
	}
	if trap() {
		t.Fatal("a guest whose calls all trap is still called")
	}
	var st GuestStats
	if p.stats(&st); !st.Quarantined || st.Quarantines != 1 || st.Unavailable != 1 || p.why() != "the guest is quarantined: half of its last calls trapped" {
		t.Errorf("%+v, %s", st, p.why())
	}
	left := time.Duration(p.quarantine.until.Load() - r.nanos())
	if left <= 0 || left > quarantineFirst {
		t.Errorf("quarantined for %s", left)
	}
	p.quarantine.until.Store(r.nanos() - 1) // it ends
	if !trap() {
		t.Fatal("not tried again")
	}
	if left := time.Duration(p.quarantine.until.Load() - r.nanos()); left <= quarantineFirst || left > 2*quarantineFirst {
		t.Errorf("quarantined again for %s", left)
	}
	p.quarantine.until.Store(r.nanos() - 1)
	for range 32 {
		s, _ := p.acquire(0, time.Second)
		if s == nil {
			t.Fatal("not tried again")
		}
		s.past.note(false)
		p.release(s)
	}
	for range quarantineMin - 1 { // of 32 calls
		if !trap() {
			t.Fatal("quarantined although more than half of the calls went well")
		}
	}
	if begun, over := strings.Count(lines.String(), "guest quarantined"), strings.Count(lines.String(), "its quarantine is over"); begun != 2 || over != 2 {
		t.Errorf("the log tells of %d quarantines and %d ends, want 2 of each", begun, over)
	}
	if n := p.quarantine.count.Load(); n != 2 {
		t.Errorf("quarantined %d times, want 2", n)
	}
	p.drain()
}

// TestResume: a human ends a quarantine. The next one is as short as the first.
func TestResume(t *testing.T) {
	p, _ := newFakePool(t, 1)
	r := p.guest.runtime
	r.current.Store(&generation{number: 1, guests: []*guest{p.guest}})
	for round := range 3 {
		for range quarantineMin {
			if s, _ := p.acquire(0, time.Second); s != nil {
				p.poison(s)
			}
		}
		if s, _ := p.acquire(0, time.Second); s != nil {
			t.Fatal("not quarantined")
		}
		var st GuestStats
		if p.stats(&st); !st.Quarantined || st.QuarantineLeft <= 0 || st.QuarantineLeft > quarantineFirst || st.Quarantines != uint64(round+1) {
			t.Errorf("round %d: %+v", round, st)
		}
		if err := r.Resume("fake"); err != nil {
			t.Fatal(err)
		}
		st = GuestStats{}
		if p.stats(&st); st.Quarantined || st.QuarantineLeft != 0 {
			t.Errorf("round %d: resumed and %+v", round, st)
		}
		s, _ := p.acquire(0, time.Second)
		if s == nil {
			t.Fatal("resumed and not called")
		}
		p.release(s)
	}
	if err := r.Resume("nobody"); !errors.Is(err, ErrUnknownGuest) {
		t.Errorf("%v", err)
	}
	p.drain()
}
