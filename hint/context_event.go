package hint

import (
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// EventType is what a KV event says.
type EventType uint8

// The types of events.
const (
	EventMatch   EventType = iota + 1 // a session's request matched blocks up to BlockHash
	EventStored                       // a worker holds BlockHashes behind Parent
	EventRemoved                      // a worker dropped BlockHashes
	EventCleared                      // a worker's rank dropped everything
)

func eventTypes() words { return words{"match", "stored", "removed", "cleared"} }

func (t EventType) String() string {
	if i, list := int(t)-1, eventTypes(); i >= 0 && i < len(list) {
		return list[i]
	}
	return "unknown"
}

// Event is one KV event of a context. Its texts and hashes are views that hold until the
// next Decode.
type Event struct {
	Type      EventType
	SessionID string // empty: none was sent
	Worker    Worker
	Medium    string // empty: none was sent
	// BlockHash is what a match is about; Parent is what stored blocks continue. Without
	// HasParent they begin a sequence.
	BlockHash   uint64
	Parent      uint64
	HasParent   bool
	BlockHashes []uint64 // of stored and removed
}

// event is an Event with its runs as positions. A context may hold very many.
type event struct {
	typ       EventType
	tag       abi.Tag // of the worker's id
	hasRank   bool
	hasParent bool
	rank      uint32
	num       uint64 // of an id that is no text
	hash      uint64 // of a match its block, else the parent

	session, medium, worker, hashes run
}

type run struct{ from, to int }

// HasEvents tells an empty list of events from none.
func (c *Context) HasEvents() bool { return c.evented }

// Events is how many events the context holds.
func (c *Context) Events() int { return len(c.events) }

// Event returns event i.
func (c *Context) Event(i int) Event {
	e := &c.events[i]
	out := Event{Type: e.typ, SessionID: c.run(e.session), Medium: c.run(e.medium),
		Worker:      Worker{ID: WorkerID{num: e.num, tag: e.tag}, Rank: e.rank, HasRank: e.hasRank},
		BlockHashes: c.hashes[e.hashes.from:e.hashes.to:e.hashes.to]}
	if e.worker.to > 0 {
		out.Worker.ID = NamedWorker(c.run(e.worker))
	}
	if e.typ == EventMatch {
		out.BlockHash = e.hash
	} else {
		out.Parent, out.HasParent = e.hash, e.hasParent
	}
	return out
}

func (c *Context) run(r run) string { return viewOf(c.text[r.from:r.to]) }

// eventList reads the events. Each is read as a tree that does not stay in the frame.
func (c *Context) eventList(pos int) int {
	d := &c.d
	at := d.skip(pos)
	left, pos, ok := c.list(at, "events")
	if !ok {
		return pos
	}
	c.in, c.index, c.evented = inEvent, 0, true
	c.text = append(c.text[:0], 0) // no run of text ends at 0
	for left != 0 {
		at, was := d.skip(pos), len(d.out)
		var n abi.Node
		if n, pos = d.value(at); pos < 0 {
			return pos
		}
		if n.Tag != abi.TagMap {
			return c.wrong(at, pos, "", "a mapping", n)
		}
		if !c.event(at, n) {
			return -1
		}
		d.out = d.out[:was]
		c.index++
		if left--; !d.msgpack {
			if left, pos = d.jsonNext(pos, ']', wantElem); pos < 0 {
				return pos
			}
		}
	}
	c.in = inContext
	return pos
}

// event keeps the event that the map n holds.
func (c *Context) event(at int, n abi.Node) bool {
	r := eventReader{c: c, at: at, base: c.d.out, n: n}
	var e event
	e.typ = EventType(r.word("type", eventTypes()))
	id, name := r.workerID()
	e.num, e.tag, e.worker = id.num, id.tag, name
	if rank, ok := r.integer("dp_rank", 1<<32-1); ok {
		e.rank, e.hasRank = uint32(rank), true
	}
	e.session, e.medium = r.text("session_id"), r.text("medium")
	switch e.typ {
	case EventMatch:
		if e.session.to == 0 {
			r.missing("session_id")
		}
		var ok bool
		if e.hash, ok = r.integer("block_hash", 1<<64-1); !ok {
			r.missing("block_hash")
		}
	case EventStored:
		e.hash, e.hasParent = r.integer("parent_block_hash", 1<<64-1)
		e.hashes = r.blockHashes()
	case EventRemoved:
		e.hashes = r.blockHashes()
	}
	c.events = append(c.events, e)
	return !r.failed
}

// eventReader reads the fields of one event, up to the first that is wrong.
type eventReader struct {
	c      *Context
	at     int
	base   abi.Base
	n      abi.Node
	failed bool
}

func (r *eventReader) wrong(name, want string, n abi.Node) {
	r.c.wrong(r.at, 0, name, want, n)
	r.failed = true
}

func (r *eventReader) missing(name string) {
	if r.failed {
		return
	}
	r.c.d.fail(r.at, r.c.path(name)+" is missing")
	r.failed = true
}

// get returns a field, absent when it is null.
func (r *eventReader) get(name string) abi.Node {
	n := r.base.Lookup(r.n, name)
	if n.Tag == abi.TagNull {
		n = abi.Node{}
	}
	return n
}

func (r *eventReader) word(name string, list words) int {
	n := r.get(name)
	switch n.Tag {
	case abi.TagAbsent:
		r.missing(name)
		return 0
	case abi.TagString:
		for i, w := range list {
			if string(r.base.Bytes(n)) == w {
				return i + 1
			}
		}
	}
	r.wrong(name, list.any(), n)
	return 0
}

func (r *eventReader) integer(name string, most uint64) (uint64, bool) {
	n := r.get(name)
	switch {
	case n.Tag == abi.TagAbsent:
		return 0, false
	case n.Tag == abi.TagU64 && n.Val <= most:
		return n.Val, true
	}
	r.wrong(name, wantUpTo(most), n)
	return 0, false
}

func (r *eventReader) workerID() (WorkerID, run) {
	n := r.get("worker_id")
	switch {
	case n.Tag == abi.TagAbsent:
		r.missing("worker_id")
	case n.Tag == abi.TagU64:
		return UintWorker(n.Val), run{}
	case n.Tag == abi.TagI64:
		return IntWorker(n.I64()), run{}
	case n.Tag == abi.TagString && n.Len > 0 && n.Len <= MaxIdentity:
		return WorkerID{}, r.keep(n)
	default:
		r.wrong("worker_id", wantWorkerID, n)
	}
	return WorkerID{}, run{}
}

func (r *eventReader) text(name string) run {
	n := r.get(name)
	switch n.Tag {
	case abi.TagAbsent:
		return run{}
	case abi.TagString:
		return r.keep(n)
	}
	r.wrong(name, "a string", n)
	return run{}
}

func (r *eventReader) keep(n abi.Node) run {
	from := len(r.c.text)
	r.c.text = append(r.c.text, r.base.Bytes(n)...)
	return run{from, len(r.c.text)}
}

func (r *eventReader) blockHashes() run {
	const name = "block_hashes"
	n, from := r.get(name), len(r.c.hashes)
	switch {
	case n.Tag == abi.TagAbsent:
		r.missing(name)
	case n.Tag == abi.TagU64s:
		for i := range n.Len {
			r.c.hashes = append(r.c.hashes, r.base.U64At(n, i))
		}
	case n.Tag == abi.TagArray:
		for i := range n.Len {
			if e := r.base.Elem(n, i); e.Tag != abi.TagU64 {
				r.wrong(name+"["+strconv.Itoa(int(i))+"]", wantU64, e)
				break
			}
		}
	default:
		r.wrong(name, "a list of integers in [0, 2^64)", n)
	}
	return run{from, len(r.c.hashes)}
}
