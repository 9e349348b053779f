package hint

import (
	"slices"

	"github.com/kvrt/kvrt/abi"
)

// Adopt is Load for an envelope that need not be copied: the frame takes the bytes over,
// and writes to them. It is for sound ones, as nearly all are: where an action has a fault
// or a payload that is null, or where Load would refuse the envelope or cut it short, Adopt
// is false, the frame is empty and the bytes are as they were. Load then says what there is
// to say, into a frame that has not adopted these bytes.
func (f *Frame) Adopt(format Format, envelope []byte, lim Limits) bool {
	if format == FormatUnknown {
		format = FormatJSON
	}
	lim = lim.withDefaults()
	e := abi.EnvelopeFrame(envelope)
	f.format, f.body, f.acts = format, nil, f.acts[:0]
	f.total, f.listed, f.tail = 0, 0, 0
	f.protocol, f.message = abi.Span{}, abi.Span{}
	f.d.begin(nil, nil, lim.FrameBytes)
	if e.Count() > lim.Actions || len(envelope) > lim.FrameBytes {
		return false
	}
	for i := range e.Count() {
		a := abi.Base(e.Action(i))
		typ, payload := abi.GetSpan(a, abi.OffActionActionType), abi.GetNode(a, abi.OffActionPayload)
		if !typ.Present() || typ.Len == 0 || payload.Tag != abi.TagAbsent && (payload.Tag != abi.TagMap || !f.d.writable(format, a, payload)) {
			return false
		}
	}
	f.acts = slices.Grow(f.acts, e.Count())
	table := abi.U32(envelope, abi.OffEnvelopeFrameActions)
	for i := range uint32(e.Count()) {
		off := abi.U32(envelope, table+4*i)
		a := envelope[off:]
		abi.PutU32(a, abi.OffActionIndex, i)
		abi.PutSpan(a, abi.OffActionRaw, abi.Span{})
		abi.PutU32(a, abi.OffActionRawFormat, 0)
		f.acts = append(f.acts, record{off: off, size: abi.U32(a, abi.OffActionSize)})
	}
	f.protocol = abi.GetSpan(envelope, abi.OffEnvelopeFrameProtocolVersion)
	f.message = abi.GetSpan(envelope, abi.OffEnvelopeFrameMessageID)
	f.d.out = envelope
	f.total, f.tail = e.Count(), len(envelope)
	return true
}
