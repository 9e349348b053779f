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
	mpFixMap, mpFixArray, mpFixStr = 0x80, 0x90, 0xa0
	mpNil, mpFalse, mpTrue         = 0xc0, 0xc2, 0xc3
	mpBin8, mpBin16, mpBin32       = 0xc4, 0xc5, 0xc6
	mpExt8, mpExt16, mpExt32       = 0xc7, 0xc8, 0xc9
	mpFloat32, mpFloat64           = 0xca, 0xcb
	mpUint8, mpUint16              = 0xcc, 0xcd
	mpUint32, mpUint64             = 0xce, 0xcf
	mpInt8, mpInt16                = 0xd0, 0xd1
	mpInt32, mpInt64               = 0xd2, 0xd3
	mpFixExt1, mpFixExt16          = 0xd4, 0xd8
	mpStr8, mpStr16, mpStr32       = 0xd9, 0xda, 0xdb
	mpArray16, mpArray32           = 0xdc, 0xdd
	mpMap16, mpMap32               = 0xde, 0xdf
	mpNegative                     = 0xe0
)

// mpLengthSize is the size of the length that follows a lead byte, 0 when none does.
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

// big reads the big-endian number of size bytes that follows the lead byte at pos.
func (d *decoder) big(pos, size int) (n uint64, end int) {
	b := d.src[pos+1:]
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
	return n, pos + 1 + size
}

// mpValue reads the value at pos.
func (d *decoder) mpValue(pos int) (abi.Node, int) {
	if pos >= len(d.src) {
		return abi.Node{}, d.want(pos, "a value")
	}
	c := d.src[pos]
	switch {
	case c < mpFixMap:
		return abi.Node{Tag: abi.TagU64, Val: uint64(c)}, pos + 1
	case c < mpFixArray:
		return d.mpMap(pos, pos+1, uint64(c&15))
	case c < mpFixStr:
		return d.mpArray(pos, pos+1, uint64(c&15))
	case c < mpNil:
		return d.mpShort(pos)
	case c >= mpNegative:
		return abi.Node{Tag: abi.TagI64, Val: uint64(int8(c))}, pos + 1
	}
	return d.mpLong(pos, c)
}

// mpLong reads a value whose lead byte is in [0xc0, 0xe0).
func (d *decoder) mpLong(at int, c byte) (abi.Node, int) {
	if size := mpLengthSize(c); size != 0 {
		n, pos := d.big(at, size)
		if pos < 0 {
			return abi.Node{}, pos
		}
		switch c {
		case mpStr8, mpStr16, mpStr32:
			return d.mpString(at, pos, n)
		case mpBin8, mpBin16, mpBin32:
			return d.mpRun(at, pos, n, abi.Node{Tag: abi.TagBytes})
		case mpArray16, mpArray32:
			return d.mpArray(at, pos, n)
		case mpMap16, mpMap32:
			return d.mpMap(at, pos, n)
		}
		return d.mpExt(at, pos, n)
	}
	switch {
	case c == mpNil:
		return abi.Node{Tag: abi.TagNull}, at + 1
	case c == mpFalse || c == mpTrue:
		return abi.Node{Tag: abi.TagBool, Val: uint64(c & 1)}, at + 1
	case c >= mpUint8 && c <= mpInt64:
		return d.mpInt(at, c)
	case c == mpFloat32:
		v, pos := d.big(at, 4)
		return d.mpFloat(float64(math.Float32frombits(uint32(v)))), pos
	case c == mpFloat64:
		v, pos := d.big(at, 8)
		return d.mpFloat(math.Float64frombits(v)), pos
	case c >= mpFixExt1 && c <= mpFixExt16:
		return d.mpExt(at, at+1, 1<<(c-mpFixExt1))
	}
	return abi.Node{}, d.fail(at, msgReserved)
}

const msgReserved = "the reserved byte 0xc1"

// mpInt reads an integer with a lead byte in [0xcc, 0xd3].
func (d *decoder) mpInt(pos int, c byte) (abi.Node, int) {
	v, end := d.big(pos, 1<<(c&3))
	switch c {
	case mpInt8:
		v = uint64(int8(v))
	case mpInt16:
		v = uint64(int16(v))
	case mpInt32:
		v = uint64(int32(v))
	}
	if c >= mpInt8 && int64(v) < 0 {
		return abi.Node{Tag: abi.TagI64, Val: v}, end
	}
	return abi.Node{Tag: abi.TagU64, Val: v}, end
}

func (d *decoder) mpFloat(f float64) abi.Node {
	d.nonFinite = d.nonFinite || math.IsNaN(f) || math.IsInf(f, 0)
	return abi.Node{Tag: abi.TagF64, Val: math.Float64bits(f)}
}

// mpTake returns the n bytes at pos. at is where the value began.
func (d *decoder) mpTake(at, pos int, n uint64) ([]byte, int) {
	if n > uint64(len(d.src)-pos) {
		return nil, d.lies(at, pos, n, " bytes")
	}
	end := pos + int(n)
	return d.src[pos:end], end
}

// lies fails: a length says more than there is.
func (d *decoder) lies(at, pos int, n uint64, what string) int {
	return d.fail(at, strconv.FormatUint(n, 10)+what+" announced, "+strconv.Itoa(len(d.src)-pos)+" bytes are left")
}

func (d *decoder) mpRun(at, pos int, n uint64, like abi.Node) (abi.Node, int) {
	b, end := d.mpTake(at, pos, n)
	return d.copyRun(b, like), end
}

func (d *decoder) mpExt(at, pos int, n uint64) (abi.Node, int) {
	if pos >= len(d.src) {
		return abi.Node{}, d.want(pos, "an extension type")
	}
	return d.mpRun(at, pos+1, n, abi.Node{Tag: abi.TagExt, Ext: d.src[pos]})
}

// mpText takes the n bytes of a string at pos and checks that they are UTF-8.
func (d *decoder) mpText(at, pos int, n uint64) ([]byte, int) {
	b, end := d.mpTake(at, pos, n)
	if end >= 0 && !utf8.Valid(b) {
		return nil, d.fail(pos+invalidUTF8(b), msgNotUTF8)
	}
	return b, end
}

func (d *decoder) mpString(at, pos int, n uint64) (abi.Node, int) {
	b, end := d.mpText(at, pos, n)
	return d.copyRun(b, abi.Node{Tag: abi.TagString}), end
}

// mpShort reads a string whose length stands in its lead byte. Most strings are short
// and ASCII: they are copied in words, and what is written behind their end is
// overwritten by what follows.
func (d *decoder) mpShort(at int) (abi.Node, int) {
	src, off := d.src, len(d.out)
	n := int(src[at] & 31)
	end := at + 1 + n
	if end > len(src) || end < 8 || cap(d.out)-off < 32 {
		return d.mpString(at, at+1, uint64(n))
	}
	dst, last := d.out[off:off+32], binary.LittleEndian.Uint64(src[end-8:])
	var all uint64
	switch {
	case n <= 8:
		all = last >> (64 - 8*uint(n))
		binary.LittleEndian.PutUint64(dst, all)
	case n <= 16:
		b := src[at+1 : end]
		first := binary.LittleEndian.Uint64(b)
		all = first | last
		binary.LittleEndian.PutUint64(dst, first)
		binary.LittleEndian.PutUint64(dst[len(b)-8:], last)
	default:
		b := src[at+1 : end]
		v, w, x := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[len(b)-16:])
		all = v | w | x | last
		binary.LittleEndian.PutUint64(dst, v)
		binary.LittleEndian.PutUint64(dst[8:], w)
		binary.LittleEndian.PutUint64(dst[len(b)-16:], x)
		binary.LittleEndian.PutUint64(dst[len(b)-8:], last)
	}
	if all&highs != 0 {
		return d.mpString(at, at+1, uint64(n))
	}
	d.out = d.out[:off+n]
	return abi.Node{Tag: abi.TagString, Len: uint32(n), Val: uint64(off - d.base)}, end
}

const (
	whatElements = " elements"
	whatEntries  = " entries"
)

// mpMap reads n entries at pos. Nothing is reserved for a count that lies.
func (d *decoder) mpMap(at, pos int, n uint64) (abi.Node, int) {
	if 2*n > uint64(len(d.src)-pos) {
		return abi.Node{}, d.lies(at, pos, n, whatEntries)
	}
	if d.depth >= abi.MaxDepth {
		return d.mpTooDeep(abi.TagMap, pos, 2*n)
	}
	d.depth++
	body, mark := pos, len(d.nodes)
	if n <= fewKeys {
		pos = d.mpFewEntries(at, pos, int(n))
	} else {
		pos = d.mpEntries(pos, n)
	}
	if pos < 0 {
		return abi.Node{}, pos
	}
	m, dup := d.closeMap(mark)
	if dup >= 0 {
		return m, d.fail(d.mpKeyPos(body, dup), msgDuplicate)
	}
	d.depth--
	return m, pos
}

// mpEntries reads n entries onto the stack.
func (d *decoder) mpEntries(pos int, n uint64) int {
	for range n {
		start := pos
		var key, val abi.Node
		if key, pos = d.mpValue(pos); pos < 0 {
			return pos
		}
		if val, pos = d.mpValue(pos); pos < 0 || !d.pushEntry(start, key, val) {
			return -1
		}
	}
	return pos
}

// mpFewEntries is mpEntries for a few: their places on the stack are taken at once.
func (d *decoder) mpFewEntries(at, pos, n int) int {
	if !d.room(at, n*abi.SizeEntry) {
		return -1
	}
	top := len(d.nodes)
	d.nodes = extend(d.nodes, n*abi.SizeEntry)
	for range n {
		var key, val abi.Node
		if pos < len(d.src) && d.src[pos]^mpFixStr < 32 {
			key, pos = d.mpShort(pos)
		} else {
			key, pos = d.mpValue(pos)
		}
		if pos < 0 {
			return pos
		}
		if pos < len(d.src) && d.src[pos]^mpFixStr < 32 {
			val, pos = d.mpShort(pos)
		} else {
			val, pos = d.mpValue(pos)
		}
		if pos < 0 {
			return pos
		}
		e := (*[abi.SizeEntry]byte)(d.nodes[top:])
		binary.LittleEndian.PutUint64(e[0:], head(key))
		binary.LittleEndian.PutUint64(e[8:], key.Val)
		binary.LittleEndian.PutUint64(e[16:], head(val))
		binary.LittleEndian.PutUint64(e[24:], val.Val)
		top += abi.SizeEntry
	}
	return pos
}

// mpKeyPos finds key number i of the map whose first key is at pos, known to be sound.
func (d *decoder) mpKeyPos(pos, i int) int {
	for range 2 * i {
		_, end := d.mpValue(pos)
		if end < 0 {
			break
		}
		pos = end
	}
	return pos
}

// mpArray reads n elements at pos.
func (d *decoder) mpArray(at, pos int, n uint64) (abi.Node, int) {
	if n > uint64(len(d.src)-pos) {
		return abi.Node{}, d.lies(at, pos, n, whatElements)
	}
	mark := len(d.nodes)
	if n > 0 {
		u64s, read, end := d.mpU64s(pos, int(n))
		if end < 0 || read == int(n) {
			return u64s, end // a u64s does not count as nesting
		}
		n, pos = n-uint64(read), end
	}
	if d.depth >= abi.MaxDepth {
		d.nodes = d.nodes[:mark]
		return d.mpTooDeep(abi.TagArray, pos, n)
	}
	d.depth++
	for range n {
		start := pos
		var e abi.Node
		if e, pos = d.mpValue(pos); pos < 0 || !d.push(start, e) {
			return abi.Node{}, -1
		}
	}
	d.depth--
	return d.closeArray(mark), pos
}
