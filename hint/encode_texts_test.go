package hint_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// TestMsgpackTexts holds a list of texts against its elements written one by one, into
// buffers of any room.
func TestMsgpackTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 5000 {
		var base, nodes, want []byte
		var list []abi.Node
		for range r.IntN(20) {
			n := abi.Node{Tag: abi.TagString, Len: uint32(r.IntN(40)), Val: uint64(len(base))}
			for range n.Len {
				base = append(base, byte(r.IntN(128)))
			}
			if round%2 > 0 && r.IntN(10) == 0 {
				n = abi.Node{Tag: abi.TagNull}
			}
			list, nodes = append(list, n), abi.AppendNode(nodes, n)
		}
		base = abi.Align(base)
		root := abi.Node{Tag: abi.TagArray, Len: uint32(len(list)), Val: uint64(len(base))}
		base = append(base, nodes...)
		head, err := hint.AppendTreeMsgpack(nil, base, root)
		if err != nil {
			t.Fatal(err)
		}
		if want = head[:1]; len(list) > 15 {
			want = head[:3]
		}
		want = bytes.Clone(want)
		for _, n := range list {
			if want, err = hint.AppendTreeMsgpack(want, base, n); err != nil {
				t.Fatal(err)
			}
		}
		prefix := make([]byte, r.IntN(8), 8+r.IntN(len(want)+40))
		got, err := hint.AppendTreeMsgpack(prefix, base, root)
		if err != nil || !bytes.Equal(got[len(prefix):], want) {
			t.Fatalf("%v gave %x (%v), not %x", list, got[len(prefix):], err, want)
		}
	}
}
