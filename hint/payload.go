package hint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/kvrt/kvrt/abi"
)

// Payload is the payload of an action: a mapping that never changes once it is made,
// safe to share. The zero value is the empty mapping.
//
// Integers, key order and nesting are kept exactly. Base and Root give the tree.
type Payload struct {
	data []byte // the whole tree, laid out as the decoders do, from offset 0
	root abi.Node
}

// PayloadFromJSON reads a JSON object, under the default limits.
func PayloadFromJSON(src []byte) (Payload, error) { return payloadFrom(FormatJSON, src) }

// PayloadFromMsgpack reads a msgpack map, under the default limits.
func PayloadFromMsgpack(src []byte) (Payload, error) { return payloadFrom(FormatMsgpack, src) }

func payloadFrom(format Format, src []byte) (Payload, error) {
	data, root, err := AppendTree(nil, format, src)
	if err != nil {
		err.(*MalformedError).What = "payload"
		return Payload{}, err
	}
	return newPayload(data, root)
}

// PayloadFromBase copies a tree that a Check function of package abi accepted or that
// a decoder made. An absent root is the empty mapping.
func PayloadFromBase(base abi.Base, root abi.Node) (Payload, error) {
	if root.Tag == abi.TagAbsent {
		return Payload{}, nil
	}
	var d decoder
	d.begin(nil, nil, maxOffset)
	root, ok := d.copyTree(base, root)
	if !ok {
		return Payload{}, errors.New("payload: " + d.errMsg)
	}
	return newPayload(d.out, root)
}

func newPayload(data []byte, root abi.Node) (Payload, error) {
	if root.Tag != abi.TagMap {
		return Payload{}, fmt.Errorf("payload must be a mapping, not %s", gotOf(root.Tag))
	}
	if found(data, root, notFinite) {
		return Payload{}, errors.New(pathTo(data, root, notFinite) + ": " + msgNotFinite)
	}
	return Payload{slices.Clip(data), root}, nil
}

// Base is what offsets of Root are relative to. It must not be changed.
func (p Payload) Base() abi.Base { return p.data }

// Root is the mapping.
func (p Payload) Root() abi.Node {
	if p.root.Tag == abi.TagAbsent {
		return abi.Node{Tag: abi.TagMap}
	}
	return p.root
}

// Len is the number of entries.
func (p Payload) Len() int { return int(p.root.Len) }

// Equal tells whether two payloads are the same: equal values under equal keys in the
// same order. An integer and a float are never equal.
func (p Payload) Equal(q Payload) bool {
	return p.Root() == q.Root() && bytes.Equal(p.data, q.data)
}

// AppendJSON appends the payload as compact JSON.
func (p Payload) AppendJSON(dst []byte) ([]byte, error) {
	return AppendTreeJSON(dst, p.data, p.Root())
}

// AppendMsgpack appends the payload as msgpack.
func (p Payload) AppendMsgpack(dst []byte) ([]byte, error) {
	return AppendTreeMsgpack(dst, p.data, p.Root())
}

// MarshalJSON implements [encoding/json.Marshaler].
func (p Payload) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// UnmarshalJSON implements [encoding/json.Unmarshaler]. null is the empty mapping.
func (p *Payload) UnmarshalJSON(src []byte) error {
	if string(src) == "null" {
		*p = Payload{}
		return nil
	}
	got, err := PayloadFromJSON(src)
	if err == nil {
		*p = got
	}
	return err
}
