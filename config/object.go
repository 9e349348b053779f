package config

import (
	"encoding/json"
	"strconv"
)

// object is a mapping with known keys.
type object[T any] struct {
	fields []field[T]
	check  func(r *reader, n *node, at *path, v *T) // rules over several keys; may be nil
}

// field is one key of an object.
type field[T any] struct {
	name, doc string
	required  bool
	decode    func(r *reader, n *node, at *path, t *T)
	encode    func(t *T) (*node, error)
	schema    func(def *T) schema
}

// key describes a key that is always written back.
func key[T, V any](name, doc string, of func(*T) *V, k kind[V]) field[T] {
	return field[T]{
		name: name, doc: doc,
		decode: func(r *reader, n *node, at *path, t *T) { k.decode(r, n, at, of(t)) },
		encode: func(t *T) (*node, error) { return k.encode(of(t)) },
		schema: func(def *T) schema {
			if def == nil {
				return k.schema(nil)
			}
			return k.schema(of(def))
		},
	}
}

// opt describes a key whose zero value means the same as leaving it out.
func opt[T any, V comparable](name, doc string, of func(*T) *V, k kind[V]) field[T] {
	f := key(name, doc, of, k)
	f.encode = func(t *T) (*node, error) {
		var zero V
		if *of(t) == zero {
			return nil, nil
		}
		return k.encode(of(t))
	}
	return f
}

func (f field[T]) must() field[T] {
	f.required = true
	return f
}

func (o object[T]) decode(r *reader, n *node, at *path, out *T) {
	if n.shape != mapping {
		r.wrong(n, at, "a mapping")
		return
	}
	for _, e := range n.entries {
		below := at.under(e.key)
		if f := o.field(e.key); f != nil {
			f.decode(r, e.value, below, out)
			continue
		}
		r.add(e.line, e.col, below, "unknown key%s", didYouMean(e.key, o.names(), "the keys here are "))
	}
	for _, f := range o.fields {
		if f.required && n.child(f.name) == nil {
			r.add(n.line, n.col, at.under(f.name), "the key is missing")
		}
	}
	if o.check != nil {
		o.check(r, n, at, out)
	}
}

func (o object[T]) field(name string) *field[T] {
	for i := range o.fields {
		if o.fields[i].name == name {
			return &o.fields[i]
		}
	}
	return nil
}

func (o object[T]) names() []string {
	names := make([]string, len(o.fields))
	for i, f := range o.fields {
		names[i] = f.name
	}
	return names
}

func (o object[T]) encode(v *T) (*node, error) {
	n := &node{shape: mapping}
	for _, f := range o.fields {
		value, err := f.encode(v)
		if err != nil {
			return nil, err
		}
		if value != nil {
			n.entries = append(n.entries, entry{key: f.name, value: value})
		}
	}
	if len(n.entries) == 0 {
		return nil, nil
	}
	return n, nil
}

func (o object[T]) schema(def *T) schema {
	properties := schema{}
	var required []string
	for _, f := range o.fields {
		s := f.schema(def)
		s["description"] = f.doc
		properties[f.name] = s
		if f.required {
			required = append(required, f.name)
		}
	}
	s := schema{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		s["required"] = required
	}
	return s
}

// many is a list. identity, where set, gives what no two items may share and the key that
// holds it ("" for the item itself).
type many[V any] struct {
	item     kind[V]
	what     string // "name", "type": what identity is called
	identity func(v *V) (id, key string)
	orOne    bool // a single item may stand without its list
}

func (l many[V]) decode(r *reader, n *node, at *path, out *[]V) {
	if l.orOne && n.shape == mapping {
		*out = make([]V, 1)
		l.item.decode(r, n, at, &(*out)[0])
		return
	}
	if n.shape != list {
		if n.shape == null {
			r.add(n.line, n.col, at, "must be a list, but has no value: write [] for none or remove the key")
			return
		}
		want := "a list"
		if l.orOne {
			want = "a mapping or a list"
		}
		r.wrong(n, at, want)
		return
	}
	vs := make([]V, len(n.items))
	seen := map[string]int{}
	for i, item := range n.items {
		l.item.decode(r, item, at.item(i), &vs[i])
		l.unique(r, item, at.item(i), &vs[i], seen)
	}
	*out = vs
}

func (l many[V]) unique(r *reader, n *node, at *path, v *V, seen map[string]int) {
	if l.identity == nil {
		return
	}
	id, key := l.identity(v)
	if key != "" {
		if n = n.child(key); n == nil {
			return
		}
		at = at.under(key)
	}
	if id == "" || n.shape == bad {
		return
	}
	if first, twice := seen[id]; twice {
		r.add(n.line, n.col, at, "duplicate %s %s: it is already on line %d", l.what, clip(id), first)
		return
	}
	seen[id] = n.line
}

func (l many[V]) encode(v *[]V) (*node, error) {
	if *v == nil {
		return nil, nil
	}
	n := &node{shape: list}
	for i := range *v {
		item, err := l.item.encode(&(*v)[i])
		if err != nil {
			return nil, err
		}
		if item == nil {
			item = &node{shape: mapping}
		}
		n.items = append(n.items, item)
	}
	return n, nil
}

func (l many[V]) schema(def *[]V) schema {
	s := schema{"type": "array", "items": l.item.schema(nil)}
	if def != nil && *def != nil {
		if n, err := l.encode(def); err == nil {
			s["default"] = n.value()
		}
	}
	if l.orOne {
		return schema{"anyOf": []schema{s, l.item.schema(nil)}}
	}
	return s
}

// perhaps is a value whose absence differs from every value.
type perhaps[V any] struct{ kind kind[V] }

func (p perhaps[V]) decode(r *reader, n *node, at *path, out **V) {
	*out = new(V)
	p.kind.decode(r, n, at, *out)
}

func (p perhaps[V]) encode(v **V) (*node, error) {
	if *v == nil {
		return nil, nil
	}
	return p.kind.encode(*v)
}

func (p perhaps[V]) schema(**V) schema { return p.kind.schema(nil) }

// value returns the node as encoding/json would decode it.
func (n *node) value() any {
	switch n.shape {
	case boolean:
		return n.text == "true"
	case integer, float:
		return json.Number(n.text)
	case mapping:
		m := map[string]any{}
		for _, e := range n.entries {
			m[e.key] = e.value.value()
		}
		return m
	case list:
		l := make([]any, len(n.items))
		for i, item := range n.items {
			l[i] = item.value()
		}
		return l
	case null:
		return nil
	}
	return n.text
}

// quotedID is the identity of an item that is its own name.
func quotedID(s *string) (id, key string) {
	if *s == "" {
		return "", ""
	}
	return strconv.Quote(*s), ""
}
