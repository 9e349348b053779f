package abi

import "slices"

// ContextFields is a set of fields of a routing context.
type ContextFields uint32

// ContextFieldNames lists the fields that a policy's manifest may require and that a
// router may say it supplies, as record ContextFrame names them, in the order of the
// bits of a [ContextFields].
func ContextFieldNames() []string {
	return []string{
		"request_id", "attempt", "leg", "model", "group", "worker_type", "tenant", "namespace",
		"prompt_tokens", "expected_output_tokens", "tools_declared", "hash_kind", "block_size",
		"candidates", "block_hashes", "session_id", "parent_session_id", "session_final",
		"input_trigger", "selected", "request_hint", "selection_hint",
	}
}

// ContextFieldSet makes a set of names. Names that are no field's are left out.
func ContextFieldSet(names []string) (set ContextFields) {
	for i, name := range ContextFieldNames() {
		if slices.Contains(names, name) {
			set |= 1 << i
		}
	}
	return set
}

// Names lists the fields of the set.
func (s ContextFields) Names() (names []string) {
	for i, name := range ContextFieldNames() {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Fields is the set of fields that the context has. A text that is present and empty is
// there.
func (f ContextFrame) Fields() (set ContextFields) {
	bit := ContextFields(1)
	add := func(there bool) {
		if there {
			set |= bit
		}
		bit <<= 1
	}
	text := func(off uint32) { add(U32(f, off) != 0) }
	present := f.Present()
	has := func(h Has) { add(present&h != 0) }
	text(OffContextFrameRequestID)
	has(HasAttempt)
	add(f.U32(OffContextFrameLeg) != 0)
	text(OffContextFrameModel)
	text(OffContextFrameGroup)
	text(OffContextFrameWorkerType)
	text(OffContextFrameTenant)
	text(OffContextFrameNamespace)
	has(HasPromptTokens)
	has(HasExpectedOutputTokens)
	has(HasToolsDeclared)
	add(f.U32(OffContextFrameHashKind) != 0)
	has(HasBlockSize)
	has(HasCandidates)
	has(HasBlockHashes)
	text(OffContextFrameSessionID)
	text(OffContextFrameParentSessionID)
	has(HasSessionFinal)
	add(f.U32(OffContextFrameInputTrigger) != 0)
	add(f.Selected().ID().Tag != TagAbsent)
	add(f.RequestHint().Tag != TagAbsent)
	add(f.SelectionHint().Tag != TagAbsent)
	return set
}
