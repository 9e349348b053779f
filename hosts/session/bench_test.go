package session

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

// long is the length of the chains that are measured.
const long = 1024

// filled is an index with about so many nodes of agents' sessions, and one session of
// long blocks at the end of which it stands.
func filled(tb testing.TB, nodes int) (*Index, *trace, *talk) {
	x := New(Config{MaxNodes: 4 << 20, Grace: -1})
	apply := func(e Event) {
		if _, err := x.Apply(&e); err != nil {
			tb.Fatal(err)
		}
	}
	t := newTrace(1, true, max(1, nodes/1024))
	for x.Stats().Nodes+long < uint64(nodes) {
		t.turn(apply)
	}
	k := &talk{id: "the-measured-session", worker: hint.Worker{ID: hint.UintWorker(1), Rank: 1, HasRank: true}, chain: t.fresh(nil, long), stored: long}
	apply(Event{Op: OpStored, Worker: k.worker, Session: k.id, Hashes: k.chain})
	return x, t, k
}

func sizes(b *testing.B, do func(*testing.B, *Index, *trace, *talk)) {
	for _, nodes := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			x, t, k := filled(b, nodes)
			b.ReportAllocs()
			b.ResetTimer()
			do(b, x, t, k)
		})
	}
}

// BenchmarkMatch: a request whose prefix is known to its last block.
func BenchmarkMatch(b *testing.B) {
	sizes(b, func(b *testing.B, x *Index, t *trace, k *talk) {
		var at []*talk
		for _, l := range t.live {
			if l != nil && l.stored > 0 {
				at = append(at, l)
			}
		}
		at = append(at, k)
		i := 0
		for b.Loop() {
			l := at[i]
			if i++; i == len(at) {
				i = 0
			}
			if _, err := x.Apply(&Event{Op: OpMatched, Worker: l.worker, Session: l.id, Hashes: l.chain[l.stored-1 : l.stored]}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkStore1024: a chain of new blocks, and its session's end.
func BenchmarkStore1024(b *testing.B) {
	sizes(b, func(b *testing.B, x *Index, t *trace, k *talk) {
		chain := make([]uint64, 0, long)
		for b.Loop() {
			chain = t.fresh(chain[:0], long)
			if _, err := x.Apply(&Event{Op: OpStored, Worker: k.worker, Session: "new", Hashes: chain}); err != nil {
				b.Fatal(err)
			}
			x.RemoveSession("new") // the next chain takes it away
		}
	})
}

// BenchmarkStore1: one more block of a chain, as while tokens are generated.
func BenchmarkStore1(b *testing.B) {
	sizes(b, func(b *testing.B, x *Index, t *trace, k *talk) {
		e := Event{Op: OpStored, Worker: k.worker, Session: k.id, Parent: k.chain[long-1], HasParent: true}
		next, n := make([]uint64, 0, 1), 0
		for b.Loop() {
			next = t.fresh(next[:0], 1)
			e.Hashes = next
			if _, err := x.Apply(&e); err != nil {
				b.Fatal(err)
			}
			e.Parent = next[0]
			if n++; n%long == 0 {
				x.Apply(&Event{Op: OpRemoved, Worker: k.worker, Hashes: next[:1]})
				x.RemoveSession(k.id)
				e.HasParent = false
			} else {
				e.HasParent = true
			}
		}
	})
}

// BenchmarkLineage1024 is the host function: 1,024 blocks into a guest's memory.
func BenchmarkLineage1024(b *testing.B) {
	b.Run("copy", func(b *testing.B) {
		from, to := make([]byte, 8*long), make([]byte, 8*long)
		for b.Loop() {
			copy(to, from)
		}
	})
	sizes(b, func(b *testing.B, x *Index, t *trace, k *talk) {
		r := newReader(b, x, k)
		for b.Loop() {
			if !r.read() {
				b.Fatal("no lineage: ", int64(r.stack[0]))
			}
		}
	})
}

// reader calls kvrt_session.lineage as a guest does.
type reader struct {
	f     *runtime.HostFunction
	call  *runtime.Call
	mem   []byte
	stack []uint64
	args  []uint64
	want  uint64
	n     int
}

func newReader(t testing.TB, x *Index, k *talk) *reader {
	set := new(Set)
	set.all.Store(&map[string]*Index{"": x})
	r := &reader{f: hosttest.Function(t, NewHost(set, nil), "lineage"), call: runtime.NewCall(runtime.CallConfig{}), mem: make([]byte, 64<<10), stack: make([]uint64, 8)}
	copy(r.mem[1024:], k.id)
	abi.PutNode(r.mem, 2048, k.worker.ID.Node())
	r.args = []uint64{1024, uint64(len(k.id)), 2048, uint64(k.worker.Rank), 0, 0, 4096, 16 << 10}
	r.want = uint64(abi.SizeLineage + abi.SizePath + 8*len(k.chain))
	return r
}

func (r *reader) read() bool {
	if r.n++; r.n%64 == 0 {
		r.call = runtime.NewCall(runtime.CallConfig{}) // one call may copy so much
	}
	copy(r.stack, r.args)
	r.f.Call(r.call, r.mem, r.stack)
	return r.stack[0] == r.want
}

// BenchmarkReadBesideWriter: lineages of 1,024 blocks, alone; while one writer applies
// events to the index as fast as it can; and while it applies them to another index, which
// costs the machine the same.
func BenchmarkReadBesideWriter(b *testing.B) {
	for _, beside := range []string{"none", "same", "other"} {
		b.Run("writer="+beside, func(b *testing.B) {
			x, t, k := filled(b, 100_000)
			var stop atomic.Bool
			done := make(chan int)
			if beside != "none" {
				to := x
				if beside == "other" {
					to = New(Config{MaxNodes: 4 << 20, Grace: -1})
				}
				go func() {
					n := 0
					for !stop.Load() {
						t.turn(func(e Event) { to.Apply(&e); n++ })
					}
					done <- n
				}()
			}
			r := newReader(b, x, k)
			b.ResetTimer()
			for b.Loop() {
				if !r.read() {
					b.Fatal("no lineage: ", int64(r.stack[0]))
				}
			}
			b.StopTimer()
			if beside != "none" {
				stop.Store(true)
				b.ReportMetric(float64(<-done)/b.Elapsed().Seconds(), "events/s")
			}
		})
	}
}
