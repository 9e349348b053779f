package abi

import (
	"testing"
	"unicode/utf8"
)

// TestValidUTF8 holds the look at short texts against utf8.Valid, with what is not ASCII
// in every place.
func TestValidUTF8(t *testing.T) {
	for n := range 40 {
		for at := range n {
			for _, what := range []string{"a", "\x7f", "\x80", "\xff", "é", "€", "\xc3"} {
				b := make([]byte, n)
				copy(b[at:], what)
				if got, want := validUTF8(b), utf8.Valid(b); got != want {
					t.Errorf("%q: %v, want %v", b, got, want)
				}
			}
		}
	}
	if !validUTF8(nil) {
		t.Error("nothing is valid")
	}
}
