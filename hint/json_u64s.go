package hint

import (
	"encoding/binary"
	"math/bits"

	"github.com/kvrt/kvrt/abi"
)

// jsonU64s reads a list whose first element begins with a digit, as long as its
// elements are integers in [0, 2^64), straight into out: this is where block hashes go
// by. done: the whole list was that. Otherwise the elements so far are on the stack
// and the cursor is on the first one that is something else.
func (d *decoder) jsonU64s() (n abi.Node, done, ok bool) {
	was := len(d.out)
	d.out = abi.Align(d.out)
	start := len(d.out)
	for {
		d.jsonHashes()
		// The element here is not one that the fast loop takes: the last ones of the
		// body, one followed by other white space, or no u64 at all.
		at, text := d.pos, len(d.out)
		if d.peek()-'0' > 9 && d.peek() != '-' {
			return n, false, d.u64sToNodes(was, start)
		}
		if n, ok = d.jsonNumber(); !ok {
			return n, false, false
		}
		if n.Tag != abi.TagU64 {
			d.pos, d.out = at, d.out[:text]
			return n, false, d.u64sToNodes(was, start)
		}
		if !d.room(8) {
			return n, false, false
		}
		d.out = binary.LittleEndian.AppendUint64(d.out, n.Val)
		more, ok := d.separator(']', wantElem)
		if !ok {
			return n, false, false
		}
		if !more {
			run := len(d.out) - start
			return abi.Node{Tag: abi.TagU64s, Len: uint32(run / 8), Val: uint64(start - d.base)}, true, true
		}
	}
}

// jsonHashes reads elements of at most 20 digits that are followed by a comma and at
// most one space. It stops before the first element that is anything else.
func (d *decoder) jsonHashes() {
	src, out := d.src, d.out
	i, limit := d.pos, d.limit-len(d.nodes)-8
	for i+24 <= len(src) && len(out) <= limit {
		s := src[i : i+24 : i+24]
		var v uint64
		n := 0
		mask, t := notDigits(binary.LittleEndian.Uint64(s))
		if mask == 0 {
			v, n = eight(t), 8
			if mask, t = notDigits(binary.LittleEndian.Uint64(s[8:])); mask == 0 {
				v, n = v*1e8+eight(t), 16
				mask, t = notDigits(binary.LittleEndian.Uint64(s[16:]))
			}
		}
		k := bits.TrailingZeros64(mask) >> 3 // 8 when there is no mask
		if k > 4 && n == 16 {
			break // 21 digits or more
		}
		t <<= (64 - 8*uint(k)) & 63
		if k == 0 {
			if n == 0 {
				break
			}
			t = 0
		}
		hi, lo := bits.Mul64(v, pow10[k])
		v, carry := bits.Add64(lo, eight(t), 0)
		n += k
		if hi|carry != 0 || s[n] != ',' || s[0] == '0' && n > 1 {
			break
		}
		out = binary.LittleEndian.AppendUint64(out, v)
		i += n + 1
		if s[n+1] == ' ' {
			i++
		}
	}
	d.pos, d.out = i, out
}

var pow10 = [9]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}
