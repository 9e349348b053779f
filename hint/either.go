package hint

import "github.com/kvrt/kvrt/abi"

// Where JSON and msgpack differ to the walk over an envelope.

// end fails when something follows the document, or when strings, which are not
// counted one by one, made it too large.
func (d *decoder) end(pos int) bool {
	if pos = d.skip(pos); pos < len(d.src) {
		return d.fail(pos, "trailing bytes") >= 0
	}
	return d.room(pos, 0)
}

// wrong fails at pos, where something else begins, or nothing at all.
func (d *decoder) wrong(pos int, what, msg string) int {
	if pos >= len(d.src) {
		return d.want(pos, what)
	}
	return d.fail(pos, msg)
}

// skip goes over white space, which only JSON has.
func (d *decoder) skip(pos int) int {
	if d.msgpack {
		return pos
	}
	return d.space(pos)
}

// value reads the value at pos into out.
func (d *decoder) value(pos int) (abi.Node, int) {
	if d.msgpack {
		return d.mpValue(pos)
	}
	return d.jsonValue(pos)
}

// lead returns the tag that the value at pos will have, as far as its first byte tells
// lists and maps from the rest.
func (d *decoder) lead(pos int) abi.Tag {
	if pos >= len(d.src) {
		return abi.TagAbsent
	}
	c := d.src[pos]
	if !d.msgpack {
		switch c {
		case '{':
			return abi.TagMap
		case '[':
			return abi.TagArray
		}
		return abi.TagAbsent
	}
	switch {
	case c&0xf0 == mpFixMap, c == mpMap16, c == mpMap32:
		return abi.TagMap
	case c&0xf0 == mpFixArray, c == mpArray16, c == mpArray32:
		return abi.TagArray
	}
	return abi.TagAbsent
}

// open enters the envelope, its list or an action, whose tag lead has told. left counts
// the items to come; in JSON it is -1 until the end is seen. Nesting counts within the
// values that are read from there, so none of these does.
func (d *decoder) open(at int, tag abi.Tag) (left, pos int) {
	c := d.src[at]
	if !d.msgpack {
		pos = d.space(at + 1)
		if d.at(pos) == c+2 { // ']' and '}'
			return 0, pos + 1
		}
		return -1, pos
	}
	n, pos := uint64(c&15), at+1
	if size := mpLengthSize(c); size != 0 {
		if n, pos = d.big(at, size); pos < 0 {
			return 0, pos
		}
	}
	per, what := uint64(1), whatElements
	if tag == abi.TagMap {
		per, what = 2, whatEntries
	}
	if n*per > uint64(len(d.src)-pos) {
		return 0, d.lies(at, pos, n, what)
	}
	return int(n), pos
}

// jsonNext goes behind an item; left is then as open has it.
func (d *decoder) jsonNext(pos int, closing byte, what string) (left, end int) {
	pos = d.space(pos)
	switch d.at(pos) {
	case ',':
		return -1, pos + 1
	case closing:
		return 0, pos + 1
	}
	return 0, d.want(pos, what)
}

// key reads a key of the envelope or of an action and goes to its value. A key that is
// not text is noted as ignored, and nil.
func (d *decoder) key(at int) (key []byte, pos int) {
	if d.msgpack {
		if at < len(d.src) {
			if n := int(d.src[at] ^ mpFixStr); n < 32 && n < len(d.src)-at {
				return d.src[at+1 : at+1+n], at + 1 + n
			}
		}
		return d.mpKey(at)
	}
	if d.at(at) != '"' {
		return nil, d.want(at, wantKey)
	}
	if pos = plain(d.src, at+1); d.at(pos) == '"' {
		key = d.src[at+1 : pos]
		pos++
	} else {
		d.swap()
		var n abi.Node
		if n, pos = d.jsonString(at); pos >= 0 {
			key = abi.Base(d.out).Bytes(n)
		}
		d.swap()
		if pos < 0 {
			return nil, pos
		}
	}
	if pos = d.space(pos); d.at(pos) != ':' {
		return nil, d.want(pos, wantColon)
	}
	return key, pos + 1
}

func (d *decoder) mpKey(at int) (key []byte, pos int) {
	if at >= len(d.src) {
		return nil, d.want(at, "a key")
	}
	switch c := d.src[at]; c {
	case mpStr8, mpStr16, mpStr32:
		n, pos := d.big(at, mpLengthSize(c))
		if pos < 0 {
			return nil, pos
		}
		return d.mpTake(at, pos, n)
	}
	d.swap()
	n, pos := d.mpValue(at)
	d.swap()
	if pos < 0 || !d.ignored(n, at) {
		return nil, -1
	}
	return nil, pos
}
