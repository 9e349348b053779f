package hint

import (
	"encoding/binary"

	"github.com/kvrt/kvrt/abi"
)

// mpU64s reads the elements of a list as long as they are integers in [0, 2^64),
// straight into out: this is where block hashes go by. read is how many there were;
// when it is not all n, they are on the stack and end is the position of the next one.
func (d *decoder) mpU64s(pos, n int) (u64s abi.Node, read, end int) {
	if c := d.src[pos]; c >= mpFixMap && (c < mpUint8 || c > mpInt64) {
		return u64s, 0, pos
	}
	if !d.room(pos, 8*n+7) {
		return u64s, 0, -1
	}
	was := len(d.out)
	d.out = align(d.out)
	start := len(d.out)
	d.out = extend(d.out, 8*n)
	dst, src := mpHashes(d.out[start:], d.src[pos:])
	for len(dst) >= 8 {
		if len(src) >= 9 && src[0] == mpUint64 {
			binary.LittleEndian.PutUint64(dst, binary.BigEndian.Uint64(src[1:]))
			dst, src = dst[8:], src[9:]
			continue
		}
		if len(src) == 0 {
			break
		}
		if src[0] < mpFixMap {
			binary.LittleEndian.PutUint64(dst, uint64(src[0]))
			dst, src = dst[8:], src[1:]
			continue
		}
		if src[0] < mpUint8 || src[0] > mpInt64 {
			break
		}
		v, end := d.mpInt(len(d.src)-len(src), src[0])
		if end < 0 {
			return u64s, 0, end
		}
		if v.Tag != abi.TagU64 {
			break
		}
		binary.LittleEndian.PutUint64(dst, v.Val)
		dst, src = dst[8:], d.src[end:]
	}
	end = len(d.src) - len(src)
	read = n - len(dst)/8
	if read < n {
		d.out = d.out[:start+8*read]
		return u64s, read, d.u64sToNodes(end, was, start)
	}
	return abi.Node{Tag: abi.TagU64s, Len: uint32(n), Val: uint64(start - d.base)}, n, end
}

// mpHashes reads elements with lead byte 0xcf and returns what is left of both. It
// may stop up to eight elements early.
func mpHashes(dst, src []byte) (_, _ []byte) { return mpEights(mpWide(dst, src)) }

// mpEights is mpHashes in Go, eight at a time.
func mpEights(dst, src []byte) (_, _ []byte) {
	for len(dst) >= 64 && len(src) >= 72 {
		s, o := (*[72]byte)(src), (*[64]byte)(dst)
		if s[0]&s[9]&s[18]&s[27]&s[36]&s[45]&s[54]&s[63] != mpUint64 ||
			s[0]|s[9]|s[18]|s[27]|s[36]|s[45]|s[54]|s[63] != mpUint64 {
			break
		}
		binary.LittleEndian.PutUint64(o[0:], binary.BigEndian.Uint64(s[1:]))
		binary.LittleEndian.PutUint64(o[8:], binary.BigEndian.Uint64(s[10:]))
		binary.LittleEndian.PutUint64(o[16:], binary.BigEndian.Uint64(s[19:]))
		binary.LittleEndian.PutUint64(o[24:], binary.BigEndian.Uint64(s[28:]))
		binary.LittleEndian.PutUint64(o[32:], binary.BigEndian.Uint64(s[37:]))
		binary.LittleEndian.PutUint64(o[40:], binary.BigEndian.Uint64(s[46:]))
		binary.LittleEndian.PutUint64(o[48:], binary.BigEndian.Uint64(s[55:]))
		binary.LittleEndian.PutUint64(o[56:], binary.BigEndian.Uint64(s[64:]))
		dst, src = dst[64:], src[72:]
	}
	return dst, src
}

// mpTooDeep passes over a container of items values in a loop: they are checked for
// bounds and UTF-8, and not kept. The node says what it was, for it may be a key, and
// those that are lists or maps are not compared.
func (d *decoder) mpTooDeep(tag abi.Tag, pos int, items uint64) (abi.Node, int) {
	d.tooDeep = true
	for ; items > 0; items-- {
		if items > uint64(len(d.src)-pos) { // each takes a byte at least
			return abi.Node{}, d.want(len(d.src), "more values")
		}
		var more uint64
		if more, pos = d.mpSkip(pos); pos < 0 {
			return abi.Node{}, pos
		}
		items += more
	}
	return abi.Node{Tag: tag}, pos
}

// mpSkip passes over one value, or over the head of a container: more says how many
// values that contains.
func (d *decoder) mpSkip(at int) (more uint64, end int) {
	c := d.src[at]
	switch {
	case c < mpFixMap, c >= mpNegative, c == mpNil, c == mpFalse, c == mpTrue:
		return 0, at + 1
	case c < mpFixArray:
		return 2 * uint64(c&15), at + 1
	case c < mpFixStr:
		return uint64(c & 15), at + 1
	case c < mpNil:
		_, end = d.mpText(at, at+1, uint64(c&31))
		return 0, end
	}
	if size := mpLengthSize(c); size != 0 {
		n, pos := d.big(at, size)
		if pos < 0 {
			return 0, pos
		}
		switch c {
		case mpArray16, mpArray32:
			return n, pos
		case mpMap16, mpMap32:
			return 2 * n, pos
		case mpStr8, mpStr16, mpStr32:
			_, end = d.mpText(at, pos, n)
		case mpExt8, mpExt16, mpExt32:
			_, end = d.mpTake(at, pos, n+1)
		default:
			_, end = d.mpTake(at, pos, n)
		}
		return 0, end
	}
	switch {
	case c == mpFloat32:
		_, end = d.big(at, 4)
	case c == mpFloat64:
		_, end = d.big(at, 8)
	case c >= mpUint8 && c <= mpInt64:
		_, end = d.big(at, 1<<(c&3))
	case c >= mpFixExt1 && c <= mpFixExt16:
		_, end = d.mpTake(at, at+1, 1+1<<(c-mpFixExt1))
	default:
		return 0, d.fail(at, msgReserved)
	}
	return 0, end
}
