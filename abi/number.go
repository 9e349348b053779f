package abi

import (
	"bytes"
	"math"
	"strconv"
)

// IsNumber tells whether b is a number as JSON spells it.
func IsNumber(b []byte) bool {
	i, digits := 0, func(i int) int {
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	j := digits(i)
	if j == i || b[i] == '0' && j > i+1 {
		return false
	}
	if i = j; i < len(b) && b[i] == '.' {
		if j = digits(i + 1); j == i+1 {
			return false
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if j = digits(i); j == i {
			return false
		}
		i = j
	}
	return i == len(b)
}

// isWideNumber tells whether b is number text that no 64-bit type holds: an integer
// outside [-2^63, 2^64), or a number with a fraction or exponent that a double rounds
// to infinity.
func isWideNumber(b []byte) bool {
	if !IsNumber(b) {
		return false
	}
	if bytes.ContainsAny(b, ".eE") {
		f, _ := strconv.ParseFloat(string(b), 64)
		return math.IsInf(f, 0)
	}
	limit := "18446744073709551615"
	if b[0] == '-' {
		b, limit = b[1:], "9223372036854775808"
	}
	return len(b) > len(limit) || len(b) == len(limit) && string(b) > limit
}
