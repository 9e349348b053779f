package kvrt

import (
	"iter"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

// Value is one value of a payload or of parameters. The readers never convert: an
// integer is not a float, nor a bool an integer. The zero Value is absent, and so is
// what is not there; a reader of it gives false.
type Value struct {
	base abi.Base
	node abi.Node
}

// at returns the value whose node lies at an offset of its base.
func at(base []byte, off uint32) Value {
	head := u64(base, off)
	return Value{base, abi.Node{Tag: abi.Tag(head), Ext: uint8(head >> 8), Len: uint32(head >> 32), Val: u64(base, off+abi.OffNodeVal)}}
}

// Tag says what the value is.
func (v Value) Tag() abi.Tag { return v.node.Tag }

// IsAbsent tells whether there is no value, which is not null.
func (v Value) IsAbsent() bool { return v.node.Tag == abi.TagAbsent }

// IsNull tells whether the value is null.
func (v Value) IsNull() bool { return v.node.Tag == abi.TagNull }

// IsMap tells whether the value is a map.
func (v Value) IsMap() bool { return v.node.Tag == abi.TagMap }

// IsArray tells whether the value is an array, of whatever it holds.
func (v Value) IsArray() bool { return v.node.Tag == abi.TagArray || v.node.Tag == abi.TagU64s }

// Kind names the value for people, such as "a string".
func (v Value) Kind() string {
	switch v.node.Tag {
	case abi.TagAbsent:
		return "absent"
	case abi.TagNull:
		return "null"
	case abi.TagBool:
		return "a bool"
	case abi.TagU64, abi.TagI64:
		return "an integer"
	case abi.TagF64:
		return "a float"
	case abi.TagNumber:
		return "a number that is out of range"
	case abi.TagString:
		return "a string"
	case abi.TagBytes:
		return "bytes"
	case abi.TagU64s, abi.TagArray:
		return "an array"
	case abi.TagMap:
		return "an object"
	}
	return "an extension"
}

// Bool returns a bool.
func (v Value) Bool() (x, ok bool) { return v.node.Val != 0, v.node.Tag == abi.TagBool }

// U64 returns an integer in [0, 2^64).
func (v Value) U64() (uint64, bool) { return v.node.Val, v.node.Tag == abi.TagU64 }

// I64 returns an integer in [-2^63, 2^63).
func (v Value) I64() (int64, bool) {
	return int64(v.node.Val), v.node.Tag == abi.TagI64 || v.node.Tag == abi.TagU64 && v.node.Val < 1<<63
}

// F64 returns a float.
func (v Value) F64() (float64, bool) { return v.node.F64(), v.node.Tag == abi.TagF64 }

// Number returns the text of a number that no 64-bit type holds.
func (v Value) Number() (string, bool) { return v.text(abi.TagNumber) }

// Text returns a string: a view, see the package's comment. Of anything else it is
// empty and false.
func (v Value) Text() (string, bool) { return v.text(abi.TagString) }

func (v Value) text(tag abi.Tag) (string, bool) {
	if v.node.Tag != tag {
		return "", false
	}
	return view(v.base.Bytes(v.node)), true
}

// Bytes returns a byte string of msgpack: a view.
func (v Value) Bytes() ([]byte, bool) {
	if v.node.Tag != abi.TagBytes {
		return nil, false
	}
	return v.base.Bytes(v.node), true
}

// Ext returns an extension of msgpack: its type and a view of its bytes.
func (v Value) Ext() (typ uint8, b []byte, ok bool) {
	if v.node.Tag != abi.TagExt {
		return 0, nil, false
	}
	return v.node.Ext, v.base.Bytes(v.node), true
}

// Hashes returns a non-empty array of integers in [0, 2^64), as it lies in memory: a
// view. Of anything else it is nil.
func (v Value) Hashes() []uint64 {
	if v.node.Tag != abi.TagU64s {
		return nil
	}
	return u64s(v.base, uint32(v.node.Val), v.node.Len)
}

// u64s is a view of integers, which the ABI aligns to 8 bytes in the guest's memory.
// Where a test's base is not aligned they are copied.
func u64s(base []byte, off, count uint32) []uint64 {
	b := base[off : uint64(off)+8*uint64(count)]
	if p := unsafe.Pointer(unsafe.SliceData(b)); uintptr(p)%8 == 0 {
		return unsafe.Slice((*uint64)(p), count)
	}
	out := make([]uint64, count)
	for i := range out {
		out[i] = u64(b, uint32(8*i))
	}
	return out
}

// Len is how many elements or entries an array or a map has; 0 for anything else.
func (v Value) Len() int {
	if v.IsArray() || v.IsMap() {
		return int(v.node.Len)
	}
	return 0
}

// Elem returns element i of an array; absent past its ends.
func (v Value) Elem(i int) Value {
	switch {
	case i < 0 || i >= v.Len() || v.IsMap():
		return Value{}
	case v.node.Tag == abi.TagU64s:
		return Value{node: abi.Uint(u64(v.base, uint32(v.node.Val)+8*uint32(i)))}
	}
	return at(v.base, uint32(v.node.Val)+abi.SizeNode*uint32(i))
}

// Entry returns entry i of a map, in the sender's order; absent past its ends.
func (v Value) Entry(i int) (key, val Value) {
	if i < 0 || !v.IsMap() || i >= v.Len() {
		return Value{}, Value{}
	}
	off := uint32(v.node.Val) + abi.SizeEntry*uint32(i)
	return at(v.base, off), at(v.base, off+abi.OffEntryVal)
}

// Elems yields the elements of an array.
func (v Value) Elems() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for i := 0; v.IsArray() && i < v.Len() && yield(i, v.Elem(i)); i++ {
		}
	}
}

// Entries yields the entries of a map, in the sender's order.
func (v Value) Entries() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		for i := 0; v.IsMap() && i < v.Len(); i++ {
			if !yield(v.Entry(i)) {
				return
			}
		}
	}
}

// Get returns the value of a string key in a map; absent when there is no such key, or
// no map.
func (v Value) Get(key string) Value {
	if v.node.Tag != abi.TagMap {
		return Value{}
	}
	head := uint64(abi.TagString) | uint64(len(key))<<32 // tag and length in one look
	off := uint32(v.node.Val)
	for range v.node.Len {
		if u64(v.base, off) == head {
			text := uint32(u64(v.base, off+abi.OffNodeVal))
			if string(v.base[text:uint64(text)+uint64(len(key))]) == key {
				return at(v.base, off+abi.OffEntryVal)
			}
		}
		off += abi.SizeEntry
	}
	return Value{}
}

// view is a string that shares b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
