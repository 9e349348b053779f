package hint

import (
	"fmt"

	"github.com/kvrt/kvrt/abi"
)

// AppendSubset appends a frame that lists only the given actions, in that order: what
// one guest gets of an envelope. Every action has a block (its fault is not
// limit_exceeded) and Finish has run. With raw, each block also carries its payload as
// it was sent. When raw is not wanted and all actions are listed, Bytes is the same.
//
// Offsets are relative to the start of the appended frame; len(dst) is a multiple of 8.
func (f *Frame) AppendSubset(dst []byte, actions []int32, raw bool) []byte {
	src := abi.Base(f.d.out)
	start := len(dst)
	dst = append(dst, src[:abi.SizeEnvelopeFrame]...)
	run := func(off uint32) {
		s := abi.GetSpan(src, off)
		if b := src.Run(s); b != nil {
			s.Off = uint32(len(dst) - start)
			dst = append(dst, b...)
			abi.PutSpan(dst[start:], off, s)
		}
	}
	run(abi.OffEnvelopeFrameProtocolVersion)
	run(abi.OffEnvelopeFrameMessageID)
	run(abi.OffEnvelopeFrameRequestID)
	run(abi.OffEnvelopeFrameEngine)
	dst = abi.Align(dst)
	table := len(dst)
	for range actions {
		dst = appendU32(dst, 0)
	}
	dst = abi.Align(dst)
	for k, i := range actions {
		r := &f.acts[i]
		at := len(dst)
		abi.PutU32(dst[table:], uint32(4*k), uint32(at-start))
		dst = append(dst, src[r.off:r.off+r.size]...)
		if body := f.Action(int(i)).RawPayload(); raw && body != nil {
			dst = appendRaw(dst, at, f.format, body)
		}
	}
	frame := dst[start:]
	abi.PutU32(frame, abi.OffEnvelopeFrameActions, uint32(table-start))
	abi.PutU32(frame, abi.OffEnvelopeFrameCount, uint32(len(actions)))
	abi.PutU32(frame, abi.OffEnvelopeFrameSize, uint32(len(frame)))
	return dst
}

// appendRaw adds the payload's bytes to the block at at, which ends dst.
func appendRaw(dst []byte, at int, format Format, body []byte) []byte {
	off := len(dst) - at
	dst = abi.Align(append(dst, body...))
	block := dst[at:]
	abi.PutU32(block, abi.OffActionSize, uint32(len(block)))
	abi.PutSpan(block, abi.OffActionRaw, abi.Span{Off: uint32(off), Len: uint32(len(body))})
	abi.PutU32(block, abi.OffActionRawFormat, uint32(format))
	return dst
}

// Load fills the frame from an EnvelopeFrame that a guest answered and
// [abi.CheckEnvelope] accepted, and copies all of it, so that the same dispatch goes on
// from there. format is what Format will say. The rules of Decode hold: an error, which
// wraps [abi.ErrFrame], refuses the whole; what is wrong with one action is its fault.
func (f *Frame) Load(format Format, envelope []byte, lim Limits) error {
	lim = lim.withDefaults()
	f.start(lim)
	e := abi.EnvelopeFrame(envelope)
	if e.Count() > surplus*lim.Actions {
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
	f.format, f.total, f.tail = format, e.Count(), len(d.out)
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

// add copies one action. A nil run is absent.
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
		d.nonFinite = false
		if a.payload, ok = d.copyTree(base, payload); !ok {
			return false
		}
		if d.nonFinite {
			fault.set(abi.ReasonInvalidPayload, fieldPayload, ruleFinite, gotNumber)
		}
	default:
		fault.set(abi.ReasonMalformedAction, fieldPayload, ruleMapping, gotOf(payload.Tag))
	}
	f.endBlock(&a)
	return true
}
