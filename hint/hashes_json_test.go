//go:build unix

package hint

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/kvrt/kvrt/internal/guarded"
)

var (
	taken     = regexp.MustCompile(`^(?:([1-9][0-9]{0,19}),[ \t\r\n]*)*$`)
	oneNumber = regexp.MustCompile(`[0-9]+`)
)

// TestJSONHashes holds jsonWide and jsonRun against strconv: what they take is elements
// with their commas and white space, whole and in order, whatever lies between. Neither
// reads or writes beside the memory that it is given.
func TestJSONHashes(t *testing.T) {
	memory, room := guarded.Memory(t, 16<<10), guarded.Memory(t, 4096)
	r := rand.New(rand.NewPCG(1, 2))
	spaces := []string{"", "", " ", "\n  ", "\t\r\n", "                                                                   "}
	odd := []string{"0", "00", "07", "18446744073709551615", "18446744073709551616", "99999999999999999999", "123456789012345678901",
		"1.5", "-1", "\"1\"", "", "1 ", "1e3", "\x001", "/", ":", "1;", "12345678:0"}
	read := 0
	for round := range 4000 {
		var src []byte
		n := r.IntN(100)
		space := spaces[r.IntN(len(spaces))]
		for range n {
			v := r.Uint64()
			if round%4 > 0 {
				v >>= r.IntN(64)
			}
			src = strconv.AppendUint(src, max(v, 1), 10)
			if round%2 > 0 && r.IntN(20) == 0 {
				src = append(src[:len(src)-1], odd[r.IntN(len(odd))]...)
			}
			src = append(append(src, ','), space...)
			if round%2 > 0 && r.IntN(20) == 0 {
				space = spaces[r.IntN(len(spaces))]
			}
		}
		src = append(src, "1]}"...)
		read += checkJSONHashes(t, memory, room, src, r.IntN(8*120))
	}
	if read < 100_000 {
		t.Errorf("%d bytes were read of all lists", read)
	}
}

// checkJSONHashes reads src, from either end of memory, into size bytes at either end of
// room, and returns how many bytes were written.
func checkJSONHashes(t *testing.T, memory, room, src []byte, size int) (written int) {
	t.Helper()
	for name, read := range map[string]func(dst, src []byte) (_, _ []byte){"vectors": jsonWide, "words": jsonRun} {
		for text := range guarded.Ends(memory, src) {
			for dst := range guarded.Ends(room, make([]byte, size)) {
				left, rest := read(dst, text)
				bytesRead := text[:len(text)-len(rest)]
				if !taken.Match(bytesRead) {
					t.Fatalf("%s: %q was read of %q", name, bytesRead, src)
				}
				var want []byte
				for _, number := range oneNumber.FindAllString(string(bytesRead), -1) {
					v, err := strconv.ParseUint(number, 10, 64)
					if err != nil {
						t.Fatalf("%s: %s was read: %v", name, number, err)
					}
					want = binary.LittleEndian.AppendUint64(want, v)
				}
				if got := dst[:size-len(left)]; !bytes.Equal(got, want) {
					t.Fatalf("%s: %q gave %x and not %x", name, bytesRead, got, want)
				}
				written += len(want)
			}
		}
	}
	return written
}

// FuzzHashes is TestJSONHashes and TestHashes with bytes of any kind.
func FuzzHashes(f *testing.F) {
	f.Add([]byte("18446744073709551615, 7,\n9223372036854775808,1234567890123456789,12,3,4,5,6,7,8,9,10,11,12,13,14,15,16]"), uint16(60))
	f.Add(bytes.Repeat([]byte("\xcf12345678"), 20), uint16(20))
	f.Add(bytes.Repeat([]byte("12345678901234567890,"), 20), uint16(33))
	memory, room := guarded.Memory(f, 4096), guarded.Memory(f, 4096)
	f.Fuzz(func(t *testing.T, src []byte, elements uint16) {
		src = src[:min(len(src), 4096)]
		checkJSONHashes(t, memory, room, src, 8*int(elements%512))
		for _, read := range []func(dst, src []byte) (_, _ []byte){mpHashes, mpWide, mpEights} {
			for msgpack := range guarded.Ends(memory, src) {
				for dst := range guarded.Ends(room, make([]byte, 8*int(elements%512))) {
					left, rest := read(dst, msgpack)
					done := (len(dst) - len(left)) / 8
					if len(left)%8 != 0 || len(msgpack)-len(rest) != 9*done {
						t.Fatalf("%x: %d bytes of %d are left for %d", src, len(left), len(dst), len(rest))
					}
					for i := range done {
						if e := msgpack[9*i:]; e[0] != mpUint64 || binary.LittleEndian.Uint64(dst[8*i:]) != binary.BigEndian.Uint64(e[1:]) {
							t.Fatalf("%x: element %d is %x", src, i, dst[8*i:8*i+8])
						}
					}
				}
			}
		}
	})
}
