package lower

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// loweredProtocol is the only protocol whose block hashes become strings.
const loweredProtocol = "0.1"

// versionOfAbsent is what an action without a version counts as.
const versionOfAbsent = "1.0"

const keyHashes = "block_hashes"

// hexHashes tells whether the hashes of an action become strings for SGLang.
func (l *Lowerer) hexHashes(a hint.ActionView) bool {
	return string(l.frame.ProtocolVersion()) == loweredProtocol &&
		string(a.Type) == "kv.fetch" && (a.Version == nil || string(a.Version) == versionOfAbsent)
}

// appendSGLang writes the envelope that SGLang's protobuf would hold, in the encoding of
// the request.
func (l *Lowerer) appendSGLang(dst []byte) ([]byte, error) {
	f, format := &l.frame, l.frame.Format()
	dst = openEnvelope(dst, format, f.ProtocolVersion(), f.MessageID(), f.Len())
	for i := range f.Len() {
		a := f.Action(i)
		path := actionPath(i)
		asText := l.hexHashes(a)
		if err := exact(a.Base, a.Payload, asText, path+".payload"); err != nil {
			return nil, err
		}
		dst = openAction(dst, format, i, a)
		switch {
		case a.Payload.Tag == abi.TagAbsent:
			dst = append(dst, empty(format)...)
		case asText:
			var payload object
			if err := payload.read(format, a.RawPayload()); err != nil {
				return nil, wrong(path+".payload", "%s", err.(*Error).Msg)
			}
			if hashes := member(a.Base, a.Payload, keyHashes); hashes.Tag != abi.TagAbsent {
				list, err := appendHashes(nil, format, a.Base, hashes, path+".payload."+keyHashes)
				if err != nil {
					return nil, err
				}
				payload.set(keyHashes, list)
			}
			dst = payload.append(dst)
		default:
			dst = append(dst, a.RawPayload()...)
		}
		dst = closeAction(dst, format)
	}
	return closeEnvelope(dst, format), nil
}

// member is the value of a key in a map, absent when there is none.
func member(base abi.Base, m abi.Node, key string) abi.Node {
	for i := range m.Len {
		if k, v := base.Entry(m, i); k.Tag == abi.TagString && string(base.Bytes(k)) == key {
			return v
		}
	}
	return abi.Node{}
}

// appendHashes writes block hashes as strings.
func appendHashes(dst []byte, format hint.Format, base abi.Base, list abi.Node, path string) ([]byte, error) {
	if list.Tag != abi.TagArray && list.Tag != abi.TagU64s {
		return nil, wrong(path, "kv.fetch block_hashes must be a list")
	}
	if format == hint.FormatMsgpack {
		dst = appendArrayHead(dst, int(list.Len))
	} else {
		dst = append(dst, '[')
	}
	dst = slices.Grow(dst, 19*int(list.Len)+2)
	if list.Tag == abi.TagU64s {
		return appendDigits(dst, format, base, list), nil
	}
	var digits [16]byte
	for i := range list.Len {
		if i > 0 && format == hint.FormatJSON {
			dst = append(dst, ',')
		}
		text, err := hashText(&digits, base, list, i, path)
		if err != nil {
			return nil, err
		}
		dst = quote(dst, format, text)
	}
	if format == hint.FormatJSON {
		dst = append(dst, ']')
	}
	return dst, nil
}

// appendDigits writes the items of a list of u64 as strings, and closes the list.
func appendDigits(dst []byte, format hint.Format, base abi.Base, list abi.Node) []byte {
	open, shut, end := "\"", "\",", "]"
	if format == hint.FormatMsgpack {
		open, shut, end = "\xb0", "", ""
	}
	var digits [16]byte
	for i := range list.Len {
		dst = append(append(append(dst, open...), hexDigits(&digits, base.U64At(list, i))...), shut...)
	}
	if list.Len > 0 && format == hint.FormatJSON {
		dst = dst[:len(dst)-1] // the last comma
	}
	return append(dst, end...)
}

// hashText is one block hash as a string: 16 digits of an integer, a string as it is.
func hashText(digits *[16]byte, base abi.Base, list abi.Node, i uint32, path string) ([]byte, error) {
	if list.Tag == abi.TagU64s {
		return hexDigits(digits, base.U64At(list, i)), nil
	}
	switch e := base.Elem(list, i); e.Tag {
	case abi.TagU64:
		return hexDigits(digits, e.Val), nil
	case abi.TagI64:
		return hexDigits(digits, uint64(e.I64())), nil
	case abi.TagString:
		return base.Bytes(e), nil
	}
	return nil, wrong(path+"["+strconv.Itoa(int(i))+"]", "kv.fetch block_hashes must be integers of 64 bits or strings")
}

func hexDigits(dst *[16]byte, v uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	hex.Encode(dst[:], b[:])
	return dst[:]
}

// exact refuses the first value of a payload that a Struct cannot hold. With asText, the
// payload's own block_hashes are not looked at: they become strings.
func exact(base abi.Base, n abi.Node, asText bool, path string) error {
	if n.Tag != abi.TagMap || !asText {
		return exactIn(base, n, path)
	}
	for i := range n.Len {
		k, v := base.Entry(n, i)
		if k.Tag == abi.TagString && string(base.Bytes(k)) == keyHashes {
			continue
		}
		if err := exactEntry(base, k, v, path); err != nil {
			return err
		}
	}
	return nil
}

// exactIn is exact for a value. It makes the path only when there is an error, from the
// inside out.
func exactIn(base abi.Base, n abi.Node, path string) error {
	switch n.Tag {
	case abi.TagU64:
		if !hint.DoubleHolds(n.Val) {
			return wrong(path, "the integer %d cannot be represented exactly as a double, which is all that a protobuf Struct holds", n.Val)
		}
	case abi.TagI64:
		if i := n.I64(); !hint.DoubleHolds(uint64(-i)) {
			return wrong(path, "the integer %d cannot be represented exactly as a double, which is all that a protobuf Struct holds", i)
		}
	case abi.TagNumber:
		if _, ok := hint.DoubleOf(base.Bytes(n)); !ok {
			return wrong(path, "the number %s cannot be represented exactly as a double, which is all that a protobuf Struct holds", shorten(base.Bytes(n)))
		}
	case abi.TagBytes:
		return wrong(path, "bytes cannot be held by a protobuf Struct")
	case abi.TagExt:
		return wrong(path, "an extension cannot be held by a protobuf Struct")
	case abi.TagU64s:
		for i := range n.Len {
			if v := base.U64At(n, i); !hint.DoubleHolds(v) {
				return exactIn(base, abi.Node{Tag: abi.TagU64, Val: v}, path+"["+strconv.Itoa(int(i))+"]")
			}
		}
	case abi.TagArray:
		for i := range n.Len {
			if err := exactIn(base, base.Elem(n, i), ""); err != nil {
				return under(err, path+"["+strconv.Itoa(int(i))+"]")
			}
		}
	case abi.TagMap:
		for i := range n.Len {
			k, v := base.Entry(n, i)
			if err := exactEntry(base, k, v, path); err != nil {
				return err
			}
		}
	}
	return nil
}

func exactEntry(base abi.Base, k, v abi.Node, path string) error {
	if k.Tag != abi.TagString {
		return wrong(path, "a key that is no string cannot be held by a protobuf Struct")
	}
	if err := exactIn(base, v, ""); err != nil {
		return under(err, path+keyPath(base.Bytes(k)))
	}
	return nil
}

// under puts the way to a value in front of the path of its error.
func under(err error, path string) error {
	e := err.(*Error)
	e.Path = path + e.Path
	return e
}

// keyPath spells a key in a path as package hint does.
func keyPath(key []byte) string {
	for _, c := range key {
		if c != '_' && c != '-' && c-'0' > 9 && c|0x20-'a' > 25 {
			return "[" + strconv.QuoteToASCII(string(key[:min(len(key), 64)])) + "]"
		}
	}
	if len(key) == 0 || len(key) > 64 {
		return "[" + strconv.QuoteToASCII(string(key[:min(len(key), 64)])) + "]"
	}
	return "." + string(key)
}

func shorten(text []byte) string {
	if len(text) > 40 {
		return string(text[:40]) + "..."
	}
	return string(text)
}
