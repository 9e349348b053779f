package abi

// Context is what a host tells a policy about a request. Empty text is absent;
// a number or list counts only when its bit is in Present.
type Context struct {
	Present                    Has
	RequestID                  string
	Attempt                    uint32
	Leg                        Leg
	Model, Group, WorkerType   string
	Tenant, Namespace          string
	PromptTokens               uint64
	ExpectedOutputTokens       uint64
	ToolsDeclared              bool
	HashKind                   HashKind
	BlockSize                  uint32
	BlockHashes                []uint64
	Candidates                 []Worker
	SessionID, ParentSessionID string
	SessionFinal               bool
	InputTrigger               Trigger
	Selected                   *Worker // nil when no worker was chosen
}

// Worker is a worker of the fleet.
type Worker struct {
	ID                    Node   // an integer, made with Uint or Int
	Name                  string // the id when it is a string: then ID is not looked at
	Present               WorkerHas
	DPRank                uint32
	Type                  string // aggregated, prefill, decode, ...
	SourceControlEndpoint string
	Capabilities          []string
	GPU, CPU              uint32 // prefix blocks already there, by tier
	Disk, External        uint32
}

// BeginContext starts a context frame at buf[:0]; see [BeginInit] for the pattern.
func BeginContext(buf []byte, x *Context) []byte {
	b := NewBuilder(buf)
	b.Open(SizeContextFrame)
	b.SetU64(OffContextFramePresent, uint64(x.Present))
	b.SetU32(OffContextFrameLeg, uint32(x.Leg))
	b.SetU32(OffContextFrameInputTrigger, uint32(x.InputTrigger))
	for _, f := range [...]struct {
		off  uint32
		text string
	}{
		{OffContextFrameRequestID, x.RequestID}, {OffContextFrameModel, x.Model}, {OffContextFrameGroup, x.Group},
		{OffContextFrameWorkerType, x.WorkerType}, {OffContextFrameTenant, x.Tenant}, {OffContextFrameNamespace, x.Namespace},
		{OffContextFrameSessionID, x.SessionID}, {OffContextFrameParentSessionID, x.ParentSessionID},
	} {
		b.SetSpan(f.off, b.Optional(f.text))
	}
	for _, f := range [...]struct {
		bit Has
		off uint32
		val uint32
	}{
		{HasAttempt, OffContextFrameAttempt, x.Attempt},
		{HasToolsDeclared, OffContextFrameToolsDeclared, uint32(Bool(x.ToolsDeclared).Val)},
		{HasBlockSize, OffContextFrameBlockSize, x.BlockSize},
		{HasBlockHashes, OffContextFrameHashKind, uint32(x.HashKind)},
		{HasSessionFinal, OffContextFrameSessionFinal, uint32(Bool(x.SessionFinal).Val)},
	} {
		if x.Present&f.bit != 0 {
			b.SetU32(f.off, f.val)
		}
	}
	if x.Present&HasPromptTokens != 0 {
		b.SetU64(OffContextFramePromptTokens, x.PromptTokens)
	}
	if x.Present&HasExpectedOutputTokens != 0 {
		b.SetU64(OffContextFrameExpectedOutputTokens, x.ExpectedOutputTokens)
	}
	if x.Present&HasBlockHashes != 0 {
		n := b.U64s(x.BlockHashes)
		b.SetU32(OffContextFrameBlockHashes, uint32(n.Val))
		b.SetU32(OffContextFrameBlockHashesCount, n.Len)
	}
	if x.Present&HasCandidates != 0 {
		at := b.Align()
		b.buf = zeros(b.buf, len(x.Candidates)*SizeWorker)
		b.SetU32(OffContextFrameCandidates, at)
		b.SetU32(OffContextFrameCandidatesCount, uint32(len(x.Candidates)))
		for i := range x.Candidates {
			b.worker(at+uint32(i)*SizeWorker, &x.Candidates[i])
		}
	}
	if x.Selected != nil {
		b.worker(OffContextFrameSelected, x.Selected)
	}
	return Align(b.Bytes())
}

// FinishContext ends a context frame. An absent hint is the zero Node.
func FinishContext(b []byte, requestHint, selectionHint Node) []byte {
	PutNode(b, OffContextFrameRequestHint, requestHint)
	PutNode(b, OffContextFrameSelectionHint, selectionHint)
	return finish(b, KindContext)
}

// worker fills the Worker at off and appends what it refers to.
func (b *Builder) worker(off uint32, w *Worker) {
	id := w.ID
	if w.Name != "" {
		id = b.String(w.Name)
	}
	b.SetNode(off+OffWorkerID, id)
	b.SetU32(off+OffWorkerPresent, uint32(w.Present))
	b.SetSpan(off+OffWorkerWorkerType, b.Optional(w.Type))
	b.SetSpan(off+OffWorkerSourceControlEndpoint, b.Optional(w.SourceControlEndpoint))
	for _, f := range [...]struct {
		bit WorkerHas
		off uint32
		val uint32
	}{
		{WorkerHasDPRank, OffWorkerDPRank, w.DPRank}, {WorkerHasGPU, OffWorkerMatchedGPU, w.GPU}, {WorkerHasCPU, OffWorkerMatchedCPU, w.CPU},
		{WorkerHasDisk, OffWorkerMatchedDisk, w.Disk}, {WorkerHasExternal, OffWorkerMatchedExternal, w.External},
	} {
		if w.Present&f.bit != 0 {
			b.SetU32(off+f.off, f.val)
		}
	}
	if w.Present&WorkerHasCapabilities != 0 {
		at := b.Align()
		b.buf = zeros(b.buf, len(w.Capabilities)*SizeSpan)
		b.SetU32(off+OffWorkerCapabilities, at)
		b.SetU32(off+OffWorkerCapabilitiesCount, uint32(len(w.Capabilities)))
		for i, s := range w.Capabilities {
			b.SetSpan(at+uint32(i)*SizeSpan, b.RunString(s))
		}
	}
}
