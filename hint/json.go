package hint

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

// peek returns the next significant byte, or 0 at the end; the cursor stays on it.
func (d *decoder) peek() byte {
	if d.pos < len(d.src) && d.src[d.pos] > ' ' {
		return d.src[d.pos]
	}
	return d.peekSlow()
}

func (d *decoder) peekSlow() byte {
	for d.pos < len(d.src) {
		switch c := d.src[d.pos]; c {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return c
		}
	}
	return 0
}

// jsonValue reads the value at or after the cursor.
func (d *decoder) jsonValue() (abi.Node, bool) {
	switch c := d.peek(); c {
	case '"':
		return d.jsonString()
	case '{':
		return d.jsonMap()
	case '[':
		return d.jsonArray()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return d.jsonNumber()
	case 'n':
		return abi.Node{Tag: abi.TagNull}, d.literal("null")
	case 't':
		return abi.Node{Tag: abi.TagBool, Val: 1}, d.literal("true")
	case 'f':
		return abi.Node{Tag: abi.TagBool}, d.literal("false")
	}
	return abi.Node{}, d.want("a value")
}

func (d *decoder) literal(text string) bool {
	if len(d.src)-d.pos >= len(text) && string(d.src[d.pos:d.pos+len(text)]) == text {
		d.pos += len(text)
		return true
	}
	if len(d.src)-d.pos < len(text) && string(d.src[d.pos:]) == text[:len(d.src)-d.pos] {
		return d.fail(len(d.src), "unexpected end, expected "+text)
	}
	return d.fail(d.pos, "expected "+text)
}

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

// jsonString reads a string into out; the cursor is on its opening quote.
func (d *decoder) jsonString() (abi.Node, bool) {
	start := d.pos + 1
	end := plain(d.src, start)
	if end >= len(d.src) || d.src[end] != '"' {
		return d.jsonStringSlow(start, end)
	}
	n := end - start
	if !d.room(n) {
		return abi.Node{}, false
	}
	off := d.here()
	d.out = append(d.out, d.src[start:end]...)
	d.pos = end + 1
	return abi.Node{Tag: abi.TagString, Len: uint32(n), Val: uint64(off)}, true
}

// jsonStringSlow reads a string with escapes or other than ASCII; up to i it is plain.
func (d *decoder) jsonStringSlow(start, i int) (abi.Node, bool) {
	from, off, ascii := start, len(d.out), true
	for {
		if i >= len(d.src) {
			return abi.Node{}, d.fail(i, "unexpected end in a string")
		}
		switch c := d.src[i]; {
		case c == '"':
			if !d.room(i - from) {
				return abi.Node{}, false
			}
			d.out = append(d.out, d.src[from:i]...)
			d.pos = i + 1
			if !ascii && !utf8.Valid(d.out[off:]) {
				return abi.Node{}, d.fail(start+invalidUTF8(d.src[start:i]), msgNotUTF8)
			}
			return abi.Node{Tag: abi.TagString, Len: uint32(len(d.out) - off), Val: uint64(off - d.base)}, true
		case c < ' ':
			return abi.Node{}, d.fail(i, "a control character in a string")
		case c == '\\':
			if !d.room(i - from + utf8.UTFMax) {
				return abi.Node{}, false
			}
			d.out = append(d.out, d.src[from:i]...)
			n := d.escape(i)
			if n == 0 {
				return abi.Node{}, false
			}
			i += n
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

// escape appends what the escape at i stands for and returns the escape's length, 0
// when it is faulty. A surrogate without its partner has no UTF-8 and is a fault.
func (d *decoder) escape(i int) int {
	if i+1 >= len(d.src) {
		d.fail(len(d.src), "unexpected end in a string")
		return 0
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
		d.fail(i, "an unknown escape in a string")
		return 0
	}
	d.out = append(d.out, c)
	return 2
}

func (d *decoder) unicode(i int) int {
	r, n := d.hex4(i), 6
	if r < 0 {
		return 0
	}
	if r >= 0xd800 && r < 0xe000 {
		low := rune(-1)
		if r < 0xdc00 && i+7 < len(d.src) && d.src[i+6] == '\\' && d.src[i+7] == 'u' {
			if low = d.hex4(i + 6); low < 0 {
				return 0
			}
		}
		if low < 0xdc00 || low >= 0xe000 {
			d.fail(i, "a surrogate without its partner")
			return 0
		}
		r, n = (r-0xd800)<<10+(low-0xdc00)+0x10000, 12
	}
	d.out = utf8.AppendRune(d.out, r)
	return n
}

// hex4 reads the digits of the \u escape at i, -1 when they are faulty.
func (d *decoder) hex4(i int) rune {
	var r rune
	for k := i + 2; k < i+6; k++ {
		if k >= len(d.src) {
			d.fail(len(d.src), "unexpected end in a string")
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

const (
	msgDeep  = "nested deeper than 32"
	wantKey  = "a string key"
	wantSep  = "',' or '}'"
	wantElem = "',' or ']'"
)

// enter opens a container; the cursor is on its first byte.
func (d *decoder) enter() bool {
	if d.depth >= abi.MaxDepth {
		return d.fail(d.pos, msgDeep)
	}
	d.depth++
	return true
}

func (d *decoder) jsonMap() (abi.Node, bool) {
	if !d.enter() {
		return abi.Node{}, false
	}
	start, mark := d.pos, len(d.nodes)
	d.pos++
	if d.peek() == '}' {
		d.pos++
	} else if !d.jsonEntries() {
		return abi.Node{}, false
	}
	n, dup := d.closeMap(mark)
	if dup >= 0 {
		return n, d.fail(d.jsonKeyPos(start, dup), msgDuplicate)
	}
	d.depth--
	return n, true
}

// jsonEntries reads entries up to and including the closing brace.
func (d *decoder) jsonEntries() bool {
	for {
		if d.peek() != '"' {
			return d.want(wantKey)
		}
		key, ok := d.jsonString()
		if !ok || !d.push(key) || !d.colon() {
			return false
		}
		val, ok := d.jsonValue()
		if !ok || !d.push(val) {
			return false
		}
		if more, ok := d.separator('}', wantSep); !more {
			return ok
		}
	}
}

func (d *decoder) colon() bool {
	if d.peek() != ':' {
		return d.want("':'")
	}
	d.pos++
	return true
}

// separator reads a comma (more) or the closing byte.
func (d *decoder) separator(closing byte, what string) (more, ok bool) {
	switch d.peek() {
	case ',':
		d.pos++
		return true, true
	case closing:
		d.pos++
		return false, true
	}
	return false, d.want(what)
}

// jsonKeyPos finds key number i of the map at start, which is known to be sound.
func (d *decoder) jsonKeyPos(start, i int) int {
	for d.pos = start + 1; ; d.pos++ {
		d.peek()
		at := d.pos
		if i == 0 {
			return at
		}
		i--
		if _, ok := d.jsonString(); !ok || !d.colon() {
			return at
		}
		if _, ok := d.jsonValue(); !ok {
			return at
		}
		d.peek()
	}
}

func (d *decoder) jsonArray() (abi.Node, bool) {
	if !d.enter() {
		return abi.Node{}, false
	}
	d.pos++
	mark := len(d.nodes)
	switch c := d.peek(); {
	case c == ']':
		d.pos++
	case c-'0' <= 9 || c == '-': // -0 is a u64
		if n, done, ok := d.jsonU64s(); done || !ok {
			d.depth--
			return n, ok
		}
		fallthrough
	default:
		if !d.jsonElements() {
			return abi.Node{}, false
		}
	}
	d.depth--
	return d.closeArray(mark), true
}

// jsonElements reads elements up to and including the closing bracket.
func (d *decoder) jsonElements() bool {
	for {
		n, ok := d.jsonValue()
		if !ok || !d.push(n) {
			return false
		}
		if more, ok := d.separator(']', wantElem); !more {
			return ok
		}
	}
}
