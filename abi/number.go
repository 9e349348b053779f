package abi

import "bytes"

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
		return isInfinite(b)
	}
	limit := "18446744073709551615"
	if b[0] == '-' {
		b, limit = b[1:], "9223372036854775808"
	}
	return len(b) > len(limit) || len(b) == len(limit) && string(b) > limit
}

// infinite is 2^1024 - 2^970, half way between the largest double and the next power
// of two: what is not below it rounds to infinity. It has 309 digits.
const infinite = "1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070963" +
	"3028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447573027" +
	"0069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792"

// isInfinite tells whether a double rounds the number b to infinity. strconv would
// allocate for what it cannot hold.
func isInfinite(b []byte) bool {
	mantissa, exponent := b, int64(0)
	if i := bytes.IndexAny(b, "eE"); i >= 0 {
		mantissa, exponent = b[:i], clampedInt(b[i+1:])
	}
	mantissa = bytes.TrimPrefix(mantissa, []byte("-"))
	// exponent becomes the number of digits before the point, once the number is
	// written without leading zeros and without an exponent.
	if i := bytes.IndexByte(mantissa, '.'); i >= 0 {
		exponent += int64(i)
	} else {
		exponent += int64(len(mantissa))
	}
	for len(mantissa) > 0 && (mantissa[0] == '0' || mantissa[0] == '.') {
		if mantissa[0] == '0' {
			exponent--
		}
		mantissa = mantissa[1:]
	}
	if len(mantissa) == 0 || exponent != int64(len(infinite)) {
		return len(mantissa) > 0 && exponent > int64(len(infinite))
	}
	i := 0
	for _, c := range mantissa {
		switch {
		case c == '.':
			continue
		case i == len(infinite):
			return true
		case c != infinite[i]:
			return c > infinite[i]
		}
		i++
	}
	for ; i < len(infinite); i++ { // the digits that are not written are zeros
		if infinite[i] != '0' {
			return false
		}
	}
	return true
}

// clampedInt reads a signed run of digits. Beyond 10^15 the exact value no longer
// matters: no text is long enough to make up for it.
func clampedInt(b []byte) (v int64) {
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	for _, c := range b {
		if v = v*10 + int64(c-'0'); v > 1e15 {
			v = 1e15
		}
	}
	if negative {
		return -v
	}
	return v
}
