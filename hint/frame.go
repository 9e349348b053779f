package hint

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// Format is how a body is encoded.
type Format = abi.Format

// The encodings of a body.
const (
	FormatUnknown = abi.FormatUnknown
	FormatJSON    = abi.FormatJSON
	FormatMsgpack = abi.FormatMsgpack
)

// Detect tells JSON from msgpack by the first byte: an envelope is a mapping, and the
// first byte of a msgpack mapping is not ASCII.
func Detect(body []byte) Format {
	switch {
	case len(body) == 0:
		return FormatUnknown
	case body[0] < 0x80 || hasBOM(body):
		return FormatJSON
	}
	return FormatMsgpack
}

func hasBOM(b []byte) bool { return len(b) >= 3 && string(b[:3]) == "\xef\xbb\xbf" }

// Limits bounds what one envelope may cost. A zero field is its default.
type Limits struct {
	BodyBytes  int // of the body as it was sent; default 4 MiB
	FrameBytes int // of the decoded frame; default 64 MiB

	// Actions is how many actions are read; default 1,024. Those beyond it are rejected
	// with limit_exceeded, each with a result of its own. More than four times as many
	// make the whole envelope malformed, so that a small body cannot ask for millions
	// of results.
	Actions int
}

// body refuses a body that is too large.
func (l Limits) body(what string, src []byte) error {
	if len(src) <= l.BodyBytes {
		return nil
	}
	return &MalformedError{what, l.BodyBytes, fmt.Sprintf("a body of %d bytes, %d are allowed", len(src), l.BodyBytes)}
}

// surplus is how many times Limits.Actions an envelope may have before it is refused.
const surplus = 4

func tooMany(actions int) string {
	return "more than " + strconv.Itoa(surplus*actions) + " actions"
}

func (l Limits) withDefaults() Limits {
	or := func(v, def int) int {
		if v <= 0 {
			return def
		}
		return min(v, maxOffset)
	}
	return Limits{or(l.BodyBytes, 4<<20), or(l.FrameBytes, 64<<20), or(l.Actions, 1024)}
}

// MalformedError says why a whole body is refused and where: the offset of the first
// byte that cannot stand there.
type MalformedError struct {
	What   string // what the body should have been; "" is an envelope
	Offset int
	Msg    string
}

func (e *MalformedError) Error() string {
	what := e.What
	if what == "" {
		what = "envelope"
	}
	return fmt.Sprintf("malformed %s: %s at offset %d", what, e.Msg, e.Offset)
}

// Frame is one envelope, decoded once into the flat bytes that guests see. The zero
// value is ready; a frame is used for one envelope after the other and then allocates
// nothing. It is not safe for concurrent use while it is filled.
//
// A frame keeps the body it was decoded from: the caller leaves those bytes alone
// until the next Decode, Load or Reset.
type Frame struct {
	d      decoder
	format Format
	body   []byte   // nil when the frame was loaded
	acts   []record // the first Limits.Actions actions
	total  int      // actions in the envelope, those over the limit included
	listed int      // actions without a fault, after Finish
	tail   int      // end of what Decode wrote

	protocol, message abi.Span
}

// record is what a frame remembers of one action.
type record struct {
	off, size      uint32 // of the block in the frame
	from, to       uint32 // of the action in the body
	rawFrom, rawTo uint32 // of the payload in the body, equal when absent
	fault          fault
}

// Reset forgets the envelope and lets go of its body and of the frame's buffers.
func (f *Frame) Reset() { *f = Frame{} }

// start empties the frame for another envelope.
func (f *Frame) start(lim Limits) {
	f.format, f.body, f.acts = FormatUnknown, nil, f.acts[:0]
	f.total, f.listed = 0, 0
	f.protocol, f.message = abi.Span{}, abi.Span{}
	out := f.d.out
	if cap(out) > keepBytes && len(out) <= keepBytes {
		out = nil
	}
	f.d.begin(nil, out[:0], lim.FrameBytes)
	f.d.out = extend(f.d.out, abi.SizeEnvelopeFrame)
	*(*[abi.SizeEnvelopeFrame]byte)(f.d.out) = [abi.SizeEnvelopeFrame]byte{}
	f.tail = abi.SizeEnvelopeFrame
}

// Decode fills the frame from a body. FormatUnknown stands for what [Detect] says. An
// error is a [*MalformedError] and refuses the envelope as a whole; what is wrong with
// one action is told by [ActionView.Fault].
func (f *Frame) Decode(format Format, body []byte, lim Limits) error {
	lim = lim.withDefaults()
	f.start(lim)
	if err := lim.body("", body); err != nil {
		return err
	}
	if format == FormatUnknown {
		format = Detect(body)
	}
	f.d.src = body
	f.d.msgpack = format == FormatMsgpack
	ok := f.decode(format, lim.Actions)
	f.d.src = nil
	if !ok {
		err := &MalformedError{Offset: f.d.errPos, Msg: f.d.errMsg}
		f.start(lim)
		return err
	}
	f.format, f.body, f.tail = format, body, len(f.d.out)
	return nil
}

// Finish completes the frame with the request's identity and the table of all actions
// without a fault. It may be called again with another identity, which is one that
// [Identity.Check] lets pass.
func (f *Frame) Finish(id Identity) {
	if f.tail == 0 {
		f.start(Limits{}.withDefaults())
	}
	out := append(append(f.d.out[:f.tail], id.RequestID...), id.Engine...)
	request := abi.Span{Off: uint32(f.tail), Len: uint32(len(id.RequestID))}
	engine := abi.Span{Off: uint32(f.tail + len(id.RequestID)), Len: uint32(len(id.Engine))}
	if id.RequestID == "" {
		request = abi.Span{}
	}
	if id.Engine == "" {
		engine = abi.Span{}
	}
	out = align(out)
	table := len(out)
	f.listed = 0
	for i := range f.acts {
		if f.acts[i].fault.reason == abi.ReasonNone {
			out = appendU32(out, f.acts[i].off)
			f.listed++
		}
	}
	out = align(out)
	head := out[:abi.SizeEnvelopeFrame:abi.SizeEnvelopeFrame] // of known length: no offset is checked
	abi.PutU32(head, abi.OffEnvelopeFrameKind, uint32(abi.KindEnvelope))
	abi.PutU32(head, abi.OffEnvelopeFrameSize, uint32(len(out)))
	abi.PutSpan(head, abi.OffEnvelopeFrameProtocolVersion, f.protocol)
	abi.PutSpan(head, abi.OffEnvelopeFrameMessageID, f.message)
	abi.PutU32(head, abi.OffEnvelopeFrameActions, uint32(table))
	abi.PutU32(head, abi.OffEnvelopeFrameCount, uint32(f.listed))
	abi.PutSpan(head, abi.OffEnvelopeFrameRequestID, request)
	abi.PutSpan(head, abi.OffEnvelopeFrameEngine, engine)
	abi.PutU32(head, abi.OffEnvelopeFrameLeg, uint32(id.Leg))
	abi.PutU32(head, abi.OffEnvelopeFrameDPRank, id.DPRank)
	abi.PutU32(head, abi.OffEnvelopeFrameAttempt, id.Attempt)
	abi.PutU32(head, abi.OffEnvelopeFrameTotal, uint32(f.total))
	abi.PutU64(head, abi.OffEnvelopeFrameZero, 0)
	f.d.out = out
}

func appendU32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }

// Bytes is the finished frame: it lists every action without a fault, and holds until
// the next Decode, Load, Finish or Reset.
func (f *Frame) Bytes() []byte { return f.d.out }

// Len is how many actions the envelope has.
func (f *Frame) Len() int { return f.total }

// Listed is how many actions have no fault: the count in Bytes.
func (f *Frame) Listed() int { return f.listed }

// Format is the encoding of the body, or the one that Load was told.
func (f *Frame) Format() Format { return f.format }

// ProtocolVersion is the envelope's protocol version, nil when it was not sent.
func (f *Frame) ProtocolVersion() []byte { return abi.Base(f.d.out).Run(f.protocol) }

// MessageID is the envelope's message id, nil when it was not sent.
func (f *Frame) MessageID() []byte { return abi.Base(f.d.out).Run(f.message) }

// Action returns a view of action i of the envelope, 0 <= i < Len. Beyond
// Limits.Actions it is empty but for its fault.
func (f *Frame) Action(i int) (a ActionView) {
	f.View(i, &a)
	return a
}

// View is Action into a place of the caller's: a view is large to copy.
func (f *Frame) View(i int, a *ActionView) {
	if i >= len(f.acts) {
		*a = ActionView{f: f, i: i}
		return
	}
	r := &f.acts[i]
	b := abi.Base(f.d.out[r.off : r.off+r.size : r.off+r.size])
	head := b[:abi.SizeAction:abi.SizeAction]
	a.ID = b.Run(abi.GetSpan(head, abi.OffActionActionID))
	a.Type = b.Run(abi.GetSpan(head, abi.OffActionActionType))
	a.Version = b.Run(abi.GetSpan(head, abi.OffActionActionVersion))
	a.Base = b
	a.Payload = abi.GetNode(head, abi.OffActionPayload)
	a.f, a.i = f, i
}

// ActionView is one action of a [Frame]. Everything in it is a view of the frame or of
// the body, valid as long as they are.
type ActionView struct {
	ID, Type, Version []byte // nil when not sent, empty when sent empty

	// Base is the action as a relocatable Action record, and what offsets of the
	// payload's tree are relative to. A faulty action's record holds the fields that
	// could be read.
	Base abi.Base

	// Payload is the root of the tree: TagAbsent when the payload was not sent or
	// null, else a map.
	Payload abi.Node

	f *Frame
	i int
}

// Index is the action's position in the envelope.
func (a ActionView) Index() int { return a.i }

// RawPayload is the payload as it was sent; nil when it was absent, null or not a
// mapping, and when the frame was loaded.
func (a ActionView) RawPayload() []byte {
	if a.Base == nil || a.f.body == nil {
		return nil
	}
	r := &a.f.acts[a.i]
	if r.rawFrom == r.rawTo {
		return nil
	}
	return a.f.body[r.rawFrom:r.rawTo:r.rawTo]
}

// RawAction is the action as it was sent; nil beyond Limits.Actions, and when the
// frame was loaded.
func (a ActionView) RawAction() []byte {
	if a.Base == nil || a.f.body == nil {
		return nil
	}
	r := &a.f.acts[a.i]
	return a.f.body[r.from:r.to:r.to]
}
