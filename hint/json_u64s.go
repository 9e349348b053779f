package hint

import (
	"encoding/binary"
	"math/bits"

	"github.com/kvrt/kvrt/abi"
)

// jsonU64s reads a list whose first element begins with a digit or a sign, as long as
// its elements are integers in [0, 2^64), straight into out: this is where block hashes
// go by. all: the whole list was that. Otherwise the elements so far are on the stack,
// and end is the position of the first one that is something else.
func (d *decoder) jsonU64s(pos int) (n abi.Node, end int, all bool) {
	was := len(d.out)
	d.out = align(d.out)
	start := len(d.out)
	for {
		// The fast loop stops at the last elements of the body, at one with other white
		// space around it, and at what is no u64.
		pos = d.space(d.jsonHashes(pos))
		if c := d.at(pos); c-'0' > 9 && c != '-' {
			return n, d.u64sToNodes(pos, was, start), false
		}
		text := len(d.out)
		if n, end = d.jsonNumber(pos); end < 0 {
			return n, end, false
		}
		if n.Tag != abi.TagU64 {
			d.out = d.out[:text]
			return n, d.u64sToNodes(pos, was, start), false
		}
		if !d.room(pos, 8) {
			return n, -1, false
		}
		d.out = binary.LittleEndian.AppendUint64(d.out, n.Val)
		pos = d.space(end)
		switch d.at(pos) {
		case ',':
			pos++
		case ']':
			run := len(d.out) - start
			return abi.Node{Tag: abi.TagU64s, Len: uint32(run / 8), Val: uint64(start - d.base)}, pos + 1, true
		default:
			return n, d.want(pos, wantElem), false
		}
	}
}

// jsonHashes reads elements of at most 20 digits that are followed by a comma and at
// most one space. It returns the position of the first element that is anything else.
func (d *decoder) jsonHashes(i int) int {
	src, out := d.src, d.out
	most := d.limit - len(d.nodes) - 8
	for i+24 <= len(src) && len(out) <= most {
		s := (*[24]byte)(src[i:])
		m1, t1 := notDigits(binary.LittleEndian.Uint64(s[0:8]))
		m2, t2 := notDigits(binary.LittleEndian.Uint64(s[8:16]))
		m3, t3 := notDigits(binary.LittleEndian.Uint64(s[16:24]))
		k := uint(bits.TrailingZeros64(m3)) >> 3
		var v uint64
		var n int
		if m1|m2 == 0 && k-1 <= 3 { // 17 to 20 digits, as most hashes have
			a := eight(t1)*1e8 + eight(t2)
			hi, lo := bits.Mul64(a, pow10[k&7])
			sum, carry := bits.Add64(lo, four(t3<<((64-8*k)&63)), 0)
			if hi|carry != 0 {
				break
			}
			v, n = sum, 16+int(k)
		} else if m1 != 0 { // 1 to 7 digits
			n = bits.TrailingZeros64(m1) >> 3
			if n == 0 {
				break
			}
			v = eight(t1 << ((64 - 8*uint(n)) & 63))
		} else if m2|m3 != 0 && (m2 != 0 || k == 0) { // 8 to 16 digits
			n = bits.TrailingZeros64(m2) >> 3
			t2 = t2 << ((64 - 8*uint(n)) & 63)
			if n == 0 {
				t2 = 0
			}
			v, n = eight(t1)*pow10[n]+eight(t2), 8+n
		} else {
			break
		}
		if s[n] != ',' || s[0] == '0' && n > 1 {
			break
		}
		out = binary.LittleEndian.AppendUint64(out, v)
		i += n + 1
		if s[n+1] == ' ' {
			i++
		}
	}
	d.out = out
	return i
}

// four is the number that four digits 0..9 spell, the first in byte 4 of t; the lower
// bytes are 0.
func four(t uint64) uint64 {
	t >>= 32
	t = t*10 + t>>8
	return t&0xff*100 + t>>16&0xff
}

var pow10 = [9]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}
