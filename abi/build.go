package abi

import (
	"encoding/binary"
	"math"
)

// Builder lays out records, append-style: first the fixed part, then the runs it
// refers to, then the offsets patched in. It trusts its caller; what it builds from
// sane arguments passes the Check functions.
//
//	b := abi.NewBuilder(buf)
//	outer := b.Open(abi.SizeAction)
//	b.SetSpan(abi.OffActionActionType, b.RunString("demo.echo"))
//	b.SetNode(abi.OffActionPayload, b.Map(abi.Entry{Key: b.String("text"), Val: b.String("hi")}))
//	b.SetU32(abi.OffActionSize, b.Close(outer))
//	record := b.Bytes()
type Builder struct {
	buf  []byte
	base int // where the offsets of the open record count from
}

// Entry is one entry of a map node.
type Entry struct{ Key, Val Node }

// NewBuilder starts at buf[:0], so that its capacity is used again.
func NewBuilder(buf []byte) Builder { return Builder{buf: buf[:0]} }

// Bytes returns what was built. The builder's buffer is shared with it.
func (b *Builder) Bytes() []byte { return b.buf }

// Open begins a record whose fixed part has size bytes, all zero. Offsets count from
// it until Close is given the result.
func (b *Builder) Open(size int) (outer int) {
	outer = b.base
	b.buf = Align(b.buf)
	b.base = len(b.buf)
	b.buf = zeros(b.buf, size)
	return outer
}

// Close ends the record that Open began: it pads to 8 bytes and returns the record's
// size. SetU32 and its like still write to the record that outer belongs to, so set
// the size with [Builder.CloseAction] or [Builder.CloseFrame].
func (b *Builder) Close(outer int) uint32 {
	b.buf = Align(b.buf)
	size := len(b.buf) - b.base
	b.base = outer
	return uint32(size)
}

// CloseAction ends an Action record: it sets the size and returns the record's offset
// in the outer record.
func (b *Builder) CloseAction(outer int) uint32 {
	at := b.base
	PutU32(b.buf[at:], OffActionSize, b.Close(outer))
	return uint32(at - outer)
}

// CloseFrame ends a frame: it sets kind and size.
func (b *Builder) CloseFrame(k Kind, outer int) {
	at := b.base
	PutU32(b.buf[at:], offKind, uint32(k))
	PutU32(b.buf[at:], offSize, b.Close(outer))
}

// Pos is the offset at which the next run begins.
func (b *Builder) Pos() uint32 { return uint32(len(b.buf) - b.base) }

// Align pads to 8 bytes and returns the offset.
func (b *Builder) Align() uint32 {
	b.buf = Align(b.buf)
	return b.Pos()
}

// SetU32 sets a field of the open record.
func (b *Builder) SetU32(off, v uint32) { PutU32(b.buf[b.base:], off, v) }

// SetU64 sets a field of the open record.
func (b *Builder) SetU64(off uint32, v uint64) { PutU64(b.buf[b.base:], off, v) }

// SetSpan sets a field of the open record.
func (b *Builder) SetSpan(off uint32, s Span) { PutSpan(b.buf[b.base:], off, s) }

// SetNode sets a field of the open record.
func (b *Builder) SetNode(off uint32, n Node) { PutNode(b.buf[b.base:], off, n) }

// Run appends bytes and returns where they are; no bytes are present and empty.
func (b *Builder) Run(p []byte) Span {
	s := Span{b.Pos(), uint32(len(p))}
	b.buf = append(b.buf, p...)
	return s
}

// RunString is Run for a string.
func (b *Builder) RunString(p string) Span {
	s := Span{b.Pos(), uint32(len(p))}
	b.buf = append(b.buf, p...)
	return s
}

// Optional is RunString, but the empty string is absent.
func (b *Builder) Optional(p string) Span {
	if p == "" {
		return Span{}
	}
	return b.RunString(p)
}

// U32s appends numbers, 4-byte aligned, and returns their offset.
func (b *Builder) U32s(v []uint32) uint32 {
	at := b.Align()
	for _, x := range v {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, x)
	}
	return at
}

// Null is the null node.
func Null() Node { return Node{Tag: TagNull} }

// Bool is a bool node.
func Bool(v bool) Node {
	n := Node{Tag: TagBool}
	if v {
		n.Val = 1
	}
	return n
}

// Uint is an integer node.
func Uint(v uint64) Node { return Node{Tag: TagU64, Val: v} }

// Int is an integer node: U64 unless v is negative.
func Int(v int64) Node {
	if v < 0 {
		return Node{Tag: TagI64, Val: uint64(v)}
	}
	return Uint(uint64(v))
}

// Float is a double node.
func Float(v float64) Node { return Node{Tag: TagF64, Val: math.Float64bits(v)} }

func (b *Builder) text(t Tag, ext uint8, p string) Node {
	s := b.RunString(p)
	return Node{Tag: t, Ext: ext, Len: s.Len, Val: uint64(s.Off)}
}

// String appends a string node's text.
func (b *Builder) String(s string) Node { return b.text(TagString, 0, s) }

// Number appends a number node's text, which must be a number that no 64-bit type holds.
func (b *Builder) Number(s string) Node { return b.text(TagNumber, 0, s) }

// Blob appends a bytes node's content.
func (b *Builder) Blob(p []byte) Node { return b.text(TagBytes, 0, string(p)) }

// Ext appends a msgpack extension.
func (b *Builder) Ext(typ uint8, p []byte) Node { return b.text(TagExt, typ, string(p)) }

// U64s appends an array of integers in its canonical form.
func (b *Builder) U64s(v []uint64) Node {
	at := b.Align()
	if len(v) == 0 {
		return Node{Tag: TagArray, Val: uint64(at)}
	}
	for _, x := range v {
		b.buf = binary.LittleEndian.AppendUint64(b.buf, x)
	}
	return Node{Tag: TagU64s, Len: uint32(len(v)), Val: uint64(at)}
}

// Array appends an array of nodes that were built before, in the canonical form.
func (b *Builder) Array(elems ...Node) Node {
	ints := len(elems) > 0
	for _, e := range elems {
		ints = ints && e.Tag == TagU64
	}
	at := b.Align()
	if ints {
		for _, e := range elems {
			b.buf = binary.LittleEndian.AppendUint64(b.buf, e.Val)
		}
		return Node{Tag: TagU64s, Len: uint32(len(elems)), Val: uint64(at)}
	}
	for _, e := range elems {
		b.buf = AppendNode(b.buf, e)
	}
	return Node{Tag: TagArray, Len: uint32(len(elems)), Val: uint64(at)}
}

// Map appends a map of entries that were built before.
func (b *Builder) Map(entries ...Entry) Node {
	at := b.Align()
	for _, e := range entries {
		b.buf = AppendNode(AppendNode(b.buf, e.Key), e.Val)
	}
	return Node{Tag: TagMap, Len: uint32(len(entries)), Val: uint64(at)}
}
