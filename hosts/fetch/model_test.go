package fetch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// model says in maps what a Store of one shard does.
type model struct {
	cfg   Config
	now   int64
	hints map[hint.Identity]*modelHint
	tombs map[hint.Identity]int64
	order []hint.Identity // of tombs, oldest first
}

type modelHint struct {
	source string
	hashes []uint64 // nil: failed
	since  int64
	bytes  int64
}

// forget drops what has expired.
func (m *model) forget() {
	for id, h := range m.hints {
		if m.now-h.since >= int64(m.cfg.TTL) {
			delete(m.hints, id)
		}
	}
	for len(m.order) > 0 && m.now-m.tombs[m.order[0]] >= int64(m.cfg.TombstoneTTL) {
		m.dropTomb()
	}
}

func (m *model) dropTomb() {
	delete(m.tombs, m.order[0])
	m.order = m.order[1:]
}

func (m *model) bytes() (n int64) {
	for _, h := range m.hints {
		n += h.bytes
	}
	return n
}

func (m *model) submit(id hint.Identity, source string, hashes []uint64) abi.Reason {
	size := int64(64)
	for size < int64(8*len(hashes)) {
		size *= 2
	}
	if len(hashes) > m.cfg.MaxHashes {
		return abi.ReasonLimitExceeded
	}
	if id.RequestID == "" {
		return abi.ReasonNone
	}
	if _, ok := m.tombs[id]; ok {
		return abi.ReasonRequestFinished
	}
	h := m.hints[id]
	switch {
	case h == nil:
		if len(m.hints) >= m.cfg.MaxEntries || m.bytes()+size > m.cfg.MaxBytes {
			return abi.ReasonLimitExceeded
		}
		h = &modelHint{source: source, since: m.now}
		m.hints[id] = h
	case h.source != source:
		h.hashes, h.bytes = nil, 0
		return abi.ReasonConflictingSource
	case size > h.bytes && m.bytes()-h.bytes+size > m.cfg.MaxBytes:
		return abi.ReasonLimitExceeded
	}
	h.hashes, h.bytes = hashes, size
	return abi.ReasonNone
}

func (m *model) end(id hint.Identity) {
	if _, ok := m.tombs[id]; ok || id.RequestID == "" {
		return
	}
	if len(m.order) >= m.cfg.MaxTombstones {
		m.dropTomb()
	}
	delete(m.hints, id)
	m.tombs[id] = m.now
	m.order = append(m.order, id)
}

func (m *model) status(id hint.Identity) Status {
	if _, ok := m.tombs[id]; ok {
		return Status{State: abi.FetchStateFinished}
	}
	h := m.hints[id]
	if h == nil {
		return Status{}
	}
	st := Status{State: abi.FetchStateLive, HasSource: h.source != "", Submitted: h.since, Expires: h.since + int64(m.cfg.TTL)}
	if h.hashes == nil {
		st.State, st.Cause = abi.FetchStateFailed, abi.ReasonConflictingSource
	}
	distinct := make(map[uint64]bool)
	for _, x := range h.hashes {
		distinct[x] = true
	}
	st.Hashes = uint32(len(distinct))
	return st
}

// TestModel runs random histories through a Store and its model.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			cfg: Config{
				Shards: 1, TTL: 100 * time.Second, TombstoneTTL: 30 * time.Second, MaxHashes: 40,
				MaxEntries:    rapid.IntRange(1, 6).Draw(t, "entries"),
				MaxTombstones: rapid.IntRange(1, 6).Draw(t, "tombstones"),
				MaxBytes:      64 * rapid.Int64Range(8, 20).Draw(t, "blocks of 64 bytes"),
			},
			now:   1_700_000_000_000_000_000,
			hints: map[hint.Identity]*modelHint{},
			tombs: map[hint.Identity]int64{},
		}
		m.cfg.Now = func() int64 { return m.now }
		s := New(m.cfg)
		s.preparedLimit = 1 << 20 // TestWhatWaitsIsBounded holds that one
		type waiting struct {
			p      *Pending
			commit func() abi.Reason // of the model
		}
		var wait []waiting
		own := s.newOwn()
		mayOwn := func(t *rapid.T) *Pending {
			if rapid.Bool().Draw(t, "own") && !slices.ContainsFunc(wait, func(w waiting) bool { return w.p == own }) {
				return own
			}
			return nil
		}

		genID := rapid.Custom(func(t *rapid.T) hint.Identity {
			return hint.Identity{
				Engine:    rapid.SampledFrom([]string{"", "e"}).Draw(t, "engine"),
				RequestID: rapid.SampledFrom([]string{"r1", "r2", "r3", "er1", ""}).Draw(t, "request"),
				Attempt:   rapid.Uint32Range(0, 1).Draw(t, "attempt"),
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				id := genID.Draw(t, "id")
				src := rapid.SampledFrom([]string{"", "tcp://a:1", "tcp://b:1"}).Draw(t, "source")
				hashes := rapid.SliceOfN(rapid.Uint64Range(0, 9), 1, 42).Draw(t, "hashes")
				p, reason, _ := s.prepareSubmit(mayOwn(t), &id, source(src), hashBytes(hashes...), false)
				if want := len(hashes) > m.cfg.MaxHashes; (p == nil) != want || p == nil && reason != abi.ReasonLimitExceeded {
					t.Fatalf("Prepare: %v, %d hashes", reason, len(hashes))
				}
				if p != nil {
					wait = append(wait, waiting{p, func() abi.Reason { return m.submit(id, src, hashes) }})
				}
			},
			"end late": func(t *rapid.T) {
				id := genID.Draw(t, "id")
				p, reason, detail := s.prepareEnd(mayOwn(t), &id, finishState(rapid.Bool().Draw(t, "aborted")))
				if rapid.Bool().Draw(t, "discard") && p != nil {
					p.Drop()
					p, reason, detail = s.PrepareDiscard(id)
				}
				if p == nil {
					t.Fatal(reason, detail)
				}
				wait = append(wait, waiting{p, func() abi.Reason { m.end(id); return 0 }})
			},
			"commit or drop": func(t *rapid.T) {
				if len(wait) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(wait)-1).Draw(t, "which")
				w := wait[i]
				wait = append(wait[:i], wait[i+1:]...)
				if rapid.IntRange(0, 4).Draw(t, "drop at 0") == 0 {
					w.p.Drop()
					return
				}
				got, detail := w.p.Commit()
				if want := w.commit(); got != want || (got != 0) != (detail != "") {
					t.Fatalf("Commit: %v %q, want %v", got, detail, want)
				}
			},
			"discard": func(t *rapid.T) { id := genID.Draw(t, "id"); s.Discard(id); m.end(id) },
			"finish":  func(t *rapid.T) { id := genID.Draw(t, "id"); s.Finish(id, true); m.end(id) },
			"time": func(t *rapid.T) {
				m.now += int64(rapid.IntRange(1, 60).Draw(t, "seconds")) * int64(time.Second)
				m.forget()
			},
			"sweep": func(t *rapid.T) {
				s.Sweep()
				if st := s.Stats(); st.Entries != len(m.hints) || st.Tombstones != len(m.tombs) || st.Bytes != m.bytes() {
					t.Fatalf("%+v, want %d hints, %d tombstones, %d bytes", st, len(m.hints), len(m.tombs), m.bytes())
				}
			},
			"query": func(t *rapid.T) {
				id := genID.Draw(t, "id")
				if got, want := s.Status(id), m.status(id); got != want {
					t.Fatalf("Status of %+v: %+v, want %+v", id, got, want)
				}
				h := m.hints[id]
				if h == nil {
					h = &modelHint{}
				}
				if got := s.AppendHashes(nil, id); fmt.Sprint(got) != fmt.Sprint(h.hashes) {
					t.Fatalf("hashes %v, want %v", got, h.hashes)
				}
				block := rapid.Uint64Range(0, 10).Draw(t, "block")
				want := false
				for _, x := range h.hashes {
					want = want || x == block
				}
				if src, got := s.Lookup(id, block); got != want || got && src.String() != h.source {
					t.Fatalf("Lookup: %v %q, want %v %q", got, src, want, h.source)
				}
			},
			"": func(t *rapid.T) {
				if err := s.check(); err != nil {
					t.Fatal(err)
				}
			},
		})
		for _, w := range wait {
			w.p.Drop()
		}
		if st := s.Stats(); st.Prepared != 0 {
			t.Fatalf("%d bytes still wait", st.Prepared)
		}
	})
}

// check verifies what must hold between any two operations.
func (s *Store) check() error {
	var entries, bytes int64
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		defer sh.mu.Unlock()
		used := 0
		for _, sl := range sh.table {
			if sl.e == nil {
				continue
			}
			used++
			e := sl.e
			mask := uint64(len(sh.table) - 1)
			for at := e.hash & mask; sh.table[at].e != e; at = (at + 1) & mask {
				if sh.table[at].e == nil || sl.hash != e.hash {
					return fmt.Errorf("%x is in the table and not found", e.hash)
				}
			}
			if (e.state >= finished) != (e.body == nil) {
				return fmt.Errorf("state %d, and a body: %v", e.state, e.body != nil)
			} else if e.body == nil {
				continue
			}
			id := hint.Identity{Engine: string(e.key[:e.engine]), RequestID: string(e.key[e.engine:]), DPRank: e.dpRank, Attempt: e.att, Leg: e.leg}
			if got := sh.find(e.hash, &id); got != e {
				return fmt.Errorf("%+v is in the table and not found", id)
			}
			if (e.state == live) != (e.hashes != nil) || e.set != nil && e.hashes == nil {
				return fmt.Errorf("%+v of state %d has hashes %v", id, e.state, e.hashes != nil)
			}
			bytes += int64(e.size())
		}
		if used != sh.used || used != sh.hints.len+sh.tombs.len {
			return fmt.Errorf("%d in the table, %d counted, %d hints, %d tombstones", used, sh.used, sh.hints.len, sh.tombs.len)
		}
		for _, l := range []*list{&sh.hints, &sh.tombs} {
			n, since := 0, int64(0)
			for e := l.head; e != nil; e = e.next {
				if e.since < since || e.next == nil && l.tail != e {
					return fmt.Errorf("a list is out of order")
				}
				n, since = n+1, e.since
			}
			if n != l.len {
				return fmt.Errorf("a list of %d says %d", n, l.len)
			}
		}
		entries += int64(sh.hints.len) + sh.entries
		bytes += sh.bytes
		if sh.entries < 0 || sh.bytes < 0 {
			return fmt.Errorf("%d entries and %d bytes in hand", sh.entries, sh.bytes)
		}
	}
	if entries != s.entries.taken.Load() || bytes != s.bytes.taken.Load() {
		return fmt.Errorf("%d entries and %d bytes, counted as %d and %d", entries, bytes, s.entries.taken.Load(), s.bytes.taken.Load())
	}
	return nil
}
