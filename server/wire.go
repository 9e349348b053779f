package server

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
	"unsafe"
)

// The part of msgpack that frames are made of. Writers choose the shortest form, as
// every msgpack library does; the reader takes any form.

func appendArray(b []byte, n int) []byte {
	if n < 16 {
		return append(b, 0x90|byte(n))
	}
	return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n))
}

// appendArray32 writes a length that may pass 65,535.
func appendArray32(b []byte, n int) []byte {
	if n <= math.MaxUint16 {
		return appendArray(b, n)
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n))
}

func appendNil(b []byte) []byte { return append(b, 0xc0) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

func appendUint(b []byte, v uint64) []byte {
	switch {
	case v < 0x80:
		return append(b, byte(v))
	case v <= math.MaxUint8:
		return append(b, 0xcc, byte(v))
	case v <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
}

// text is what has the bytes of a string.
type text interface{ ~string | ~[]byte }

func appendStr[T text](b []byte, s T) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n <= math.MaxUint8:
		b = append(b, 0xd9, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

func appendBin(b []byte, v []byte) []byte {
	switch n := len(v); {
	case n <= math.MaxUint8:
		b = append(b, 0xc4, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 0xc5), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(n))
	}
	return append(b, v...)
}

// frameError says what is wrong with a frame, and where.
type frameError struct {
	offset int // into the frame, behind its length
	msg    string
}

func (e *frameError) Error() string { return fmt.Sprintf("%s at offset %d", e.msg, e.offset) }

// reader reads one frame. The first mistake sticks: what is read behind it is zero.
// Strings and bytes that it returns are views of the frame.
type reader struct {
	b   []byte
	pos int
	err *frameError
}

func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &frameError{at, fmt.Sprintf(format, args...)}
	}
	r.pos = len(r.b)
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if n > len(r.b)-r.pos {
		r.fail(len(r.b), "the frame ends early")
		return nil
	}
	r.pos += n
	return r.b[r.pos-n : r.pos]
}

// head returns the next byte without going behind it.
func (r *reader) head(what string) (byte, bool) {
	if r.err != nil {
		return 0, false
	}
	if r.pos == len(r.b) {
		r.fail(r.pos, "the frame ends where %s should stand", what)
		return 0, false
	}
	return r.b[r.pos], true
}

func (r *reader) want(what, kind string) {
	r.fail(r.pos, "%s must be %s, not byte 0x%02x", what, kind, r.b[r.pos])
}

// be reads an n-byte big-endian number.
func (r *reader) be(n int) (v uint64) {
	for _, c := range r.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

// uint reads an integer in [0, limit]. Nil is 0.
func (r *reader) uint(what string, limit uint64) uint64 {
	c, ok := r.head(what)
	if !ok {
		return 0
	}
	at := r.pos
	var v uint64
	switch {
	case c < 0x80 || c == 0xc0:
		r.pos++
		v = uint64(c & 0x7f)
		if c == 0xc0 {
			v = 0
		}
	case c >= 0xcc && c <= 0xcf:
		r.pos++
		v = r.be(1 << (c - 0xcc))
	case c >= 0xd0 && c <= 0xd3: // signed, for the encoders that know no other
		r.pos++
		n := 1 << (c - 0xd0)
		if v = r.be(n); v>>(8*n-1) != 0 {
			r.fail(at, "%s must not be negative", what)
		}
	case c >= 0xe0:
		r.fail(at, "%s must not be negative", what)
	default:
		r.want(what, "an integer")
		return 0
	}
	if v > limit && r.err == nil {
		r.fail(at, "%s must be an integer from 0 to %d", what, limit)
		return 0
	}
	return v
}

// bool reads a boolean. Nil is false.
func (r *reader) bool(what string) bool {
	c, ok := r.head(what)
	if !ok {
		return false
	}
	if c != 0xc0 && c != 0xc2 && c != 0xc3 {
		r.want(what, "a boolean")
		return false
	}
	r.pos++
	return c == 0xc3
}

// array reads the head of an array.
func (r *reader) array(what string) int {
	c, ok := r.head(what)
	if !ok {
		return 0
	}
	switch {
	case c&0xf0 == 0x90:
		r.pos++
		return int(c & 15)
	case c == 0xdc || c == 0xdd:
		r.pos++
		return int(r.be(2 << (c - 0xdc)))
	}
	r.want(what, "an array")
	return 0
}

// str reads a string of at most limit bytes. Nil is empty.
func (r *reader) str(what string, limit int) string {
	c, ok := r.head(what)
	if !ok {
		return ""
	}
	at, n := r.pos, 0
	switch {
	case c == 0xc0:
		r.pos++
		return ""
	case c&0xe0 == 0xa0:
		r.pos++
		n = int(c & 31)
	case c >= 0xd9 && c <= 0xdb:
		r.pos++
		n = int(r.be(1 << (c - 0xd9)))
	default:
		r.want(what, "a string")
		return ""
	}
	if n > limit {
		r.fail(at, "%s has %d bytes, %d are allowed", what, n, limit)
		return ""
	}
	b := r.take(n)
	if !utf8.Valid(b) {
		r.fail(at, "%s is not UTF-8", what)
		return ""
	}
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// body reads the last element: bytes or a string with a body in it, or, in its place,
// a map, which is the body itself. inline tells the two apart; nil is no body.
func (r *reader) body(what string) (body []byte, inline bool) {
	c, ok := r.head(what)
	if !ok {
		return nil, false
	}
	switch {
	case c == 0xc0:
		r.pos++
		return nil, false
	case c >= 0xc4 && c <= 0xc6:
		r.pos++
		return r.take(int(r.be(1 << (c - 0xc4)))), false
	case c&0xe0 == 0xa0:
		r.pos++
		return r.take(int(c & 31)), false
	case c >= 0xd9 && c <= 0xdb:
		r.pos++
		return r.take(int(r.be(1 << (c - 0xd9)))), false
	case c&0xf0 == 0x80 || c == 0xde || c == 0xdf:
		return r.take(len(r.b) - r.pos), true
	}
	r.want(what, "bytes, a string or a map")
	return nil, false
}

// batch reads an array of bodies. Each is bytes, a string or a map.
func (r *reader) batch() batch {
	at := r.pos
	n := r.array("the bodies")
	if n > maxBatch {
		r.fail(at, "%d bodies, %d are allowed", n, maxBatch)
	}
	from := r.pos
	for range n {
		if r.err != nil {
			return batch{}
		}
		r.element()
	}
	return batch{r.b[from:r.pos], n}
}

// element reads one of several bodies.
func (r *reader) element() (body []byte, inline bool) {
	if c, ok := r.head("a body"); !ok || c&0xf0 != 0x80 && c != 0xde && c != 0xdf {
		return r.body("a body")
	}
	from := r.pos
	r.skip()
	return r.b[from:r.pos], true
}

// skip passes over one value. It takes as many steps as the value has bytes, at most.
func (r *reader) skip() {
	for left := uint64(1); left > 0 && r.err == nil; left-- {
		c, ok := r.head("a value")
		if !ok {
			return
		}
		r.pos++
		switch {
		case c < 0x80, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		case c < 0x90:
			left += 2 * uint64(c&15)
		case c < 0xa0:
			left += uint64(c & 15)
		case c < 0xc0:
			r.take(int(c & 31))
		case c >= 0xc4 && c <= 0xc6:
			r.take(int(r.be(1 << (c - 0xc4))))
		case c >= 0xc7 && c <= 0xc9:
			r.take(1 + int(r.be(1<<(c-0xc7))))
		case c == 0xca, c == 0xce, c == 0xd2:
			r.take(4)
		case c == 0xcb, c == 0xcf, c == 0xd3:
			r.take(8)
		case c == 0xcc, c == 0xd0:
			r.take(1)
		case c == 0xcd, c == 0xd1:
			r.take(2)
		case c >= 0xd4 && c <= 0xd8:
			r.take(1 + 1<<(c-0xd4))
		case c >= 0xd9 && c <= 0xdb:
			r.take(int(r.be(1 << (c - 0xd9))))
		case c == 0xdc || c == 0xdd:
			left += r.be(2 << (c - 0xdc))
		case c == 0xde || c == 0xdf:
			left += 2 * r.be(2<<(c-0xde))
		default:
			r.fail(r.pos-1, "byte 0x%02x begins no value", c)
		}
	}
}

// end wants the frame to end here.
func (r *reader) end() {
	if r.err == nil && r.pos != len(r.b) {
		r.fail(r.pos, "%d bytes behind the end", len(r.b)-r.pos)
	}
}
