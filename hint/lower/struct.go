package lower

import (
	"bytes"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Field numbers of sglang.runtime.v1. A message may be written in parts, so a client can
// put the envelope, as a field of one of these numbers, behind a request that another
// encoder wrote.
const (
	GenerateRequestKVHints     = 17 // of GenerateRequest, the token path
	TextGenerateRequestKVHints = 18 // of TextGenerateRequest, the text path
)

// Fields of KVHintsEnvelope and KVHintAction, and of google.protobuf.Value.
const (
	fieldProtocol, fieldMessage, fieldActions            = 1, 2, 3
	fieldID, fieldType, fieldVersion, fieldPayload       = 1, 2, 3, 4
	valueNull, valueNumber, valueString, valueBool       = 1, 2, 3, 4
	valueStruct, valueList                               = 5, 6
	structFields, listValues, mapEntryKey, mapEntryValue = 1, 1, 1, 2
)

// appendProto writes the envelope as SGLang's protobuf, byte for byte as protobuf's own
// Python does when it is told to be deterministic: fields by number, no empty strings,
// the keys of a map as compareKeys orders them. An absent payload stays absent.
func (l *Lowerer) appendProto(dst []byte) ([]byte, error) {
	f := &l.frame
	dst = appendText(dst, fieldProtocol, f.ProtocolVersion())
	dst = appendText(dst, fieldMessage, f.MessageID())
	for i := range f.Len() {
		a := f.Action(i)
		path := actionPath(i) + ".payload"
		asText := l.hexHashes(a)
		if err := exact(a.Base, a.Payload, asText, path); err != nil {
			return nil, err
		}
		ver := a.Version
		if ver == nil {
			ver = []byte(versionOfAbsent)
		}
		dst = protowire.AppendTag(dst, fieldActions, protowire.BytesType)
		at := len(dst)
		dst = appendText(dst, fieldID, a.ID)
		dst = appendText(dst, fieldType, a.Type)
		dst = appendText(dst, fieldVersion, ver)
		if a.Payload.Tag != abi.TagAbsent {
			dst = protowire.AppendTag(dst, fieldPayload, protowire.BytesType)
			from := len(dst)
			s := structs{base: a.Base, keys: l.keys[:0]}
			if asText {
				if s.hashes = member(a.Base, a.Payload, keyHashes); s.hashes.Tag != abi.TagAbsent {
					if err := checkHashes(a.Base, s.hashes, path+"."+keyHashes); err != nil {
						return nil, err
					}
				}
			}
			dst = closeLength(s.append(dst, a.Payload), from)
			l.keys = s.keys
		}
		dst = closeLength(dst, at)
	}
	return dst, nil
}

func checkHashes(base abi.Base, list abi.Node, path string) error {
	if list.Tag != abi.TagArray && list.Tag != abi.TagU64s {
		return wrong(path, "kv.fetch block_hashes must be a list")
	}
	if list.Tag == abi.TagU64s {
		return nil
	}
	var digits [16]byte
	for i := range list.Len {
		if _, err := hashText(&digits, base, list, i, path); err != nil {
			return err
		}
	}
	return nil
}

// appendText writes a string field, which is left out when empty.
func appendText(dst []byte, field protowire.Number, s []byte) []byte {
	if len(s) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), s)
}

// closeLength puts the length of what was written from on in front of it.
func closeLength(dst []byte, from int) []byte {
	n := len(dst) - from
	width := protowire.SizeVarint(uint64(n))
	dst = append(dst, make([]byte, width)...)
	copy(dst[from+width:], dst[from:from+n])
	protowire.AppendVarint(dst[:from], uint64(n))
	return dst
}

// structs writes the tree of one payload. It has passed exact.
type structs struct {
	base   abi.Base
	hashes abi.Node // the list that becomes strings; absent when none does
	keys   []uint32 // indices of the entries of the maps that are open, each map's sorted
}

// append writes the fields of a map.
func (s *structs) append(dst []byte, m abi.Node) []byte {
	base, mark := s.base, len(s.keys)
	for i := range m.Len {
		s.keys = append(s.keys, i)
	}
	slices.SortFunc(s.keys[mark:], func(i, j uint32) int {
		a, _ := base.Entry(m, i)
		b, _ := base.Entry(m, j)
		return compareKeys(base.Bytes(a), base.Bytes(b))
	})
	for i := range int(m.Len) {
		k, v := base.Entry(m, s.keys[mark+i])
		dst = protowire.AppendTag(dst, structFields, protowire.BytesType)
		from := len(dst)
		dst = protowire.AppendBytes(protowire.AppendTag(dst, mapEntryKey, protowire.BytesType), base.Bytes(k))
		dst = protowire.AppendTag(dst, mapEntryValue, protowire.BytesType)
		inner := len(dst)
		dst = closeLength(s.value(dst, v), inner)
		dst = closeLength(dst, from)
	}
	s.keys = s.keys[:mark]
	return dst
}

// compareKeys orders keys by their bytes, and puts the longer of two first when it begins
// with the other. Readers do not care: the order of a map means nothing on the wire, and
// encoders differ. This is the order of upb, which is behind Python's protobuf and so
// behind SGLang's own; for keys that do not begin with each other it is everybody's.
func compareKeys(a, b []byte) int {
	n := min(len(a), len(b))
	if c := bytes.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	return len(b) - len(a)
}

// value writes the fields of a Value.
func (s *structs) value(dst []byte, n abi.Node) []byte {
	switch n.Tag {
	case abi.TagNull:
		return protowire.AppendVarint(protowire.AppendTag(dst, valueNull, protowire.VarintType), 0)
	case abi.TagBool:
		return protowire.AppendVarint(protowire.AppendTag(dst, valueBool, protowire.VarintType), protowire.EncodeBool(n.Bool()))
	case abi.TagU64:
		return appendDouble(dst, float64(n.Val))
	case abi.TagI64:
		return appendDouble(dst, float64(n.I64()))
	case abi.TagF64:
		return appendDouble(dst, n.F64())
	case abi.TagNumber:
		f, _ := hint.DoubleOf(s.base.Bytes(n))
		return appendDouble(dst, f)
	case abi.TagString:
		return protowire.AppendBytes(protowire.AppendTag(dst, valueString, protowire.BytesType), s.base.Bytes(n))
	case abi.TagArray, abi.TagU64s:
		return s.list(dst, n)
	}
	dst = protowire.AppendTag(dst, valueStruct, protowire.BytesType)
	from := len(dst)
	return closeLength(s.append(dst, n), from)
}

func (s *structs) list(dst []byte, n abi.Node) []byte {
	dst = protowire.AppendTag(dst, valueList, protowire.BytesType)
	all := len(dst)
	asText := n == s.hashes && n.Tag != abi.TagAbsent
	var digits [16]byte
	for i := range n.Len {
		if n.Tag == abi.TagU64s && !asText {
			dst = append(dst, listValues<<3|byte(protowire.BytesType), 9)
			dst = appendDouble(dst, float64(s.base.U64At(n, i)))
			continue
		}
		if asText {
			text, _ := hashText(&digits, s.base, n, i, "") // checkHashes has seen it
			if len(text) == len(digits) {
				dst = append(dst, listValues<<3|byte(protowire.BytesType), 2+16, valueString<<3|byte(protowire.BytesType), 16)
				dst = append(dst, text...)
				continue
			}
			dst = protowire.AppendTag(dst, listValues, protowire.BytesType)
			from := len(dst)
			dst = protowire.AppendBytes(protowire.AppendTag(dst, valueString, protowire.BytesType), text)
			dst = closeLength(dst, from)
			continue
		}
		dst = protowire.AppendTag(dst, listValues, protowire.BytesType)
		from := len(dst)
		dst = closeLength(s.value(dst, s.base.Elem(n, i)), from)
	}
	return closeLength(dst, all)
}

func appendDouble(dst []byte, f float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(dst, valueNumber, protowire.Fixed64Type), math.Float64bits(f))
}

// AppendGenerateField appends an envelope, as FormStruct gives it, as a field of SGLang's
// GenerateRequest or TextGenerateRequest.
func AppendGenerateField(dst []byte, number protowire.Number, envelope []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), envelope)
}
