package hint

import (
	"slices"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

// The walk over the envelope and its actions is the same in both encodings; the
// methods in either.go are where they differ.

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
func (f *Frame) decode(format Format, maxActions int) bool {
	d := &f.d
	if msg := d.unreadable(format); msg != "" && len(d.src) > 0 {
		return d.fail(0, msg) >= 0
	}
	start := d.skip(0)
	if d.lead(start) != abi.TagMap {
		return d.wrong(start, "a mapping", "it is not a mapping") >= 0
	}
	nodes, side := len(d.nodes), len(d.side)
	left, pos := d.open(start, abi.TagMap)
	var seen uint8
	if left < 0 || left > 2 {
		if p := f.usualEnvelope(pos); p > 0 {
			seen, pos = seenProtocol|seenMessage, p
			if d.msgpack {
				left -= 2
			}
		}
	}
	for left != 0 {
		at := d.skip(pos)
		var key []byte
		if key, pos = d.key(at); pos < 0 {
			return false
		}
		var bit uint8
		switch string(key) {
		case "protocol_version":
			bit = seenProtocol
			f.protocol, _, pos = d.text(pos)
		case "message_id":
			bit = seenMessage
			f.message, _, pos = d.text(pos)
		case "actions":
			if bit = seenActions; seen&bit == 0 {
				pos = f.actions(pos, maxActions)
			}
		default:
			pos = d.ignore(at, key, pos)
		}
		if pos < 0 || seen&bit != 0 {
			return d.fail(at, msgDuplicate) >= 0
		}
		seen |= bit
		if left--; !d.msgpack {
			if left, pos = d.jsonNext(pos, '}', wantSep); pos < 0 {
				return false
			}
		}
	}
	switch {
	case pos < 0 || len(d.nodes) > nodes && !d.closeIgnored(nodes, side):
		return false
	case seen&seenActions == 0:
		return d.fail(start, "actions is missing") >= 0
	}
	return d.end(pos)
}

// actions walks the list of actions.
func (f *Frame) actions(pos, most int) int {
	d := &f.d
	pos = d.skip(pos)
	if d.lead(pos) != abi.TagArray {
		return d.wrong(pos, "a list", "actions is not a list")
	}
	left, pos := d.open(pos, abi.TagArray)
	for left != 0 {
		pos = d.skip(pos)
		switch {
		case f.total < most:
			pos = f.action(pos)
		case f.total/surplus < most:
			if d.lead(pos) == abi.TagMap {
				d.depth = -1 // an action, whose payload is a root
			}
			_, pos = d.drop(pos)
			d.depth = 0
		default:
			return d.fail(pos, tooMany(most))
		}
		if pos < 0 {
			return pos
		}
		f.total++
		if left--; !d.msgpack {
			if left, pos = d.jsonNext(pos, ']', wantElem); pos < 0 {
				return pos
			}
		}
	}
	return pos
}

// fields is an action while it is read.
type fields struct {
	id, typ, version abi.Span
	payload          abi.Node
	record           record
}

// action reads one action into a block of its own.
func (f *Frame) action(at int) (pos int) {
	d := &f.d
	if !d.room(at, abi.SizeAction+8) {
		return -1
	}
	d.beginBlock()
	var a fields
	if d.lead(at) == abi.TagMap {
		pos = d.action(at, &a)
	} else {
		var tag abi.Tag
		tag, pos = d.drop(at)
		a.record.fault.set(abi.ReasonMalformedAction, fieldAction, ruleMapping, gotOf(tag))
	}
	if pos < 0 {
		return pos
	}
	a.record.from, a.record.to = uint32(at), uint32(pos)
	f.endBlock(&a)
	return pos
}

// beginBlock opens an Action record at the end of out: offsets count from it.
func (d *decoder) beginBlock() {
	d.out = align(d.out)
	d.base = len(d.out)
	d.out = extend(d.out, abi.SizeAction)
	*(*[abi.SizeAction]byte)(d.out[d.base:]) = [abi.SizeAction]byte{}
}

// endBlock fills in the record and notes the action.
func (f *Frame) endBlock(a *fields) {
	d := &f.d
	d.out = align(d.out)
	size := len(d.out) - d.base
	b := d.out[d.base : d.base+abi.SizeAction : d.base+abi.SizeAction]
	abi.PutU32(b, abi.OffActionSize, uint32(size))
	abi.PutU32(b, abi.OffActionIndex, uint32(len(f.acts)))
	abi.PutSpan(b, abi.OffActionActionID, a.id)
	abi.PutSpan(b, abi.OffActionActionType, a.typ)
	abi.PutSpan(b, abi.OffActionActionVersion, a.version)
	abi.PutNode(b, abi.OffActionPayload, a.payload)
	// Field by field: a wider load would wait for what was just stored in parts.
	n := len(f.acts)
	f.acts = slices.Grow(f.acts, 1)[:n+1]
	r := &f.acts[n]
	r.off, r.size = uint32(d.base), uint32(size)
	r.from, r.to = a.record.from, a.record.to
	r.rawFrom, r.rawTo = a.record.rawFrom, a.record.rawTo
	r.fault = a.record.fault
	d.base = 0
}

// action walks the fields of an action.
func (d *decoder) action(at int, a *fields) int {
	nodes, side := len(d.nodes), len(d.side)
	left, pos := d.open(at, abi.TagMap)
	fault := &a.record.fault
	var seen uint8
	if left < 0 || left >= 4 {
		if p := d.usualAction(pos, a); p > 0 {
			seen = seenID | seenType | seenVersion | seenPayload
			if pos = d.payload(p, a); pos < 0 {
				return pos
			}
			if left -= 4; !d.msgpack {
				if left, pos = d.jsonNext(pos, '}', wantSep); pos < 0 {
					return pos
				}
			}
		}
	}
	for left != 0 {
		at := d.skip(pos)
		var key []byte
		if key, pos = d.key(at); pos < 0 {
			return pos
		}
		var bit uint8
		var sent got
		switch string(key) {
		case "action_id":
			bit = seenID
			if a.id, sent, pos = d.text(pos); sent > gotNull && sent != gotNumber {
				fault.set(abi.ReasonMalformedAction, fieldID, ruleText, sent)
			}
		case "action_type":
			bit = seenType
			if a.typ, sent, pos = d.text(pos); sent > gotNull {
				fault.set(abi.ReasonMalformedAction, fieldType, ruleString, sent)
				a.typ = abi.Span{}
			}
		case "action_version":
			bit = seenVersion
			if a.version, sent, pos = d.text(pos); sent > gotNull && sent != gotNumber {
				fault.set(abi.ReasonMalformedAction, fieldVersion, ruleText, sent)
			}
		case "payload":
			if bit = seenPayload; seen&bit == 0 {
				pos = d.payload(pos, a)
			}
		default:
			pos = d.ignore(at, key, pos)
		}
		if pos < 0 || seen&bit != 0 {
			return d.fail(at, msgDuplicate)
		}
		seen |= bit
		if left--; !d.msgpack {
			if left, pos = d.jsonNext(pos, '}', wantSep); pos < 0 {
				return pos
			}
		}
	}
	if pos < 0 || len(d.nodes) > nodes && !d.closeIgnored(nodes, side) {
		return -1
	}
	checkType(fault, a.typ)
	return pos
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
func (d *decoder) text(pos int) (s abi.Span, sent got, _ int) {
	end := len(d.out)
	var n abi.Node
	if pos < len(d.src) && d.src[pos]^mpFixStr < 32 && d.msgpack {
		n, pos = d.mpShort(pos)
	} else {
		n, pos = d.value(pos)
	}
	if n.Tag == abi.TagString {
		return abi.Span{Off: uint32(n.Val), Len: n.Len}, gotText, pos
	}
	sent = gotOf(n.Tag)
	if pos < 0 || sent != gotNumber {
		d.out = d.out[:end]
		return s, sent, pos
	}
	// The text of a number that is kept as text lies at end: it is spelled over itself.
	d.out = appendText(d.out[:end], n, d.out[end:])
	return abi.Span{Off: uint32(end - d.base), Len: uint32(len(d.out) - end)}, sent, pos
}

// payload reads the payload of an action.
func (d *decoder) payload(pos int, a *fields) int {
	from, out := d.skip(pos), len(d.out)
	d.tooDeep, d.nonFinite = false, false
	n, pos := d.value(from)
	if pos < 0 || n.Tag == abi.TagNull {
		return pos
	}
	fault := &a.record.fault
	switch {
	case n.Tag != abi.TagMap:
		fault.set(abi.ReasonMalformedAction, fieldPayload, ruleMapping, gotOf(n.Tag))
		d.out = d.out[:out]
		return pos
	case d.tooDeep:
		fault.set(abi.ReasonInvalidPayload, fieldPayload, ruleDepth, gotMap)
		d.out, n = d.out[:out], abi.Node{}
	case d.nonFinite:
		fault.set(abi.ReasonInvalidPayload, fieldPayload, ruleFinite, gotNumber)
	}
	a.payload = n
	a.record.rawFrom, a.record.rawTo = uint32(from), uint32(pos)
	return pos
}

// drop checks a value that is not kept.
func (d *decoder) drop(pos int) (abi.Tag, int) {
	end := len(d.out)
	n, pos := d.value(pos)
	d.out = d.out[:end]
	return n.Tag, pos
}

// ignore checks an entry whose key, at at, means nothing. key is nil when it is noted
// already.
func (d *decoder) ignore(at int, key []byte, pos int) int {
	if key != nil {
		if !utf8.Valid(key) { // msgpack only
			return d.fail(pos-len(key)+invalidUTF8(key), msgNotUTF8)
		}
		n := abi.Node{Tag: abi.TagString, Len: uint32(len(key)), Val: uint64(len(d.side) - d.other)}
		if !d.ignored(n, at) {
			return -1
		}
		d.side = append(d.side, key...)
	}
	_, pos = d.drop(pos)
	return pos
}
