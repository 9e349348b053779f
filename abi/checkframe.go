package abi

import "fmt"

// field is a field of a record, with its name for messages.
type field struct {
	off  uint32
	name string
}

// begin verifies that b is one frame of kind k, and returns the checker of its runs.
func begin(b []byte, k Kind, fixed int) (checker, error) {
	if len(b) < fixed || len(b)%8 != 0 || uint64(len(b)) > maxBase {
		return checker{}, bad("a frame of %d bytes: want a multiple of 8, at least %d", len(b), fixed)
	}
	if have := Kind(U32(b, offKind)); have != k {
		return checker{}, bad("a frame of kind %d: want %d, %s", uint32(have), uint32(k), k)
	}
	if size := U32(b, offSize); uint64(size) != uint64(len(b)) {
		return checker{}, bad("a frame that says %d bytes and has %d", size, len(b))
	}
	return newChecker(b, fixed), nil
}

func (c *checker) spans(fields ...field) error {
	for _, f := range fields {
		s := GetSpan(c.base, f.off)
		if s == (Span{}) {
			continue // absent, as most are
		}
		if err := c.span(s, f.name); err != nil {
			return err
		}
	}
	return nil
}

// most verifies that a u32 field is at most max.
func (c *checker) most(f field, max uint32) error {
	if v := U32(c.base, f.off); v > max {
		return bad("%s is %d: want at most %d", f.name, v, max)
	}
	return nil
}

// CheckInit verifies an InitFrame that fills b.
func CheckInit(b []byte) error {
	c, err := begin(b, KindInit, SizeInitFrame)
	if err != nil {
		return err
	}
	if err := c.most(field{OffInitFrameZero, "zero"}, 0); err != nil {
		return err
	}
	if err := c.spans(field{OffInitFrameGuestName, "guest_name"}); err != nil {
		return err
	}
	return c.root(OffInitFrameParameters)
}

// CheckParse verifies a ParseFrame that fills b.
func CheckParse(b []byte) error {
	c, err := begin(b, KindParse, SizeParseFrame)
	if err != nil {
		return err
	}
	if err := c.most(field{OffParseFrameZero, "zero"}, 0); err != nil {
		return err
	}
	if err := c.most(field{OffParseFrameFormat, "format"}, uint32(FormatMsgpack)); err != nil {
		return err
	}
	if err := c.raw(GetSpan(b, OffParseFrameRaw), 1, "raw"); err != nil {
		return err
	}
	if err := c.spans(field{OffParseFrameRequestID, "request_id"}, field{OffParseFrameDialect, "dialect"}); err != nil {
		return err
	}
	return c.root(OffParseFrameDocument)
}

// CheckAction verifies an Action record that fills b.
func CheckAction(b []byte) error {
	if len(b) < SizeAction || len(b)%8 != 0 || uint64(len(b)) > maxBase {
		return bad("an action of %d bytes: want a multiple of 8, at least %d", len(b), SizeAction)
	}
	if size := U32(b, OffActionSize); uint64(size) != uint64(len(b)) {
		return bad("an action that says %d bytes and has %d", size, len(b))
	}
	c := newChecker(b, SizeAction)
	if err := c.most(field{OffActionZero, "zero"}, 0); err != nil {
		return err
	}
	if err := c.most(field{OffActionRawFormat, "raw_format"}, uint32(FormatMsgpack)); err != nil {
		return err
	}
	if err := c.spans(field{OffActionActionID, "action_id"}, field{OffActionActionType, "action_type"},
		field{OffActionActionVersion, "action_version"}); err != nil {
		return err
	}
	if err := c.raw(GetSpan(b, OffActionRaw), 1, "raw"); err != nil {
		return err
	}
	return c.root(OffActionPayload)
}

// CheckEnvelope verifies an EnvelopeFrame that fills b, every action included.
func CheckEnvelope(b []byte) error {
	c, err := begin(b, KindEnvelope, SizeEnvelopeFrame)
	if err != nil {
		return err
	}
	if U64(b, OffEnvelopeFrameZero) != 0 {
		return bad("zero is not 0")
	}
	if err := c.most(field{OffEnvelopeFrameLeg, "leg"}, uint32(LegDecode)); err != nil {
		return err
	}
	if err := c.spans(field{OffEnvelopeFrameProtocolVersion, "protocol_version"}, field{OffEnvelopeFrameMessageID, "message_id"},
		field{OffEnvelopeFrameRequestID, "request_id"}, field{OffEnvelopeFrameEngine, "engine"}); err != nil {
		return err
	}
	table, count := U32(b, OffEnvelopeFrameActions), U32(b, OffEnvelopeFrameCount)
	if err := c.run(uint64(table), uint64(count)*4, 4, "action table"); err != nil {
		return err
	}
	for i := range count {
		off := U32(b, table+4*i)
		if uint64(off)+SizeAction > uint64(len(b)) {
			return bad("action %d at %d is outside", i, off)
		}
		size := U32(b, off+OffActionSize)
		if err := c.run(uint64(off), uint64(size), 8, "action"); err != nil {
			return err
		}
		if err := CheckAction(b[off : uint64(off)+uint64(size)]); err != nil {
			return fmt.Errorf("action %d: %w", i, err)
		}
	}
	return nil
}

// CheckContext verifies a ContextFrame that fills b, every worker included. Presence
// bits that this version does not know are let pass.
func CheckContext(b []byte) error {
	c, err := begin(b, KindContext, SizeContextFrame)
	if err != nil {
		return err
	}
	for _, f := range [...]struct {
		field
		max uint32
	}{
		{field{OffContextFrameLeg, "leg"}, uint32(LegDecode)},
		{field{OffContextFrameToolsDeclared, "tools_declared"}, 1},
		{field{OffContextFrameHashKind, "hash_kind"}, uint32(HashKindLocal)},
		{field{OffContextFrameZero, "zero"}, 0},
		{field{OffContextFrameSessionFinal, "session_final"}, 1},
		{field{OffContextFrameInputTrigger, "input_trigger"}, uint32(TriggerOther)},
	} {
		if err := c.most(f.field, f.max); err != nil {
			return err
		}
	}
	if err := c.spans(field{OffContextFrameRequestID, "request_id"}, field{OffContextFrameModel, "model"},
		field{OffContextFrameGroup, "group"}, field{OffContextFrameWorkerType, "worker_type"},
		field{OffContextFrameTenant, "tenant"}, field{OffContextFrameNamespace, "namespace"},
		field{OffContextFrameSessionID, "session_id"}, field{OffContextFrameParentSessionID, "parent_session_id"}); err != nil {
		return err
	}
	if err := c.absentContext(); err != nil {
		return err
	}
	hashes, candidates := U32(b, OffContextFrameBlockHashes), U32(b, OffContextFrameCandidates)
	if err := c.run(uint64(hashes), uint64(U32(b, OffContextFrameBlockHashesCount))*8, 8, "block_hashes"); err != nil {
		return err
	}
	count := U32(b, OffContextFrameCandidatesCount)
	if err := c.run(uint64(candidates), uint64(count)*SizeWorker, 8, "candidates"); err != nil {
		return err
	}
	if err := c.worker(OffContextFrameSelected, true); err != nil {
		return fmt.Errorf("selected: %w", err)
	}
	for i := range count {
		if err := c.worker(candidates+i*SizeWorker, false); err != nil {
			return fmt.Errorf("candidate %d: %w", i, err)
		}
	}
	if err := c.root(OffContextFrameRequestHint); err != nil {
		return fmt.Errorf("request_hint: %w", err)
	}
	if err := c.root(OffContextFrameSelectionHint); err != nil {
		return fmt.Errorf("selection_hint: %w", err)
	}
	return nil
}

// absentContext verifies that a field whose presence bit is 0 is 0 itself.
func (c *checker) absentContext() error {
	present := Has(U64(c.base, OffContextFramePresent))
	for _, f := range [...]struct {
		bit Has
		field
		wide bool // the field has 64 bits
	}{
		{HasAttempt, field{OffContextFrameAttempt, "attempt"}, false},
		{HasPromptTokens, field{OffContextFramePromptTokens, "prompt_tokens"}, true},
		{HasExpectedOutputTokens, field{OffContextFrameExpectedOutputTokens, "expected_output_tokens"}, true},
		{HasToolsDeclared, field{OffContextFrameToolsDeclared, "tools_declared"}, false},
		{HasBlockSize, field{OffContextFrameBlockSize, "block_size"}, false},
		{HasBlockHashes, field{OffContextFrameBlockHashesCount, "block_hashes_count"}, false},
		{HasBlockHashes, field{OffContextFrameBlockHashes, "block_hashes"}, false},
		{HasBlockHashes, field{OffContextFrameHashKind, "hash_kind"}, false},
		{HasCandidates, field{OffContextFrameCandidatesCount, "candidates_count"}, false},
		{HasCandidates, field{OffContextFrameCandidates, "candidates"}, false},
		{HasSessionFinal, field{OffContextFrameSessionFinal, "session_final"}, false},
	} {
		zero := U32(c.base, f.off) == 0 && (!f.wide || U32(c.base, f.off+4) == 0)
		if present&f.bit == 0 && !zero {
			return bad("%s is absent and not 0", f.name)
		}
	}
	return nil
}

// worker verifies the Worker at off, whose fixed part is inside.
func (c *checker) worker(off uint32, mayBeAbsent bool) error {
	w := c.base[off : off+SizeWorker]
	id, err := c.nodeAt(off + OffWorkerID)
	if err != nil {
		return err
	}
	switch id.Tag {
	case TagU64, TagI64, TagString:
	case TagAbsent:
		if !mayBeAbsent {
			return bad("a worker without an id")
		}
	default:
		return bad("a worker id of tag %d: want an integer or a string", uint8(id.Tag))
	}
	if err := c.node(id, 1); err != nil {
		return err
	}
	present := WorkerHas(U32(w, OffWorkerPresent))
	for _, f := range [...]struct {
		bit WorkerHas
		field
	}{
		{WorkerHasDPRank, field{OffWorkerDPRank, "dp_rank"}},
		{WorkerHasCapabilities, field{OffWorkerCapabilities, "capabilities"}},
		{WorkerHasCapabilities, field{OffWorkerCapabilitiesCount, "capabilities_count"}},
		{WorkerHasGPU, field{OffWorkerMatchedGPU, "matched_gpu"}},
		{WorkerHasCPU, field{OffWorkerMatchedCPU, "matched_cpu"}},
		{WorkerHasDisk, field{OffWorkerMatchedDisk, "matched_disk"}},
		{WorkerHasExternal, field{OffWorkerMatchedExternal, "matched_external"}},
	} {
		if present&f.bit == 0 && U32(w, f.off) != 0 {
			return bad("%s is absent and not 0", f.name)
		}
	}
	if err := c.spans(field{off + OffWorkerWorkerType, "worker_type"},
		field{off + OffWorkerSourceControlEndpoint, "source_control_endpoint"}); err != nil {
		return err
	}
	caps, count := U32(w, OffWorkerCapabilities), U32(w, OffWorkerCapabilitiesCount)
	if err := c.run(uint64(caps), uint64(count)*SizeSpan, 8, "capabilities"); err != nil {
		return err
	}
	for i := range count {
		if err := c.span(GetSpan(c.base, caps+i*SizeSpan), "capability"); err != nil {
			return err
		}
	}
	return nil
}
