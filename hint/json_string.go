package hint

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

// special marks the bytes of w that end a run of plain string bytes (quote,
// backslash, control, not ASCII), exact up to and including the first one.
func special(w uint64) uint64 {
	quote, slash := w^'"'*ones, w^'\\'*ones
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-' '*ones)&^w | w) & highs
}

// plain returns the index of the first byte of src from i on that is not a plain
// string byte, or len(src).
func plain(src []byte, i int) int {
	for i+8 <= len(src) {
		if m := special(binary.LittleEndian.Uint64(src[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(src) && src[i] >= ' ' && src[i] < utf8.RuneSelf && src[i] != '"' && src[i] != '\\' {
		i++
	}
	return i
}

// jsonString reads a string into out; pos is its opening quote. It copies while it
// looks for the end: what is written behind that is overwritten by what follows.
func (d *decoder) jsonString(pos int) (abi.Node, int) {
	src, out, i := d.src, d.out[:cap(d.out)], pos+1
	off := len(d.out)
	o := off
	for i+8 <= len(src) && o+8 <= len(out) {
		w := binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(out[o:], w)
		m := special(w)
		if m == 0 {
			i, o = i+8, o+8
			continue
		}
		n := bits.TrailingZeros64(m) >> 3
		i, o = i+n, o+n
		if src[i] != '"' {
			break
		}
		d.out = out[:o]
		return abi.Node{Tag: abi.TagString, Len: uint32(o - off), Val: uint64(off - d.base)}, i + 1
	}
	return d.jsonStringSlow(pos+1, plain(src, i))
}

// jsonStringSlow reads a string with escapes or other than ASCII; up to i it is plain.
func (d *decoder) jsonStringSlow(start, i int) (abi.Node, int) {
	from, off, ascii := start, len(d.out), true
	for {
		if i >= len(d.src) {
			return abi.Node{}, d.fail(i, msgStringEnd)
		}
		switch c := d.src[i]; {
		case c == '"':
			d.out = append(d.out, d.src[from:i]...)
			if !ascii && !utf8.Valid(d.out[off:]) {
				return abi.Node{}, d.fail(start+invalidUTF8(d.src[start:i]), msgNotUTF8)
			}
			return abi.Node{Tag: abi.TagString, Len: uint32(len(d.out) - off), Val: uint64(off - d.base)}, i + 1
		case c < ' ':
			return abi.Node{}, d.fail(i, "a control character in a string")
		case c == '\\':
			d.out = append(d.out, d.src[from:i]...)
			if i = d.escape(i); i < 0 {
				return abi.Node{}, -1
			}
			from = i
			i = plain(d.src, i)
		case c >= utf8.RuneSelf:
			ascii = false
			for i < len(d.src) && d.src[i] >= utf8.RuneSelf {
				i++
			}
		default:
			i = plain(d.src, i)
		}
	}
}

const (
	msgStringEnd = "unexpected end in a string"
	msgNotUTF8   = "a string that is not UTF-8"
)

// invalidUTF8 returns the index of the first byte of b that is not valid UTF-8.
func invalidUTF8(b []byte) int {
	i := 0
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return i
}

// escape appends what the escape at i stands for and returns the position behind it.
// A surrogate without its partner has no UTF-8 and is a fault.
func (d *decoder) escape(i int) int {
	if i+1 >= len(d.src) {
		return d.fail(len(d.src), msgStringEnd)
	}
	c := d.src[i+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return d.unicode(i)
	default:
		return d.fail(i, "an unknown escape in a string")
	}
	d.out = append(d.out, c)
	return i + 2
}

func (d *decoder) unicode(i int) int {
	r, end := d.hex4(i), i+6
	if r < 0 {
		return -1
	}
	if r >= 0xd800 && r < 0xe000 {
		low := rune(-1)
		if r < 0xdc00 && d.at(end) == '\\' && d.at(end+1) == 'u' {
			if low = d.hex4(end); low < 0 {
				return -1
			}
		}
		if low < 0xdc00 || low >= 0xe000 {
			return d.fail(i, "a surrogate without its partner")
		}
		r, end = (r-0xd800)<<10+(low-0xdc00)+0x10000, i+12
	}
	d.out = utf8.AppendRune(d.out, r)
	return end
}

// hex4 reads the digits of the \u escape at i, -1 when they are faulty.
func (d *decoder) hex4(i int) rune {
	var r rune
	for k := i + 2; k < i+6; k++ {
		if k >= len(d.src) {
			d.fail(len(d.src), msgStringEnd)
			return -1
		}
		switch c := d.src[k]; {
		case c-'0' <= 9:
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			d.fail(k, "expected a hexadecimal digit")
			return -1
		}
	}
	return r
}
