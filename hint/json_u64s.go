package hint

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/kvrt/kvrt/abi"
)

// jsonU64s reads a list whose first element begins with a digit or a sign, as long as
// its elements are integers in [0, 2^64), straight into out: this is where block hashes
// go by. all: the whole list was that. Otherwise the elements so far are on the stack,
// and end is the position of the first one that is something else.
func (d *decoder) jsonU64s(pos int) (n abi.Node, end int, all bool) {
	was, slow := len(d.out), d.slow
	d.out = align(d.out)
	start := len(d.out)
	for {
		if c := d.at(pos); c-'0' > 9 && c != '-' {
			return n, d.u64sToNodes(pos, was, start), false
		}
		text := len(d.out)
		if n, end = d.jsonNumber(pos); end < 0 {
			return n, end, false
		}
		if n.Tag != abi.TagU64 {
			d.out, d.slow = d.out[:text], slow // it is read again
			return n, d.u64sToNodes(pos, was, start), false
		}
		if !d.room(pos, 8) {
			return n, -1, false
		}
		d.out = binary.LittleEndian.AppendUint64(d.out, n.Val)
		pos = d.space(end)
		switch d.at(pos) {
		case ',':
			// The fast loop stops at the last element, at short ones, at other white
			// space, and at what is no u64.
			pos = d.space(d.jsonHashes(d.space(pos + 1)))
		case ']':
			run := len(d.out) - start
			return abi.Node{Tag: abi.TagU64s, Len: uint32(run / 8), Val: uint64(start - d.base)}, pos + 1, true
		default:
			return n, d.want(pos, wantElem), false
		}
	}
}

// jsonHashes appends elements to out as jsonRun reads them, and returns the position
// of the first one that it does not take.
func (d *decoder) jsonHashes(pos int) int {
	for {
		at := len(d.out)
		room := min(cap(d.out), d.limit-len(d.nodes)) - at
		left, src := jsonRun(jsonWide(d.out[at:at+max(room, 0)], d.src[pos:]))
		d.out = d.out[:at+max(room, 0)-len(left)]
		pos = len(d.src) - len(src)
		if len(left) >= 8 || len(src) < 24 || !d.room(pos, 8) {
			return pos
		}
		d.out = slices.Grow(d.out, 512)
	}
}

// jsonRun reads elements of 16 to 20 digits, as most hashes have, each followed by a
// comma and at most one space, into dst, and returns what is left of both. Its speed is
// that of the chain from one element's length to the next one's place: whether there
// is a space is a branch, which the processor predicts, and no sum.
func jsonRun(dst, src []byte) (left, rest []byte) {
	for len(src) >= 24 && len(dst) >= 8 {
		s := (*[24]byte)(src)
		a := binary.LittleEndian.Uint64(s[0:]) ^ '0'*ones
		b := binary.LittleEndian.Uint64(s[8:]) ^ '0'*ones
		c := binary.LittleEndian.Uint64(s[16:]) ^ '0'*ones
		k := bits.TrailingZeros64((c+0x76*ones|c)&highs) >> 3
		if (a+0x76*ones|a|(b+0x76*ones|b))&highs != 0 || k > 4 || s[16+k] != ',' || s[0] == '0' {
			break
		}
		hi, lo := bits.Mul64(eight(a)*1e8+eight(b), pow10[k])
		v, carry := bits.Add64(lo, four(c<<(64-8*k)), 0)
		if hi|carry != 0 {
			break
		}
		binary.LittleEndian.PutUint64(dst, v)
		if s[17+k] == ' ' {
			src, dst = src[18+k:], dst[8:]
			continue
		}
		src, dst = src[17+k:], dst[8:]
	}
	return dst, src
}
