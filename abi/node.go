package abi

import (
	"encoding/binary"
	"math"
	"slices"
)

// Node is one value of a payload tree, as record Node lays it out.
type Node struct {
	Tag Tag
	Ext uint8  // extension type, for TagExt
	Len uint32 // bytes, elements or entries
	Val uint64 // the scalar, or the offset from the tree's base
}

// GetNode reads the Node at b[off:].
func GetNode(b []byte, off uint32) Node {
	p := b[off : off+SizeNode : off+SizeNode]
	head := binary.LittleEndian.Uint64(p)
	return Node{Tag(head), uint8(head >> 8), uint32(head >> 32), binary.LittleEndian.Uint64(p[8:])}
}

// PutNode writes n at b[off:].
func PutNode(b []byte, off uint32, n Node) {
	p := b[off : off+SizeNode : off+SizeNode]
	binary.LittleEndian.PutUint64(p, uint64(n.Tag)|uint64(n.Ext)<<8|uint64(n.Len)<<32)
	binary.LittleEndian.PutUint64(p[8:], n.Val)
}

// AppendNode appends n.
func AppendNode(b []byte, n Node) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(n.Tag)|uint64(n.Ext)<<8|uint64(n.Len)<<32)
	return binary.LittleEndian.AppendUint64(b, n.Val)
}

// Bool, U64, I64 and F64 read scalars; the caller has looked at the tag.
func (n Node) Bool() bool   { return n.Val != 0 }
func (n Node) U64() uint64  { return n.Val }
func (n Node) I64() int64   { return int64(n.Val) }
func (n Node) F64() float64 { return math.Float64frombits(n.Val) }

// Span is a run of bytes relative to the base of its record.
type Span struct{ Off, Len uint32 }

// Present tells an empty run from an absent one.
func (s Span) Present() bool { return s.Off != 0 }

// GetSpan reads the Span at b[off:].
func GetSpan(b []byte, off uint32) Span {
	return Span{binary.LittleEndian.Uint32(b[off:]), binary.LittleEndian.Uint32(b[off+4:])}
}

// PutSpan writes s at b[off:].
func PutSpan(b []byte, off uint32, s Span) {
	binary.LittleEndian.PutUint32(b[off:], s.Off)
	binary.LittleEndian.PutUint32(b[off+4:], s.Len)
}

// U32 reads the u32 at b[off:].
func U32(b []byte, off uint32) uint32 { return binary.LittleEndian.Uint32(b[off:]) }

// U64 reads the u64 at b[off:].
func U64(b []byte, off uint32) uint64 { return binary.LittleEndian.Uint64(b[off:]) }

// PutU32 writes v at b[off:].
func PutU32(b []byte, off uint32, v uint32) { binary.LittleEndian.PutUint32(b[off:], v) }

// PutU64 writes v at b[off:].
func PutU64(b []byte, off uint32, v uint64) { binary.LittleEndian.PutUint64(b[off:], v) }

// Base is the memory that a tree's offsets are relative to: an Action record with
// everything it refers to, or a whole frame. Its methods trust the offsets: use them
// on what the host wrote itself or what a Check function accepted.
type Base []byte

// Bytes returns the run of a string, bytes, number or extension node.
func (b Base) Bytes(n Node) []byte {
	off := uint32(n.Val)
	return b[off : off+n.Len : off+n.Len]
}

// Run returns the bytes of a span, nil when it is absent.
func (b Base) Run(s Span) []byte {
	if s.Off == 0 {
		return nil
	}
	return b[s.Off : s.Off+s.Len : s.Off+s.Len]
}

// Elem returns element i of an array node (TagArray).
func (b Base) Elem(n Node, i uint32) Node { return GetNode(b, uint32(n.Val)+i*SizeNode) }

// Entry returns key and value i of a map node.
func (b Base) Entry(n Node, i uint32) (key, val Node) {
	off := uint32(n.Val) + i*SizeEntry
	return GetNode(b, off), GetNode(b, off+OffEntryVal)
}

// U64At returns element i of a u64s node.
func (b Base) U64At(n Node, i uint32) uint64 {
	return binary.LittleEndian.Uint64(b[uint32(n.Val)+i*8:])
}

// Lookup returns the value of a string key in a map node, or an absent Node.
func (b Base) Lookup(m Node, key string) Node {
	if m.Tag == TagMap {
		for i := uint32(0); i < m.Len; i++ {
			if k, v := b.Entry(m, i); k.Tag == TagString && string(b.Bytes(k)) == key {
				return v
			}
		}
	}
	return Node{}
}

// Align appends zeros up to the next multiple of 8.
func Align(b []byte) []byte {
	const pad = "\x00\x00\x00\x00\x00\x00\x00"
	return append(b, pad[:-len(b)&7]...)
}

// zeros appends n zeros.
func zeros(b []byte, n int) []byte {
	at := len(b)
	b = slices.Grow(b, n)[:at+n]
	clear(b[at:])
	return b
}
