package kvevents

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A DecodeError says why a batch could not be read. Nothing of it is known then.
type DecodeError struct {
	Offset int // where in the batch
	Reason string
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("event batch, byte %d: %s", e.Offset, e.Reason)
}

// kind is the sort of a msgpack value.
type kind uint8

const (
	kindNone kind = iota // after a fault
	kindNil
	kindBool
	kindInt // any integer; its 64 bits, sign-extended
	kindFloat
	kindStr
	kindBin
	kindExt
	kindArray
	kindMap
)

// A value is a msgpack value whose contents have not been passed over yet when it is
// a container: n counts them. It is the bits of a number, or the bytes of a text.
type value struct {
	kind kind
	n    uint64
	neg  bool // an integer below zero
	b    []byte
}

// A scanner walks msgpack without allocating or recursing. Its first fault sticks, and
// everything that is read after it is nothing.
type scanner struct {
	src []byte
	pos int
	err *DecodeError
}

func (s *scanner) fail(reason string) value {
	if s.err == nil {
		s.err = &DecodeError{Offset: s.pos, Reason: reason}
		s.src, s.pos = nil, 0
	}
	return value{}
}

const (
	msgEnd      = "unexpected end"
	msgReserved = "the reserved byte 0xc1"
	msgCount    = "more elements announced than bytes are left"
)

// Sizes of values by their lead byte, 0 for those whose size is not fixed. A string
// constant is a table that nobody can write to.
const (
	ones16 = "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
	none16 = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	strs32 = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10" +
		"\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x20"
	sizes = ones16 + ones16 + ones16 + ones16 + ones16 + ones16 + ones16 + ones16 + // 0x00: small integers
		none16 + none16 + // 0x80: small maps and arrays
		strs32 + // 0xa0: short strings
		"\x01\x00\x01\x01\x00\x00\x00\x00\x00\x00\x05\x09\x02\x03\x05\x09" + // 0xc0: nil, bool, bin, ext, float, uint
		"\x02\x03\x05\x09\x03\x04\x06\x0a\x12\x00\x00\x00\x00\x00\x00\x00" + // 0xd0: int, fixext, str, array, map
		ones16 + ones16 // 0xe0: small negative integers
)

// length reads the big-endian number of size bytes after the lead byte.
func (s *scanner) length(size int) uint64 {
	b := s.src[s.pos+1:]
	if len(b) < size {
		s.fail(msgEnd)
		return math.MaxUint64
	}
	s.pos += 1 + size
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return binary.BigEndian.Uint64(b)
}

// next reads one value, or the head of a container.
func (s *scanner) next() value {
	v := s.read()
	if s.err != nil {
		return value{}
	}
	return v
}

func (s *scanner) read() value {
	if s.pos >= len(s.src) {
		return s.fail(msgEnd)
	}
	c := s.src[s.pos]
	switch {
	case c < 0x80:
		s.pos++
		return value{kind: kindInt, n: uint64(c)}
	case c < 0x90:
		s.pos++
		return s.container(kindMap, uint64(c&15))
	case c < 0xa0:
		s.pos++
		return s.container(kindArray, uint64(c&15))
	case c < 0xc0:
		s.pos++
		return s.text(kindStr, uint64(c&31))
	case c >= 0xe0:
		s.pos++
		return value{kind: kindInt, n: uint64(int8(c)), neg: true}
	}
	switch c {
	case 0xc0:
		s.pos++
		return value{kind: kindNil}
	case 0xc2, 0xc3:
		s.pos++
		return value{kind: kindBool, n: uint64(c & 1)}
	case 0xc4, 0xc5, 0xc6:
		return s.text(kindBin, s.length(1<<(c-0xc4)))
	case 0xc7, 0xc8, 0xc9:
		return s.text(kindExt, s.length(1<<(c-0xc7))+1)
	case 0xca:
		return value{kind: kindFloat, n: math.Float64bits(float64(math.Float32frombits(uint32(s.length(4)))))}
	case 0xcb:
		return value{kind: kindFloat, n: s.length(8)}
	case 0xcc, 0xcd, 0xce, 0xcf:
		return value{kind: kindInt, n: s.length(1 << (c - 0xcc))}
	case 0xd0:
		return signed(int64(int8(s.length(1))))
	case 0xd1:
		return signed(int64(int16(s.length(2))))
	case 0xd2:
		return signed(int64(int32(s.length(4))))
	case 0xd3:
		return signed(int64(s.length(8)))
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		s.pos++
		return s.text(kindExt, 1+1<<(c-0xd4))
	case 0xd9, 0xda, 0xdb:
		return s.text(kindStr, s.length(1<<(c-0xd9)))
	case 0xdc, 0xdd:
		return s.container(kindArray, s.length(2<<(c-0xdc)))
	case 0xde, 0xdf:
		return s.container(kindMap, s.length(2<<(c-0xde)))
	}
	return s.fail(msgReserved)
}

func signed(v int64) value {
	return value{kind: kindInt, n: uint64(v), neg: v < 0}
}

func (s *scanner) text(k kind, n uint64) value {
	if n > uint64(len(s.src)-s.pos) {
		return s.fail(msgEnd)
	}
	b := s.src[s.pos : s.pos+int(n)]
	s.pos += int(n)
	return value{kind: k, n: n, b: b}
}

// container holds a count against the bytes that are left: each element takes one
// at least, so that no count can make a reader loop or reserve for nothing.
func (s *scanner) container(k kind, n uint64) value {
	least := n
	if k == kindMap {
		least = 2 * n
	}
	if least > uint64(len(s.src)-s.pos) {
		return s.fail(msgCount)
	}
	return value{kind: k, n: n}
}

// drop passes over what v contains.
func (s *scanner) drop(v value) {
	switch v.kind {
	case kindArray:
		s.skip(v.n)
	case kindMap:
		s.skip(2 * v.n)
	}
}

// skip passes over n values, at any depth, in one loop: token ids go by here.
func (s *scanner) skip(n uint64) {
	src, pos := s.src, s.pos
	for n > 0 {
		if pos >= len(src) {
			s.pos = len(s.src)
			s.fail(msgEnd)
			return
		}
		if size := int(sizes[src[pos]]); size != 0 {
			pos += size
			n--
			continue
		}
		s.pos = pos
		v := s.next()
		if v.kind == kindNone {
			return
		}
		n--
		switch v.kind {
		case kindArray:
			n += v.n
		case kindMap:
			n += 2 * v.n
		}
		pos = s.pos
	}
	if pos > len(src) {
		s.pos = len(s.src)
		s.fail(msgEnd)
		return
	}
	s.pos = pos
}
