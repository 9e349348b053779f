package hint

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// structFault says what of an action's payload a protobuf Struct cannot hold. The hashes
// of kv.fetch 1.0 are not looked at where they become texts.
func (c *Check) structFault(typ, version []byte, base abi.Base, payload abi.Node) (detail string) {
	if payload.Tag != abi.TagMap {
		return ""
	}
	texts := c.hashTexts && string(typ) == "kv.fetch" && (version == nil || string(version) == versionOfAbsent)
	for i := range payload.Len {
		k, v := base.Entry(payload, i)
		if texts && k.Tag == abi.TagString && string(base.Bytes(k)) == "block_hashes" {
			continue
		}
		if path, what := unstructured(base, k, v); what != "" {
			return "payload" + path + ": " + what + " cannot be held by a protobuf Struct, in which the target has payloads"
		}
	}
	return ""
}

// unstructured finds, under one entry of a map, what a Struct cannot hold. The path is
// made from the inside out, when there is something.
func unstructured(base abi.Base, k, v abi.Node) (path, what string) {
	if k.Tag != abi.TagString {
		return "", "a key that is no string"
	}
	if path, what = unstructuredIn(base, v); what != "" {
		path = string(appendKey(nil, base, k)) + path
	}
	return path, what
}

func unstructuredIn(base abi.Base, n abi.Node) (path, what string) {
	switch n.Tag {
	case abi.TagU64:
		if !DoubleHolds(n.Val) {
			return "", "the integer " + strconv.FormatUint(n.Val, 10)
		}
	case abi.TagI64:
		if i := n.I64(); !DoubleHolds(uint64(-i)) {
			return "", "the integer " + strconv.FormatInt(i, 10)
		}
	case abi.TagNumber:
		if _, ok := DoubleOf(base.Bytes(n)); !ok {
			return "", "a number of more than 64 bits"
		}
	case abi.TagBytes:
		return "", "a value of bytes"
	case abi.TagExt:
		return "", "an extension"
	case abi.TagU64s:
		for i := range n.Len {
			if v := base.U64At(n, i); !DoubleHolds(v) {
				return string(appendIndex(nil, i)), "the integer " + strconv.FormatUint(v, 10)
			}
		}
	case abi.TagArray:
		for i := range n.Len {
			if path, what = unstructuredIn(base, base.Elem(n, i)); what != "" {
				return string(appendIndex(nil, i)) + path, what
			}
		}
	case abi.TagMap:
		for i := range n.Len {
			k, v := base.Entry(n, i)
			if path, what = unstructured(base, k, v); what != "" {
				return path, what
			}
		}
	}
	return "", ""
}

// DoubleHolds tells whether a double holds an integer of this magnitude exactly.
func DoubleHolds(v uint64) bool {
	return v>>53 == 0 || v>>bits.TrailingZeros64(v) < 1<<53
}

// DoubleOf is the double that holds the number of a TagNumber exactly, if there is one.
func DoubleOf(text []byte) (float64, bool) {
	// The largest double has 309 digits.
	if len(text) > 310 {
		return 0, false
	}
	i, ok := new(big.Int).SetString(string(text), 10)
	if !ok {
		return 0, false // a fraction or an exponent that no double holds
	}
	f, accuracy := new(big.Float).SetInt(i).Float64()
	return f, accuracy == big.Exact && !math.IsInf(f, 0)
}
