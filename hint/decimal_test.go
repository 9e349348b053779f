package hint

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestDecimalHash holds the rule against strconv, on texts that are numbers nearly.
func TestDecimalHash(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, text := range []string{"", "0", "00", "01", "1", "-1", "+1", "1_0", "18446744073709551615", "18446744073709551616", "99999999999999999999", "100000000000000000000", "1844674407370955161a", "a8446744073709551615"} {
		checkDecimal(t, []byte(text))
	}
	for range 200_000 {
		text := strconv.AppendUint(nil, r.Uint64()>>r.IntN(64), 10)
		if r.IntN(2) == 0 {
			text[r.IntN(len(text))] = byte(r.IntN(256))
		}
		checkDecimal(t, text)
	}
}

func checkDecimal(t *testing.T, text []byte) {
	t.Helper()
	n, err := strconv.ParseUint(string(text), 10, 64)
	if want := err == nil && strconv.FormatUint(n, 10) == string(text); decimalHash(text) != want {
		t.Fatalf("%q: %v, want %v", text, !want, want)
	}
}
