package hint

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
)

// TestJSONHashes holds jsonWide and jsonRun against strconv: what they take is elements
// with their commas and white space, whole and in order, whatever lies between.
func TestJSONHashes(t *testing.T) {
	taken := regexp.MustCompile(`^(?:([1-9][0-9]{0,19}),[ \t\r\n]*)*$`)
	one := regexp.MustCompile(`[0-9]+`)
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
		room := r.IntN(8 * 120)
		for name, f := range map[string]func(dst, src []byte) (_, _ []byte){"vectors": jsonWide, "words": jsonRun} {
			memory := bytes.Repeat([]byte{0xa5}, 8+room+8)
			left, rest := f(memory[8:8+room:8+room], src[:len(src):len(src)])
			got, bytesRead := memory[8:8+room-len(left)], src[:len(src)-len(rest)]
			if !taken.Match(bytesRead) || !bytes.HasSuffix(memory, memory[:8]) || memory[0] != 0xa5 {
				t.Fatalf("%s, round %d: %q was read of %q", name, round, bytesRead, src)
			}
			var want []byte
			for _, text := range one.FindAllString(string(bytesRead), -1) {
				v, err := strconv.ParseUint(text, 10, 64)
				if err != nil {
					t.Fatalf("%s: %s was read: %v", name, text, err)
				}
				want = binary.LittleEndian.AppendUint64(want, v)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%s, round %d: %q gave %x and not %x", name, round, bytesRead, got, want)
			}
			read += len(got)
		}
	}
	if read < 100_000 {
		t.Errorf("%d bytes were read of all lists", read)
	}
}
