package lower

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/kvrt/kvrt/hint"
)

// object is a JSON object or a msgpack map, split into entries whose bytes stay as they
// were. Values may be replaced, entries renamed, removed and added; written again, all
// the rest is as it was, white space included.
type object struct {
	format  hint.Format
	before  []byte // JSON: up to the brace
	inner   []byte // JSON: between the braces of an empty object
	after   []byte // JSON: behind the closing brace
	entries []entry
}

// entry is one key with its value. The five parts follow each other in the source.
type entry struct {
	lead, key, sep, val, trail []byte

	name []byte // the key as text; nil for a msgpack key that is no string
}

// read splits src, which must be one object and nothing else. In JSON it finds where
// each value ends and does not look at what is in it: see check.
func (o *object) read(format hint.Format, src []byte) error {
	*o = object{format: format, entries: o.entries[:0]}
	if format == hint.FormatMsgpack {
		return o.readMsgpack(src)
	}
	return o.readJSON(src)
}

// check wants all values to be well-formed, but for kv_hint: the envelope's decoder looks
// at that more strictly. Reading msgpack has done it.
func (o *object) check() error {
	if o.format == hint.FormatMsgpack {
		return nil
	}
	for i := range o.entries {
		if e := &o.entries[i]; string(e.name) != keyHint && !json.Valid(e.val) {
			return wrong("", "malformed JSON in the value of %q", e.name)
		}
	}
	return nil
}

// find returns the entry of a key, nil when there is none.
func (o *object) find(name string) *entry {
	for i := range o.entries {
		if string(o.entries[i].name) == name {
			return &o.entries[i]
		}
	}
	return nil
}

// get is the value of a key, nil when it is absent or null.
func (o *object) get(name string) []byte {
	if e := o.find(name); e != nil && !isNull(o.format, e.val) {
		return e.val
	}
	return nil
}

// twice names a key that is there twice, of those that lowering reads or writes.
func (o *object) twice(names ...string) (string, bool) {
	for _, name := range names {
		if e := o.find(name); e != nil {
			for i := range o.entries {
				if f := &o.entries[i]; f != e && string(f.name) == name {
					return name, true
				}
			}
		}
	}
	return "", false
}

// set gives a key a value, at its place or at the end.
func (o *object) set(name string, val []byte) {
	if e := o.find(name); e != nil {
		e.val = val
		return
	}
	e := entry{key: quote(nil, o.format, name), val: val, name: []byte(name)}
	if o.format == hint.FormatJSON {
		e.sep = []byte{':'}
		if n := len(o.entries); n > 0 { // laid out as the entry before it
			last := &o.entries[n-1]
			e.lead, e.sep = last.lead, last.sep
			e.trail, last.trail = last.trail, nil
		}
	}
	o.entries = append(o.entries, e)
}

// remove takes a key out.
func (o *object) remove(name string) {
	for i := range o.entries {
		if string(o.entries[i].name) != name {
			continue
		}
		if i > 0 && i == len(o.entries)-1 {
			o.entries[i-1].trail = o.entries[i].trail
		}
		o.entries = append(o.entries[:i], o.entries[i+1:]...)
		return
	}
}

// rename puts another key and value in the place of one.
func (o *object) rename(from, to string, val []byte) {
	o.remove(to)
	e := o.find(from)
	e.key, e.name, e.val = quote(nil, o.format, to), []byte(to), val
}

// append writes the object.
func (o *object) append(dst []byte) []byte {
	if o.format == hint.FormatMsgpack {
		dst = appendMapHead(dst, len(o.entries))
		for i := range o.entries {
			dst = append(append(dst, o.entries[i].key...), o.entries[i].val...)
		}
		return dst
	}
	dst = append(append(dst, o.before...), '{')
	if len(o.entries) == 0 {
		dst = append(dst, o.inner...)
	}
	for i := range o.entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		e := &o.entries[i]
		dst = append(append(append(append(append(dst, e.lead...), e.key...), e.sep...), e.val...), e.trail...)
	}
	return append(append(dst, '}'), o.after...)
}

// size is how many bytes append writes, at most.
func (o *object) size() int {
	n := 16 + len(o.before) + len(o.inner) + len(o.after)
	for i := range o.entries {
		e := &o.entries[i]
		n += len(e.lead) + len(e.key) + len(e.sep) + len(e.val) + len(e.trail) + 1
	}
	return n
}

func (o *object) readJSON(src []byte) error {
	pos := space(src, 0)
	if pos >= len(src) || src[pos] != '{' {
		return wrong("", "must be a JSON object, not %s", kindOf(hint.FormatJSON, src))
	}
	o.before = src[:pos]
	pos++
	start := pos
	pos = space(src, pos)
	if pos < len(src) && src[pos] == '}' {
		o.inner, o.after = src[start:pos], src[pos+1:]
		return o.end(src, pos+1)
	}
	for pos < len(src) {
		e := entry{lead: src[start:pos]}
		from := pos
		if src[pos] != '"' {
			break
		}
		pos = skipJSON(src, pos)
		if pos < 0 || !json.Valid(src[from:pos]) {
			return wrong("", "a key at offset %d is no JSON string", from)
		}
		e.key, e.name = src[from:pos], src[from+1:pos-1]
		if bytes.IndexByte(e.name, '\\') >= 0 {
			var name string
			if err := json.Unmarshal(e.key, &name); err != nil {
				return wrong("", "a key at offset %d is no JSON string", from)
			}
			e.name = []byte(name)
		}
		from = pos
		pos = space(src, pos)
		if pos >= len(src) || src[pos] != ':' {
			return wrong("", "malformed JSON at offset %d: no colon after a key", pos)
		}
		pos = space(src, pos+1)
		e.sep = src[from:pos]
		from = pos
		pos = skipJSON(src, pos)
		if pos < 0 {
			return wrong("", "malformed JSON in the value of %q, at offset %d", e.name, from)
		}
		e.val = src[from:pos]
		from = pos
		pos = space(src, pos)
		e.trail = src[from:pos]
		o.entries = append(o.entries, e)
		if pos >= len(src) || src[pos] != ',' && src[pos] != '}' {
			break
		}
		pos++
		if src[pos-1] == '}' {
			o.after = src[pos:]
			return o.end(src, pos)
		}
		start = pos
		pos = space(src, pos)
	}
	return wrong("", "malformed JSON at offset %d", min(pos, len(src)))
}

// end wants nothing but white space from pos on.
func (o *object) end(src []byte, pos int) error {
	if end := space(src, pos); end != len(src) {
		return wrong("", "something follows the JSON object at offset %d", end)
	}
	return nil
}

// space is the position behind white space.
func space(src []byte, pos int) int {
	for pos < len(src) && (src[pos] == ' ' || src[pos] == '\n' || src[pos] == '\r' || src[pos] == '\t') {
		pos++
	}
	return pos
}

// skipJSON is the position behind the value that begins at pos, -1 when it does not
// end. It only looks for the end; whether the value is well-formed, json.Valid says.
func skipJSON(src []byte, pos int) int {
	if pos >= len(src) {
		return -1
	}
	switch src[pos] {
	case '"':
		return skipString(src, pos)
	case '{', '[':
	default:
		from := pos
		for pos < len(src) && !delimiter(src[pos]) {
			pos++
		}
		if pos == from {
			return -1
		}
		return pos
	}
	depth := 0
	for pos < len(src) {
		for pos+8 <= len(src) && dull(binary.LittleEndian.Uint64(src[pos:])) {
			pos += 8
		}
		if pos == len(src) {
			break
		}
		switch src[pos] {
		case '"':
			if pos = skipString(src, pos); pos < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		}
		pos++
	}
	return -1
}

// dull tells that eight bytes hold no quote and no bracket, for what digits, signs,
// commas and white space are: below 0x40, where of these only the quote is.
func dull(w uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quotes := w ^ ones*'"'
	return w&(ones*0xc0) == 0 && (quotes-ones)&^quotes&high == 0
}

// skipString is the position behind the string that begins at pos, -1 when it does not
// end.
func skipString(src []byte, pos int) int {
	for pos++; pos < len(src); pos++ {
		switch src[pos] {
		case '"':
			return pos + 1
		case '\\':
			pos++
		}
	}
	return -1
}

func delimiter(c byte) bool {
	switch c {
	case ' ', '\n', '\r', '\t', ',', ':', '}', ']', '{', '[', '"':
		return true
	}
	return false
}
