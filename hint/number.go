package hint

import (
	"encoding/binary"
	"math/bits"

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

// four is the number that four digits 0..9 spell, the first in byte 4 of t; the lower
// bytes are 0.
func four(t uint64) uint64 {
	t >>= 32
	t = t*10 + t>>8
	return t&0xff*100 + t>>16&0xff
}

var pow10 = [9]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// digits reads a run of ASCII digits: its value, its length, and whether it is too
// large for 64 bits.
func digits(b []byte) (v uint64, n int, over bool) {
	if len(b) >= 24 {
		s := (*[24]byte)(b)
		m1, t1 := notDigits(binary.LittleEndian.Uint64(s[0:]))
		if n = bits.TrailingZeros64(m1) >> 3; n < 8 {
			return eight(t1 << (64 - 8*n)), n, false
		}
		m2, t2 := notDigits(binary.LittleEndian.Uint64(s[8:]))
		if n = bits.TrailingZeros64(m2) >> 3; n < 8 {
			return eight(t1)*pow10[n] + eight(t2<<(64-8*n)), 8 + n, false
		}
		m3, t3 := notDigits(binary.LittleEndian.Uint64(s[16:]))
		if n = bits.TrailingZeros64(m3) >> 3; n <= 4 {
			hi, lo := bits.Mul64(eight(t1)*1e8+eight(t2), pow10[n])
			sum, carry := bits.Add64(lo, four(t3<<(64-8*n)), 0)
			return sum, 16 + n, hi|carry != 0
		}
	}
	for n = 0; n < len(b) && b[n]-'0' <= 9; n++ {
		hi, lo := bits.Mul64(v, 10)
		sum, carry := bits.Add64(lo, uint64(b[n]-'0'), 0)
		over = over || hi|carry != 0
		v = sum
	}
	return v, n, over
}

// jsonNumber reads a number; pos is its first byte.
func (d *decoder) jsonNumber(start int) (abi.Node, int) {
	i := start
	neg := d.src[i] == '-'
	if neg {
		i++
	}
	v, n, over := digits(d.src[i:])
	if n == 0 {
		return abi.Node{}, d.want(i, "a digit")
	}
	if n > 1 && d.src[i] == '0' {
		return abi.Node{}, d.fail(i, "a number with a leading zero")
	}
	end := i + n
	if c := d.at(end); c == '.' || c|0x20 == 'e' {
		return d.jsonFloat(start, end)
	}
	switch {
	case over || neg && v > 1<<63:
		return d.copyRun(d.src[start:end], abi.Node{Tag: abi.TagNumber}), end
	case neg && v != 0:
		return abi.Node{Tag: abi.TagI64, Val: -v}, end
	}
	return abi.Node{Tag: abi.TagU64, Val: v}, end
}
