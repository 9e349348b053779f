package server

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// policyLength and droppedLength are the numbers of elements of a policy's row, and of a
// dropped action's.
const (
	policyLength  = 8
	droppedLength = 4
)

// formulate runs the policies for one routing context. It allocates nothing as long as
// no policy is left out.
func (c *conn) formulate(size int) bool {
	q := &c.q
	err := c.runPolicies(q.body, q.format)
	switch {
	case err != nil:
		c.dispatchFailed(err)
	case !q.oneway():
		at := len(c.out)
		c.out = appendFormulateReply(c.out, q.seq, c.formed.Envelope, c.formed.Policies)
		c.limitReply(at)
	}
	return c.afterFormulate(size)
}

// formulateBatch runs them for several, one after the other: each answer stands by
// itself. It ends early when the answers do not fit a frame.
func (c *conn) formulateBatch(size int) bool {
	q := &c.q
	at := len(c.out)
	out := beginBatchReply(c.out, q.seq, q.batch.count)
	r := reader{b: q.batch.raw}
	for range q.batch.count {
		body, inline := r.element()
		format := q.format
		if inline {
			format = abi.FormatMsgpack
		}
		err := c.runPolicies(body, format)
		if q.oneway() {
			continue
		}
		if err != nil {
			code, text, offset := c.failure(err)
			c.counters.errors[code].Add(1)
			out = appendFailed(out, code, text, offset)
		} else {
			out = appendFormulated(append(appendArray(out, 3), byte(CodeOK)), c.formed.Envelope, c.formed.Policies)
		}
		if len(out)-at-frameHead > c.in.limit {
			break
		}
	}
	if !q.oneway() {
		c.out = endFrame(out, at)
		c.limitReply(at)
	}
	return c.afterFormulate(size)
}

// runPolicies fills c.formed.
func (c *conn) runPolicies(body []byte, format abi.Format) error {
	if c.formed == nil {
		c.formed = c.server.cfg.Runtime.NewFormulation()
	}
	c.ask = runtime.FormulateRequest{Body: body, Format: format, Output: c.q.output, Seed: c.server.seed}
	return c.server.cfg.Runtime.Formulate(context.Background(), &c.ask, c.formed)
}

// afterFormulate gives up what a large request made large.
func (c *conn) afterFormulate(size int) bool {
	if size > keepBuffer || len(c.out) > keepBuffer {
		c.formed = nil
	}
	return c.chargeOut()
}

// limitReply replaces a reply that does not fit a frame. It began at that position.
func (c *conn) limitReply(at int) {
	if n := len(c.out) - at - frameHead; n > c.in.limit {
		c.out = c.out[:at]
		c.refuse(CodeReplyTooLarge, fmt.Sprintf("the request was carried out, and its reply of %d bytes or more is larger than a frame may be", n), 0)
	}
}

func appendFormulateReply(b []byte, seq uint64, envelope []byte, policies []hint.PolicyResult) []byte {
	b, at := beginFrame(b)
	b = beginReply(b, opFormulate, seq, replyLength[opFormulate])
	return endFrame(appendFormulated(b, envelope, policies), at)
}

// beginBatchReply is followed by n answers; each begins with its code.
func beginBatchReply(b []byte, seq uint64, n int) []byte {
	b, _ = beginFrame(b)
	return appendArray(beginReply(b, opFormulateBatch, seq, replyLength[opFormulateBatch]), n)
}

func appendFailed(b []byte, code Code, text string, offset int) []byte {
	b = appendText(append(appendArray(b, 3), byte(code)), []byte(text[:min(len(text), maxErrorText)]))
	return appendUint(b, uint64(max(offset, 0)))
}

// appendFormulated writes an envelope and a row per policy.
func appendFormulated(b, envelope []byte, policies []hint.PolicyResult) []byte {
	if len(envelope) == 0 {
		b = appendNil(b)
	} else {
		b = appendBin(b, envelope)
	}
	b = appendArray32(b, len(policies))
	for i := range policies {
		p := &policies[i]
		b = appendUint(appendStr(appendArray(b, policyLength), p.Name), uint64(p.Actions))
		b = appendArray32(b, len(p.Dropped))
		for j := range p.Dropped {
			d := &p.Dropped[j]
			b = appendText(appendText(appendArray(b, droppedLength), d.ActionID), d.ActionType)
			b = appendStr(appendUint(b, uint64(d.Reason)), d.Detail)
		}
		b = appendText(appendUint(b, uint64(p.Reason)), p.Detail)
		b = appendUint(appendUint(appendUint(b, p.Generation), p.Fuel), uint64(max(p.DurationNS, 0)))
	}
	return b
}

// decode reads an envelope and the policies' rows. They are views of what is read.
func (f *Formulated) decode(r *reader) {
	f.Envelope, _ = r.body("the envelope")
	n := r.array("the policies")
	if n > len(r.b) {
		r.fail(r.pos, "%d policies in a frame of %d bytes", n, len(r.b))
		return
	}
	f.Policies = make([]hint.PolicyResult, n)
	for i := range f.Policies {
		p := &f.Policies[i]
		if k := r.array("a policy"); r.err == nil && k != policyLength {
			r.fail(r.pos, "a policy of %d elements, not %d", k, policyLength)
		}
		p.Name = r.str("the policy's name", len(r.b))
		p.Actions = int(r.uint("the actions", math.MaxInt32))
		p.Dropped = decodeDropped(r)
		p.Reason = abi.Reason(r.uint("the reason", math.MaxUint32))
		p.Detail = []byte(r.str("the detail", len(r.b)))
		p.Generation = r.uint("the generation", math.MaxUint64)
		p.Fuel = r.uint("the fuel", math.MaxUint64)
		p.DurationNS = int64(r.uint("the duration", math.MaxInt64))
		if r.err != nil {
			return
		}
	}
}

func decodeDropped(r *reader) []hint.DroppedAction {
	n := r.array("the dropped actions")
	if n > len(r.b) {
		r.fail(r.pos, "%d dropped actions in a frame of %d bytes", n, len(r.b))
		return nil
	}
	var out []hint.DroppedAction
	for range n {
		if k := r.array("a dropped action"); r.err == nil && k != droppedLength {
			r.fail(r.pos, "a dropped action of %d elements, not %d", k, droppedLength)
		}
		out = append(out, hint.DroppedAction{ActionID: []byte(r.str("action_id", len(r.b))), ActionType: []byte(r.str("action_type", len(r.b))),
			Reason: abi.Reason(r.uint("the reason", math.MaxUint32)), Detail: r.str("the detail", len(r.b))})
		if r.err != nil {
			break
		}
	}
	return out
}

func (p *reply) decodeBatch(r *reader) {
	r.b = append([]byte(nil), r.b...) // answers are views of it
	n := r.array("the answers")
	if n > len(r.b) {
		r.fail(r.pos, "%d answers in a frame of %d bytes", n, len(r.b))
		return
	}
	p.formulated = make([]Formulated, n)
	for i := range p.formulated {
		f := &p.formulated[i]
		if k := r.array("an answer"); r.err == nil && k != 3 {
			r.fail(r.pos, "an answer of %d elements, not 3", k)
		}
		if code := Code(r.uint("the code", math.MaxUint8)); code != CodeOK {
			text := r.str("the text", maxErrorText)
			f.Err = &RemoteError{Code: code, Text: text, Offset: int(r.uint("the offset", math.MaxInt32))}
		} else {
			f.decode(r)
		}
		if r.err != nil {
			return
		}
	}
}

// Formulate is routing contexts to run through the policies.
type Formulate struct {
	Format abi.Format // of the contexts; FormatUnknown: told from the first byte
	Output abi.Format // of the envelope; FormatUnknown: the context's
	Bodies [][]byte   // 1 to 1,024 contexts
}

// Formulated is what became of one routing context. It belongs to the caller.
type Formulated struct {
	Envelope []byte // to attach to the request; empty: none
	Policies []hint.PolicyResult
	// Err is set when there is no answer, as for a malformed context, whose text begins
	// "malformed context: "; the rest is then empty.
	Err error
}

// Formulate runs contexts through the daemon's policies, in order. What is wrong with one
// context is in its answer; an error stands for all. Several contexts travel in one frame.
func (c *Client) Formulate(ctx context.Context, f Formulate) ([]Formulated, error) {
	q := &request{op: opFormulate, format: f.Format, output: f.Output}
	switch n := len(f.Bodies); {
	case n == 0:
		return nil, nil
	case n == 1:
		q.body = f.Bodies[0]
	case n > maxBatch:
		return nil, &RemoteError{Code: CodeBadRequest, Text: fmt.Sprintf("%d contexts at once, %d are allowed", n, maxBatch)}
	default:
		q.op, q.batch.count = opFormulateBatch, n
		for _, body := range f.Bodies {
			q.batch.raw = appendBin(q.batch.raw, body)
		}
	}
	p, err := c.roundTrip(ctx, q)
	var refused *RemoteError
	if q.op == opFormulate && errors.As(err, &refused) && (refused.Code == CodeMalformed || refused.Code == CodeUnencodable) {
		return []Formulated{{Err: refused}}, nil
	}
	if err == nil && len(p.formulated) != len(f.Bodies) {
		err = fmt.Errorf("the daemon's answer cannot be read: %d answers to %d contexts", len(p.formulated), len(f.Bodies))
	}
	if err != nil {
		return nil, err
	}
	return p.formulated, nil
}
