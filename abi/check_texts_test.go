package abi

import (
	"math/rand/v2"
	"testing"
)

// TestTexts holds lists that begin with strings against the same lists behind a null, whose
// strings are looked at one by one.
func TestTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for round := range 20_000 {
		var list []Node
		var texts []byte
		for range r.IntN(6) + 1 {
			b := make([]byte, r.IntN(40))
			for i := range b {
				b[i] = 'a'
			}
			n := Node{Tag: TagString, Len: uint32(len(b)), Val: uint64(len(texts))}
			if round%2 > 0 {
				switch r.IntN(12) {
				case 0:
					copy(b[r.IntN(len(b)+1):], "é")
				case 1:
					copy(b[r.IntN(len(b)+1):], "\xff")
				case 2:
					n.Ext = 1
				case 3:
					n.Tag = TagBytes
				case 4:
					n = Node{Tag: TagU64, Val: 7}
				case 5:
					n.Len += uint32(r.IntN(200))
				case 6:
					n.Val += uint64(r.IntN(200))
				case 7:
					n.Val = 0
				case 8:
					n.Val = r.Uint64()
				}
			}
			texts, list = append(texts, b...), append(list, n)
		}
		// The fixed part, the list and its texts; what is left over lets runs overlap a little.
		check := func(list []Node) error {
			var base []byte
			base = zeros(base, SizeNode)
			for _, n := range list {
				if n.Tag != TagU64 && n.Tag != TagNull {
					n.Val += uint64(SizeNode * (1 + len(list)))
				}
				base = AppendNode(base, n)
			}
			base = append(base, texts...)
			c := newChecker(base, SizeNode)
			return c.node(Node{Tag: TagArray, Len: uint32(len(list)), Val: SizeNode}, 1)
		}
		got, want := check(list), check(append([]Node{{Tag: TagNull}}, list...))
		if round%2 > 0 && list[0].Tag == TagU64 {
			continue // a list of integers alone is refused for that
		}
		if (got == nil) != (want == nil) {
			t.Fatalf("%v over %q: %v, and behind a null %v", list, texts, got, want)
		}
		if got != nil {
			refused++
		}
	}
	if refused == 0 || refused > 10_000 {
		t.Errorf("%d of 20,000 were refused", refused)
	}
}
