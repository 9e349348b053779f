package abi

import "encoding/binary"

// The views below read frames without copying. Their methods trust the offsets: use
// them on what the host wrote itself or what a Check function accepted.

// InitFrame is a view of record InitFrame.
type InitFrame []byte

// Features returns the feature bits offered.
func (f InitFrame) Features() Feature { return Feature(U64(f, OffInitFrameFeatures)) }

// GuestName returns the name the operator gave the guest.
func (f InitFrame) GuestName() []byte { return Base(f).Run(GetSpan(f, OffInitFrameGuestName)) }

// Minor returns the host's minor version.
func (f InitFrame) Minor() uint32 { return U32(f, OffInitFrameABIMinor) }

// Parameters returns the root of the parameters' tree, whose base is the frame.
func (f InitFrame) Parameters() Node { return GetNode(f, OffInitFrameParameters) }

// ParseFrame is a view of record ParseFrame.
type ParseFrame []byte

// Format returns the encoding of Raw.
func (f ParseFrame) Format() Format { return Format(U32(f, OffParseFrameFormat)) }

// Raw returns the bytes as they were sent.
func (f ParseFrame) Raw() []byte { return Base(f).Run(GetSpan(f, OffParseFrameRaw)) }

// RequestID returns the request's id, nil when absent.
func (f ParseFrame) RequestID() []byte { return Base(f).Run(GetSpan(f, OffParseFrameRequestID)) }

// Dialect returns the dialect's name.
func (f ParseFrame) Dialect() []byte { return Base(f).Run(GetSpan(f, OffParseFrameDialect)) }

// Document returns the root of Raw as a tree, whose base is the frame.
func (f ParseFrame) Document() Node { return GetNode(f, OffParseFrameDocument) }

// EnvelopeFrame is a view of record EnvelopeFrame.
type EnvelopeFrame []byte

// ProtocolVersion returns the envelope's protocol version, nil when absent.
func (f EnvelopeFrame) ProtocolVersion() []byte {
	return Base(f).Run(GetSpan(f, OffEnvelopeFrameProtocolVersion))
}

// MessageID returns the envelope's id, nil when absent.
func (f EnvelopeFrame) MessageID() []byte { return Base(f).Run(GetSpan(f, OffEnvelopeFrameMessageID)) }

// RequestID returns the id of the request that the envelope is attached to.
func (f EnvelopeFrame) RequestID() []byte { return Base(f).Run(GetSpan(f, OffEnvelopeFrameRequestID)) }

// Engine returns the serving engine's name.
func (f EnvelopeFrame) Engine() []byte { return Base(f).Run(GetSpan(f, OffEnvelopeFrameEngine)) }

// Leg returns the leg of the request.
func (f EnvelopeFrame) Leg() Leg { return Leg(U32(f, OffEnvelopeFrameLeg)) }

// DPRank returns the data-parallel rank.
func (f EnvelopeFrame) DPRank() uint32 { return U32(f, OffEnvelopeFrameDPRank) }

// Attempt returns the retry number.
func (f EnvelopeFrame) Attempt() uint32 { return U32(f, OffEnvelopeFrameAttempt) }

// Total returns the number of actions in the whole envelope.
func (f EnvelopeFrame) Total() uint32 { return U32(f, OffEnvelopeFrameTotal) }

// Count returns the number of actions that the frame lists.
func (f EnvelopeFrame) Count() int { return int(U32(f, OffEnvelopeFrameCount)) }

// Action returns the action at a position of the list.
func (f EnvelopeFrame) Action(i int) Action {
	off := U32(f, U32(f, OffEnvelopeFrameActions)+4*uint32(i))
	end := off + U32(f, off+OffActionSize)
	return Action(f[off:end:end])
}

// Action is a view of record Action with everything it refers to.
type Action []byte

// Index returns the action's position in the whole envelope.
func (a Action) Index() uint32 { return U32(a, OffActionIndex) }

// ID returns the action's id, nil when absent.
func (a Action) ID() []byte { return Base(a).Run(GetSpan(a, OffActionActionID)) }

// Type returns the action's type.
func (a Action) Type() []byte { return Base(a).Run(GetSpan(a, OffActionActionType)) }

// Version returns the action's version, nil when absent.
func (a Action) Version() []byte { return Base(a).Run(GetSpan(a, OffActionActionVersion)) }

// Raw returns the payload as it was sent, and its encoding.
func (a Action) Raw() ([]byte, Format) {
	return Base(a).Run(GetSpan(a, OffActionRaw)), Format(U32(a, OffActionRawFormat))
}

// Payload returns the root of the payload's tree, whose base is the action.
func (a Action) Payload() Node { return GetNode(a, OffActionPayload) }

// ContextFrame is a view of record ContextFrame.
type ContextFrame []byte

// Present returns the presence bits.
func (f ContextFrame) Present() Has { return Has(U64(f, OffContextFramePresent)) }

// Text returns the run of a span field, by its offset, such as OffContextFrameModel.
func (f ContextFrame) Text(off uint32) []byte { return Base(f).Run(GetSpan(f, off)) }

// U32 returns a 32-bit field, by its offset.
func (f ContextFrame) U32(off uint32) uint32 { return U32(f, off) }

// U64 returns a 64-bit field, by its offset.
func (f ContextFrame) U64(off uint32) uint64 { return U64(f, off) }

// Candidates returns the number of candidates.
func (f ContextFrame) Candidates() int { return int(U32(f, OffContextFrameCandidatesCount)) }

// Candidate returns a view of candidate i.
func (f ContextFrame) Candidate(i int) WorkerView {
	return WorkerView{Base(f), U32(f, OffContextFrameCandidates) + uint32(i)*SizeWorker}
}

// Selected returns a view of the worker that was chosen; its id is absent when none was.
func (f ContextFrame) Selected() WorkerView { return WorkerView{Base(f), OffContextFrameSelected} }

// BlockHashes returns the number of block hashes.
func (f ContextFrame) BlockHashes() int { return int(U32(f, OffContextFrameBlockHashesCount)) }

// BlockHash returns block hash i.
func (f ContextFrame) BlockHash(i int) uint64 {
	return binary.LittleEndian.Uint64(f[U32(f, OffContextFrameBlockHashes)+8*uint32(i):])
}

// RequestHint returns the root of the request's hint, whose base is the frame.
func (f ContextFrame) RequestHint() Node { return GetNode(f, OffContextFrameRequestHint) }

// SelectionHint returns the root of the selection's hint, whose base is the frame.
func (f ContextFrame) SelectionHint() Node { return GetNode(f, OffContextFrameSelectionHint) }

// WorkerView is a view of record Worker.
type WorkerView struct {
	Base Base
	Off  uint32
}

// ID returns an integer or a string node.
func (w WorkerView) ID() Node { return GetNode(w.Base, w.Off+OffWorkerID) }

// Present returns the presence bits.
func (w WorkerView) Present() WorkerHas { return WorkerHas(w.U32(OffWorkerPresent)) }

// U32 returns a 32-bit field, by its offset in the record.
func (w WorkerView) U32(off uint32) uint32 { return U32(w.Base, w.Off+off) }

// Text returns the run of a span field, by its offset in the record.
func (w WorkerView) Text(off uint32) []byte { return w.Base.Run(GetSpan(w.Base, w.Off+off)) }

// Capability returns capability i.
func (w WorkerView) Capability(i int) []byte {
	return w.Base.Run(GetSpan(w.Base, w.U32(OffWorkerCapabilities)+uint32(i)*SizeSpan))
}
