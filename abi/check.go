package abi

import (
	"encoding/binary"
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

// run verifies a run of bytes and charges it. align is a power of two.
func (c *checker) run(off, size, align uint64, what string) error {
	if n := uint64(len(c.base)); off <= n && size <= n-off && (size == 0 || off >= c.low) && off&(align-1) == 0 && size <= c.budget {
		c.budget -= size
		return nil
	}
	return c.badRun(off, size, align, what)
}

// badRun says what is wrong with a run.
func (c *checker) badRun(off, size, align uint64, what string) error {
	switch {
	case off > uint64(len(c.base)) || size > uint64(len(c.base))-off:
		return bad("%s at %d, %d bytes, is outside %d bytes", what, off, size, len(c.base))
	case size > 0 && off < c.low:
		return bad("%s at %d lies in the record's first %d bytes", what, off, c.low)
	case off%align != 0:
		return bad("%s at %d is not %d-byte aligned", what, off, align)
	}
	return bad("%s at %d: runs overlap", what, off)
}

// validUTF8 is utf8.Valid, which most texts need not be asked: they are short, and ASCII.
func validUTF8(b []byte) bool {
	const highs = 0x8080808080808080
	switch n := len(b); {
	case n > 32:
	case n >= 8:
		bits := binary.LittleEndian.Uint64(b[n-8:]) // the last ones may be looked at twice
		for rest := b; len(rest) >= 8; rest = rest[8:] {
			bits |= binary.LittleEndian.Uint64(rest)
		}
		if bits&highs == 0 {
			return true
		}
	default:
		var bits byte
		for _, c := range b {
			bits |= c
		}
		if bits < utf8.RuneSelf {
			return true
		}
	}
	return utf8.Valid(b)
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
	if !validUTF8(Base(c.base).Run(s)) {
		return bad("%s is not UTF-8", what)
	}
	return nil
}

// nodeAt reads the node at off, which the caller has verified to be inside.
func (c *checker) nodeAt(off uint32) (Node, error) {
	n := GetNode(c.base, off)
	if U32(c.base, off)>>(8*OffNodeZero) != 0 {
		return n, bad("a node at %d whose bytes 2 and 3 are not 0", off)
	}
	return n, nil
}

// root verifies the tree whose root is the field at off.
func (c *checker) root(off uint32) error {
	n, err := c.nodeAt(off)
	if err != nil {
		return err
	}
	return c.node(n, 1)
}

// node verifies n and what it refers to. A container at depth d is inside d-1 others.
func (c *checker) node(n Node, depth int) error {
	if n.Ext != 0 && n.Tag != TagExt {
		return bad("%s with extension type %d", n.Tag, n.Ext)
	}
	switch n.Tag {
	case TagAbsent, TagNull:
		if n.Len != 0 || n.Val != 0 {
			return bad("%s with a value", n.Tag)
		}
		return nil
	case TagBool:
		if n.Val > 1 || n.Len != 0 {
			return bad("a bool of %d, length %d", n.Val, n.Len)
		}
		return nil
	case TagU64, TagF64:
		if n.Len != 0 {
			return bad("%s of length %d", n.Tag, n.Len)
		}
		return nil
	case TagI64:
		if n.I64() >= 0 || n.Len != 0 {
			return bad("an i64 of %d, length %d: want a negative one", n.I64(), n.Len)
		}
		return nil
	case TagNumber:
		if err := c.run(n.Val, uint64(n.Len), 1, "number"); err != nil {
			return err
		}
		if !isWideNumber(Base(c.base).Bytes(n)) {
			return bad("number text that a 64-bit type holds, or that is not a number")
		}
		return nil
	case TagString:
		return c.text(n)
	case TagBytes, TagExt:
		return c.run(n.Val, uint64(n.Len), 1, "bytes")
	case TagU64s:
		if n.Len == 0 {
			return bad("an empty u64s: want an array")
		}
		return c.run(n.Val, uint64(n.Len)*8, 8, "u64s")
	case TagArray:
		return c.array(n, depth)
	case TagMap:
		return c.entries(n, depth)
	}
	return bad("unknown tag %d", uint8(n.Tag))
}

// text verifies a string.
func (c *checker) text(n Node) error {
	if err := c.run(n.Val, uint64(n.Len), 1, "string"); err != nil {
		return err
	}
	if !validUTF8(Base(c.base).Bytes(n)) {
		return bad("a string that is not UTF-8")
	}
	return nil
}

// texts verifies the strings of 8 to 32 ASCII characters that a list begins with, as lists
// of hashes in text do, and returns how many those are. What follows is judged one by one.
func (c *checker) texts(nodes []byte) (n uint32) {
	const highs = 0x8080808080808080
	base, budget := c.base, c.budget
	for ; len(nodes) >= SizeNode; nodes = nodes[SizeNode:] {
		head, off := binary.LittleEndian.Uint64(nodes), binary.LittleEndian.Uint64(nodes[OffNodeVal:])
		size := head >> 32
		if uint32(head) != uint32(TagString) || size-8 > 24 || off < c.low || off > uint64(len(base)) || size > uint64(len(base))-off || size > budget {
			break
		}
		b := base[off : off+size]
		bits := binary.LittleEndian.Uint64(b) | binary.LittleEndian.Uint64(b[size-8:]) // and what is between, or the same again
		bits |= binary.LittleEndian.Uint64(b[min(size-8, 8):]) | binary.LittleEndian.Uint64(b[max(size, 16)-16:])
		if bits&highs != 0 {
			break
		}
		budget -= size
		n++
	}
	c.budget = budget
	return n
}

func (c *checker) array(n Node, depth int) error {
	if depth > MaxDepth {
		return bad("nested deeper than %d", MaxDepth)
	}
	if err := c.run(n.Val, uint64(n.Len)*SizeNode, 8, "array"); err != nil {
		return err
	}
	texts := c.texts(c.base[n.Val:][:uint64(n.Len)*SizeNode])
	canonical := n.Len == 0 || texts > 0
	for i := texts; i < n.Len; i++ {
		e, err := c.nodeAt(uint32(n.Val) + i*SizeNode)
		switch {
		case err != nil:
			return err
		case e.Tag == TagAbsent:
			return bad("an absent element")
		}
		canonical = canonical || e.Tag != TagU64
		if e.Tag == TagString && e.Ext == 0 {
			err = c.text(e)
		} else {
			err = c.node(e, depth+1)
		}
		if err != nil {
			return err
		}
	}
	if !canonical {
		return bad("an array of u64 only: want a u64s")
	}
	return nil
}

func (c *checker) entries(n Node, depth int) error {
	if depth > MaxDepth {
		return bad("nested deeper than %d", MaxDepth)
	}
	if err := c.run(n.Val, uint64(n.Len)*SizeEntry, 8, "map"); err != nil {
		return err
	}
	for i := range 2 * n.Len { // a key and a value are two nodes in a row; the run fits 32 bits
		e, err := c.nodeAt(uint32(n.Val) + i*SizeNode)
		switch {
		case err != nil:
			return err
		case e.Tag == TagAbsent:
			return bad("an absent key or value")
		}
		if err := c.node(e, depth+1); err != nil {
			return err
		}
	}
	return nil
}
