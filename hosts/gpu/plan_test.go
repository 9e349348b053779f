package gpu

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// testTable has regions at the given places, in order.
func testTable(tb testing.TB, mems ...Memory) (*table, []Region) {
	t := &table{}
	var ids []Region
	for i, m := range mems {
		r := &region{mem: m, align: 1, freed: make(chan struct{})}
		var err error
		if t, err = t.with(r, uint32(i+1)); err != nil {
			tb.Fatal(err)
		}
		ids = append(ids, r.id)
	}
	return t, ids
}

func drop(p *planner) {
	for _, r := range p.regions {
		r.use.Add(-1)
	}
	p.regions = p.regions[:0]
}

func TestMergeAndSplit(t *testing.T) {
	// Two regions side by side, one far away, one in chunks.
	tab, id := testTable(t, Memory{Addr: 1000, Size: 100}, Memory{Addr: 1100, Size: 100}, Memory{Addr: 5000, Size: 1000}, Memory{Addr: 9000, Size: 1000, Chunk: 64})
	type copies [][3]uint64
	for _, c := range []struct {
		name  string
		max   uint64
		spans []Span
		want  copies
	}{
		{"side by side", 1 << 20, []Span{{id[2], 0, id[0], 0, 10}, {id[2], 10, id[0], 10, 20}}, copies{{5000, 1000, 30}}},
		{"in any order", 1 << 20, []Span{{id[2], 10, id[0], 10, 20}, {id[2], 30, id[0], 30, 1}, {id[2], 0, id[0], 0, 10}}, copies{{5000, 1000, 31}}},
		{"at one end only", 1 << 20, []Span{{id[2], 0, id[0], 0, 10}, {id[2], 10, id[0], 11, 20}}, copies{{5000, 1000, 10}, {5010, 1011, 20}}},
		{"not across regions", 1 << 20, []Span{{id[2], 0, id[0], 90, 10}, {id[2], 10, id[1], 0, 10}}, copies{{5000, 1090, 10}, {5010, 1100, 10}}},
		{"no bytes", 1 << 20, []Span{{id[2], 1000, id[0], 100, 0}}, nil},
		{"too long", 40, []Span{{id[2], 0, id[0], 0, 100}}, copies{{5000, 1000, 40}, {5040, 1040, 40}, {5080, 1080, 20}}},
		{"across chunks", 1 << 20, []Span{{id[3], 60, id[2], 3, 130}}, copies{{9060, 5003, 4}, {9064, 5007, 64}, {9128, 5071, 62}}},
		{"across chunks of the source", 1 << 20, []Span{{id[2], 3, id[3], 60, 10}}, copies{{5003, 9060, 4}, {5007, 9064, 6}}},
	} {
		var p planner
		if err := p.plan(tab, c.spans, c.max); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got copies
		for i := range p.out.Dst {
			got = append(got, [3]uint64{p.out.Dst[i], p.out.Src[i], p.out.Size[i]})
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
		drop(&p)
	}
}

func TestTable(t *testing.T) {
	tab, id := testTable(t, Memory{Addr: 1000, Size: 100}, Memory{Addr: 500, Size: 100}, Memory{Addr: 600, Size: 1})
	for _, m := range []Memory{{Addr: 999, Size: 2}, {Addr: 1099, Size: 1}, {Addr: 0, Size: 501}, {Addr: 400, Size: 5000}, {Addr: 1000, Size: 100}} {
		if _, err := tab.with(&region{mem: m}, 9); !errors.Is(err, ErrOverlap) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for _, m := range []Memory{{Addr: 10}, {Addr: math.MaxUint64, Size: 2}} {
		if _, err := tab.with(&region{mem: m}, 9); !errors.Is(err, ErrRange) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for addr, want := range map[uint64]Region{499: 0, 500: id[1], 599: id[1], 600: id[2], 601: 0, 999: 0, 1000: id[0], 1099: id[0], 1100: 0, math.MaxUint64: 0} {
		var got Region
		if r := tab.at(addr); r != nil {
			got = r.id
		}
		if got != want {
			t.Errorf("at %d is %#x, not %#x", addr, got, want)
		}
	}
	tab = tab.without(tab.find(id[0]))
	if tab.find(id[0]) != nil || tab.at(1000) != nil {
		t.Error("a region is there after it was taken out")
	}
	again := &region{mem: Memory{Addr: 1000, Size: 1}}
	tab, _ = tab.with(again, 9)
	if again.id.slot() != id[0].slot() || tab.find(id[0]) != nil || tab.find(again.id) != again {
		t.Errorf("slot %d was not used again, or answers to its old generation", id[0].slot())
	}
}

func TestRowsOverflow(t *testing.T) {
	w := Rows{Base: 1 << 20, Stride: 1 << 60, Size: 1, Count: 1 << 20}
	if _, err := w.offset(16); !errors.Is(err, ErrRange) {
		t.Errorf("block 16: %v", err)
	}
	if off, err := w.offset(3); off != 1<<20+3<<60 || err != nil {
		t.Errorf("block 3: %d, %v", off, err)
	}
}

// FuzzPlan: copies do what their spans say, byte for byte, or the batch is refused.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 10, 0, 1, 10, 10, 10}, uint64(16))
	f.Add([]byte{0, 0, 0, 20, 10, 2, 1, 250, 0, 6}, uint64(3))
	f.Add([]byte{2, 0, 0, 0, 255, 1, 0, 0, 250, 5, 1, 2, 9, 0, 3}, uint64(1000))
	f.Add([]byte{0, 1, 250, 250, 250}, uint64(1))
	f.Fuzz(func(t *testing.T, in []byte, maxCopy uint64) {
		maxCopy = max(maxCopy, 1)
		// Bytes are addresses: the regions lie in one array, two of them side by side.
		tab, ids := testTable(t, Memory{Addr: 100, Size: 256}, Memory{Addr: 356, Size: 200}, Memory{Addr: 600, Size: 256, Chunk: 32})
		base := []uint64{100, 356, 600}
		size := []uint64{256, 200, 256}
		var spans []Span
		want := make([]int, 1000) // which byte of the past is where
		for i := range want {
			want[i] = i
		}
		writes, reads := make([]int, 1000), make([]int, 1000)
		outside := false
		for ; len(in) >= 5 && len(spans) < 64; in = in[5:] {
			d, s := in[0]%3, in[1]%3
			sp := Span{ids[d], uint64(in[2]), ids[s], uint64(in[3]), uint64(in[4])}
			spans = append(spans, sp)
			if sp.DstOff+sp.Len > size[d] || sp.SrcOff+sp.Len > size[s] {
				outside = true
				continue
			}
			for i := range sp.Len {
				to, from := base[d]+sp.DstOff+i, base[s]+sp.SrcOff+i
				want[to] = int(from)
				writes[to]++
				reads[from]++
			}
		}
		clash := false
		for i := range writes {
			clash = clash || writes[i] > 1 || writes[i] > 0 && reads[i] > 0
		}
		var p planner
		err := p.plan(tab, spans, maxCopy)
		defer drop(&p)
		if outside != errors.Is(err, ErrRange) || !outside && clash != errors.Is(err, ErrOverlap) || (err != nil) != (outside || clash) {
			t.Fatalf("outside %v, clash %v: %v", outside, clash, err)
		}
		if err != nil {
			return
		}
		got := make([]int, 1000)
		for i := range got {
			got[i] = i
		}
		for i := range p.out.Dst {
			d, s, n := p.out.Dst[i], p.out.Src[i], p.out.Size[i]
			if n == 0 || n > maxCopy {
				t.Fatalf("a copy of %d bytes, at most %d", n, maxCopy)
			}
			rd, rs := tab.at(d), tab.at(s)
			if rd != tab.at(d+n-1) || rs != tab.at(s+n-1) {
				t.Fatalf("a copy of %d bytes from %d to %d leaves its region", n, s, d)
			}
			for _, a := range []uint64{d, s} {
				if r := tab.at(a); r.mem.Chunk > 0 && (a-r.mem.Addr)/r.mem.Chunk != (a+n-1-r.mem.Addr)/r.mem.Chunk {
					t.Fatalf("a copy of %d bytes at %d crosses a border", n, a)
				}
			}
			for j := range n {
				got[d+j] = int(s + j)
			}
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("byte %d comes from %d, not %d", i, got[i], want[i])
			}
		}
	})
}

// blockSpans are n blocks in random places, so that few lie side by side.
func blockSpans(tb testing.TB, n int) (*table, []Span) {
	tab, id := testTable(tb, Memory{Addr: 1 << 30, Size: 1 << 30}, Memory{Addr: 1 << 40, Size: 1 << 30})
	rnd := rand.New(rand.NewPCG(1, 1))
	to, from := rnd.Perm(n), rnd.Perm(n)
	spans := make([]Span, n)
	for i := range spans {
		spans[i] = Span{id[0], uint64(to[i]) << 16, id[1], uint64(from[i]) << 16, 1 << 16}
	}
	return tab, spans
}

func TestPlanAllocatesNothing(t *testing.T) {
	tab, spans := blockSpans(t, 1024)
	var p planner
	plan := func() {
		if err := p.plan(tab, spans, 64<<20); err != nil {
			t.Fatal(err)
		}
		drop(&p)
	}
	plan()
	if n := testing.AllocsPerRun(20, plan); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPlan4096: blocks in random places, and a table of them in order that merges.
func BenchmarkPlan4096(b *testing.B) {
	for _, order := range []string{"random", "merge"} {
		b.Run(order, func(b *testing.B) {
			tab, spans := blockSpans(b, 4096)
			if order == "merge" {
				for i := range spans {
					spans[i].DstOff, spans[i].SrcOff = uint64(i)<<16, uint64(i)<<16
				}
			}
			var p planner
			b.ReportAllocs()
			for b.Loop() {
				if err := p.plan(tab, spans, 64<<20); err != nil {
					b.Fatal(err)
				}
				drop(&p)
			}
		})
	}
}

func TestSort(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{2, few - 1, few, 1000, 5000} {
		for _, shift := range []int{0, 16, 40, 53, 63} {
			var p planner
			sum := uint64(0)
			for range n {
				d := rnd.Uint64() >> shift << (shift % 16)
				sum += d
				p.recs = append(p.recs, rec{dst: d, src: ^d})
			}
			p.sort()
			for i, r := range p.recs {
				if i > 0 && r.dst < p.recs[i-1].dst || r.src != ^r.dst {
					t.Fatalf("%d recs, shift %d: rec %d is out of order, or torn", n, shift, i)
				}
				sum -= r.dst
			}
			if sum != 0 || len(p.recs) != n {
				t.Fatalf("%d recs, shift %d: they are others now", n, shift)
			}
		}
	}
}
