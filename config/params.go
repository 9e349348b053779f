package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// tree keeps a mapping of the file as JSON: keys in their order, integers of any size
// digit by digit, floats in their shortest form, and no deeper than a payload tree may be.
type tree struct{}

func (tree) decode(r *reader, n *node, at *path, out *json.RawMessage) {
	if n.shape != mapping {
		r.wrong(n, at, "a mapping")
		return
	}
	before := r.count()
	var b bytes.Buffer
	r.json(&b, n, at, 1)
	if r.count() == before {
		*out = b.Bytes()
	}
}

func (tree) encode(v *json.RawMessage) (*node, error) {
	if *v == nil {
		return nil, nil
	}
	return fromJSON(*v)
}

func (tree) schema(*json.RawMessage) schema { return schema{"type": "object"} }

func (r *reader) json(b *bytes.Buffer, n *node, at *path, depth int) {
	if (n.shape == mapping || n.shape == list) && depth > abi.MaxDepth {
		r.reject(n, at, "parameters must not nest deeper than %d", abi.MaxDepth)
		return
	}
	switch n.shape {
	case bad:
	case null:
		b.WriteString("null")
	case boolean, integer:
		b.WriteString(n.text)
	case float:
		text, ok := jsonFloat(n.text)
		if !ok {
			r.reject(n, at, "%s does not fit a double; quote it if it is text", quote(n.text))
		}
		b.WriteString(text)
	case ambiguous:
		r.wrong(n, at, "")
	case str:
		writeJSONString(b, n.text)
	case mapping:
		b.WriteByte('{')
		for i, e := range n.entries {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, e.key)
			b.WriteByte(':')
			r.json(b, e.value, at.under(e.key), depth+1)
		}
		b.WriteByte('}')
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			r.json(b, item, at.item(i), depth+1)
		}
		b.WriteByte(']')
	}
}

func writeJSONString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string into a buffer cannot fail
	b.Truncate(b.Len() - 1)
}

// fromJSON reads JSON as a node, with the order of keys and the text of numbers kept.
func fromJSON(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	n, err := jsonValue(dec, 0)
	if err != nil {
		return nil, fmt.Errorf("parameters are not valid JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("parameters are not valid JSON: more than one value")
	}
	return n, nil
}

func jsonValue(dec *json.Decoder, depth int) (*node, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := tok.(type) {
	case nil:
		return &node{shape: null, text: "null"}, nil
	case bool:
		return &node{shape: boolean, text: strconv.FormatBool(v)}, nil
	case string:
		return &node{shape: str, text: v}, nil
	case json.Number:
		sh, text := classify(v.String())
		return &node{shape: sh, text: text}, nil
	}
	if depth >= abi.MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d", abi.MaxDepth)
	}
	n := &node{shape: mapping}
	if tok == json.Delim('[') {
		n.shape = list
	}
	for dec.More() {
		var key string
		if n.shape == mapping {
			k, err := dec.Token()
			if err != nil {
				return nil, err
			}
			key, _ = k.(string) // the decoder takes only strings here
		}
		v, err := jsonValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if n.shape == mapping {
			n.entries = append(n.entries, entry{key: key, value: v})
		} else {
			n.items = append(n.items, v)
		}
	}
	_, err = dec.Token() // the closing bracket
	return n, err
}
