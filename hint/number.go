package hint

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// notDigits marks the bytes of w that are no ASCII digits with their high bit, exact
// up to and including the first one. t is w with the digits turned into 0..9.
func notDigits(w uint64) (mask, t uint64) {
	t = w ^ '0'*ones
	return (t + 0x76*ones | t) & highs, t
}

// eight is the number that eight digits 0..9 spell, the first in the lowest byte.
func eight(t uint64) uint64 {
	t = t*10 + t>>8
	const pair = 0x000000ff000000ff
	return ((t&pair)*(100+1000000<<32) + (t>>16&pair)*(1+10000<<32)) >> 32
}

// digits reads a run of ASCII digits: its value, its length, and whether it is too
// large for 64 bits.
func digits(b []byte) (v uint64, n int, over bool) {
	for n+8 <= len(b) && n <= 8 { // at most 16 digits: no overflow
		mask, t := notDigits(binary.LittleEndian.Uint64(b[n:]))
		if mask != 0 {
			break
		}
		v = v*1e8 + eight(t)
		n += 8
	}
	for ; n < len(b) && b[n]-'0' <= 9; n++ {
		hi, lo := bits.Mul64(v, 10)
		sum, carry := bits.Add64(lo, uint64(b[n]-'0'), 0)
		over = over || hi|carry != 0
		v = sum
	}
	return v, n, over
}

// jsonNumber reads a number; the cursor is at its first byte.
func (d *decoder) jsonNumber() (abi.Node, bool) {
	start, i := d.pos, d.pos
	neg := d.src[i] == '-'
	if neg {
		i++
	}
	v, n, over := digits(d.src[i:])
	if n == 0 {
		d.pos = i
		return abi.Node{}, d.want("a digit")
	}
	if n > 1 && d.src[i] == '0' {
		return abi.Node{}, d.fail(i, "a number with a leading zero")
	}
	d.pos = i + n
	if d.pos < len(d.src) && (d.src[d.pos] == '.' || d.src[d.pos]|0x20 == 'e') {
		return d.jsonFloat(start)
	}
	switch {
	case over || neg && v > 1<<63:
		return d.numberText(start)
	case neg && v != 0:
		return abi.Node{Tag: abi.TagI64, Val: -v}, true
	}
	return abi.Node{Tag: abi.TagU64, Val: v}, true
}

// jsonFloat reads what follows the integer part of a number that begins at start.
func (d *decoder) jsonFloat(start int) (abi.Node, bool) {
	run := func() bool {
		from := d.pos
		for d.pos < len(d.src) && d.src[d.pos]-'0' <= 9 {
			d.pos++
		}
		return d.pos > from || d.want("a digit")
	}
	if d.src[d.pos] == '.' {
		d.pos++
		if !run() {
			return abi.Node{}, false
		}
	}
	if d.pos < len(d.src) && d.src[d.pos]|0x20 == 'e' {
		d.pos++
		if d.pos < len(d.src) && (d.src[d.pos] == '+' || d.src[d.pos] == '-') {
			d.pos++
		}
		if !run() {
			return abi.Node{}, false
		}
	}
	text := d.src[start:d.pos]
	// The string is a view for the length of the call; ParseFloat copies what an error keeps.
	f, err := strconv.ParseFloat(unsafe.String(&text[0], len(text)), 64)
	if err != nil || math.IsInf(f, 0) {
		return d.numberText(start)
	}
	return abi.Node{Tag: abi.TagF64, Val: math.Float64bits(f)}, true
}

// numberText keeps the number that begins at start as it is spelled.
func (d *decoder) numberText(start int) (abi.Node, bool) {
	text := d.src[start:d.pos]
	if !d.room(len(text)) {
		return abi.Node{}, false
	}
	off := d.here()
	d.out = append(d.out, text...)
	return abi.Node{Tag: abi.TagNumber, Len: uint32(len(text)), Val: uint64(off)}, true
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
func appendText(dst []byte, n abi.Node, text []byte) ([]byte, error) {
	switch n.Tag {
	case abi.TagU64:
		return strconv.AppendUint(dst, n.Val, 10), nil
	case abi.TagI64:
		return strconv.AppendInt(dst, n.I64(), 10), nil
	case abi.TagF64:
		switch f := n.F64(); {
		case math.IsNaN(f):
			return append(dst, "nan"...), nil
		case math.IsInf(f, 0):
			return append(dst, infinity(f < 0)...), nil
		default:
			return appendFloat(dst, f), nil
		}
	case abi.TagNumber:
		for _, c := range text {
			if c == '.' || c|0x20 == 'e' { // no double holds it
				return append(dst, infinity(text[0] == '-')...), nil
			}
		}
		return append(dst, text...), nil
	}
	return dst, errNotNumber
}

var errNotNumber = errors.New("not a number")

func infinity(negative bool) string {
	if negative {
		return "-inf"
	}
	return "inf"
}
