package hint

import (
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

// The walk over the envelope and its actions is the same in both encodings; the
// methods of decoder below are where they differ.

// value reads the value at the cursor into out.
func (d *decoder) value() (abi.Node, bool) {
	if d.msgpack {
		return d.mpValue()
	}
	return d.jsonValue()
}

// lead returns the tag that the value at the cursor will have, as far as its first
// byte tells lists and maps from the rest.
func (d *decoder) lead() abi.Tag {
	if !d.msgpack {
		switch d.peek() {
		case '{':
			return abi.TagMap
		case '[':
			return abi.TagArray
		}
		return abi.TagAbsent
	}
	if d.pos < len(d.src) {
		switch c := d.src[d.pos]; {
		case c&0xf0 == mpFixMap || c == mpMap16 || c == mpMap32:
			return abi.TagMap
		case c&0xf0 == mpFixArray || c == mpArray16 || c == mpArray32:
			return abi.TagArray
		}
	}
	return abi.TagAbsent
}

// open enters the container at the cursor. left counts the items to come; in JSON it
// is -1 until the end is seen.
func (d *decoder) open(tag abi.Tag) (left int, ok bool) {
	d.depth++
	at := d.pos
	if !d.msgpack {
		d.pos++
		if c := d.peek(); c == ']' && tag == abi.TagArray || c == '}' && tag == abi.TagMap {
			d.pos++
			return 0, true
		}
		return -1, true
	}
	c := d.src[at]
	n := uint64(c & 15)
	if size := mpLengthSize(c); size != 0 {
		if n, ok = d.sized(size); !ok {
			return 0, false
		}
	} else {
		d.pos++
	}
	if tag == abi.TagMap {
		return int(n), d.mpCount(at, n, 2, whatEntries)
	}
	return int(n), d.mpCount(at, n, 1, whatElements)
}

// next goes behind an item and returns what is left then.
func (d *decoder) next(left int, tag abi.Tag) (int, bool) {
	if d.msgpack {
		return left - 1, true
	}
	closing, what := byte('}'), wantSep
	if tag == abi.TagArray {
		closing, what = ']', wantElem
	}
	more, ok := d.separator(closing, what)
	if more {
		return -1, ok
	}
	return 0, ok
}

// key reads a key of the envelope or of an action and goes to its value. A key that is
// not text is noted as ignored, and nil.
func (d *decoder) key() (key []byte, at int, ok bool) {
	if d.msgpack {
		return d.mpKey()
	}
	if d.peek() != '"' {
		return nil, 0, d.want(wantKey)
	}
	at = d.pos
	if end := plain(d.src, at+1); end < len(d.src) && d.src[end] == '"' {
		key, d.pos = d.src[at+1:end], end+1
	} else {
		d.swap()
		n, ok := d.jsonString()
		if ok {
			key = abi.Base(d.out).Bytes(n)
		}
		d.swap()
		if !ok {
			return nil, at, false
		}
	}
	return key, at, d.colon()
}

func (d *decoder) mpKey() (key []byte, at int, ok bool) {
	if d.pos >= len(d.src) {
		return nil, 0, d.want("a key")
	}
	at = d.pos
	c := d.src[at]
	n := uint64(c & 31)
	switch {
	case c >= mpFixStr && c < mpNil:
		d.pos++
	case c >= mpStr8 && c <= mpStr32:
		if n, ok = d.sized(mpLengthSize(c)); !ok {
			return nil, at, false
		}
	default:
		d.swap()
		k, ok := d.mpValue()
		d.swap()
		return nil, at, ok && d.ignored(k, at)
	}
	key, ok = d.mpTake(at, n)
	return key, at, ok
}

// ignore checks an entry that is not kept. key is nil when it is noted already.
func (d *decoder) ignore(key []byte, at int) bool {
	if key != nil {
		if !utf8.Valid(key) { // msgpack only
			return d.fail(d.pos-len(key)+invalidUTF8(key), msgNotUTF8)
		}
		if !d.room(len(key)) {
			return false
		}
		n := abi.Node{Tag: abi.TagString, Len: uint32(len(key)), Val: uint64(len(d.side) - d.other)}
		d.side = append(d.side, key...)
		if !d.ignored(n, at) {
			return false
		}
	}
	end := len(d.out)
	_, ok := d.value()
	d.out = d.out[:end]
	return ok
}

// once fails when bit is in seen: the key at at stands there a second time.
func (d *decoder) once(seen *uint8, bit uint8, at int) bool {
	if *seen&bit != 0 {
		return d.fail(at, msgDuplicate)
	}
	*seen |= bit
	return true
}

const (
	seenProtocol = 1 << iota
	seenMessage
	seenActions
)

const (
	seenID = 1 << iota
	seenType
	seenVersion
	seenPayload
)

// decode walks the envelope.
func (f *Frame) decode(maxActions int) bool {
	d := &f.d
	if !d.msgpack && hasBOM(d.src) {
		return d.fail(0, msgBOM)
	}
	if d.lead() != abi.TagMap {
		if d.pos >= len(d.src) {
			return d.want("a mapping")
		}
		return d.fail(d.pos, "it is not a mapping")
	}
	start, nodes, side := d.pos, len(d.nodes), len(d.side)
	left, ok := d.open(abi.TagMap)
	var seen uint8
	for ok && left != 0 {
		var key []byte
		var at int
		if key, at, ok = d.key(); !ok {
			return false
		}
		switch string(key) {
		case "protocol_version":
			f.protocol, _, ok = d.text()
			ok = ok && d.once(&seen, seenProtocol, at)
		case "message_id":
			f.message, _, ok = d.text()
			ok = ok && d.once(&seen, seenMessage, at)
		case "actions":
			ok = d.once(&seen, seenActions, at) && f.actions(maxActions)
		default:
			ok = d.ignore(key, at)
		}
		if ok {
			left, ok = d.next(left, abi.TagMap)
		}
	}
	if !ok || !d.closeIgnored(nodes, side) {
		return false
	}
	if seen&seenActions == 0 {
		return d.fail(start, "actions is missing")
	}
	return d.end()
}

// end fails when something follows the document.
func (d *decoder) end() bool {
	d.peekIfJSON()
	return d.pos >= len(d.src) || d.fail(d.pos, "trailing bytes")
}

const msgBOM = "a byte order mark, which JSON does not have"

// actions walks the list of actions.
func (f *Frame) actions(most int) bool {
	d := &f.d
	if d.lead() != abi.TagArray {
		if d.pos >= len(d.src) {
			return d.want("a list")
		}
		return d.fail(d.pos, "actions is not a list")
	}
	left, ok := d.open(abi.TagArray)
	for ok && left != 0 {
		if f.total < most {
			ok = f.action()
		} else {
			end := len(d.out)
			_, ok = d.value()
			d.out = d.out[:end]
		}
		f.total++
		if ok {
			left, ok = d.next(left, abi.TagArray)
		}
	}
	d.depth--
	return ok
}

// fields is an action while it is read.
type fields struct {
	id, typ, version abi.Span
	payload          abi.Node
	record           record
}

// action reads one action into a block of its own.
func (f *Frame) action() bool {
	d := &f.d
	if !d.room(abi.SizeAction + 8) {
		return false
	}
	d.beginBlock()
	var a fields
	if d.lead() == abi.TagMap {
		a.record.from = uint32(d.pos)
		if !d.actionFields(&a) {
			return false
		}
	} else {
		d.peekIfJSON()
		a.record.from = uint32(d.pos)
		end := len(d.out)
		n, ok := d.value()
		if !ok {
			return false
		}
		d.out = d.out[:end]
		a.record.fault.set(abi.ReasonMalformedAction, fieldAction, ruleMapping, gotOf(n.Tag))
	}
	a.record.to = uint32(d.pos)
	f.endBlock(&a)
	return true
}

func (d *decoder) peekIfJSON() {
	if !d.msgpack {
		d.peek()
	}
}

// beginBlock opens an Action record at the end of out: offsets count from it.
func (d *decoder) beginBlock() {
	d.out = abi.Align(d.out)
	d.base = len(d.out)
	d.out = append(d.out, make([]byte, abi.SizeAction)...)
}

// endBlock fills in the record and notes the action.
func (f *Frame) endBlock(a *fields) {
	d := &f.d
	d.out = abi.Align(d.out)
	b := d.out[d.base:]
	abi.PutU32(b, abi.OffActionSize, uint32(len(b)))
	abi.PutU32(b, abi.OffActionIndex, uint32(len(f.acts)))
	abi.PutSpan(b, abi.OffActionActionID, a.id)
	abi.PutSpan(b, abi.OffActionActionType, a.typ)
	abi.PutSpan(b, abi.OffActionActionVersion, a.version)
	abi.PutNode(b, abi.OffActionPayload, a.payload)
	a.record.off, a.record.size = uint32(d.base), uint32(len(b))
	f.acts = append(f.acts, a.record)
	d.base = 0
}

func (d *decoder) actionFields(a *fields) bool {
	nodes, side := len(d.nodes), len(d.side)
	left, ok := d.open(abi.TagMap)
	fault := &a.record.fault
	var seen uint8
	var sent got
	for ok && left != 0 {
		var key []byte
		var at int
		if key, at, ok = d.key(); !ok {
			return false
		}
		switch string(key) {
		case "action_id":
			if a.id, sent, ok = d.text(); sent > gotNull && sent != gotNumber {
				fault.set(abi.ReasonMalformedAction, fieldID, ruleText, sent)
			}
			ok = ok && d.once(&seen, seenID, at)
		case "action_type":
			if a.typ, sent, ok = d.text(); sent > gotNull {
				fault.set(abi.ReasonMalformedAction, fieldType, ruleString, sent)
				a.typ = abi.Span{}
			}
			ok = ok && d.once(&seen, seenType, at)
		case "action_version":
			if a.version, sent, ok = d.text(); sent > gotNull && sent != gotNumber {
				fault.set(abi.ReasonMalformedAction, fieldVersion, ruleText, sent)
			}
			ok = ok && d.once(&seen, seenVersion, at)
		case "payload":
			ok = d.once(&seen, seenPayload, at) && d.payload(a)
		default:
			ok = d.ignore(key, at)
		}
		if ok {
			left, ok = d.next(left, abi.TagMap)
		}
	}
	d.depth--
	checkType(fault, a.typ)
	return ok && d.closeIgnored(nodes, side)
}

// checkType: an action without a type cannot be handled.
func checkType(f *fault, typ abi.Span) {
	switch {
	case !typ.Present():
		f.set(abi.ReasonMalformedAction, fieldType, ruleMissing, gotAbsent)
	case typ.Len == 0:
		f.set(abi.ReasonMalformedAction, fieldType, ruleEmpty, gotText)
	}
}

// text reads a field that should be text: numbers become text as Python's str spells
// them, null is absent, and so is anything else; sent tells what it was.
func (d *decoder) text() (s abi.Span, sent got, ok bool) {
	end := len(d.out)
	n, ok := d.value()
	if !ok {
		return s, gotAbsent, false
	}
	if n.Tag == abi.TagString {
		return abi.Span{Off: uint32(n.Val), Len: n.Len}, gotText, true
	}
	sent = gotOf(n.Tag)
	if sent != gotNumber {
		d.out = d.out[:end]
		return s, sent, true
	}
	// The text of a number that is kept as text lies at end: it is spelled over itself.
	d.out, _ = appendText(d.out[:end], n, d.out[end:])
	return abi.Span{Off: uint32(end - d.base), Len: uint32(len(d.out) - end)}, sent, true
}

// payload reads the payload of an action.
func (d *decoder) payload(a *fields) bool {
	d.peekIfJSON()
	from, end := d.pos, len(d.out)
	d.tooDeep, d.nonFinite = false, false
	n, ok := d.value()
	if !ok {
		return false
	}
	fault := &a.record.fault
	switch {
	case n.Tag == abi.TagNull && !d.tooDeep:
		return true
	case n.Tag != abi.TagMap:
		fault.set(abi.ReasonMalformedAction, fieldPayload, ruleMapping, gotOf(n.Tag))
		d.out = d.out[:end]
		return true
	case d.tooDeep:
		fault.set(abi.ReasonInvalidPayload, fieldPayload, ruleDepth, gotMap)
		d.out, n = d.out[:end], abi.Node{}
	case d.nonFinite:
		fault.set(abi.ReasonInvalidPayload, fieldPayload, ruleFinite, gotNumber)
	}
	a.payload = n
	a.record.rawFrom, a.record.rawTo = uint32(from), uint32(d.pos)
	return true
}
