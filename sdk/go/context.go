package kvrt

import (
	"iter"

	"github.com/kvrt/kvrt/abi"
)

// Context is what a policy knows about a request whose worker was chosen. Text that the
// router cannot supply is empty; a number or list that it cannot supply is false, which
// is not the same as 0 or none.
type Context struct{ frame abi.ContextFrame }

func (c Context) has(bit abi.Has) bool { return c.frame.Present()&bit != 0 }

// RequestID is the request.
func (c Context) RequestID() string { return view(c.frame.Text(abi.OffContextFrameRequestID)) }

// Model is the routing partition: the model.
func (c Context) Model() string { return view(c.frame.Text(abi.OffContextFrameModel)) }

// Group is the routing partition: the group.
func (c Context) Group() string { return view(c.frame.Text(abi.OffContextFrameGroup)) }

// WorkerType is the routing partition: the type of worker.
func (c Context) WorkerType() string { return view(c.frame.Text(abi.OffContextFrameWorkerType)) }

// Tenant is the tenant.
func (c Context) Tenant() string { return view(c.frame.Text(abi.OffContextFrameTenant)) }

// Namespace is what keeps block hashes apart.
func (c Context) Namespace() string { return view(c.frame.Text(abi.OffContextFrameNamespace)) }

// SessionID is the session.
func (c Context) SessionID() string { return view(c.frame.Text(abi.OffContextFrameSessionID)) }

// ParentSessionID is the session that this one sprang from.
func (c Context) ParentSessionID() string {
	return view(c.frame.Text(abi.OffContextFrameParentSessionID))
}

// Leg is the leg of a disaggregated request.
func (c Context) Leg() abi.Leg { return abi.Leg(c.frame.U32(abi.OffContextFrameLeg)) }

// InputTrigger is what made the session send the request.
func (c Context) InputTrigger() abi.Trigger {
	return abi.Trigger(c.frame.U32(abi.OffContextFrameInputTrigger))
}

// HashKind is what the block hashes are.
func (c Context) HashKind() abi.HashKind {
	return abi.HashKind(c.frame.U32(abi.OffContextFrameHashKind))
}

// Attempt is which retry this is.
func (c Context) Attempt() (uint32, bool) {
	return c.frame.U32(abi.OffContextFrameAttempt), c.has(abi.HasAttempt)
}

// PromptTokens is how many tokens the prompt has.
func (c Context) PromptTokens() (uint64, bool) {
	return c.frame.U64(abi.OffContextFramePromptTokens), c.has(abi.HasPromptTokens)
}

// ExpectedOutputTokens is how many tokens the answer may have.
func (c Context) ExpectedOutputTokens() (uint64, bool) {
	return c.frame.U64(abi.OffContextFrameExpectedOutputTokens), c.has(abi.HasExpectedOutputTokens)
}

// ToolsDeclared tells whether the request declares tools.
func (c Context) ToolsDeclared() (declared, ok bool) {
	return c.frame.U32(abi.OffContextFrameToolsDeclared) != 0, c.has(abi.HasToolsDeclared)
}

// BlockSize is how many tokens a block has.
func (c Context) BlockSize() (uint32, bool) {
	return c.frame.U32(abi.OffContextFrameBlockSize), c.has(abi.HasBlockSize)
}

// SessionFinal tells whether this is the session's last request.
func (c Context) SessionFinal() (final, ok bool) {
	return c.frame.U32(abi.OffContextFrameSessionFinal) != 0, c.has(abi.HasSessionFinal)
}

// BlockHashes are the request's block hashes: a view.
func (c Context) BlockHashes() ([]uint64, bool) {
	if !c.has(abi.HasBlockHashes) {
		return nil, false
	}
	return u64s(c.frame, c.frame.U32(abi.OffContextFrameBlockHashes), c.frame.U32(abi.OffContextFrameBlockHashesCount)), true
}

// Selected is the worker that was chosen; its id is absent when none was.
func (c Context) Selected() Worker { return Worker{c.frame.Selected()} }

// Candidates yields the workers that could have been chosen.
func (c Context) Candidates() (iter.Seq[Worker], bool) {
	return func(yield func(Worker) bool) {
		for i := 0; i < c.frame.Candidates() && yield(Worker{c.frame.Candidate(i)}); i++ {
		}
	}, c.has(abi.HasCandidates)
}

// RequestHint is the envelope that came with the request, as a map.
func (c Context) RequestHint() Value { return at(c.frame, abi.OffContextFrameRequestHint) }

// SelectionHint is the envelope that the selection made, as a map.
func (c Context) SelectionHint() Value { return at(c.frame, abi.OffContextFrameSelectionHint) }

// Worker is a worker of the fleet.
type Worker struct{ view abi.WorkerView }

func (w Worker) number(bit abi.WorkerHas, off uint32) (uint32, bool) {
	return w.view.U32(off), w.view.Present()&bit != 0
}

// ID is an integer or a string.
func (w Worker) ID() Value { return Value{w.view.Base, w.view.ID()} }

// DPRank is its data-parallel rank.
func (w Worker) DPRank() (uint32, bool) { return w.number(abi.WorkerHasDPRank, abi.OffWorkerDPRank) }

// MatchedGPU is how many prefix blocks of the request it holds in GPU memory.
func (w Worker) MatchedGPU() (uint32, bool) {
	return w.number(abi.WorkerHasGPU, abi.OffWorkerMatchedGPU)
}

// MatchedCPU is how many it holds in host memory.
func (w Worker) MatchedCPU() (uint32, bool) {
	return w.number(abi.WorkerHasCPU, abi.OffWorkerMatchedCPU)
}

// MatchedDisk is how many it holds on disk.
func (w Worker) MatchedDisk() (uint32, bool) {
	return w.number(abi.WorkerHasDisk, abi.OffWorkerMatchedDisk)
}

// MatchedExternal is how many lie in external storage.
func (w Worker) MatchedExternal() (uint32, bool) {
	return w.number(abi.WorkerHasExternal, abi.OffWorkerMatchedExternal)
}

// Type is aggregated, prefill, decode, ...
func (w Worker) Type() string { return view(w.view.Text(abi.OffWorkerWorkerType)) }

// SourceControlEndpoint is where its blocks can be fetched from.
func (w Worker) SourceControlEndpoint() string {
	return view(w.view.Text(abi.OffWorkerSourceControlEndpoint))
}

// Capabilities yields the action types that it can execute; false when it did not tell.
func (w Worker) Capabilities() (iter.Seq[string], bool) {
	n, ok := w.number(abi.WorkerHasCapabilities, abi.OffWorkerCapabilitiesCount)
	return func(yield func(string) bool) {
		for i := 0; i < int(n) && yield(view(w.view.Capability(i))); i++ {
		}
	}, ok
}
