package hint

import (
	"fmt"

	"github.com/kvrt/kvrt/abi"
)

// Load fills the frame from an EnvelopeFrame that a guest answered and
// [abi.CheckEnvelope] accepted, and copies all of it, so that the same dispatch goes on
// from there. The rules of Decode hold: an error, which wraps [abi.ErrFrame], refuses
// the whole (a key twice in a map, too many actions, too large a frame); what is wrong
// with one action is its fault.
//
// format is the encoding in which the envelope will be passed on, and what Format will
// say; FormatUnknown stands for JSON. A payload that it cannot hold is a fault of its
// action, invalid_payload: in JSON bytes, extensions and keys that are no strings, in
// msgpack numbers beyond 64 bits.
func (f *Frame) Load(format Format, envelope []byte, lim Limits) error {
	if format == FormatUnknown {
		format = FormatJSON
	}
	lim = lim.withDefaults()
	f.start(lim)
	f.format = format
	e := abi.EnvelopeFrame(envelope)
	if e.Count() > surplus*lim.Actions {
		f.start(lim)
		return fmt.Errorf("%w: %s", abi.ErrFrame, tooMany(lim.Actions))
	}
	d := &f.d
	f.protocol, f.message = d.keep(e.ProtocolVersion()), d.keep(e.MessageID())
	ok := true
	for i := 0; ok && i < min(e.Count(), lim.Actions); i++ {
		a := abi.Base(e.Action(i))
		ok = f.add(a.Run(abi.GetSpan(a, abi.OffActionActionID)), a.Run(abi.GetSpan(a, abi.OffActionActionType)),
			a.Run(abi.GetSpan(a, abi.OffActionActionVersion)), a, abi.GetNode(a, abi.OffActionPayload))
	}
	if !ok || !d.room(0, 0) {
		err := fmt.Errorf("%w: action %d: %s", abi.ErrFrame, len(f.acts), d.errMsg)
		f.start(lim)
		return err
	}
	f.total, f.tail = e.Count(), len(d.out)
	return nil
}

// keep copies a run that is not nil.
func (d *decoder) keep(run []byte) abi.Span {
	if run == nil {
		return abi.Span{}
	}
	n := d.copyRun(run, abi.Node{})
	return abi.Span{Off: uint32(n.Val), Len: n.Len}
}

// add copies one action. A nil run is absent. The payload must be one that f.format can
// hold, when that is known.
func (f *Frame) add(id, typ, version []byte, base abi.Base, payload abi.Node) bool {
	d := &f.d
	if !d.room(0, abi.SizeAction+8) {
		return false
	}
	d.beginBlock()
	var a fields
	a.id, a.typ, a.version = d.keep(id), d.keep(typ), d.keep(version)
	fault := &a.record.fault
	checkType(fault, a.typ)
	switch payload.Tag {
	case abi.TagAbsent, abi.TagNull:
	case abi.TagMap:
		var ok bool
		d.nonFinite, d.notJSON, d.notMsgpack = false, false, false
		if a.payload, ok = d.copyTree(base, payload); !ok {
			return false
		}
		switch {
		case d.nonFinite:
			fault.set(abi.ReasonInvalidPayload, fieldPayload, ruleFinite, gotNumber)
		case f.format == FormatJSON && d.notJSON, f.format == FormatMsgpack && d.notMsgpack:
			fault.set(abi.ReasonInvalidPayload, fieldPayload, ruleFormat, gotMap)
		}
	default:
		fault.set(abi.ReasonMalformedAction, fieldPayload, ruleMapping, gotOf(payload.Tag))
	}
	f.endBlock(&a)
	return true
}

// CheckForward says why AppendEnvelope cannot pass on, in the frame's encoding, what a
// handler made of an action: ReasonHandlerError with a detail, or ReasonNone. block is an
// Action record that [abi.CheckAction] accepted, which bounds its nesting. Its payload
// is held against the rules that Decode and Load have applied to all others: absent or a
// mapping, without NaN, infinities and keys that are there twice, and nothing in it that
// the encoding cannot hold.
//
// It uses the frame's buffers, and so is not for several goroutines at once.
func (f *Frame) CheckForward(block []byte) (abi.Reason, string) {
	base := abi.Base(block)
	root := abi.GetNode(base, abi.OffActionPayload)
	switch {
	case root.Tag == abi.TagAbsent:
		return abi.ReasonNone, ""
	case root.Tag != abi.TagMap:
		return abi.ReasonHandlerError, "the rewritten payload must be a mapping, not " + gotOf(root.Tag).String()
	case f.d.writable(f.format, base, root):
		return abi.ReasonNone, ""
	}
	why, dup := f.d.duplicateIn(base, root)
	switch {
	case dup:
		why += ": " + msgDuplicate
	case found(base, root, notFinite):
		why = pathTo(base, root, notFinite) + ": " + msgNotFinite
	default:
		why = unwritable(f.format, base, root)
	}
	return abi.ReasonHandlerError, "the rewritten " + why
}

// writable tells whether a tree that package abi accepted can be passed on.
func (d *decoder) writable(format Format, base abi.Base, n abi.Node) bool {
	switch n.Tag {
	case abi.TagF64:
		return !notFinite(n)
	case abi.TagNumber:
		return format != FormatMsgpack
	case abi.TagBytes, abi.TagExt:
		return format == FormatMsgpack
	case abi.TagArray:
		for list := base[uint32(n.Val):][:n.Len*abi.SizeNode]; len(list) >= abi.SizeNode; list = list[abi.SizeNode:] {
			if abi.Tag(list[0]) != abi.TagString && !d.writable(format, base, abi.GetNode(list, 0)) {
				return false
			}
		}
	case abi.TagMap:
		for i := range n.Len {
			k, v := base.Entry(n, i)
			if k.Tag != abi.TagString && (format != FormatMsgpack || !d.writable(format, base, k)) || !d.writable(format, base, v) {
				return false
			}
		}
		off := uint32(n.Val)
		return n.Len < 2 || d.duplicate(base[off:off+n.Len*abi.SizeEntry], base) < 0
	}
	return true
}

// unwritable says what of a tree an encoding cannot hold.
func unwritable(format Format, base abi.Base, root abi.Node) string {
	write := AppendTreeJSON
	if format == FormatMsgpack {
		write = AppendTreeMsgpack
	}
	if _, err := write(nil, base, root); err != nil {
		return err.Error()
	}
	return ""
}
