package hint

import (
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// place is a mapping of the document.
type place uint8

const (
	inContext place = iota
	inPartition
	inSession
	inSelected
	inCandidate
	inMatched // matched_blocks of a worker
	inEvent
)

// The required keys of a mapping, which have the lowest bits.
const (
	bitRequestID = 1 << iota // of the context
	bitSelected
	bitWorkerID = 1 << 0 // of a worker
)

// object reads the mapping at pos, whose tag lead has told, and returns which of its
// keys it saw.
func (c *Context) object(start int) (seen uint32, pos int) {
	d := &c.d
	nodes, side := len(d.nodes), len(d.side)
	left, pos := d.open(start, abi.TagMap)
	for left != 0 {
		at := d.skip(pos)
		var key []byte
		if key, pos = d.key(at); pos < 0 {
			return 0, pos
		}
		bit, next := c.field(key, pos)
		if bit == 0 {
			next = d.ignore(at, key, pos)
		}
		if pos = next; pos < 0 || seen&bit != 0 {
			return 0, d.fail(at, msgDuplicate)
		}
		seen |= bit
		if left--; !d.msgpack {
			if left, pos = d.jsonNext(pos, '}', wantSep); pos < 0 {
				return 0, pos
			}
		}
	}
	if pos < 0 || len(d.nodes) > nodes && !d.closeIgnored(nodes, side) {
		return 0, -1
	}
	return seen, pos
}

// field reads one field of the mapping that is being read. bit 0: the key means nothing.
func (c *Context) field(key []byte, pos int) (bit uint32, _ int) {
	switch c.in {
	case inContext:
		return c.contextField(key, pos)
	case inPartition:
		return c.partitionField(key, pos)
	case inSession:
		return c.sessionField(key, pos)
	case inMatched:
		return c.matchedField(key, pos)
	}
	return c.workerField(key, pos)
}

func (c *Context) contextField(key []byte, pos int) (uint32, int) {
	switch string(key) {
	case "request_id":
		return bitRequestID, c.requestID(pos)
	case "selected":
		return bitSelected, c.selected(pos)
	case "attempt":
		return 1 << 2, c.count32(pos, "attempt", abi.OffContextFrameAttempt, abi.HasAttempt)
	case "leg":
		return 1 << 3, c.word(pos, "leg", abi.OffContextFrameLeg, legs())
	case "partition":
		return 1 << 4, c.nested(pos, "partition", inPartition)
	case "tenant":
		return 1 << 5, c.string(pos, "tenant", abi.OffContextFrameTenant)
	case "namespace":
		return 1 << 6, c.string(pos, "namespace", abi.OffContextFrameNamespace)
	case "prompt_tokens":
		return 1 << 7, c.count64(pos, "prompt_tokens", abi.OffContextFramePromptTokens, abi.HasPromptTokens)
	case "expected_output_tokens":
		return 1 << 8, c.count64(pos, "expected_output_tokens", abi.OffContextFrameExpectedOutputTokens, abi.HasExpectedOutputTokens)
	case "tools_declared":
		return 1 << 9, c.flag(pos, "tools_declared", abi.OffContextFrameToolsDeclared, abi.HasToolsDeclared)
	case "session":
		return 1 << 10, c.nested(pos, "session", inSession)
	case "candidates":
		return 1 << 11, c.candidates(pos)
	case "block_hashes":
		return 1 << 12, c.blockHashes(pos)
	case "hash_kind":
		kind, _, pos := c.one(pos, "hash_kind", hashKinds())
		c.hashKind = abi.HashKind(kind)
		return 1 << 13, pos
	case "block_size":
		return 1 << 14, c.count32(pos, "block_size", abi.OffContextFrameBlockSize, abi.HasBlockSize)
	case "request_hint":
		return 1 << 15, c.embedded(pos, "request_hint", abi.OffContextFrameRequestHint, &c.request, c.strip)
	case "selection_hint":
		return 1 << 16, c.embedded(pos, "selection_hint", abi.OffContextFrameSelectionHint, &c.selection, false)
	case "events":
		return 1 << 17, c.eventList(pos)
	}
	return 0, pos
}

func (c *Context) partitionField(key []byte, pos int) (uint32, int) {
	switch string(key) {
	case "model":
		return 1 << 0, c.string(pos, "model", abi.OffContextFrameModel)
	case "group":
		return 1 << 1, c.string(pos, "group", abi.OffContextFrameGroup)
	case "worker_type":
		return 1 << 2, c.string(pos, "worker_type", abi.OffContextFrameWorkerType)
	}
	return 0, pos
}

func (c *Context) sessionField(key []byte, pos int) (uint32, int) {
	switch string(key) {
	case "session_id":
		return 1 << 0, c.string(pos, "session_id", abi.OffContextFrameSessionID)
	case "parent_session_id":
		return 1 << 1, c.string(pos, "parent_session_id", abi.OffContextFrameParentSessionID)
	case "session_final":
		return 1 << 2, c.flag(pos, "session_final", abi.OffContextFrameSessionFinal, abi.HasSessionFinal)
	case "input_trigger":
		return 1 << 3, c.word(pos, "input_trigger", abi.OffContextFrameInputTrigger, triggers())
	}
	return 0, pos
}

// nested reads a mapping that may be null.
func (c *Context) nested(pos int, name string, in place) int {
	at := c.d.skip(pos)
	if c.d.lead(at) != abi.TagMap {
		n, end := c.d.value(at)
		if n.Tag == abi.TagNull {
			return end
		}
		return c.wrong(at, end, name, "a mapping", n)
	}
	outer := c.in
	c.in = in
	_, pos = c.object(at)
	c.in = outer
	return pos
}

func (c *Context) requestID(pos int) int {
	at := c.d.skip(pos)
	n, end := c.d.value(at)
	switch {
	case end < 0 || n.Tag != abi.TagString:
		return c.wrong(at, end, "request_id", "a string", n)
	case n.Len == 0:
		return c.d.fail(at, "request_id must not be empty")
	case n.Len > MaxIdentity:
		return c.d.fail(at, "request_id has "+strconv.Itoa(int(n.Len))+" bytes: want at most "+strconv.Itoa(MaxIdentity))
	}
	abi.PutSpan(c.d.out, abi.OffContextFrameRequestID, spanOf(n))
	return end
}

// blockHashes reads the hashes of the prompt's blocks, which stay where they were read.
func (c *Context) blockHashes(pos int) int {
	at := c.d.skip(pos)
	n, end := c.d.value(at)
	switch {
	case end < 0:
		return end
	case n.Tag == abi.TagNull:
		return end
	case n.Tag == abi.TagArray && n.Len > 0:
		for i := range n.Len {
			if e := abi.Base(c.d.out).Elem(n, i); e.Tag != abi.TagU64 {
				return c.wrong(at, end, "block_hashes["+strconv.Itoa(int(i))+"]", wantU64, e)
			}
		}
	case n.Tag != abi.TagU64s && n.Tag != abi.TagArray:
		return c.wrong(at, end, "block_hashes", "a list of integers in [0, 2^64)", n)
	}
	c.present |= abi.HasBlockHashes
	abi.PutU32(c.d.out, abi.OffContextFrameBlockHashes, uint32(n.Val))
	abi.PutU32(c.d.out, abi.OffContextFrameBlockHashesCount, n.Len)
	return end
}

// embedded reads a hint as a tree of the frame, and notes where it lies in the body.
func (c *Context) embedded(pos int, name string, off uint32, to *hintRange, strip bool) int {
	d := &c.d
	at, was := d.skip(pos), len(d.out)
	d.tooDeep = false
	n, end := d.value(at)
	switch {
	case end < 0 || n.Tag == abi.TagNull:
	case n.Tag != abi.TagMap:
		return c.wrong(at, end, name, "a mapping", n)
	case d.tooDeep:
		return d.fail(at, name+" is "+msgDeep)
	case strip:
		d.out = d.out[:was]
	default:
		abi.PutNode(d.out, off, n)
		*to = hintRange{at, end}
	}
	return end
}

func spanOf(n abi.Node) abi.Span { return abi.Span{Off: uint32(n.Val), Len: n.Len} }
