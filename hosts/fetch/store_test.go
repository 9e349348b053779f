package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// clock is a clock that stands still until it is moved.
type clock struct{ ns int64 }

func (c *clock) now() int64              { return c.ns }
func (c *clock) advance(d time.Duration) { c.ns += int64(d) }
func newClock() *clock                   { return &clock{1_700_000_000_000_000_000} }

func request(id string) hint.Identity { return hint.Identity{Engine: "vllm", RequestID: id} }

func hashBytes(hashes ...uint64) []byte {
	var b []byte
	for _, h := range hashes {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	return b
}

func manyHashes(n int) []byte {
	b := make([]byte, 0, 8*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, uint64(i)*0x9e3779b97f4a7c15+1)
	}
	return b
}

// source is a source that no list has judged.
func source(text string) Source {
	if text == "" {
		return Source{}
	}
	return Source{&endpoint{text: text}}
}

// submit prepares and commits.
func submit(t testing.TB, s *Store, id hint.Identity, src string, hashes ...uint64) (abi.Reason, string) {
	t.Helper()
	p, reason, detail := s.Prepare(id, source(src), hashBytes(hashes...), false)
	if p == nil {
		return reason, detail
	}
	if reason != abi.ReasonNone || detail != "" {
		t.Fatalf("Prepare returned a Pending and %v %q", reason, detail)
	}
	return p.Commit()
}

func mustSubmit(t testing.TB, s *Store, id hint.Identity, src string, hashes ...uint64) {
	t.Helper()
	if reason, detail := submit(t, s, id, src, hashes...); reason != abi.ReasonNone || detail != "" {
		t.Fatalf("submit: %v %q", reason, detail)
	}
}

func mustRefuse(t testing.TB, s *Store, want abi.Reason, id hint.Identity, src string, hashes ...uint64) {
	t.Helper()
	if reason, detail := submit(t, s, id, src, hashes...); reason != want || detail == "" {
		t.Fatalf("submit: %v %q, want %v and a detail", reason, detail, want)
	}
}

// wantBlocks checks which of blocks 1 to 9 a request may fetch.
func wantBlocks(t testing.TB, s *Store, id hint.Identity, blocks ...uint64) {
	t.Helper()
	var got []uint64
	for b := uint64(1); b <= 9; b++ {
		if _, ok := s.Lookup(id, b); ok {
			got = append(got, b)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(blocks) {
		t.Fatalf("%+v may fetch %v, want %v", id, got, blocks)
	}
}

func wantState(t testing.TB, s *Store, id hint.Identity, want abi.FetchState) Status {
	t.Helper()
	st := s.Status(id)
	if st.State != want {
		t.Fatalf("%+v is %v, want %v", id, st.State, want)
	}
	return st
}

func TestSubmitIsLate(t *testing.T) {
	s := New(Config{})
	id, hashes := request("r1"), hashBytes(1, 2)
	p, _, _ := s.Prepare(id, source("tcp://a:1"), hashes, false)
	wantState(t, s, id, abi.FetchStateNone)
	copy(hashes, hashBytes(8, 9)) // only a view
	if reason, detail := p.Commit(); reason != 0 || detail != "" {
		t.Fatal(reason, detail)
	}
	wantBlocks(t, s, id, 1, 2)
	src, _ := s.Lookup(id, 1)
	if src.String() != "tcp://a:1" || src.Scheme() != "tcp" {
		t.Fatalf("source %q, scheme %q", src, src.Scheme())
	}

	p, _, _ = s.Prepare(request("r2"), source("tcp://a:1"), hashBytes(1), false)
	p.Drop()
	wantState(t, s, request("r2"), abi.FetchStateNone)
	if st := s.Stats(); st.Entries != 1 || st.Bytes != 64 || st.Prepared != 0 || st.Submitted != 1 {
		t.Fatalf("%+v", st)
	}
}

func TestIdentityIsCopied(t *testing.T) {
	s := New(Config{})
	buf := []byte("vllmrequest-1")
	id := hint.Identity{Engine: view(buf[:4]), RequestID: view(buf[4:])}
	p, _, _ := s.Prepare(id, Source{}, hashBytes(1), false)
	copy(buf, "xxxxxxxxxxxxx")
	p.Commit()
	wantBlocks(t, s, hint.Identity{Engine: "vllm", RequestID: "request-1"}, 1)
}

func TestEveryFieldOfIdentityIsKey(t *testing.T) {
	s := New(Config{Shards: 1})
	ids := []hint.Identity{
		{Engine: "a", RequestID: "bc"}, {Engine: "ab", RequestID: "c"}, {RequestID: "abc"},
		{Engine: "a", RequestID: "bc", DPRank: 1}, {Engine: "a", RequestID: "bc", Attempt: 1},
		{Engine: "a", RequestID: "bc", Leg: abi.LegPrefill}, {Engine: "a", RequestID: "bc", Leg: abi.LegDecode},
	}
	for i, id := range ids {
		mustSubmit(t, s, id, fmt.Sprintf("tcp://a:%d", i+1), uint64(i+1))
	}
	for i, id := range ids {
		wantBlocks(t, s, id, uint64(i+1))
		s.Discard(id)
		wantState(t, s, id, abi.FetchStateFinished)
		if st := s.Stats(); st.Entries != len(ids)-i-1 {
			t.Fatalf("%d entries after %d discards", st.Entries, i+1)
		}
	}
}

func TestSameSourceReplaces(t *testing.T) {
	c := newClock()
	s := New(Config{Now: c.now})
	id := request("r")
	mustSubmit(t, s, id, "tcp://a:1", 1, 2, 2)
	first := wantState(t, s, id, abi.FetchStateLive)
	if first.Hashes != 2 || !first.HasSource || first.Submitted != c.ns || first.Expires != c.ns+int64(10*time.Minute) {
		t.Fatalf("%+v", first)
	}
	c.advance(time.Minute)
	mustSubmit(t, s, id, "tcp://a:1", 3)
	wantBlocks(t, s, id, 3)
	if st := s.Status(id); st.Submitted != first.Submitted || st.Expires != first.Expires || st.Hashes != 1 {
		t.Fatalf("a replaced hint: %+v, the first: %+v", st, first)
	}
	c.advance(9 * time.Minute)
	wantState(t, s, id, abi.FetchStateNone) // the second submit renewed nothing
}

func TestAnotherSourceFails(t *testing.T) {
	for _, c := range []struct{ first, second string }{
		{"tcp://a:1", "tcp://b:1"}, {"tcp://a:1", ""}, {"", "tcp://a:1"},
	} {
		s := New(Config{})
		id := request("r")
		mustSubmit(t, s, id, c.first, 1, 2)
		mustRefuse(t, s, abi.ReasonConflictingSource, id, c.second, 3)
		wantBlocks(t, s, id)
		st := wantState(t, s, id, abi.FetchStateFailed)
		if st.Cause != abi.ReasonConflictingSource || st.HasSource != (c.first != "") || st.Hashes != 0 {
			t.Fatalf("%+v", st)
		}
		mustRefuse(t, s, abi.ReasonConflictingSource, id, c.second, 3) // it did not take over
		mustSubmit(t, s, id, c.first, 4)                               // clears the failure
		wantBlocks(t, s, id, 4)
		if st := wantState(t, s, id, abi.FetchStateLive); st.Cause != 0 {
			t.Fatalf("%+v", st)
		}
		if st := s.Stats(); st.Conflicts != 2 || st.Submitted != 1 || st.Replaced != 1 || st.Bytes != 64 {
			t.Fatalf("%+v", st)
		}
	}
}

func TestEndIsIdempotentAndLeavesATombstone(t *testing.T) {
	ends := map[string]func(*Store, hint.Identity){
		"discard": (*Store).Discard,
		"ok":      func(s *Store, id hint.Identity) { s.Finish(id, false) },
		"aborted": func(s *Store, id hint.Identity) { s.Finish(id, true) },
		"late discard": func(s *Store, id hint.Identity) {
			p, _, _ := s.PrepareDiscard(id)
			p.Commit()
		},
		"late finish": func(s *Store, id hint.Identity) {
			p, _, _ := s.PrepareFinish(id, true)
			p.Commit()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			s := New(Config{Now: c.now})
			with, without := request("with a hint"), request("without")
			mustSubmit(t, s, with, "tcp://a:1", 1)
			for range 3 {
				end(s, with)
				end(s, without)
				c.advance(time.Second)
			}
			for _, id := range []hint.Identity{with, without} {
				if st := wantState(t, s, id, abi.FetchStateFinished); st != (Status{State: abi.FetchStateFinished}) {
					t.Fatalf("%+v", st)
				}
				mustRefuse(t, s, abi.ReasonRequestFinished, id, "tcp://a:1", 1)
				wantBlocks(t, s, id)
			}
			if st := s.Stats(); st.Entries != 0 || st.Bytes != 0 || st.Tombstones != 2 || st.Finished+st.Discarded != 2 || st.RefusedFinished != 2 {
				t.Fatalf("%+v", st)
			}
			c.advance(27 * time.Second) // 30 s after the first end: it is not renewed
			wantState(t, s, with, abi.FetchStateNone)
			mustSubmit(t, s, with, "tcp://b:1", 2)
			wantBlocks(t, s, with, 2)
		})
	}
}

func TestADroppedEndEndsNothing(t *testing.T) {
	s := New(Config{})
	mustSubmit(t, s, request("r"), "", 1)
	p, _, _ := s.PrepareDiscard(request("r"))
	p.Drop()
	p, _, _ = s.PrepareFinish(request("r"), false)
	p.Drop()
	wantBlocks(t, s, request("r"), 1)
}

func TestWithoutRequestIDNothingIsKept(t *testing.T) {
	s := New(Config{})
	id := hint.Identity{Engine: "vllm"}
	mustSubmit(t, s, id, "tcp://a:1", 1)
	mustSubmit(t, s, id, "tcp://b:1", 1)
	wantState(t, s, id, abi.FetchStateNone)
	wantBlocks(t, s, id)
	s.Discard(id)
	s.Finish(id, false)
	p, _, _ := s.PrepareDiscard(id)
	p.Commit()
	mustRefuse(t, s, abi.ReasonInvalidPayload, id, "tcp://a:1")
	if st := s.Stats(); st.Entries+st.Tombstones != 0 || st.Unkeyed != 2 || st.Finished+st.Discarded != 0 || st.Prepared != 0 {
		t.Fatalf("%+v", st)
	}
}

func TestPrepareRefuses(t *testing.T) {
	s := New(Config{MaxHashes: 4, MaxIDBytes: 8, MaxBytes: 1 << 20})
	for _, c := range []struct {
		id     hint.Identity
		hashes []byte
		want   abi.Reason
		detail string
	}{
		{request("r"), nil, abi.ReasonInvalidPayload, "at least one"},
		{request("r"), make([]byte, 7), abi.ReasonInvalidPayload, "at least one"},
		{request("r"), make([]byte, 12), abi.ReasonInvalidPayload, "8 bytes"},
		{request("r"), make([]byte, 40), abi.ReasonLimitExceeded, "5 block hashes, and a fetch hint may have 4"},
		{request("12345"), make([]byte, 8), abi.ReasonLimitExceeded, "9 bytes, and may have 8"},
		{hint.Identity{Engine: "123456789"}, make([]byte, 8), abi.ReasonLimitExceeded, "9 bytes"},
	} {
		p, reason, detail := s.Prepare(c.id, Source{}, c.hashes, false)
		if p != nil || reason != c.want || !strings.Contains(detail, c.detail) {
			t.Errorf("%+v, %d bytes: %v %v %q", c.id, len(c.hashes), p, reason, detail)
		}
	}
	if p, reason, detail := New(Config{MaxBytes: 100}).Prepare(request("r"), Source{}, make([]byte, 8*9), false); p != nil || reason != abi.ReasonLimitExceeded {
		t.Error(p, reason, detail)
	}
	s.Discard(request("12345")) // cannot be there
	if st := s.Stats(); st.RefusedInvalid != 3 || st.RefusedLimit != 3 || st.Tombstones != 0 || st.Prepared != 0 {
		t.Errorf("%+v", st)
	}
	mustSubmit(t, s, request("1234"), "", 1, 2, 3, 4)
}

func TestWhatWaitsIsBounded(t *testing.T) {
	s := New(Config{Shards: 1, MaxHashes: 8, MaxBytes: 1 << 10})
	var waiting []*Pending
	for {
		p, reason, detail := s.Prepare(request("r"), Source{}, manyHashes(8), false)
		if p == nil {
			if reason != abi.ReasonLimitExceeded || detail == "" {
				t.Fatal(reason, detail)
			}
			break
		}
		waiting = append(waiting, p)
	}
	if len(waiting) != 4 || s.Stats().Prepared != 4*(64+pendingOverhead) {
		t.Fatalf("%d hints wait, %+v", len(waiting), s.Stats())
	}
	for _, p := range waiting {
		p.Drop()
	}
	mustSubmit(t, s, request("r"), "", 1)
	if s.Stats().Prepared != 0 {
		t.Fatalf("%+v", s.Stats())
	}
}

func TestCaps(t *testing.T) {
	c := newClock()
	s := New(Config{Shards: 4, MaxEntries: 3, MaxBytes: 1024, Now: c.now})
	for i := range 3 {
		mustSubmit(t, s, request(fmt.Sprint(i)), "", 1)
	}
	mustRefuse(t, s, abi.ReasonLimitExceeded, request("3"), "", 1)
	mustSubmit(t, s, request("0"), "", 2) // replacing is not adding
	s.Discard(request("1"))
	mustSubmit(t, s, request("3"), "", 1)

	big := make([]uint64, 100) // 1,024 bytes
	mustRefuse(t, s, abi.ReasonLimitExceeded, request("0"), "", big...)
	wantBlocks(t, s, request("0"), 2) // still what it was
	c.advance(10 * time.Minute)       // 0, 2 and 3 expire and make room
	mustSubmit(t, s, request("4"), "", big...)
	if st := s.Stats(); st.Entries != 1 || st.Bytes != 1024 || st.Expired != 3 {
		t.Fatalf("%+v", st)
	}
	mustSubmit(t, s, request("4"), "", 7) // smaller: fits though full
	mustSubmit(t, s, request("5"), "", 7)
	if st := s.Stats(); st.Bytes != 128 {
		t.Fatalf("%+v", st)
	}
}

// TestCapsAreExact: what shards have in hand is not lost to the others.
func TestCapsAreExact(t *testing.T) {
	const n = 4 * 32 * 8
	for name, cfg := range map[string]Config{
		"entries": {Shards: 4, MaxEntries: n},
		"bytes":   {Shards: 4, MaxBytes: 64 * n},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(cfg)
			for round := range 3 {
				for i := range n {
					mustSubmit(t, s, request(fmt.Sprint(round, " ", i)), "", 1)
				}
				mustRefuse(t, s, abi.ReasonLimitExceeded, request("one more"), "", 1)
				if st := s.Stats(); st.Entries != n || st.Bytes != 64*n || st.RefusedLimit != uint64(round+1) {
					t.Fatalf("%+v", st)
				}
				for i := range n {
					s.Discard(request(fmt.Sprint(round, " ", i)))
				}
				if err := s.check(); err != nil {
					t.Fatal(err)
				}
			}
			if s.entries.chunk+s.bytes.chunk == 0 {
				t.Error("no shard ever had anything in hand")
			}
		})
	}
}

func TestTombstonesAreBounded(t *testing.T) {
	s := New(Config{Shards: 1, MaxTombstones: 3})
	for i := range 5 {
		s.Discard(request(fmt.Sprint(i)))
	}
	for i, want := range []abi.FetchState{0, 0, abi.FetchStateFinished, abi.FetchStateFinished, abi.FetchStateFinished} {
		wantState(t, s, request(fmt.Sprint(i)), want)
	}
	if st := s.Stats(); st.Tombstones != 3 {
		t.Fatalf("%+v", st)
	}
}

func TestSweepAndBacklog(t *testing.T) {
	c := newClock()
	s := New(Config{Shards: 1, Now: c.now})
	for i := range 2000 {
		mustSubmit(t, s, request(fmt.Sprint(i)), "", 1)
	}
	c.advance(10 * time.Minute)
	mustSubmit(t, s, request("new"), "", 1) // each commit removes a few
	if st := s.Stats(); st.Entries >= 2000 || st.Entries < 1990 {
		t.Fatalf("%+v", st)
	}
	before := s.Stats().Entries
	if n := s.Sweep(); n != before-1 {
		t.Fatalf("Sweep removed %d of %d", n, before)
	}
	if st := s.Stats(); st.Entries != 1 || st.Expired != 2000 || st.Bytes != 64 {
		t.Fatalf("%+v", st)
	}
	if n := s.Sweep(); n != 0 {
		t.Fatalf("a second Sweep removed %d", n)
	}
}

func TestAClockThatRunsBackStandsStill(t *testing.T) {
	c := newClock()
	s := New(Config{Shards: 1, Now: c.now})
	mustSubmit(t, s, request("1"), "", 1)
	start := c.ns
	c.advance(-time.Hour)
	mustSubmit(t, s, request("2"), "", 1)
	if st := s.Status(request("2")); st.Submitted != start {
		t.Fatalf("submitted at %d, want %d", st.Submitted, start)
	}
	c.advance(time.Hour + 10*time.Minute)
	if n := s.Sweep(); n != 2 {
		t.Fatalf("Sweep removed %d", n)
	}
}

func TestDoubleUseIsCaught(t *testing.T) {
	for name, use := range map[string]func(p *Pending){
		"commit, commit": func(p *Pending) { p.Commit(); p.Commit() },
		"commit, drop":   func(p *Pending) { p.Commit(); p.Drop() },
		"drop, commit":   func(p *Pending) { p.Drop(); p.Commit() },
		"drop, drop":     func(p *Pending) { p.Drop(); p.Drop() },
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Config{})
			defer func() {
				err, _ := recover().(error)
				var fault *Fault
				if !errors.As(err, &fault) {
					t.Fatalf("recovered %v", err)
				}
				s.Discard(request("r")) // no lock is left behind
			}()
			p, _, _ := s.Prepare(request("r"), Source{}, hashBytes(1), false)
			use(p)
		})
	}
}

func TestHashesKeepTheirOrder(t *testing.T) {
	s := New(Config{})
	mustSubmit(t, s, request("r"), "", 5, 3, 5, 1<<64-1, 0)
	if got := fmt.Sprint(s.AppendHashes(nil, request("r"))); got != "[5 3 5 18446744073709551615 0]" {
		t.Fatal(got)
	}
	if got := s.AppendHashes(nil, request("other")); got != nil {
		t.Fatal(got)
	}
	if st := s.Status(request("r")); st.Hashes != 4 {
		t.Fatalf("%+v", st)
	}
	if _, ok := s.Lookup(request("r"), 0); !ok {
		t.Fatal("hash 0 is a hash")
	}
}

func TestLargeSet(t *testing.T) {
	s := New(Config{})
	const n = 100_000
	p, _, _ := s.Prepare(request("r"), source("tcp://a:1"), manyHashes(n), true)
	p.Commit()
	if st := s.Status(request("r")); st.Hashes != n || !st.NoRetain {
		t.Fatalf("%+v", st)
	}
	for i := range uint64(n) {
		h := i*0x9e3779b97f4a7c15 + 1
		if _, ok := s.Lookup(request("r"), h); !ok {
			t.Fatalf("hash %d is missing", i)
		}
		if _, ok := s.Lookup(request("r"), h+1); ok {
			t.Fatalf("hash %d + 1 is there", i)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	c := Config{Shards: 5, MaxEntries: -1}
	c.setDefaults()
	if c.Shards != 8 || c.MaxEntries != 65536 || c.MaxBytes != 256<<20 || c.TTL != 10*time.Minute || c.TombstoneTTL != 30*time.Second || c.MaxHashes != 131072 {
		t.Errorf("%+v", c)
	}
	if d := time.Since(time.Unix(0, c.Now())); d < 0 || d > time.Minute {
		t.Errorf("the default clock is off by %v", d)
	}
	for shards, want := range map[int]int{1: 1, 2: 2, 3: 4, 16: 16, 1 << 20: 1024} {
		c := Config{Shards: shards}
		if c.setDefaults(); c.Shards != want {
			t.Errorf("%d shards became %d, want %d", shards, c.Shards, want)
		}
	}
}

// TestAt: the default clock at another reading of the machine's is the same clock.
func TestAt(t *testing.T) {
	s := New(Config{})
	before, at, after := s.cfg.Now(), s.at(time.Now()), s.cfg.Now()
	if at < before || at > after {
		t.Errorf("%d is not in [%d, %d]", at, before, after)
	}
	if at := New(Config{Now: fast()}).at(time.Now()); at != 0 {
		t.Errorf("another clock showed %d without being read", at)
	}
}

func TestClasses(t *testing.T) {
	for _, c := range []struct{ hashes, class int }{{1, 0}, {8, 0}, {9, 1}, {16, 1}, {17, 2}, {1024, 7}, {1025, 8}, {131072, 14}, {hashLimit, numClasses - 1}} {
		if got := classOf(c.hashes); got != c.class || sizeOf(got) < 8*c.hashes {
			t.Errorf("%d hashes are of class %d with %d bytes, want class %d", c.hashes, got, sizeOf(got), c.class)
		}
	}
}
