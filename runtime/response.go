package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// reset empties what the last dispatch left.
func (res *Response) reset() {
	res.Results, res.Forward = res.Results[:0], res.Forward[:0]
	res.groups, res.next, res.text, res.blocks = res.groups[:0], res.next[:0], res.text[:0], res.blocks[:0]
}

// result appends the result of the next action, in its place: a Result is large to copy.
func (res *Response) result(a *hint.ActionView) {
	n := len(res.Results)
	res.Results = slices.Grow(res.Results, 1)[:n+1]
	out := &res.Results[n]
	*out = hint.Result{}
	out.Index, out.ActionID, out.ActionType, out.ActionVersion = n, a.ID, a.Type, a.Version
}

// enqueue appends action i to the group of a guest. Actions are enqueued in order.
func (res *Response) enqueue(gen *generation, id, i int32) {
	for int32(len(res.next)) <= i {
		res.next = append(res.next, -1)
	}
	for len(res.groupOf) <= int(id) {
		res.groupOf = append(res.groupOf, 0)
	}
	res.next[i] = -1
	if at := res.groupOf[id]; at > 0 {
		gr := &res.groups[at-1]
		res.next[gr.last], gr.last = i, i
		return
	}
	res.groups = append(res.groups, group{gen.guests[id], id, i, i})
	res.groupOf[id] = int32(len(res.groups))
}

// endRouting forgets which guest has which group.
func (res *Response) endRouting() {
	for i := range res.groups {
		if id := res.groups[i].id; int(id) < len(res.groupOf) {
			res.groupOf[id] = 0
		}
	}
}

// list puts the actions of a group into res.actions.
func (res *Response) list(gr group) {
	res.actions = res.actions[:0]
	for i := gr.first; i >= 0; i = res.next[i] {
		res.actions = append(res.actions, i)
	}
}

// routeAgain routes the running group by the generation that is current now: its guest
// was replaced before an instance could be taken. Actions that have been judged go
// along, since rules over an envelope need them, and keep their results.
func (r *Runtime) routeAgain(res *Response) {
	gen := r.current.Load()
	for _, i := range res.actions {
		out := &res.Results[i]
		switch {
		case out.Status != 0:
			if id, known := gen.handler(out.ActionType); known {
				res.enqueue(gen, id, i)
			}
		case gen == nil:
			res.reject(out, abi.ReasonHandlerUnavailable, "the runtime is closing")
		default:
			a := res.frame.Action(int(i))
			res.route(gen, &a)
		}
	}
	res.endRouting()
}

// guestFrame is the frame of the group that is running: the envelope as it was
// decoded when all of it goes to the guest, else a part of it.
func (res *Response) guestFrame(in *instance) []byte {
	raw := in.features&abi.FeatureRawPayload != 0
	if len(res.actions) == res.frame.Len() && !raw {
		return res.frame.Bytes()
	}
	res.scratch = res.frame.AppendSubset(res.scratch[:0], res.actions, raw)
	return res.scratch
}

// rejectRest rejects the actions of the running group from position pos on: what is
// wrong is wrong for each of them, and none waits or asks again.
func (res *Response) rejectRest(g *guest, pos int, reason abi.Reason, detail string) {
	for _, i := range res.actions[pos:] {
		if out := &res.Results[i]; out.Status == 0 {
			out.Guest = g.spec.Name
			res.reject(out, reason, detail)
		}
	}
}

// noRoom ends a group whose frame could not be written.
func (g *guest) noRoom(s *slot, res *Response, pos int, err error) error {
	out := &res.Results[res.actions[pos]]
	out.Guest = g.spec.Name
	if errors.Is(err, errNoRoom) {
		res.reject(out, abi.ReasonLimitExceeded, "the guest has no room for a frame of this size: raise its limits.memory")
		s.stats.count(out, s.inst.call)
		g.pool.release(s)
	} else {
		err = res.failed(s, out, err)
		s.stats.count(out, s.inst.call)
		g.pool.poison(s)
		if fatal, ok := err.(*FatalError); ok {
			return fatal
		}
	}
	res.rejectRest(g, pos+1, out.Reason, string(out.Detail))
	return nil
}

// unrouted rejects an action that reaches no guest.
func (res *Response) unrouted(out *hint.Result, reason abi.Reason, detail string) {
	res.shard.unrouted[reasonIndex(reason)].Add(1)
	res.reject(out, reason, detail)
}

// reject makes out a rejection.
func (res *Response) reject(out *hint.Result, reason abi.Reason, detail string) {
	out.Status, out.Reason = abi.StatusRejected, reason
	out.Detail = nil
	if detail != "" {
		at := len(res.text)
		res.text = append(res.text, abi.Cut(detail)...)
		out.Detail = res.text[at:len(res.text):len(res.text)]
	}
}

// store copies what must outlive the guest's next call.
func (res *Response) store(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	at := len(res.text)
	res.text = append(res.text, b...)
	return res.text[at:len(res.text):len(res.text)]
}

// verdict reads what the guest answered.
func (res *Response) verdict(in *instance, out *hint.Result, ret int64) {
	ref, ok := abi.SplitResult(ret)
	switch {
	case !ok:
		res.reject(out, abi.ReasonHandlerError, errResult.Error())
	case ref.Len > 0:
		if err := res.record(in, out, ref); err != nil {
			res.reject(out, abi.ReasonHandlerError, err.Error())
		}
	case ref.Reason != abi.ReasonNone:
		detail := ""
		if ref.Reason == in.call.reason {
			detail = in.call.detail
		}
		res.reject(out, ref.Reason, detail)
	default:
		out.Status = abi.StatusAccepted
	}
}

// record reads an answer record, and the rewritten action in it.
func (res *Response) record(in *instance, out *hint.Result, ref abi.Result) (err error) {
	if res.answer, err = in.answer(res.answer[:0], ref); err != nil {
		return err
	}
	a, err := abi.CheckAnswer(res.answer)
	if err != nil {
		return err
	}
	switch {
	case a.Status == abi.StatusRejected && a.Detail == nil && a.Reason == in.call.reason:
		res.reject(out, a.Reason, in.call.detail)
		return nil
	case a.Status == abi.StatusAccepted && a.Body != nil:
		if err := res.rewrite(out, a.Body); err != nil {
			return err
		}
	}
	out.Status, out.Reason, out.Detail = a.Status, a.Reason, res.store(a.Detail)
	return nil
}

// rewrite keeps the action that a handler made of the one it was given. What it may
// change is version and payload.
func (res *Response) rewrite(out *hint.Result, block []byte) error {
	if err := abi.CheckAction(block); err != nil {
		return fmt.Errorf("the rewritten action: %w", err)
	}
	b := abi.Base(block)
	if !bytes.Equal(b.Run(abi.GetSpan(b, abi.OffActionActionType)), out.ActionType) || !bytes.Equal(b.Run(abi.GetSpan(b, abi.OffActionActionID)), out.ActionID) {
		return errors.New("the rewritten action has another id or type: a handler may change version and payload")
	}
	if reason, detail := res.frame.CheckForward(block); reason != abi.ReasonNone {
		return errors.New(detail)
	}
	for len(res.blocks) <= out.Index {
		res.blocks = append(res.blocks, nil)
	}
	res.blocks[out.Index] = res.store(block)
	return nil
}

// failed turns a trap into a result; only a fatal failure is passed on as such.
func (res *Response) failed(s *slot, out *hint.Result, err error) error {
	if fatal := s.inst.call.failure(); fatal != nil {
		res.reject(out, abi.ReasonHandlerError, fatal.Error())
		return fatal
	}
	t, ok := err.(*Trap)
	if !ok {
		t = &Trap{TrapGuest, err.Error()}
	}
	s.stats.traps[t.Kind]++
	res.reject(out, t.Reason(), t.Msg)
	return t
}

// forward makes the envelope to pass on: accepted actions in order, as they came or
// as their handler rewrote them, and those of unknown types unless they are dropped.
func (res *Response) forward(req *Request, dropUnknown bool) (err error) {
	res.keep = res.keep[:0]
	for i := range res.Results {
		out := &res.Results[i]
		unknown := out.Guest == "" && out.Reason == abi.ReasonUnsupportedActionType
		if out.Status != abi.StatusAccepted && (!unknown || dropUnknown) {
			continue
		}
		f := hint.Forward{Index: i}
		if i < len(res.blocks) {
			f.Block = res.blocks[i]
		}
		res.keep = append(res.keep, f)
	}
	res.Forward, err = hint.AppendEnvelope(res.Forward[:0], res.frame.Format(), &res.frame, res.keep)
	return err
}
