package hint

import (
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// Composition puts one envelope together: the actions of the request's hint, then those
// of the selection's, then those of policies, in that order. What came before the
// policies is passed on as it is, whatever it breaks; an action of a policy must keep to
// the capabilities of the selected worker and to the rules of the target. One that is
// used again allocates nothing while actions keep to the rules.
//
// The frames that it is given hold until Append.
type Composition struct {
	check  Check
	known  Capable
	ctx    *Context
	parts  []part
	ids    []byte // that policies did not give
	hinted bool   // there was an envelope before any policy
}

// part is one action of the envelope.
type part struct {
	f      *Frame
	i      int
	policy bool // it is a policy's
	id     run  // in ids; empty: the action's own
}

// protocolVersion is that of an envelope which begins here.
const protocolVersion = "0.1"

// Capable tells whether a worker takes an action type, for whoever knows more of workers
// than a context that is silent about it. The id is a view.
type Capable func(id WorkerID, actionType string) bool

// Begin starts an envelope with the hints of a context. known is asked where the context
// does not tell the selected worker's capabilities; nil: it takes every action.
func (c *Composition) Begin(ctx *Context, t Target, known Capable) {
	c.known = known
	c.ctx, c.parts, c.ids, c.hinted = ctx, c.parts[:0], c.ids[:0], false
	c.check.Reset(t)
	for _, f := range [...]*Frame{ctx.RequestHint(), ctx.SelectionHint()} {
		if f == nil {
			continue
		}
		if !c.hinted {
			c.check.hashTexts = string(f.ProtocolVersion()) == protocolVersion
		}
		c.hinted = true
		for i := range f.Len() {
			a := f.Action(i)
			c.check.Keep(a.Type, a.Version, a.Base, a.Payload)
			c.parts = append(c.parts, part{f: f, i: i})
		}
	}
}

// Len is how many actions the envelope has so far.
func (c *Composition) Len() int { return len(c.parts) }

// Offer adds action i of what a policy answered, or says why it is left out. An action
// without an id gets one, "NAME-I" by the policy's name and the action's position in its
// answer, and one without a version is of version 1.0.
func (c *Composition) Offer(f *Frame, i int, policy string) (abi.Reason, string) {
	var a ActionView
	if f.View(i, &a); i >= len(f.acts) || f.acts[i].fault.reason != abi.ReasonNone {
		return a.Fault()
	}
	if len(a.Version) == 0 {
		a.Version = nil
	}
	if !c.capable(a.Type) {
		return abi.ReasonUnsupportedActionType, "the selected worker does not have " + string(a.Type) + " among its capabilities"
	}
	if reason, detail := c.check.Add(a.Type, a.Version, a.Base, a.Payload); reason != abi.ReasonNone {
		return reason, detail
	}
	p := part{f: f, i: i, policy: true}
	if len(a.ID) == 0 {
		p.id.from = len(c.ids)
		c.ids = strconv.AppendInt(append(append(c.ids, policy...), '-'), int64(i), 10)
		p.id.to = len(c.ids)
	}
	c.parts = append(c.parts, p)
	return abi.ReasonNone, ""
}

// capable tells whether the selected worker takes an action type: one that lists no
// capabilities takes all, one with an empty list none.
func (c *Composition) capable(typ []byte) bool {
	w := c.ctx.Frame().Selected()
	if w.Present()&abi.WorkerHasCapabilities == 0 {
		if c.known == nil {
			return true
		}
		id, _ := WorkerAt(w.Base, w.Off+abi.OffWorkerID)
		return c.known(id, viewOf(typ))
	}
	for i := range w.U32(abi.OffWorkerCapabilitiesCount) {
		if string(w.Capability(int(i))) == string(typ) {
			return true
		}
	}
	return false
}

// Append appends the envelope, and returns dst as it was when there is none: there was
// no envelope before, and no policy added an action. Message id and protocol version are
// those of the first envelope that was there, else the request's id and 0.1.
//
// Payloads that are written in the encoding in which they came stay byte for byte. An
// error stands for another encoding, which cannot hold one of them: an [*ActionError]
// with the position in the envelope.
func (c *Composition) Append(dst []byte, format Format) ([]byte, error) {
	if !c.hinted && len(c.parts) == 0 {
		return dst, nil
	}
	version, message := []byte(protocolVersion), c.ctx.Frame().Text(abi.OffContextFrameRequestID)
	if first := c.ctx.RequestHint(); first != nil {
		version, message = first.ProtocolVersion(), first.MessageID()
	} else if first := c.ctx.SelectionHint(); first != nil {
		version, message = first.ProtocolVersion(), first.MessageID()
	}
	w := writer{dst, format}
	if err := w.begin(version, message, len(c.parts)); err != nil {
		return dst, err
	}
	for n := range c.parts {
		p := &c.parts[n]
		var a ActionView
		p.f.View(p.i, &a)
		if p.id.to > 0 {
			a.ID = c.ids[p.id.from:p.id.to]
		}
		if a.Version == nil || p.policy && len(a.Version) == 0 {
			a.Version = []byte(versionOfAbsent)
		}
		var raw []byte
		if format == p.f.format && p.f.body != nil {
			raw = a.RawPayload()
		}
		w.action(n, a.ID, a.Type, a.Version)
		if err := w.payload(raw, a.Base, a.Payload); err != nil {
			return dst, &ActionError{n, abi.ReasonInvalidPayload, err.Error()}
		}
	}
	return w.end(), nil
}
