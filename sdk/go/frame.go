package kvrt

import "github.com/kvrt/kvrt/abi"

// Action is one action.
type Action struct {
	record   abi.Action
	position int
}

// ID is the action's id; empty when the sender gave none.
func (a Action) ID() string { return view(a.record.ID()) }

// Type is the action's type.
func (a Action) Type() string { return view(a.record.Type()) }

// Version is the action's version; false when the sender gave none.
func (a Action) Version() (string, bool) {
	b := a.record.Version()
	return view(b), b != nil
}

// Payload is the action's payload.
func (a Action) Payload() Value { return at(a.record, abi.OffActionPayload) }

// Raw is the payload as it was sent; nil unless abi.FeatureRawPayload was chosen.
func (a Action) Raw() ([]byte, abi.Format) { return a.record.Raw() }

// Index is the action's place in the whole envelope.
func (a Action) Index() int { return int(a.record.Index()) }

// Position is the action's place among those that go to this guest.
func (a Action) Position() int { return a.position }

// Envelope is all actions of an envelope that go to this guest, in order.
type Envelope struct{ frame abi.EnvelopeFrame }

// Len is how many actions there are.
func (e Envelope) Len() int { return int(u32(e.frame, abi.OffEnvelopeFrameCount)) }

// Total is how many actions the whole envelope has, those of other guests included.
func (e Envelope) Total() int { return int(e.frame.Total()) }

// Action is the action at a position in [0, Len).
func (e Envelope) Action(position int) Action {
	off := u32(e.frame, u32(e.frame, abi.OffEnvelopeFrameActions)+4*uint32(position))
	end := uint64(off) + uint64(u32(e.frame, off+abi.OffActionSize))
	return Action{abi.Action(e.frame[off:end:end]), position}
}

// ProtocolVersion is the version of the hint protocol; empty when absent.
func (e Envelope) ProtocolVersion() string { return view(e.frame.ProtocolVersion()) }

// MessageID is the envelope's id; empty when absent.
func (e Envelope) MessageID() string { return view(e.frame.MessageID()) }

// RequestID is the request that the envelope is attached to; empty when absent.
func (e Envelope) RequestID() string { return view(e.frame.RequestID()) }

// Engine is the serving engine that asks; empty when absent.
func (e Envelope) Engine() string { return view(e.frame.Engine()) }

// Leg is the leg of the request that asks.
func (e Envelope) Leg() abi.Leg { return e.frame.Leg() }

// DPRank is the data-parallel rank that asks.
func (e Envelope) DPRank() uint32 { return e.frame.DPRank() }

// Attempt is which retry of the request this is.
func (e Envelope) Attempt() uint32 { return e.frame.Attempt() }

// Document is what a parser is to turn into an envelope.
type Document struct{ frame abi.ParseFrame }

// Raw is the bytes as they were sent.
func (d Document) Raw() []byte { return d.frame.Raw() }

// Format is the encoding of the bytes.
func (d Document) Format() abi.Format { return d.frame.Format() }

// Tree is the bytes as a value; absent when they are neither JSON nor msgpack.
func (d Document) Tree() Value { return at(d.frame, abi.OffParseFrameDocument) }

// RequestID is the request that the document came with; empty when absent.
func (d Document) RequestID() string { return view(d.frame.RequestID()) }

// Dialect is what the host took the document for.
func (d Document) Dialect() string { return view(d.frame.Dialect()) }
