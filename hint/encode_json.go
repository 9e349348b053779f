package hint

import (
	"fmt"
	"math"
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// EncodeError says what an encoding cannot hold, and where in the payload it stands.
type EncodeError struct {
	Path string
	Msg  string
}

func (e *EncodeError) Error() string { return e.Path + ": " + e.Msg }

// in puts the way down to a child in front of the path of the child's error.
func (e *EncodeError) in(base abi.Base, key abi.Node, index uint32) *EncodeError {
	if key.Tag == abi.TagAbsent {
		e.Path = string(appendIndex(nil, index)) + e.Path
	} else {
		e.Path = string(appendKey(nil, base, key)) + e.Path
	}
	return e
}

// encodeError makes the error of a whole tree out of the error of one of its nodes.
func encodeError(e *EncodeError) error {
	if e == nil {
		return nil
	}
	e.Path = "payload" + e.Path
	return e
}

func cannot(encoding, what string) *EncodeError {
	return &EncodeError{Msg: fmt.Sprintf("%s cannot be written as %s", what, encoding)}
}

// AppendTreeJSON appends a tree as compact JSON. Floats keep a fraction or an exponent
// and read back the same; valid UTF-8 stays as it is. What JSON cannot hold (bytes,
// extensions, non-finite floats, keys that are not strings) is an [*EncodeError], and
// dst then comes back as it was.
func AppendTreeJSON(dst []byte, base abi.Base, root abi.Node) ([]byte, error) {
	out, err := appendJSON(dst, base, root)
	if err != nil {
		return dst, encodeError(err)
	}
	return out, nil
}

func appendJSON(dst []byte, base abi.Base, n abi.Node) ([]byte, *EncodeError) {
	switch n.Tag {
	case abi.TagNull:
		return append(dst, "null"...), nil
	case abi.TagBool:
		return strconv.AppendBool(dst, n.Bool()), nil
	case abi.TagU64:
		return strconv.AppendUint(dst, n.Val, 10), nil
	case abi.TagI64:
		return strconv.AppendInt(dst, n.I64(), 10), nil
	case abi.TagF64:
		if f := n.F64(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return appendFloat(dst, f), nil
		}
		return dst, cannot("JSON", "a NaN or an infinity")
	case abi.TagNumber:
		return append(dst, base.Bytes(n)...), nil
	case abi.TagString:
		return appendJSONString(dst, base.Bytes(n)), nil
	case abi.TagU64s:
		off := uint32(n.Val)
		return appendJSONU64s(dst, base[off:off+8*n.Len]), nil
	case abi.TagArray:
		return appendJSONArray(dst, base, n)
	case abi.TagMap:
		return appendJSONMap(dst, base, n)
	}
	return dst, cannot("JSON", gotOf(n.Tag).String())
}

func appendJSONArray(dst []byte, base abi.Base, n abi.Node) (_ []byte, err *EncodeError) {
	dst = append(dst, '[')
	for i := range n.Len {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendJSON(dst, base, base.Elem(n, i)); err != nil {
			return dst, err.in(base, abi.Node{}, i)
		}
	}
	return append(dst, ']'), nil
}

func appendJSONMap(dst []byte, base abi.Base, n abi.Node) (_ []byte, err *EncodeError) {
	dst = append(dst, '{')
	for i := range n.Len {
		k, v := base.Entry(n, i)
		if k.Tag != abi.TagString {
			return dst, cannot("JSON", "a key that is "+gotOf(k.Tag).String()).in(base, k, i)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, base.Bytes(k)), ':')
		if dst, err = appendJSON(dst, base, v); err != nil {
			return dst, err.in(base, k, i)
		}
	}
	return append(dst, '}'), nil
}

// appendJSONString quotes valid UTF-8 with the fewest escapes.
func appendJSONString[S []byte | string](dst []byte, s S) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}
