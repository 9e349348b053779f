package hint

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

// The msgpack lead bytes that are named here; the rest are ranges or follow in order.
const (
	mpNil, mpFalse, mpTrue            = 0xc0, 0xc2, 0xc3
	mpBin8, mpBin16, mpBin32          = 0xc4, 0xc5, 0xc6
	mpExt8, mpExt16, mpExt32          = 0xc7, 0xc8, 0xc9
	mpFloat32, mpFloat64              = 0xca, 0xcb
	mpUint8, mpUint16                 = 0xcc, 0xcd
	mpUint32, mpUint64                = 0xce, 0xcf
	mpInt8, mpInt16, mpInt32, mpInt64 = 0xd0, 0xd1, 0xd2, 0xd3
	mpFixExt1, mpFixExt16             = 0xd4, 0xd8
	mpStr8, mpStr16, mpStr32          = 0xd9, 0xda, 0xdb
	mpArray16, mpArray32              = 0xdc, 0xdd
	mpMap16, mpMap32                  = 0xde, 0xdf
	mpFixMap, mpFixArray, mpFixStr    = 0x80, 0x90, 0xa0
	mpNegative                        = 0xe0
)

// sized reads a big-endian length of size bytes that follows the lead byte, and moves
// the cursor behind it.
func (d *decoder) sized(size int) (n uint64, ok bool) {
	b := d.src[d.pos+1:]
	if len(b) < size {
		return 0, d.fail(len(d.src), "unexpected end in a length or a number")
	}
	switch size {
	case 1:
		n = uint64(b[0])
	case 2:
		n = uint64(binary.BigEndian.Uint16(b))
	case 4:
		n = uint64(binary.BigEndian.Uint32(b))
	case 8:
		n = binary.BigEndian.Uint64(b)
	}
	d.pos += 1 + size
	return n, true
}

// mpLengths gives the size of the length that follows lead bytes 0xc4 to 0xdf, the
// sequences bin, ext, str, array and map among them.
func mpLengthSize(c byte) int {
	switch c {
	case mpBin8, mpExt8, mpStr8:
		return 1
	case mpBin16, mpExt16, mpStr16, mpArray16, mpMap16:
		return 2
	case mpBin32, mpExt32, mpStr32, mpArray32, mpMap32:
		return 4
	}
	return 0
}

// mpValue reads the value at the cursor.
func (d *decoder) mpValue() (abi.Node, bool) {
	if d.pos >= len(d.src) {
		return abi.Node{}, d.want("a value")
	}
	c := d.src[d.pos]
	switch {
	case c < mpFixMap:
		d.pos++
		return abi.Node{Tag: abi.TagU64, Val: uint64(c)}, true
	case c < mpFixArray:
		d.pos++
		return d.mpMap(d.pos-1, uint64(c&15))
	case c < mpFixStr:
		d.pos++
		return d.mpArray(d.pos-1, uint64(c&15))
	case c < mpNil:
		d.pos++
		return d.mpString(d.pos-1, uint64(c&31))
	case c >= mpNegative:
		d.pos++
		return abi.Node{Tag: abi.TagI64, Val: uint64(int8(c))}, true
	}
	return d.mpLong(c)
}

// mpLong reads a value whose lead byte is in [0xc0, 0xe0).
func (d *decoder) mpLong(c byte) (abi.Node, bool) {
	at := d.pos
	if size := mpLengthSize(c); size != 0 {
		n, ok := d.sized(size)
		if !ok {
			return abi.Node{}, false
		}
		switch c {
		case mpStr8, mpStr16, mpStr32:
			return d.mpString(at, n)
		case mpBin8, mpBin16, mpBin32:
			return d.mpRun(at, n, abi.Node{Tag: abi.TagBytes})
		case mpArray16, mpArray32:
			return d.mpArray(at, n)
		case mpMap16, mpMap32:
			return d.mpMap(at, n)
		}
		return d.mpExt(at, n)
	}
	switch {
	case c == mpNil:
		d.pos++
		return abi.Node{Tag: abi.TagNull}, true
	case c == mpFalse || c == mpTrue:
		d.pos++
		return abi.Node{Tag: abi.TagBool, Val: uint64(c & 1)}, true
	case c >= mpUint8 && c <= mpInt64:
		return d.mpInt(c)
	case c == mpFloat32:
		v, ok := d.sized(4)
		return d.mpFloat(float64(math.Float32frombits(uint32(v)))), ok
	case c == mpFloat64:
		v, ok := d.sized(8)
		return d.mpFloat(math.Float64frombits(v)), ok
	case c >= mpFixExt1 && c <= mpFixExt16:
		d.pos++
		return d.mpExt(at, 1<<(c-mpFixExt1))
	}
	return abi.Node{}, d.fail(at, "the reserved byte 0xc1")
}

// mpInt reads an integer with a lead byte in [0xcc, 0xd3].
func (d *decoder) mpInt(c byte) (abi.Node, bool) {
	v, ok := d.sized(1 << (c & 3))
	switch c {
	case mpInt8:
		v = uint64(int8(v))
	case mpInt16:
		v = uint64(int16(v))
	case mpInt32:
		v = uint64(int32(v))
	}
	if c >= mpInt8 && int64(v) < 0 {
		return abi.Node{Tag: abi.TagI64, Val: v}, ok
	}
	return abi.Node{Tag: abi.TagU64, Val: v}, ok
}

func (d *decoder) mpFloat(f float64) abi.Node {
	d.nonFinite = d.nonFinite || math.IsNaN(f) || math.IsInf(f, 0)
	return abi.Node{Tag: abi.TagF64, Val: math.Float64bits(f)}
}

// mpTake returns the n bytes at the cursor and moves behind them. at is where the
// value began.
func (d *decoder) mpTake(at int, n uint64) ([]byte, bool) {
	if n > uint64(len(d.src)-d.pos) {
		return nil, d.fail(at, strconv.FormatUint(n, 10)+" bytes announced, "+strconv.Itoa(len(d.src)-d.pos)+" are left")
	}
	b := d.src[d.pos : d.pos+int(n)]
	d.pos += int(n)
	return b, true
}

func (d *decoder) mpRun(at int, n uint64, like abi.Node) (abi.Node, bool) {
	b, ok := d.mpTake(at, n)
	if !ok {
		return like, false
	}
	return d.copyRun(b, like)
}

func (d *decoder) mpExt(at int, n uint64) (abi.Node, bool) {
	if d.pos >= len(d.src) {
		return abi.Node{}, d.want("an extension type")
	}
	kind := d.src[d.pos]
	d.pos++
	return d.mpRun(at, n, abi.Node{Tag: abi.TagExt, Ext: kind})
}

// mpText takes the n bytes of a string at the cursor and checks that they are UTF-8.
func (d *decoder) mpText(at int, n uint64) ([]byte, bool) {
	b, ok := d.mpTake(at, n)
	if ok && !ascii(b) && !utf8.Valid(b) {
		return nil, d.fail(d.pos-len(b)+invalidUTF8(b), msgNotUTF8)
	}
	return b, ok
}

const msgNotUTF8 = "a string that is not UTF-8"

// ascii tells whether b is ASCII: most strings are, and short.
func ascii(b []byte) bool {
	if len(b) >= 8 {
		last := binary.LittleEndian.Uint64(b[len(b)-8:])
		for len(b) > 8 {
			last |= binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
		return last&highs == 0
	}
	var all byte
	for _, c := range b {
		all |= c
	}
	return all < utf8.RuneSelf
}

func (d *decoder) mpString(at int, n uint64) (abi.Node, bool) {
	b, ok := d.mpText(at, n)
	if !ok || !d.room(len(b)) {
		return abi.Node{}, false
	}
	off := d.here()
	d.out = append(d.out, b...)
	return abi.Node{Tag: abi.TagString, Len: uint32(len(b)), Val: uint64(off)}, true
}

// mpCount checks the announced size of a container against the bytes that are left:
// nothing is reserved for a count that lies.
func (d *decoder) mpCount(at int, n, perItem uint64, what string) bool {
	return n*perItem <= uint64(len(d.src)-d.pos) ||
		d.fail(at, strconv.FormatUint(n, 10)+what+" announced, "+strconv.Itoa(len(d.src)-d.pos)+" bytes are left")
}

const (
	whatElements = " elements"
	whatEntries  = " entries"
)

func (d *decoder) mpMap(at int, n uint64) (abi.Node, bool) {
	if !d.mpCount(at, n, 2, whatEntries) {
		return abi.Node{}, false
	}
	if d.depth >= abi.MaxDepth {
		return d.mpTooDeep(2 * n)
	}
	d.depth++
	body, mark := d.pos, len(d.nodes)
	for range 2 * n {
		v, ok := d.mpValue()
		if !ok || !d.push(v) {
			return abi.Node{}, false
		}
	}
	m, dup := d.closeMap(mark)
	if dup >= 0 {
		return m, d.fail(d.mpKeyPos(body, dup), msgDuplicate)
	}
	d.depth--
	return m, true
}

// mpKeyPos finds key number i of the map whose first key is at body, known to be sound.
func (d *decoder) mpKeyPos(body, i int) int {
	d.pos = body
	for range 2 * i {
		if _, ok := d.mpValue(); !ok {
			break
		}
	}
	return d.pos
}

func (d *decoder) mpArray(at int, n uint64) (abi.Node, bool) {
	if !d.mpCount(at, n, 1, whatElements) {
		return abi.Node{}, false
	}
	if d.depth >= abi.MaxDepth {
		return d.mpTooDeep(n)
	}
	d.depth++
	mark := len(d.nodes)
	if n > 0 {
		u64s, read, ok := d.mpU64s(int(n))
		if !ok || read == int(n) {
			d.depth--
			return u64s, ok
		}
		n -= uint64(read)
	}
	for range n {
		v, ok := d.mpValue()
		if !ok || !d.push(v) {
			return abi.Node{}, false
		}
	}
	d.depth--
	return d.closeArray(mark), true
}

// mpU64s reads the elements of a list as long as they are integers in [0, 2^64),
// straight into out: this is where block hashes go by. read is how many there were;
// when it is not all n, they are on the stack and the cursor is on the next one.
func (d *decoder) mpU64s(n int) (u64s abi.Node, read int, ok bool) {
	if c := d.src[d.pos]; c >= mpFixMap && (c < mpUint8 || c > mpInt64) {
		return u64s, 0, true
	}
	if !d.room(8*n + 7) {
		return u64s, 0, false
	}
	was := len(d.out)
	d.out = abi.Align(d.out)
	start := len(d.out)
	if cap(d.out)-start < 8*n {
		d.out = append(d.out, make([]byte, 8*n)...)
	}
	dst, src := d.out[start:start+8*n], d.src[d.pos:]
	for len(dst) >= 8 {
		for len(src) >= 9 && len(dst) >= 8 && src[0] == mpUint64 {
			binary.LittleEndian.PutUint64(dst, binary.BigEndian.Uint64(src[1:]))
			dst, src = dst[8:], src[9:]
		}
		if len(dst) == 0 || len(src) == 0 {
			break
		}
		c := src[0]
		if c < mpFixMap {
			binary.LittleEndian.PutUint64(dst, uint64(c))
			dst, src = dst[8:], src[1:]
			continue
		}
		if c < mpUint8 || c > mpInt64 {
			break
		}
		d.pos = len(d.src) - len(src)
		v, ok := d.mpInt(c)
		if !ok {
			return u64s, 0, false
		}
		if v.Tag != abi.TagU64 {
			break
		}
		binary.LittleEndian.PutUint64(dst, v.Val)
		dst, src = dst[8:], d.src[d.pos:]
	}
	d.pos = len(d.src) - len(src)
	read = n - len(dst)/8
	d.out = d.out[:start+8*read]
	if read < n {
		return u64s, read, d.u64sToNodes(was, start)
	}
	return abi.Node{Tag: abi.TagU64s, Len: uint32(n), Val: uint64(start - d.base)}, n, true
}

// mpTooDeep passes over items values in a loop: they are checked for bounds and
// UTF-8, and not kept.
func (d *decoder) mpTooDeep(items uint64) (abi.Node, bool) {
	d.tooDeep = true
	for ; items > 0; items-- {
		if items > uint64(len(d.src)-d.pos) { // each takes a byte at least
			return abi.Node{}, d.want("a value")
		}
		n, ok := d.mpSkip()
		if !ok {
			return abi.Node{}, false
		}
		items += n
	}
	return abi.Node{Tag: abi.TagNull}, true
}

// mpSkip passes over one value, or over the head of a container: more says how many
// values that contains.
func (d *decoder) mpSkip() (more uint64, ok bool) {
	at, c := d.pos, d.src[d.pos]
	switch {
	case c < mpFixMap, c >= mpNegative, c == mpNil, c == mpFalse, c == mpTrue:
		d.pos++
		return 0, true
	case c < mpFixArray:
		d.pos++
		return 2 * uint64(c&15), true
	case c < mpFixStr:
		d.pos++
		return uint64(c & 15), true
	case c < mpNil:
		d.pos++
		_, ok = d.mpText(at, uint64(c&31))
		return 0, ok
	}
	if size := mpLengthSize(c); size != 0 {
		n, ok := d.sized(size)
		if !ok {
			return 0, false
		}
		switch c {
		case mpArray16, mpArray32:
			return n, true
		case mpMap16, mpMap32:
			return 2 * n, true
		case mpStr8, mpStr16, mpStr32:
			_, ok = d.mpText(at, n)
		case mpExt8, mpExt16, mpExt32:
			_, ok = d.mpTake(at, n+1)
		default:
			_, ok = d.mpTake(at, n)
		}
		return 0, ok
	}
	switch {
	case c == mpFloat32:
		_, ok = d.sized(4)
	case c == mpFloat64:
		_, ok = d.sized(8)
	case c >= mpUint8 && c <= mpInt64:
		_, ok = d.sized(1 << (c & 3))
	case c >= mpFixExt1 && c <= mpFixExt16:
		_, ok = d.mpTake(at, 2+1<<(c-mpFixExt1))
	default:
		return 0, d.fail(at, "the reserved byte 0xc1")
	}
	return 0, ok
}
