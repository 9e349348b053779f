package hint

import (
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

// Context is one routing context: what a router knows about a request once the worker
// is chosen. It is decoded in one pass into the frame that policies see, with the two
// hints that may be in it as envelopes besides. The zero value is ready; a Context is
// used for one document after the other and then allocates nothing. Like a [Frame] it
// keeps the body until the next Decode, and is not safe for concurrent use while it is
// filled.
//
// What the document leaves out is absent to the policy, not zero, and null is the same
// as leaving a key out. Capabilities keep three states: absent, an empty list, a list.
type Context struct {
	d      decoder
	format Format

	in        place // what is being read
	matchedOf place // inMatched: whose matched_blocks they are
	index     int   // of the candidate or event
	strip     bool  // leave out the request's hint
	worker    [abi.SizeWorker]byte
	workers   []byte // the candidates so far
	spans     []byte // the capabilities of the worker that is read
	present   abi.Has
	hashKind  abi.HashKind

	request, selection hintRange
	requestHint        Frame
	selectionHint      Frame

	evented bool // there was a list of events
	events  []event
	hashes  []uint64 // of all events
	text    []byte   // of all events
}

// hintRange is where a hint lies in the body; to is 0 when there is none.
type hintRange struct{ from, to int }

// ContextOptions says how a context is read.
type ContextOptions struct {
	Limits Limits // of the whole document, and of each of its hints
	// StripRequestHint leaves out the hint that came with the request: it is neither in
	// the frame nor in RequestHint.
	StripRequestHint bool
}

// Decode fills the context from a document. FormatUnknown stands for what [Detect]
// says. An error is a [*MalformedError] that names the field by its path, and the rule.
//
// Worker ids are integers in [-2^63, 2^64) or strings. Keys that mean nothing are ignored,
// but what they hold is checked as in an envelope. The hints must be envelopes whose
// actions are sound.
func (c *Context) Decode(format Format, body []byte, opt ContextOptions) error {
	lim := opt.Limits.withDefaults()
	c.start(lim)
	c.strip = opt.StripRequestHint
	if err := lim.body("context", body); err != nil {
		return err
	}
	if format == FormatUnknown {
		format = Detect(body)
	}
	d := &c.d
	d.src, d.msgpack = body, format == FormatMsgpack
	ok := c.decode(format) && c.hints(format, body, opt.Limits)
	d.src = nil
	if !ok {
		err := &MalformedError{What: "context", Offset: d.errPos, Msg: d.errMsg}
		c.start(lim)
		return err
	}
	c.format = format
	return nil
}

// start empties the context.
func (c *Context) start(lim Limits) {
	c.format, c.in, c.present, c.hashKind = FormatUnknown, inContext, 0, 0
	c.request, c.selection = hintRange{}, hintRange{}
	if max(cap(c.workers), cap(c.spans), cap(c.text), cap(c.hashes), cap(c.events)) >= keepBytes/8 {
		c.workers, c.spans, c.text, c.hashes, c.events = nil, nil, nil, nil, nil
	}
	c.workers, c.spans = c.workers[:0], c.spans[:0]
	c.events, c.hashes, c.text, c.evented = c.events[:0], c.hashes[:0], c.text[:0], false
	out := c.d.out
	if cap(out) > keepBytes && len(out) <= keepBytes {
		out = nil
	}
	c.d.begin(nil, out[:0], lim.FrameBytes)
	c.d.out = extend(c.d.out, abi.SizeContextFrame)
	clear(c.d.out)
}

// decode walks the document and finishes the frame.
func (c *Context) decode(format Format) bool {
	d := &c.d
	if msg := d.unreadable(format); msg != "" && len(d.src) > 0 {
		return d.fail(0, msg) >= 0
	}
	at := d.skip(0)
	if d.lead(at) != abi.TagMap {
		return d.wrong(at, "a mapping", "it is not a mapping") >= 0
	}
	seen, pos := c.object(at)
	switch {
	case pos < 0:
		return false
	case seen&bitRequestID == 0:
		return d.fail(at, "request_id is missing") >= 0
	case seen&bitSelected == 0:
		return d.fail(at, "selected is missing") >= 0
	case !d.end(pos):
		return false
	}
	if c.present&abi.HasBlockHashes != 0 {
		abi.PutU32(d.out, abi.OffContextFrameHashKind, uint32(c.hashKind))
	}
	d.out = align(d.out)
	abi.PutU64(d.out, abi.OffContextFramePresent, uint64(c.present))
	abi.PutU32(d.out, abi.OffContextFrameKind, uint32(abi.KindContext))
	abi.PutU32(d.out, abi.OffContextFrameSize, uint32(len(d.out)))
	return true
}

// hints reads the hints again, as envelopes.
func (c *Context) hints(format Format, body []byte, lim Limits) bool {
	return c.hint("request_hint", &c.requestHint, c.request, format, body, lim) &&
		c.hint("selection_hint", &c.selectionHint, c.selection, format, body, lim)
}

func (c *Context) hint(name string, f *Frame, at hintRange, format Format, body []byte, lim Limits) bool {
	if at.to == 0 {
		return true
	}
	if err := f.Decode(format, body[at.from:at.to], lim); err != nil {
		bad := err.(*MalformedError)
		return c.d.fail(at.from+bad.Offset, name+": "+bad.Msg) >= 0
	}
	for i := range f.Len() {
		if reason, detail := f.Action(i).Fault(); reason != abi.ReasonNone {
			pos := at.from
			if i < len(f.acts) {
				pos += int(f.acts[i].from)
			}
			return c.d.fail(pos, name+"."+(&ActionError{i, reason, detail}).Error()) >= 0
		}
	}
	return true
}

// Bytes is the ContextFrame. It holds until the next Decode.
func (c *Context) Bytes() []byte { return c.d.out }

// Frame is Bytes as a view.
func (c *Context) Frame() abi.ContextFrame { return c.d.out }

// Format is the encoding of the document.
func (c *Context) Format() Format { return c.format }

// HashKind is the kind that the document tells of all its block hashes, those in its
// events too, Absent when it tells none. The frame has it beside block_hashes alone.
func (c *Context) HashKind() abi.HashKind { return c.hashKind }

// RequestHint is the envelope that came with the request, nil when there was none.
func (c *Context) RequestHint() *Frame { return c.requestHint.unless(c.request.to == 0) }

// SelectionHint is the envelope of the selection step, nil when there was none.
func (c *Context) SelectionHint() *Frame { return c.selectionHint.unless(c.selection.to == 0) }

func (f *Frame) unless(absent bool) *Frame {
	if absent {
		return nil
	}
	return f
}

// Identity is the request that the context is about, on the selected worker's rank; a
// field that the document leaves out has its default. Its strings are views of the frame.
func (c *Context) Identity() Identity {
	f := c.Frame()
	return Identity{RequestID: viewOf(f.Text(abi.OffContextFrameRequestID)), DPRank: f.Selected().U32(abi.OffWorkerDPRank),
		Attempt: f.U32(abi.OffContextFrameAttempt), Leg: abi.Leg(f.U32(abi.OffContextFrameLeg))}
}

func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
