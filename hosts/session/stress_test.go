package session

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

// TestReadersBesideWriters is for the race detector, and holds what readers see: blocks
// of a path always follow each other as they were stored, and a session that is never
// removed is always there. Each chain's hashes say where they belong.
func TestReadersBesideWriters(t *testing.T) {
	const sessions, depth = 6, 60
	hash := func(chain, place int) uint64 { return uint64(chain)<<32 | uint64(place) + 1 }
	x := New(Config{MaxNodes: 3000, MaxSessions: 50, Grace: time.Nanosecond})
	w := hint.Worker{ID: hint.NamedWorker("w"), HasRank: true}
	steady := make([]uint64, depth)
	for i := range steady {
		steady[i] = hash(1000, i)
	}
	keep := &Event{Op: OpStored, Worker: w, Session: "steady", Hashes: steady}
	apply(t, x, keep)

	var stop atomic.Bool
	var writers, readers sync.WaitGroup
	for n := range 2 {
		writers.Go(func() {
			for i := range 1500 {
				c := i % sessions
				name := fmt.Sprint("s", c)
				chain := make([]uint64, 1+(i*7+n)%depth)
				for j := range chain {
					chain[j] = hash(c, j)
				}
				switch i % 7 {
				case 0:
					x.Apply(&Event{Op: OpRemoved, Worker: w, Hashes: chain[len(chain)-1:]})
				case 1:
					x.Apply(&Event{Op: OpMatched, Worker: w, Session: name, Hashes: chain})
				case 2:
					if i%5 == 0 {
						x.RemoveSession(name)
					}
				default:
					x.Apply(&Event{Op: OpStored, Worker: w, Session: name, Hashes: chain})
				}
				if i%10 == 0 {
					if _, err := x.Apply(keep); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for n := range 2 {
		readers.Go(func() {
			var p Paths
			var fronts []Frontier
			var blocks []uint64
			for i := 0; !stop.Load(); i++ {
				c := i % (sessions + 1)
				name := fmt.Sprint("s", c)
				if c == sessions {
					name, c = "steady", 1000
				}
				q := Query{Session: name, Worker: w}
				if n == 1 {
					q.Anchor, q.HasAnchor = hash(c, 3), true
				}
				ask := x.Lineage
				if i%3 == 0 {
					ask = x.Exclusive
				}
				if err := ask(&p, q); err != nil && (err == ErrUnknownSession && name == "steady") {
					t.Error("the session is gone")
				}
				for k := range p.Len() {
					var ok bool
					if blocks, ok = p.Append(blocks[:0], k); !ok {
						continue // pruned meanwhile
					}
					for j, h := range blocks {
						if h>>32 != uint64(c) || j > 0 && h != blocks[j-1]+1 {
							t.Fatalf("%s: %x after %x", name, h, blocks[:j])
						}
					}
				}
				fronts, _ = x.Frontiers(fronts[:0], name, "")
				if nd, ok, _ := x.Node(hash(c, 5)); ok && (nd.Hash != hash(c, 5) || nd.HasParent && nd.Parent != hash(c, 4)) {
					t.Errorf("%+v", nd)
				}
				x.Stats()
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
}

// TestReadsAllocateNothing: queries into the caller's memory, and the host functions.
func TestReadsAllocateNothing(t *testing.T) {
	set := new(Set)
	x := set.Add("", Config{})
	trace := newTrace(1, true, 1)
	chain := trace.fresh(nil, 1024)
	w := hint.Worker{ID: hint.NamedWorker("worker"), Rank: 3, HasRank: true}
	apply(t, x, stored(w, "s", chain...), stored(w, "t", chain[:512]...))
	var p Paths
	fronts, blocks := make([]Frontier, 0, 4), make([]uint64, 0, 1024)
	q := Query{Session: "s", Worker: w}
	host := NewHost(set, nil)
	mem := make([]byte, 64<<10)
	copy(mem[1024:], "sworker")
	abi.PutNode(mem, 2048, abi.Node{Tag: abi.TagString, Len: 6, Val: 1025})
	call := runtime.NewCall(runtime.CallConfig{Limits: runtime.Limits{HostBytes: 1 << 30}})
	stack := make([]uint64, 8)
	functions := map[string][]uint64{
		"lineage": {1024, 1, 2048, 3, 0, 0, 4096, 16 << 10}, "exclusive": {1024, 1, 2048, 3, 4096, 16 << 10},
		"frontiers": {1024, 1, 4096, 1024}, "node": {chain[5], 4096, 32},
	}
	for name, args := range functions {
		f := hosttest.Function(t, host, name)
		if n := testing.AllocsPerRun(50, func() {
			copy(stack, args)
			if f.Call(call, mem, stack); int64(stack[0]) <= 0 {
				t.Fatal(name, int64(stack[0]))
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if n := testing.AllocsPerRun(50, func() {
		fronts, _ = x.Frontiers(fronts[:0], "s", "")
		if x.Lineage(&p, q) != nil || p.Blocks() != 1024 {
			t.Fatal("no lineage")
		}
		blocks, _ = p.Append(blocks[:0], 0)
		if x.Exclusive(&p, q) != nil || p.Blocks() != 512 {
			t.Fatal("nothing exclusive")
		}
		x.Node(chain[7])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	// What moves nothing allocates nothing either.
	e := Event{Op: OpMatched, Worker: w, Session: "s", Hashes: chain}
	if n := testing.AllocsPerRun(50, func() { x.Apply(&e) }); n != 0 {
		t.Errorf("a match: %v allocations", n)
	}
}
