package abi

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// MaxDepth is how deep a payload tree may nest: the root is at depth 1.
const MaxDepth = 32

// MaxDetail is how many bytes of a detail the host keeps.
const MaxDetail = 512

// ErrFrame is what every Check function's error wraps: bytes that the ABI does not
// allow. A guest that answers them made a mistake; the host rejects the action.
var ErrFrame = errors.New("not a valid frame")

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFrame}, args...)...)
}

// maxBase is the largest base: offsets and sizes are 32 bits wide.
const maxBase = math.MaxUint32

// checker walks untrusted bytes. Every run that is referred to lies behind the
// record's fixed part and is charged against what is left of the base, so that
// overlapping or cyclic trees cannot make the walk longer than the bytes are: work
// is linear in len(base).
type checker struct {
	base   []byte
	low    uint64 // bytes of the fixed part
	budget uint64 // bytes not yet referred to
}

// newChecker wants low <= len(base) <= maxBase.
func newChecker(base []byte, low int) checker {
	return checker{base, uint64(low), uint64(len(base) - low)}
}

// CheckTree verifies the tree under root: offsets, alignment, UTF-8, canonical
// numbers and arrays, at most [MaxDepth] containers inside each other, and total work
// linear in len(base).
func CheckTree(base []byte, root Node) error {
	if uint64(len(base)) > maxBase {
		return bad("a base of %d bytes", len(base))
	}
	c := newChecker(base, 0)
	return c.node(root, 1)
}

func (c *checker) run(off, size, align uint64, what string) error {
	switch {
	case off > uint64(len(c.base)) || size > uint64(len(c.base))-off:
		return bad("%s at %d, %d bytes, is outside %d bytes", what, off, size, len(c.base))
	case size > 0 && off < c.low:
		return bad("%s at %d lies in the record's first %d bytes", what, off, c.low)
	case off%align != 0:
		return bad("%s at %d is not %d-byte aligned", what, off, align)
	case size > c.budget:
		return bad("%s at %d: runs overlap", what, off)
	}
	c.budget -= size
	return nil
}

// raw verifies a span of any bytes.
func (c *checker) raw(s Span, align uint64, what string) error {
	if s.Off == 0 {
		if s.Len != 0 {
			return bad("%s: offset 0 with length %d", what, s.Len)
		}
		return nil
	}
	return c.run(uint64(s.Off), uint64(s.Len), align, what)
}

// span verifies a span of UTF-8.
func (c *checker) span(s Span, what string) error {
	if err := c.raw(s, 1, what); err != nil {
		return err
	}
	if !utf8.Valid(Base(c.base).Run(s)) {
		return bad("%s is not UTF-8", what)
	}
	return nil
}

func (c *checker) node(n Node, depth int) error {
	switch n.Tag {
	case TagAbsent, TagNull:
		if n.Len != 0 || n.Val != 0 {
			return bad("a null with a value")
		}
		return nil
	case TagBool:
		if n.Val > 1 || n.Len != 0 {
			return bad("a bool of %d", n.Val)
		}
		return nil
	case TagU64, TagF64:
		if n.Len != 0 {
			return bad("a scalar of length %d", n.Len)
		}
		return nil
	case TagI64:
		if n.I64() >= 0 || n.Len != 0 {
			return bad("an i64 that is not negative")
		}
		return nil
	case TagNumber:
		if err := c.run(n.Val, uint64(n.Len), 1, "number"); err != nil {
			return err
		}
		if !IsNumber(Base(c.base).Bytes(n)) {
			return bad("number text that is not a JSON number")
		}
		return nil
	case TagString:
		if err := c.run(n.Val, uint64(n.Len), 1, "string"); err != nil {
			return err
		}
		if !utf8.Valid(Base(c.base).Bytes(n)) {
			return bad("a string that is not UTF-8")
		}
		return nil
	case TagBytes, TagExt:
		return c.run(n.Val, uint64(n.Len), 1, "bytes")
	case TagU64s:
		if n.Len == 0 {
			return bad("an empty u64s")
		}
		return c.run(n.Val, uint64(n.Len)*8, 8, "u64s")
	case TagArray:
		return c.array(n, depth)
	case TagMap:
		return c.entries(n, depth)
	}
	return bad("unknown tag %d", n.Tag)
}

func (c *checker) array(n Node, depth int) error {
	if depth >= MaxDepth+1 {
		return bad("nested deeper than %d", MaxDepth)
	}
	if err := c.run(n.Val, uint64(n.Len)*SizeNode, 8, "array"); err != nil {
		return err
	}
	canonical := n.Len == 0
	for i := uint32(0); i < n.Len; i++ {
		e := Base(c.base).Elem(n, i)
		if e.Tag == TagAbsent {
			return bad("an absent element")
		}
		canonical = canonical || e.Tag != TagU64
		if err := c.node(e, depth+1); err != nil {
			return err
		}
	}
	if !canonical {
		return bad("an array of u64 only must be a u64s")
	}
	return nil
}

func (c *checker) entries(n Node, depth int) error {
	if depth >= MaxDepth+1 {
		return bad("nested deeper than %d", MaxDepth)
	}
	if err := c.run(n.Val, uint64(n.Len)*SizeEntry, 8, "map"); err != nil {
		return err
	}
	for i := uint32(0); i < n.Len; i++ {
		k, v := Base(c.base).Entry(n, i)
		if k.Tag == TagAbsent || v.Tag == TagAbsent {
			return bad("an absent key or value")
		}
		if err := c.node(k, depth+1); err != nil {
			return err
		}
		if err := c.node(v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// CheckAction verifies an Action record that fills b.
func CheckAction(b []byte) error {
	if len(b) < SizeAction || len(b)%8 != 0 || uint64(len(b)) > maxBase {
		return bad("an action of %d bytes", len(b))
	}
	if int(U32(b, OffActionSize)) != len(b) {
		return bad("an action that says %d bytes and has %d", U32(b, OffActionSize), len(b))
	}
	c := newChecker(b, SizeAction)
	for _, f := range [...]struct {
		off  uint32
		what string
	}{{OffActionActionID, "action_id"}, {OffActionActionType, "action_type"}, {OffActionActionVersion, "action_version"}} {
		if err := c.span(GetSpan(b, f.off), f.what); err != nil {
			return err
		}
	}
	if err := c.raw(GetSpan(b, OffActionRaw), 1, "raw"); err != nil {
		return err
	}
	return c.node(GetNode(b, OffActionPayload), 1)
}

// CheckEnvelope verifies an EnvelopeFrame that fills b, every action included.
func CheckEnvelope(b []byte) error {
	if len(b) < SizeEnvelopeFrame || len(b)%8 != 0 || uint64(len(b)) > maxBase {
		return bad("an envelope frame of %d bytes", len(b))
	}
	if k := Kind(U32(b, OffEnvelopeFrameKind)); k != KindEnvelope {
		return bad("a frame of kind %d where an envelope belongs", k)
	}
	if int(U32(b, OffEnvelopeFrameSize)) != len(b) {
		return bad("a frame that says %d bytes and has %d", U32(b, OffEnvelopeFrameSize), len(b))
	}
	c := newChecker(b, SizeEnvelopeFrame)
	for _, f := range [...]struct {
		off  uint32
		what string
	}{{OffEnvelopeFrameProtocolVersion, "protocol_version"}, {OffEnvelopeFrameMessageID, "message_id"},
		{OffEnvelopeFrameRequestID, "request_id"}, {OffEnvelopeFrameEngine, "engine"}} {
		if err := c.span(GetSpan(b, f.off), f.what); err != nil {
			return err
		}
	}
	table, count := U32(b, OffEnvelopeFrameActions), U32(b, OffEnvelopeFrameCount)
	if err := c.run(uint64(table), uint64(count)*4, 4, "action table"); err != nil {
		return err
	}
	for i := uint32(0); i < count; i++ {
		off := U32(b, table+4*i)
		if uint64(off)+SizeAction > uint64(len(b)) {
			return bad("action %d at %d is outside", i, off)
		}
		size := U32(b, off+OffActionSize)
		if err := c.run(uint64(off), uint64(size), 8, "action"); err != nil {
			return err
		}
		if err := CheckAction(b[off : uint64(off)+uint64(size)]); err != nil {
			return fmt.Errorf("action %d: %w", i, err)
		}
	}
	return nil
}

// IsNumber tells whether b is a number as JSON spells it.
func IsNumber(b []byte) bool {
	i, digits := 0, func(i int) int {
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	j := digits(i)
	if j == i || b[i] == '0' && j > i+1 {
		return false
	}
	if i = j; i < len(b) && b[i] == '.' {
		if j = digits(i + 1); j == i+1 {
			return false
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if j = digits(i); j == i {
			return false
		}
		i = j
	}
	return i == len(b)
}
