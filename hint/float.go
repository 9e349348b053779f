package hint

import (
	"math"
	"strconv"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

// jsonFloat reads what follows at i the integer part of a number that begins at start.
func (d *decoder) jsonFloat(start, i int) (abi.Node, int) {
	if d.src[i] == '.' {
		if i = d.someDigits(i + 1); i < 0 {
			return abi.Node{}, i
		}
	}
	mantissa, exponent := i, i
	if d.at(i)|0x20 == 'e' {
		i++
		if c := d.at(i); c == '+' || c == '-' {
			i++
		}
		exponent = i
		if i = d.someDigits(i); i < 0 {
			return abi.Node{}, i
		}
	}
	if mantissa-start > 20 || i-exponent > 2 {
		return d.jsonLongFloat(start, mantissa, i)
	}
	// At most 19 digits and far from the limits of doubles: this is fast and no error.
	f, _ := parseFloat(d.src[start:i])
	return abi.Node{Tag: abi.TagF64, Val: math.Float64bits(f)}, i
}

func (d *decoder) someDigits(pos int) int {
	i := pos
	for d.at(i)-'0' <= 9 {
		i++
	}
	if i == pos {
		return d.want(i, "a digit")
	}
	return i
}

// parseFloat is strconv's. The string is a view for the length of the call: what an
// error keeps is a copy.
func parseFloat(text []byte) (float64, error) {
	return strconv.ParseFloat(unsafe.String(&text[0], len(text)), 64)
}

// maxSlow bounds the numbers of one document that strconv cannot read fast. It is exact
// and quick but for those that are half way between two doubles as far as 19 digits
// tell, and those at the limits of what a double holds: for these it calculates with up
// to 800 decimal digits, which takes 15 to 80 us. Nobody sends many in good faith. (For
// a short number that is exactly half way it takes 1 us, which needs no bound.)
const maxSlow = 1024

// The limits of doubles, as the first 19 digits of a number.
const (
	fewOver     = 1797693134862315800 // e308: below, doubles are finite
	over        = 1797693134862315810 // e308: from here on they are not
	fewNormal   = 2225073858507202000 // e-308: below, they have fewer bits
	maxExponent = 308
	minExponent = -324 // of the first digit; smaller numbers are 0
)

// jsonLongFloat reads the number in src[start:end], whose exponent begins at mantissa.
func (d *decoder) jsonLongFloat(start, mantissa, end int) (abi.Node, int) {
	text := d.src[start:end]
	m, x, more := significant(text[:mantissa-start], text[mantissa-start:])
	var f float64 // without its sign
	switch {
	case m == 0 || x < minExponent:
	case x > maxExponent || x == maxExponent && m >= over:
		return d.copyRun(text, abi.Node{Tag: abi.TagNumber}), end
	case x < -maxExponent || x == -maxExponent && m < fewNormal || x == maxExponent && m >= fewOver:
		return d.slowFloat(start, end)
	default:
		var b [32]byte
		f = scaled(b[:0], m, x-18)
		// With more digits it lies between m and m + 1: mostly that is the same double.
		if more && f != scaled(b[:0], m+1, x-18) {
			return d.slowFloat(start, end)
		}
	}
	if text[0] == '-' {
		f = -f
	}
	return abi.Node{Tag: abi.TagF64, Val: math.Float64bits(f)}, end
}

// slowFloat reads a number for which strconv may take long. One that no double holds
// costs two small objects.
func (d *decoder) slowFloat(start, end int) (abi.Node, int) {
	if d.slow++; d.slow > maxSlow {
		return abi.Node{}, d.fail(start, msgSlow)
	}
	text := d.src[start:end]
	f, err := parseFloat(text)
	if err != nil {
		return d.copyRun(text, abi.Node{Tag: abi.TagNumber}), end
	}
	return abi.Node{Tag: abi.TagF64, Val: math.Float64bits(f)}, end
}

const msgSlow = "more than 1024 numbers that are half way between two doubles or at the limits of what a double holds"

// scaled is the double nearest to m * 10^x. b has room for the text.
func scaled(b []byte, m uint64, x int) float64 {
	b = strconv.AppendInt(append(strconv.AppendUint(b, m, 10), 'e'), int64(x), 10)
	f, _ := parseFloat(b)
	return f
}

// significant returns the first 19 digits of a number without leading zeros, as if it
// had so many (0 when all of them are zeros), and the power of ten of the first one.
// more: there are other digits behind them.
func significant(mantissa, exponent []byte) (m uint64, x int, more bool) {
	n, point := 0, false
	for _, c := range mantissa {
		switch {
		case c == '-':
			continue
		case c == '.':
			point = true
			continue
		case n == 0 && c == '0':
			if point {
				x--
			}
			continue
		case n < 19:
			m = m*10 + uint64(c-'0')
		}
		if n++; !point {
			x++
		}
	}
	more = n > 19
	for ; n > 0 && n < 19; n++ {
		m *= 10
	}
	return m, x - 1 + clampedExponent(exponent), more
}

// clampedExponent reads an exponent with its e. Beyond 10^15 the exact value no longer
// matters: no text is long enough to make up for it.
func clampedExponent(b []byte) (x int) {
	negative := false
	for _, c := range b {
		switch c {
		case 'e', 'E', '+':
		case '-':
			negative = true
		default:
			x = min(x*10+int(c-'0'), 1e15)
		}
	}
	if negative {
		return -x
	}
	return x
}

// appendFloat spells a finite double as Python's repr does: the shortest digits that
// read back the same, always with a fraction or an exponent.
func appendFloat(dst []byte, f float64) []byte {
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// appendText spells a number as Python's str does, for ids and versions that came as
// numbers. text is the run of a node that is number text.
func appendText(dst []byte, n abi.Node, text []byte) []byte {
	switch n.Tag {
	case abi.TagU64:
		return strconv.AppendUint(dst, n.Val, 10)
	case abi.TagI64:
		return strconv.AppendInt(dst, n.I64(), 10)
	case abi.TagF64:
		switch f := n.F64(); {
		case math.IsNaN(f):
			return append(dst, "nan"...)
		case math.IsInf(f, 0):
			return append(dst, infinity(f < 0)...)
		default:
			return appendFloat(dst, f)
		}
	case abi.TagNumber:
		for _, c := range text {
			if c == '.' || c|0x20 == 'e' { // no double holds it
				return append(dst, infinity(text[0] == '-')...)
			}
		}
		return append(dst, text...)
	}
	return dst
}

func infinity(negative bool) string {
	if negative {
		return "-inf"
	}
	return "inf"
}
