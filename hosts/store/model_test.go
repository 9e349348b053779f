package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kvrt/kvrt/abi"
)

// model is what a Store does, written for one goroutine and without a thought for cost.
type model struct {
	slots  int
	now    int64
	used   int64 // counts uses
	blocks map[string]*mblock
	away   []*mblock // gone from the index, and still in use
}

type mblock struct {
	name    string
	filling bool
	refs    int
	pins    int
	used    int64
	claims  map[uint64]mclaim
}

type mclaim struct {
	prio  int
	until int64 // of a block that is being filled: the TTL
	ever  bool
}

func (m *model) priority(b *mblock) (p int) {
	for _, c := range b.claims {
		if c.ever || c.until > m.now {
			p = max(p, c.prio)
		}
	}
	return p
}

// room makes room for a block, and is false when nothing yields.
func (m *model) room() bool {
	if len(m.blocks)+len(m.away) < m.slots {
		return true
	}
	var least *mblock
	for _, b := range m.blocks {
		if b.filling || b.refs > 0 {
			continue
		}
		if least == nil || m.priority(b) < m.priority(least) || m.priority(b) == m.priority(least) && b.used < least.used {
			least = b
		}
	}
	if least == nil {
		return false
	}
	delete(m.blocks, least.name)
	return true
}

func (m *model) use(b *mblock) { m.used++; b.used = m.used }

func (m *model) gone(b *mblock) {
	delete(m.blocks, b.name)
	if b.refs > 0 {
		m.away = append(m.away, b)
	}
}

func (m *model) release(b *mblock, uses bool) {
	if b.refs--; b.refs > 0 {
		return
	}
	if i := slices.Index(m.away, b); i >= 0 {
		m.away = slices.Delete(m.away, i, i+1)
	} else if uses && !b.filling {
		m.use(b)
	}
}

// out is a token that is out.
type out struct {
	token uint64
	kind  uint8
	b     *mblock
	bytes []byte
}

// The store and the model do the same, whatever happens in whatever order.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.SampledFrom([]int{1, 3, 6}).Draw(t, "slots")
		shards := rapid.SampledFrom([]int{1, 4}).Draw(t, "shards")
		c := &ticking{}
		s, err := New(Config{Capacity: uint64(slots) * pageSize, BlockBytes: []uint64{pageSize}, Now: c.now, Checksum: slots == 3, shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		defer s.slab.free()
		m := &model{slots: slots, blocks: map[string]*mblock{}}
		var outs []*out
		names := []string{"a", "b"}
		block := func() (ns string, hash uint64, name string) {
			ns = rapid.SampledFrom(names).Draw(t, "namespace")
			hash = rapid.Uint64Range(0, uint64(slots/2+1)).Draw(t, "hash")
			return ns, hash, fmt.Sprint(ns, hash)
		}
		pick := func(kinds ...uint8) *out {
			var some []*out
			for _, o := range outs {
				if slices.Contains(kinds, o.kind) {
					some = append(some, o)
				}
			}
			if len(some) == 0 {
				t.Skip()
			}
			return rapid.SampledFrom(some).Draw(t, "token")
		}
		done := func(o *out) { outs = slices.DeleteFunc(outs, func(x *out) bool { return x == o }) }
		content := func(name string) byte { return name[len(name)-1]*31 ^ name[0] }
		put := func(t *rapid.T) {
			ns, hash, name := block()
			if m.blocks[name] != nil || !m.room() {
				t.Skip()
			}
			token, bytes, err := s.Reserve(ns, hash, 1)
			if err != nil {
				t.Fatal(err)
			}
			bytes[0] = content(name)
			if err := s.Commit(token); err != nil {
				t.Fatal(err)
			}
			m.blocks[name] = &mblock{name: name, claims: map[uint64]mclaim{}}
			m.use(m.blocks[name])
		}
		retain := func(t *rapid.T) {
			ns, hash, name := block()
			claim := Claim{
				Owner:    rapid.Uint64Range(1, MaxClaims).Draw(t, "owner"), // more are tested by themselves
				Priority: rapid.SampledFrom([]int{0, 1, 50, 100}).Draw(t, "priority"),
				TTL:      time.Duration(rapid.SampledFrom([]int{0, 1, 10, 1000}).Draw(t, "ttl")),
			}
			got := make([]Outcome, 1)
			if _, err := s.Retain(ns, []uint64{hash}, claim, got); err != nil {
				t.Fatal(err)
			}
			b, want := m.blocks[name], Applied
			switch {
			case b == nil:
				want = Missing
			case claim.Priority == 0:
				delete(b.claims, claim.Owner)
			case b.filling:
				want = Deferred
				b.claims[claim.Owner] = mclaim{claim.Priority, int64(claim.TTL), claim.TTL == 0}
			default:
				b.claims[claim.Owner] = mclaim{claim.Priority, m.now + int64(claim.TTL), claim.TTL == 0}
			}
			if got[0] != want {
				t.Fatalf("%s, want %s", got[0], want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": put, "another": put, "one more": put,
			"reserve": func(t *rapid.T) {
				ns, hash, name := block()
				size := rapid.IntRange(1, pageSize).Draw(t, "size")
				token, bytes, err := s.Reserve(ns, hash, size)
				var filling *FillingError
				var full *FullError
				b := m.blocks[name]
				switch {
				case b != nil && b.filling:
					if !errors.As(err, &filling) {
						t.Fatalf("%v of a block that is being filled", err)
					}
				case b != nil:
					wants(t, err, ErrExists)
				case !m.room():
					if !errors.As(err, &full) {
						t.Fatalf("%v of a full store", err)
					}
				default:
					if err != nil {
						t.Fatal(err)
					}
					for i := range bytes {
						bytes[i] = content(name)
					}
					b = &mblock{name: name, filling: true, claims: map[uint64]mclaim{}}
					m.blocks[name] = b
					outs = append(outs, &out{token: token, kind: writing, b: b, bytes: bytes})
				}
			},
			"commit": func(t *rapid.T) {
				o := pick(writing)
				err := s.Commit(o.token)
				if o.b.refs > 0 {
					wants(t, err, ErrInFlight)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				o.b.filling = false
				for owner, c := range o.b.claims {
					c.until += m.now
					o.b.claims[owner] = c
				}
				m.use(o.b)
				done(o)
			},
			"abort": func(t *rapid.T) {
				o := pick(writing)
				if err := s.Abort(o.token); err != nil {
					t.Fatal(err)
				}
				m.gone(o.b)
				done(o)
			},
			"acquire": func(t *rapid.T) {
				ns, hash, name := block()
				token, bytes, err := s.Acquire(ns, hash)
				b := m.blocks[name]
				if b == nil || b.filling {
					wants(t, err, ErrNotFound)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				b.refs++
				outs = append(outs, &out{token: token, kind: reading, b: b, bytes: bytes})
			},
			"pin": func(t *rapid.T) {
				ns, hash, name := block()
				token, err := s.Pin(ns, hash)
				b := m.blocks[name]
				if b == nil || b.filling {
					wants(t, err, ErrNotFound)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				b.refs++
				b.pins++
				outs = append(outs, &out{token: token, kind: pinning, b: b})
			},
			"transfer": func(t *rapid.T) {
				o := pick(reading, writing)
				token, err := s.Transfer(o.token)
				if err != nil {
					t.Fatal(err)
				}
				o.b.refs++
				outs = append(outs, &out{token: token, kind: moving, b: o.b, bytes: o.bytes})
			},
			"release": func(t *rapid.T) {
				o := pick(reading, pinning, moving)
				if err := s.Release(o.token); err != nil {
					t.Fatal(err)
				}
				wants(t, s.Release(o.token), ErrToken)
				if o.kind == pinning {
					o.b.pins--
				}
				m.release(o.b, o.kind != pinning)
				done(o)
			},
			"verify": func(t *rapid.T) {
				if err := s.Verify(pick(reading).token); err != nil {
					t.Fatal(err)
				}
			},
			"evict": func(t *rapid.T) {
				ns, hash, name := block()
				got := make([]Outcome, 1)
				s.Evict(ns, []uint64{hash}, got)
				want, b := Missing, m.blocks[name]
				switch {
				case b == nil:
				case b.pins > 0:
					want = Pinned
				case b.filling || b.refs > 0:
					want = InUse
				default:
					want = Evicted
					m.gone(b)
				}
				if got[0] != want {
					t.Fatalf("%s, want %s", got[0], want)
				}
			},
			"retain": retain, "claim": retain, "once more": retain,
			"time": func(t *rapid.T) {
				step := rapid.SampledFrom([]int64{1, 1, 5, 5, 500, -3, int64(MaxTTL)}).Draw(t, "step")
				c.ns.Add(step)
				m.now = max(m.now, s.clock.read()) // it stands still while the clock is behind what was read
			},
			"sweep": func(*rapid.T) { s.Sweep() },
			"": func(t *rapid.T) {
				for _, o := range outs {
					for _, v := range o.bytes {
						if v != content(o.b.name) {
							t.Fatalf("a slot in use was written to: %x of %s", v, o.b.name)
						}
					}
				}
				m.compare(t, s, names, len(outs))
			},
		})
	})
}

// compare holds the store against the model.
func (m *model) compare(t *rapid.T, s *Store, names []string, tokens int) {
	hashes := make([]uint64, 17)
	for i := range hashes {
		hashes[i] = uint64(i)
	}
	state := make([]abi.Residency, len(hashes))
	ready, filling, pinned := 0, 0, 0
	for _, ns := range names {
		s.Residency(ns, hashes, state)
		for i, got := range state {
			want := abi.ResidencyAbsent
			if b := m.blocks[fmt.Sprint(ns, i)]; b != nil {
				if want = abi.ResidencyDRAM; b.filling {
					want = abi.ResidencyFilling
				}
			}
			if got != want {
				t.Fatalf("%s%d is %s, want %s", ns, i, got, want)
			}
		}
	}
	for _, b := range m.blocks {
		switch {
		case b.filling:
			filling++
		case b.pins > 0:
			ready, pinned = ready+1, pinned+1
		default:
			ready++
		}
	}
	st := s.Stats()
	want := PoolStats{BlockBytes: pageSize, Slots: m.slots, Free: m.slots - len(m.blocks) - len(m.away), Published: ready, Filling: filling, Pinned: pinned, Waiting: len(m.away)}
	want.Leased = st.Pools[0].Leased // of what is in use: below
	if st.Pools[0] != want || st.Tokens != tokens {
		t.Fatalf("%+v with %d tokens, want %+v with %d", st.Pools[0], st.Tokens, want, tokens)
	}
	leased := 0
	for _, b := range m.blocks {
		if !b.filling && b.refs > 0 && b.pins == 0 {
			leased++
		}
	}
	if st.Pools[0].Leased != leased {
		t.Fatalf("%d leased, want %d", st.Pools[0].Leased, leased)
	}
}
