package tier

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTable holds the table to a list of blocks in the order of their last use.
func TestTable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	var tb table
	const slots = 5
	tb.init(slots)
	type block struct {
		slot  int32
		space string
		hash  uint64
		gen   uint64
		refs  int
		ready bool
		call  uint64
	}
	var used []*block // the oldest first
	find := func(space string, hash uint64) *block {
		for _, b := range used {
			if b.space == space && b.hash == hash {
				return b
			}
		}
		return nil
	}
	latest := func(b *block) {
		used = append(slices.DeleteFunc(used, func(x *block) bool { return x == b }), b)
	}
	last := map[int32]uint64{} // generation of the last block that a slot has shown
	for call := uint64(1); call < 20_000; call++ {
		space, hash := fmt.Sprint("s", rnd.IntN(3)), rnd.Uint64N(6)
		b := find(space, hash)
		at := tb.find(space, hash)
		if (b == nil) != (at < 0) || b != nil && b.slot != at {
			t.Fatalf("%d: block %v is in slot %d", call, b, at)
		}
		switch op := rnd.IntN(9); {
		case b == nil && op < 5:
			slot, evicted := tb.take(space, hash, 1+hash, call)
			victim := slices.IndexFunc(used, func(x *block) bool { return x.ready && x.refs == 0 })
			switch {
			case len(used) < slots:
				if slot < 0 || evicted {
					t.Fatalf("%d: slot %d, evicted %v, with %d in use", call, slot, evicted, len(used))
				}
			case victim < 0:
				if slot >= 0 {
					t.Fatalf("%d: slot %d, and all are in use", call, slot)
				}
				continue
			default:
				if !evicted || slot != used[victim].slot {
					t.Fatalf("%d: slot %d went, not %d", call, slot, used[victim].slot)
				}
				used = slices.Delete(used, victim, victim+1)
			}
			used = append(used, &block{slot: slot, space: space, hash: hash, call: call})
		case b == nil:
		case op == 8:
			free := b.ready && b.refs == 0
			if tb.evict(tb.spaces[space], hash) != free {
				t.Fatalf("%d: evicted is not %v", call, free)
			}
			if free {
				if g := tb.slots[at].generation; g&1 == 1 || g <= last[at] {
					t.Fatalf("%d: generation %d after %d", call, g, last[at])
				}
				used = slices.DeleteFunc(used, func(x *block) bool { return x == b })
			}
		case !b.ready && op < 6:
			tb.filled(at)
			b.ready, b.gen = true, tb.slots[at].generation
			if b.gen&1 == 0 || b.gen <= last[at] {
				t.Fatalf("%d: generation %d after %d", call, b.gen, last[at])
			}
			last[at] = b.gen
			latest(b)
		case !b.ready:
			tb.abandon(at, false)
			used = slices.DeleteFunc(used, func(x *block) bool { return x == b })
		case op < 2:
			tb.used(at, call)
			if b.refs == 0 {
				latest(b)
			}
		case op < 5:
			tb.hold(at)
			b.refs++
		case b.refs > 0:
			tb.drop(at)
			if b.refs--; b.refs == 0 {
				latest(b)
			}
		}
		filling, leased := 0, 0
		for _, b := range used {
			if !b.ready {
				filling++
			} else if b.refs > 0 {
				leased++
			}
			if b.ready && tb.slots[b.slot].generation != b.gen {
				t.Fatalf("%d: the generation of a published block has changed", call)
			}
		}
		if tb.filling != filling || tb.leased != leased || len(tb.free) != slots-len(used) {
			t.Fatalf("%d: %d filling, %d leased and %d free, not %d, %d and %d", call, tb.filling, tb.leased, len(tb.free), filling, leased, slots-len(used))
		}
	}
	if len(tb.spaces) > 3 {
		t.Errorf("%d namespaces are kept", len(tb.spaces))
	}
}
