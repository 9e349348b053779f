package hint

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/kvrt/kvrt/abi"
)

// AppendTreeMsgpack appends a tree as msgpack: the shortest integers, float64, strings
// and bytes with the shortest head. Number text, which no msgpack type holds, is an
// [*EncodeError], and dst then comes back as it was.
func AppendTreeMsgpack(dst []byte, base abi.Base, root abi.Node) ([]byte, error) {
	out, err := appendMsgpack(dst, base, root)
	if err != nil {
		return dst, encodeError(err)
	}
	return out, nil
}

func appendMsgpack(dst []byte, base abi.Base, n abi.Node) (_ []byte, err *EncodeError) {
	switch n.Tag {
	case abi.TagNull:
		return append(dst, mpNil), nil
	case abi.TagBool:
		return append(dst, mpFalse+byte(n.Val)), nil
	case abi.TagU64:
		return appendMsgpackUint(dst, n.Val), nil
	case abi.TagI64:
		return appendMsgpackInt(dst, n.I64()), nil
	case abi.TagF64:
		return binary.BigEndian.AppendUint64(append(dst, mpFloat64), n.Val), nil
	case abi.TagString:
		return appendMsgpackString(dst, base.Bytes(n)), nil
	case abi.TagBytes:
		dst = appendMsgpackHead(dst, mpBin8, n.Len)
		return append(dst, base.Bytes(n)...), nil
	case abi.TagExt:
		dst = appendMsgpackExtHead(dst, n.Len)
		return append(append(dst, n.Ext), base.Bytes(n)...), nil
	case abi.TagU64s:
		off := uint32(n.Val)
		return appendMsgpackU64s(appendMsgpackArrayHead(dst, n.Len), base[off:off+8*n.Len]), nil
	case abi.TagArray:
		dst, texts := appendMsgpackTexts(appendMsgpackArrayHead(dst, n.Len), base, base[uint32(n.Val):][:n.Len*abi.SizeNode])
		for i := texts; i < n.Len; i++ {
			e := base.Elem(n, i)
			if e.Tag == abi.TagString {
				dst = appendMsgpackString(dst, base.Bytes(e))
			} else if dst, err = appendMsgpack(dst, base, e); err != nil {
				return dst, err.in(base, abi.Node{}, i)
			}
		}
		return dst, nil
	case abi.TagMap:
		dst = appendMsgpackMapHead(dst, n.Len)
		for i := range n.Len {
			k, v := base.Entry(n, i)
			if k.Tag == abi.TagString {
				dst = appendMsgpackString(dst, base.Bytes(k))
			} else {
				dst, err = appendMsgpack(dst, base, k)
			}
			if err == nil {
				dst, err = appendMsgpack(dst, base, v)
			}
			if err != nil {
				return dst, err.in(base, k, i)
			}
		}
		return dst, nil
	case abi.TagNumber:
		return dst, cannot("msgpack", "a number beyond 64 bits")
	}
	return dst, cannot("msgpack", gotOf(n.Tag).String())
}

func appendMsgpackUint(dst []byte, v uint64) []byte {
	switch {
	case v < mpFixMap:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, mpUint8, byte(v))
	case v <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, mpUint16), uint16(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, mpUint32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpUint64), v)
}

func appendMsgpackInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendMsgpackUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, mpInt8, byte(v))
	case v >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, mpInt16), uint16(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, mpInt32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, mpInt64), uint64(v))
}

// appendMsgpackHead appends the head with a length of 8, 16 or 32 bits, whose lead
// bytes follow each other from lead8 on.
func appendMsgpackHead(dst []byte, lead8 byte, n uint32) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(dst, lead8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, lead8+1), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, lead8+2), n)
}

func appendMsgpackString[S []byte | string](dst []byte, s S) []byte {
	if len(s) < 32 {
		dst = append(dst, mpFixStr|byte(len(s)))
	} else {
		dst = appendMsgpackHead(dst, mpStr8, uint32(len(s)))
	}
	return append(dst, s...)
}

// appendMsgpackTexts appends the strings of 8 to 31 bytes that a list begins with, as
// lists of hashes in text do, and returns how many those are. They are copied in words.
func appendMsgpackTexts(dst []byte, base abi.Base, nodes []byte) (_ []byte, n uint32) {
	for ; len(nodes) >= abi.SizeNode; nodes = nodes[abi.SizeNode:] {
		e := abi.GetNode(nodes, 0)
		if e.Tag != abi.TagString || e.Len-8 > 31-8 {
			break
		}
		s := base.Bytes(e)
		if cap(dst)-len(dst) < 32 {
			dst = slices.Grow(dst, 32)
		}
		at := len(dst)
		dst = dst[:at+1+len(s)]
		to := dst[at+1:]
		dst[at] = mpFixStr | byte(len(s))
		last, second, third := len(s)-8, min(len(s)-8, 8), max(len(s), 16)-16 // they overlap
		binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(s))
		binary.LittleEndian.PutUint64(to[second:], binary.LittleEndian.Uint64(s[second:]))
		binary.LittleEndian.PutUint64(to[third:], binary.LittleEndian.Uint64(s[third:]))
		binary.LittleEndian.PutUint64(to[last:], binary.LittleEndian.Uint64(s[last:]))
		n++
	}
	return dst, n
}

// appendMsgpackLong appends the head of a long array or map: lead16, then lead16 + 1.
func appendMsgpackLong(dst []byte, lead16 byte, n uint32) []byte {
	if n <= math.MaxUint16 {
		return binary.BigEndian.AppendUint16(append(dst, lead16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, lead16+1), n)
}

func appendMsgpackArrayHead(dst []byte, n uint32) []byte {
	if n < 16 {
		return append(dst, mpFixArray|byte(n))
	}
	return appendMsgpackLong(dst, mpArray16, n)
}

func appendMsgpackMapHead(dst []byte, n uint32) []byte {
	if n < 16 {
		return append(dst, mpFixMap|byte(n))
	}
	return appendMsgpackLong(dst, mpMap16, n)
}

// appendMsgpackExtHead appends the head of an extension up to its type.
func appendMsgpackExtHead(dst []byte, n uint32) []byte {
	switch n {
	case 1, 2, 4, 8, 16:
		lead := byte(mpFixExt1)
		for ; n > 1; n /= 2 {
			lead++
		}
		return append(dst, lead)
	}
	return appendMsgpackHead(dst, mpExt8, n)
}
