//go:build unix

package hint

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/kvrt/kvrt/internal/guarded"
)

// TestHashes holds mpHashes and its parts against one element after the other, for lists of every
// length with every element in turn being something else. Neither side of the memory that
// it is given may be touched, and what it leaves must be a whole number of elements.
func TestHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	memory, room := guarded.Memory(t, 4096), guarded.Memory(t, 4096)
	for n := range 60 {
		for other := range n + 1 {
			var src []byte
			want := make([]byte, 0, 8*n)
			for i := range n {
				v := r.Uint64() | 1<<63
				if r.IntN(4) == 0 {
					v |= 0xcfcfcfcf << r.IntN(32)
				}
				lead := byte(mpUint64)
				if i == other {
					lead = byte(r.Uint32())
				}
				src = binary.BigEndian.AppendUint64(append(src, lead), v)
				want = binary.LittleEndian.AppendUint64(want, v)
			}
			for _, read := range []func(dst, src []byte) (_, _ []byte){mpHashes, mpWide, mpEights} {
				for text := range guarded.Ends(memory, src) {
					checkHashes(t, read, n, other, text, want)
					for _, elements := range []int{n / 2, n + 8} { // either may end first
						for dst := range guarded.Ends(room, make([]byte, 8*elements)) {
							read(dst, text)
						}
					}
				}
			}
		}
	}
}

func checkHashes(t *testing.T, read func(dst, src []byte) (_, _ []byte), n, other int, src, want []byte) {
	t.Helper()
	room := bytes.Repeat([]byte{0xa5}, 16+8*n)
	dst := room[8 : 8+8*n : 8+8*n]
	left, rest := read(dst, src)
	done := n - len(left)/8
	switch {
	case len(rest) != 9*(n-done) || len(left)%8 != 0:
		t.Fatalf("%d elements, another at %d: %d bytes and %d are left", n, other, len(left), len(rest))
	case done > other && src[9*other] != mpUint64:
		t.Fatalf("%d elements, another at %d: %d were read", n, other, done)
	case !bytes.Equal(dst[:8*done], want[:8*done]):
		t.Fatalf("%d elements, another at %d: wrong", n, other)
	case !bytes.Equal(room[:8], room[8+8*n:]) || room[0] != 0xa5:
		t.Fatalf("%d elements, another at %d: written outside", n, other)
	}
}
