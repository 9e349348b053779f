package abi

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func TestInfinite(t *testing.T) {
	half := new(big.Int).Lsh(big.NewInt(1), 1024)
	half.Sub(half, new(big.Int).Lsh(big.NewInt(1), 970))
	if half.String() != infinite {
		t.Fatalf("want %s", half)
	}
	below := new(big.Int).Sub(half, big.NewInt(1)).String()
	for _, text := range []string{
		infinite + "e0", infinite + ".0", infinite + ".000001", below + ".9999999999", below + "e0", "-" + infinite + ".0",
		infinite[:1] + "." + infinite[1:] + "e308", infinite[:1] + "." + infinite[1:] + "e307", "0.00" + infinite + "e311",
		infinite[:300] + "e9", infinite[:308] + "9e0", infinite + "0e-1", infinite + "1e-1",
		"1.7976931348623157e308", "1.7976931348623159e308", "1e308", "1e309", "9e308", "0e999999999999999999999", "0.0e5", "1e-999999999999999999999",
		"1e999999999999999999999", "1e+400", "-1E400", "0." + strings.Repeat("0", 400) + "1e700", "0." + strings.Repeat("0", 400) + "1e710",
		strings.Repeat("9", 400) + "e-91", strings.Repeat("9", 400) + "e-92", "10e308", "0.1e310", "0.1e309",
	} {
		f, err := strconv.ParseFloat(text, 64)
		if want := err != nil && math.IsInf(f, 0); isInfinite([]byte(text)) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}

func FuzzWideNumber(f *testing.F) {
	for _, s := range []string{"1e400", "-17.98e307", "0.5", "18446744073709551616", "-9223372036854775809", "-0", "1e", infinite + ".5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := isWideNumber([]byte(s))
		if !IsNumber([]byte(s)) {
			if got {
				t.Fatalf("%q", s)
			}
			return
		}
		want := false
		if strings.ContainsAny(s, ".eE") {
			v, _ := strconv.ParseFloat(s, 64)
			want = math.IsInf(v, 0)
		} else if _, err := strconv.ParseUint(strings.TrimPrefix(s, "-"), 10, 64); err != nil {
			want = true
		} else if s[0] == '-' && strings.Trim(s, "-0") != "" {
			_, err := strconv.ParseInt(s, 10, 64)
			want = err != nil
		}
		if got != want {
			t.Fatalf("%q: got %v, want %v", s, got, want)
		}
	})
}
