package fetch

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// fast is a clock that moves a millisecond per reading, so that tombstones come and go.
func fast() func() int64 {
	ns := int64(1)
	return func() int64 { ns += int64(time.Millisecond); return ns }
}

// ids makes request ids that never repeat, in one buffer.
type ids struct {
	buf []byte
	n   uint64
}

func (i *ids) next() hint.Identity {
	i.n++
	i.buf = strconv.AppendUint(append(i.buf[:0], "vllm-7d9f0c1e-4b5a-4c3d-9e8f-"...), i.n+1e12, 10)
	return hint.Identity{Engine: view(i.buf[:4]), RequestID: view(i.buf[5:]), Leg: abi.LegDecode}
}

func submitDiscard(tb testing.TB, s *Store, id hint.Identity, src Source, hashes []byte) {
	p, reason, detail := s.Prepare(id, src, hashes, false)
	if p == nil {
		tb.Fatal(reason, detail)
	}
	if reason, detail := p.Commit(); reason != abi.ReasonNone {
		tb.Fatal(reason, detail)
	}
	s.Discard(id)
}

func TestSubmitDiscardAllocatesNothing(t *testing.T) {
	for _, n := range []int{1, 1024} {
		for _, query := range []bool{false, true} {
			t.Run(fmt.Sprintf("hashes=%d,query=%v", n, query), func(t *testing.T) {
				s := New(Config{TombstoneTTL: time.Second, Now: fast()})
				var ids ids
				src, hashes := source("tcp://a:1"), manyHashes(n)
				once := func() {
					id := ids.next()
					p, _, _ := s.Prepare(id, src, hashes, false)
					p.Commit()
					if query {
						s.Lookup(id, 1)
						s.Status(id)
					}
					p, _, _ = s.PrepareDiscard(id)
					p.Commit()
				}
				for range 4000 { // tables, free lists and tombstones find their sizes
					once()
				}
				if got := testing.AllocsPerRun(1000, once); got != 0 {
					t.Errorf("%v allocations", got)
				}
			})
		}
	}
}

func BenchmarkSubmitDiscard(b *testing.B) {
	for _, n := range []int{1, 1024} {
		b.Run(fmt.Sprintf("hashes=%d", n), func(b *testing.B) {
			s := New(Config{Now: fast()})
			var ids ids
			src, hashes := source("tcp://a:1"), manyHashes(n)
			for range 100_000 {
				submitDiscard(b, s, ids.next(), src, hashes)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				submitDiscard(b, s, ids.next(), src, hashes)
			}
		})
	}
}

func BenchmarkSubmitDiscardParallel(b *testing.B) {
	s := New(Config{TombstoneTTL: time.Millisecond})
	src, hashes := source("tcp://a:1"), manyHashes(1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ids := ids{n: uint64(time.Now().UnixNano())}
		for pb.Next() {
			submitDiscard(b, s, ids.next(), src, hashes)
		}
	})
}

// BenchmarkLookupFirst1024 is the first query of a hint, which builds its set. The
// floor is what a Go map takes for the same.
func BenchmarkLookupFirst1024(b *testing.B) {
	hashes := manyHashes(1024)
	b.Run("set", func(b *testing.B) {
		s := New(Config{})
		id, src := request("r"), source("tcp://a:1")
		b.ReportAllocs()
		for range b.N {
			b.StopTimer()
			p, _, _ := s.Prepare(id, src, hashes, false)
			p.Commit()
			b.StartTimer()
			if _, ok := s.Lookup(id, 1); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("build", func(b *testing.B) {
		slots, sec := newSlots(classOf(1024)), New(Config{}).secret
		b.ReportAllocs()
		for range b.N {
			if sec.build(slots.data, hashes) != 1024 {
				b.Fatal("wrong count")
			}
		}
	})
	b.Run("gomap", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			m := make(map[uint64]struct{}, 1024)
			for i := range uint32(1024) {
				m[hashAt(hashes, i)] = struct{}{}
			}
			if _, ok := m[1]; !ok {
				b.Fatal("not found")
			}
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	s := New(Config{})
	id := request("7d9f0c1e-4b5a-4c3d-9e8f-000000000001")
	p, _, _ := s.Prepare(id, source("tcp://a:1"), manyHashes(1024), false)
	p.Commit()
	b.ReportAllocs()
	for i := range b.N {
		s.Lookup(id, uint64(i))
	}
}
