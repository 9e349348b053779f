package hint

import (
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// selected reads the worker that was chosen.
func (c *Context) selected(pos int) int {
	c.in = inSelected
	pos = c.oneWorker(c.d.skip(pos))
	c.in = inContext
	if pos >= 0 {
		copy(c.d.out[abi.OffContextFrameSelected:], c.worker[:])
	}
	return pos
}

// list opens the list of a field. Without one, which null is and a value of another kind,
// ok is false and next is what the field's reader returns.
func (c *Context) list(at int, field string) (left, next int, ok bool) {
	d := &c.d
	if d.lead(at) != abi.TagArray {
		n, end := d.value(at)
		if n.Tag != abi.TagNull {
			end = c.wrong(at, end, field, "a list", n)
		}
		return 0, end, false
	}
	left, next = d.open(at, abi.TagArray)
	return left, next, true
}

// candidates reads the workers that could have been chosen. Their records are put
// together when all have been read.
func (c *Context) candidates(pos int) int {
	d := &c.d
	at := d.skip(pos)
	left, pos, ok := c.list(at, "candidates")
	if !ok {
		return pos
	}
	c.in, c.index = inCandidate, 0
	for left != 0 {
		if pos = c.oneWorker(d.skip(pos)); pos < 0 || !d.room(at, len(c.workers)+abi.SizeWorker) {
			return -1
		}
		c.workers = append(c.workers, c.worker[:]...)
		c.index++
		if left--; !d.msgpack {
			if left, pos = d.jsonNext(pos, ']', wantElem); pos < 0 {
				return pos
			}
		}
	}
	c.in = inContext
	d.out = align(d.out)
	c.present |= abi.HasCandidates
	abi.PutU32(d.out, abi.OffContextFrameCandidates, uint32(len(d.out)))
	abi.PutU32(d.out, abi.OffContextFrameCandidatesCount, uint32(c.index))
	d.out = append(d.out, c.workers...)
	return pos
}

// oneWorker reads a worker into c.worker.
func (c *Context) oneWorker(at int) int {
	c.worker = [abi.SizeWorker]byte{}
	if c.d.lead(at) != abi.TagMap {
		n, end := c.d.value(at)
		return c.wrong(at, end, "", "a mapping", n)
	}
	seen, pos := c.object(at)
	if pos >= 0 && seen&bitWorkerID == 0 {
		return c.d.fail(at, c.path("worker_id")+" is missing")
	}
	return pos
}

func (c *Context) workerField(key []byte, pos int) (uint32, int) {
	switch string(key) {
	case "worker_id":
		return bitWorkerID, c.workerID(pos)
	case "dp_rank":
		return 1 << 1, c.workerCount(pos, "dp_rank", abi.OffWorkerDPRank, abi.WorkerHasDPRank)
	case "worker_type":
		return 1 << 2, c.workerString(pos, "worker_type", abi.OffWorkerWorkerType)
	case "source_control_endpoint":
		return 1 << 3, c.workerString(pos, "source_control_endpoint", abi.OffWorkerSourceControlEndpoint)
	case "capabilities":
		return 1 << 4, c.capabilities(pos)
	case "matched_blocks":
		return 1 << 5, c.matched(pos)
	}
	return 0, pos
}

func (c *Context) workerID(pos int) int {
	at := c.d.skip(pos)
	n, end := c.d.value(at)
	switch {
	case end < 0 || n.Tag != abi.TagU64 && n.Tag != abi.TagI64 && n.Tag != abi.TagString:
		return c.wrong(at, end, "worker_id", wantWorkerID, n)
	case n.Tag == abi.TagString && (n.Len == 0 || n.Len > MaxIdentity):
		return c.wrong(at, end, "worker_id", wantWorkerID, n)
	}
	abi.PutNode(c.worker[:], abi.OffWorkerID, n)
	return end
}

const wantWorkerID = "an integer in [-2^63, 2^64) or a string of 1 to 512 bytes"

func (c *Context) workerString(pos int, name string, off uint32) int {
	s, pos := c.optional(pos, name)
	abi.PutSpan(c.worker[:], off, s)
	return pos
}

func (c *Context) workerCount(pos int, name string, off uint32, bit abi.WorkerHas) int {
	v, present, pos := c.integer(pos, name, 1<<32-1)
	if present {
		abi.PutU32(c.worker[:], off, uint32(v))
		c.workerHas(bit)
	}
	return pos
}

func (c *Context) workerHas(bit abi.WorkerHas) {
	w := c.worker[:]
	abi.PutU32(w, abi.OffWorkerPresent, abi.U32(w, abi.OffWorkerPresent)|uint32(bit))
}

// capabilities reads the action types that a worker takes.
func (c *Context) capabilities(pos int) int {
	d := &c.d
	at := d.skip(pos)
	left, pos, ok := c.list(at, "capabilities")
	if !ok {
		return pos
	}
	c.spans = c.spans[:0]
	for left != 0 {
		at := d.skip(pos)
		var n abi.Node
		if n, pos = d.value(at); pos < 0 || n.Tag != abi.TagString {
			return c.wrong(at, pos, "capabilities["+strconv.Itoa(len(c.spans)/abi.SizeSpan)+"]", "a string", n)
		}
		if !d.room(at, len(c.spans)+abi.SizeSpan) {
			return -1
		}
		c.spans = append(c.spans, make([]byte, abi.SizeSpan)...)
		abi.PutSpan(c.spans, uint32(len(c.spans)-abi.SizeSpan), spanOf(n))
		if left--; !d.msgpack {
			if left, pos = d.jsonNext(pos, ']', wantElem); pos < 0 {
				return pos
			}
		}
	}
	d.out = align(d.out)
	c.workerHas(abi.WorkerHasCapabilities)
	abi.PutU32(c.worker[:], abi.OffWorkerCapabilities, uint32(len(d.out)))
	abi.PutU32(c.worker[:], abi.OffWorkerCapabilitiesCount, uint32(len(c.spans)/abi.SizeSpan))
	d.out = append(d.out, c.spans...)
	return pos
}

// matched reads how many prefix blocks a worker has, by tier.
func (c *Context) matched(pos int) int {
	outer := c.in
	at := c.d.skip(pos)
	if c.d.lead(at) != abi.TagMap {
		n, end := c.d.value(at)
		if n.Tag == abi.TagNull {
			return end
		}
		return c.wrong(at, end, "matched_blocks", "a mapping", n)
	}
	c.in = inMatched
	c.matchedOf = outer
	_, pos = c.object(at)
	c.in = outer
	return pos
}

func (c *Context) matchedField(key []byte, pos int) (uint32, int) {
	switch string(key) {
	case "gpu":
		return 1 << 0, c.workerCount(pos, "gpu", abi.OffWorkerMatchedGPU, abi.WorkerHasGPU)
	case "cpu":
		return 1 << 1, c.workerCount(pos, "cpu", abi.OffWorkerMatchedCPU, abi.WorkerHasCPU)
	case "disk":
		return 1 << 2, c.workerCount(pos, "disk", abi.OffWorkerMatchedDisk, abi.WorkerHasDisk)
	case "external":
		return 1 << 3, c.workerCount(pos, "external", abi.OffWorkerMatchedExternal, abi.WorkerHasExternal)
	}
	return 0, pos
}
