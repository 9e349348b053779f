package lower

import (
	"encoding/binary"
	"math"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func (o *object) readMsgpack(src []byte) error {
	n, pos := mapHead(src)
	if pos < 0 {
		return wrong("", "must be a msgpack map, not %s", kindOf(hint.FormatMsgpack, src))
	}
	for range n {
		from := pos
		if pos = skipMsgpack(src, pos); pos < 0 {
			return wrong("", "malformed msgpack in the key at offset %d", from)
		}
		e := entry{key: src[from:pos], name: text(src[from:pos])}
		from = pos
		if pos = skipMsgpack(src, pos); pos < 0 {
			return wrong("", "malformed msgpack in the value of %q, at offset %d", e.name, from)
		}
		e.val = src[from:pos]
		o.entries = append(o.entries, e)
	}
	if pos != len(src) {
		return wrong("", "something follows the msgpack map at offset %d", pos)
	}
	return nil
}

// mapHead reads the head of a map: how many entries, and where they begin; -1 when
// there is no map or no room for that many.
func mapHead(src []byte) (n, pos int) {
	switch {
	case len(src) >= 1 && src[0]&0xf0 == 0x80:
		n, pos = int(src[0]&15), 1
	case len(src) >= 3 && src[0] == 0xde:
		n, pos = int(binary.BigEndian.Uint16(src[1:])), 3
	case len(src) >= 5 && src[0] == 0xdf:
		n, pos = int(binary.BigEndian.Uint32(src[1:])), 5
	default:
		return 0, -1
	}
	if n > (len(src)-pos)/2 {
		return 0, -1
	}
	return n, pos
}

// text is the text of a msgpack string, nil for any other value. The value is whole.
func text(val []byte) []byte {
	switch lead := val[0]; {
	case lead&0xe0 == 0xa0:
		return val[1:]
	case lead >= 0xd9 && lead <= 0xdb:
		return val[1+1<<(lead-0xd9):]
	}
	return nil
}

// skipMsgpack is the position behind the value at pos, -1 when it is malformed or does
// not end. It needs no stack: what is still to come is a number, and every value takes
// at least one byte.
func skipMsgpack(src []byte, pos int) int {
	for todo := 1; todo > 0; todo-- {
		if todo > len(src)-pos {
			return -1
		}
		for todo > 1 && src[pos] == 0xcf && 9+todo-1 <= len(src)-pos { // lists of hashes
			pos += 9
			todo--
		}
		lead := src[pos]
		pos++
		size := 0 // bytes to pass over
		switch {
		case lead < 0x80 || lead >= 0xe0:
		case lead < 0x90:
			todo += 2 * int(lead&15)
		case lead < 0xa0:
			todo += int(lead & 15)
		case lead < 0xc0:
			size = int(lead & 31)
		case lead == 0xc1:
			return -1
		case lead < 0xc4: // nil and bools
		case lead <= 0xc6, lead >= 0xd9 && lead <= 0xdb, lead >= 0xc7 && lead <= 0xc9, lead >= 0xdc && lead <= 0xdf:
			var n int
			if n, pos = length(src, pos, lead); pos < 0 {
				return -1
			}
			switch {
			case lead >= 0xde:
				todo += 2 * n
			case lead >= 0xdc:
				todo += n
			case lead >= 0xc7 && lead <= 0xc9:
				size = n + 1 // the type of the extension
			default:
				size = n
			}
		case lead <= 0xcb:
			size = 4 << (lead - 0xca)
		case lead <= 0xcf:
			size = 1 << (lead - 0xcc)
		case lead <= 0xd3:
			size = 1 << (lead - 0xd0)
		default: // fixed extensions
			size = 1 + 1<<(lead-0xd4)
		}
		if size > len(src)-pos {
			return -1
		}
		pos += size
	}
	return pos
}

// length reads the length that follows lead.
func length(src []byte, pos int, lead byte) (n, after int) {
	var width int
	switch lead {
	case 0xc4, 0xc7, 0xd9:
		width = 1
	case 0xc5, 0xc8, 0xda, 0xdc, 0xde:
		width = 2
	default:
		width = 4
	}
	if width > len(src)-pos {
		return 0, -1
	}
	for _, b := range src[pos : pos+width] {
		n = n<<8 | int(b)
	}
	return n, pos + width
}

func appendMapHead(dst []byte, n int) []byte { return appendHead(dst, 0x80, 0xde, n) }

func appendArrayHead(dst []byte, n int) []byte { return appendHead(dst, 0x90, 0xdc, n) }

func appendHead(dst []byte, fix, lead16 byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, fix|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, lead16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, lead16+1), uint32(n))
}

// quote appends a string in either encoding.
func quote[S []byte | string](dst []byte, format hint.Format, s S) []byte {
	node := abi.Node{Tag: abi.TagString, Len: uint32(len(s))}
	// A string is what both encodings hold.
	if format == hint.FormatMsgpack {
		dst, _ = hint.AppendTreeMsgpack(dst, abi.Base(s), node)
		return dst
	}
	dst, _ = hint.AppendTreeJSON(dst, abi.Base(s), node)
	return dst
}

func isNull(format hint.Format, val []byte) bool {
	if format == hint.FormatMsgpack {
		return len(val) == 1 && val[0] == 0xc0
	}
	return string(val) == "null"
}

// kindOf names what a value is, as messages of package hint do.
func kindOf(format hint.Format, val []byte) string {
	if format == hint.FormatMsgpack {
		return kindOfMsgpack(val)
	}
	val = val[space(val, 0):]
	if len(val) == 0 {
		return "nothing"
	}
	switch val[0] {
	case '{':
		return "a mapping"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a bool"
	case 'n':
		return "null"
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "a number"
	}
	return "what is no JSON"
}

func kindOfMsgpack(val []byte) string {
	if len(val) == 0 {
		return "nothing"
	}
	switch lead := val[0]; {
	case lead&0xf0 == 0x80, lead >= 0xde && lead <= 0xdf:
		return "a mapping"
	case lead&0xf0 == 0x90, lead >= 0xdc && lead <= 0xdd:
		return "a list"
	case lead&0xe0 == 0xa0, lead >= 0xd9 && lead <= 0xdb:
		return "a string"
	case lead == 0xc0:
		return "null"
	case lead == 0xc2, lead == 0xc3:
		return "a bool"
	case lead >= 0xc4 && lead <= 0xc6:
		return "bytes"
	case lead < 0x80, lead >= 0xe0, lead >= 0xca && lead <= 0xd3:
		return "a number"
	}
	return "an extension"
}
