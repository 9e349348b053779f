package runtime

import (
	"context"
	"errors"
	"log/slog"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// FormulateRequest is one routed request: its worker has been chosen.
type FormulateRequest struct {
	// Body is a routing context, as [hint.Context] reads it.
	Body   []byte
	Format abi.Format // FormatUnknown: told from the first byte
	// Output is the encoding of the envelope; FormatUnknown: the body's.
	Output abi.Format
	// Seed, when set, is given the context before any policy runs: for its events. An
	// error ends the call.
	Seed func(*hint.Context) error
}

// Formulation receives what a Formulate came to. It is reused from call to call by one
// goroutine at a time, and what it holds is valid until the next call.
type Formulation struct {
	// Envelope is what to attach to the request; empty: nothing, since there was no
	// envelope before and no policy added an action.
	Envelope []byte
	// Policies has one entry per policy of the request's partition, in order.
	Policies []hint.PolicyResult
	// Context is the request as it was read.
	Context hint.Context

	start   uint32
	shard   *shard
	compose hint.Composition
	answers []*policyAnswer // one for each policy
	dropped []hint.DroppedAction
	text    []byte // details
	fields  abi.ContextFields
	clock   int64
}

// policyAnswer is what one policy answered; the actions stay there until the envelope is
// written.
type policyAnswer struct {
	raw    []byte     // as the guest wrote it
	sound  hint.Frame // raw itself, when nothing is wrong with it
	loaded hint.Frame // else a copy, which tells what is
	frame  *hint.Frame
}

// keepAnswer is how large a buffer may be to be kept for the next answer whatever its size.
const keepAnswer = 1 << 20

// NewFormulation makes a Formulation for the use of one goroutine at a time.
func (r *Runtime) NewFormulation() *Formulation {
	n := r.hints.Add(1)
	return &Formulation{start: n, shard: &r.shards[n%uint32(len(r.shards))]}
}

// Formulate runs the policies of a request's partition, one after the other, and composes
// what they answer with the hints that the context holds: the request's actions, the
// selection's, then each policy's. It cannot change the choice of the worker.
//
// Only a malformed context is an error, of a composition that Output cannot hold, or of
// Seed. A policy that refuses, traps, uses up its fuel, answers too much or is not there
// loses its own actions and nothing else, and so does an action that the selected worker
// does not take or that breaks the rules of Config.Target; each stands in res. A policy's
// effects take place when its answer is taken, whatever becomes of single actions. When
// ctx ends, policies that have not run are left out.
//
// It takes no lock and, once res has grown to its working size, allocates nothing as long
// as nothing is left out.
func (r *Runtime) Formulate(ctx context.Context, req *FormulateRequest, res *Formulation) error {
	gen := r.current.Load()
	if gen == nil {
		return ErrClosed
	}
	res.shard.formulations.Add(1)
	res.reset()
	opt := hint.ContextOptions{Limits: r.cfg.Limits, StripRequestHint: r.cfg.StripRequestHints}
	if err := res.Context.Decode(req.Format, req.Body, opt); err != nil {
		res.shard.badContexts.Add(1)
		return err
	}
	if req.Seed != nil {
		if err := req.Seed(&res.Context); err != nil {
			return err
		}
	}
	output := req.Output
	if output == abi.FormatUnknown {
		output = res.Context.Format()
	}
	res.compose.Begin(&res.Context, r.cfg.Target, r.cfg.Capable)
	frame := res.Context.Frame()
	res.fields = frame.Fields()
	res.clock = r.nanos()
	for _, id := range gen.policies {
		if g := gen.guests[id]; g.spec.Policy.Partition.matches(frame) {
			r.policy(ctx, g, output, res)
		}
	}
	r.reportFormulation(res)
	var err error
	res.Envelope, err = res.compose.Append(res.Envelope[:0], output)
	return err
}

// reset empties what the last call left.
func (res *Formulation) reset() {
	res.Envelope, res.Policies = res.Envelope[:0], res.Policies[:0]
	res.dropped, res.text = res.dropped[:0], res.text[:0]
}

// policy runs one policy of the generation that the call began with, or what has taken
// its place since.
func (r *Runtime) policy(ctx context.Context, g *guest, output abi.Format, res *Formulation) {
	n := len(res.Policies)
	res.Policies = append(res.Policies, hint.PolicyResult{Name: g.spec.Name})
	out := &res.Policies[n]
	for len(res.answers) <= n {
		res.answers = append(res.answers, new(policyAnswer))
	}
	for {
		out.Generation = g.generation
		if lacks := g.requires &^ res.fields; lacks != 0 {
			g.skipped.Add(1)
			res.skip(out, abi.ReasonNotFound, "the context has no "+lacks.Names()[0]+", which the policy requires")
			return
		}
		if err := ctx.Err(); err != nil {
			g.skipped.Add(1)
			res.skip(out, abi.ReasonHandlerUnavailable, "not run: "+err.Error())
			return
		}
		s, drained := g.pool.acquire(res.start, r.cfg.Wait)
		switch {
		case s != nil:
			r.formulate(g, s, output, res, out, res.answers[n])
			return
		case !drained:
			res.skip(out, abi.ReasonHandlerUnavailable, g.pool.why())
			return
		}
		if g = r.current.Load().policyNamed(out.Name); g == nil {
			res.skip(out, abi.ReasonHandlerUnavailable, "the policy was unloaded meanwhile")
			return
		}
	}
}

// policyNamed finds a policy; nil when there is none, or no generation.
func (gen *generation) policyNamed(name string) *guest {
	if gen == nil {
		return nil
	}
	for _, id := range gen.policies {
		if g := gen.guests[id]; g.spec.Name == name {
			return g
		}
	}
	return nil
}

// formulate makes one call of one policy and offers what it answered.
func (r *Runtime) formulate(g *guest, s *slot, output abi.Format, res *Formulation, out *hint.PolicyResult, answer *policyAnswer) {
	used := true
	defer func() { // the native side may panic; the panic goes on to the caller
		if used {
			g.pool.poison(s)
		} else {
			g.pool.release(s)
		}
	}()
	call := s.inst.call
	id := res.Context.Identity()
	call.beginAt(res.clock, &id, g.limits.FormulateFuel)
	call.context = res.Context.Frame()
	var ret int64
	err := s.inst.write(res.Context.Bytes())
	if err == nil {
		ret, err = s.inst.run(ExportFormulate, 0)
	}
	out.Fuel = call.used()
	taken := false
	switch {
	case err == errNoRoom:
		res.skip(out, abi.ReasonLimitExceeded, "the policy has no room for a context of this size: raise its limits.memory")
		err = nil
	case err != nil || call.fatal != nil:
		err = res.trapped(s, out, err)
	default:
		taken = res.take(s.inst, out, ret, answer, output, r.cfg.Limits)
	}
	if out.Reason != abi.ReasonNone {
		call.drop()
	} else if reason, detail := call.commit(); reason != abi.ReasonNone {
		res.skip(out, reason, detail)
	} else if taken {
		res.offer(s, out, answer.frame)
	}
	now := r.nanos()
	out.DurationNS, res.clock = now-res.clock, now
	verdict := hint.Result{Status: abi.StatusAccepted, Reason: out.Reason, Fuel: out.Fuel, DurationNS: out.DurationNS}
	if out.Reason != abi.ReasonNone {
		verdict.Status = abi.StatusRejected
	}
	s.stats.count(&verdict, call)
	if used = err != nil; !used {
		s.past.note(false)
	}
}

// skip says why the policy has no part in the envelope.
func (res *Formulation) skip(out *hint.PolicyResult, reason abi.Reason, detail string) {
	at := len(res.text)
	res.text = append(res.text, abi.Cut(detail)...)
	out.Reason, out.Detail = reason, res.text[at:len(res.text):len(res.text)]
}

// trapped says how a call ended without an answer. A failure of the native side is one
// too: the request goes on without the policy.
func (res *Formulation) trapped(s *slot, out *hint.PolicyResult, err error) error {
	if fatal := s.inst.call.failure(); fatal != nil {
		res.skip(out, abi.ReasonHandlerError, fatal.Error())
		return fatal
	}
	var t *Trap
	if !errors.As(err, &t) {
		t = &Trap{TrapGuest, err.Error()}
	}
	s.stats.traps[t.Kind]++
	res.skip(out, t.Reason(), t.Msg)
	return t
}

// take reads what a policy returned. It is true when there are actions to offer.
func (res *Formulation) take(in *instance, out *hint.PolicyResult, ret int64, to *policyAnswer, output abi.Format, lim hint.Limits) bool {
	ref, ok := abi.SplitResult(ret)
	switch {
	case !ok:
		res.skip(out, abi.ReasonHandlerError, errResult.Error())
		return false
	case ref.Reason != abi.ReasonNone:
		res.refused(in, out, ref.Reason, nil)
		return false
	case ref.Len == 0:
		return false
	}
	if cap(to.raw) > keepAnswer && ref.Len <= keepAnswer {
		to.raw = nil
	}
	var a abi.Answer
	answer, err := in.answer(to.raw[:0], ref)
	if err == nil {
		to.raw = answer
		a, err = abi.CheckAnswer(answer)
	}
	if err == nil && a.Body != nil {
		if err = abi.CheckEnvelope(a.Body); err == nil {
			if detail := in.tooMany(a.Body); detail != "" {
				res.skip(out, abi.ReasonLimitExceeded, detail)
				return false
			}
			if to.frame = &to.sound; !to.sound.Adopt(output, a.Body, lim) {
				to.frame = &to.loaded
				err = to.loaded.Load(output, a.Body, lim)
			}
		}
	}
	switch {
	case err != nil:
		res.skip(out, abi.ReasonHandlerError, err.Error())
	case a.Status == abi.StatusRejected:
		res.refused(in, out, a.Reason, a.Detail)
	default:
		return a.Body != nil
	}
	return false
}

// refused is a policy that gives no actions, for a reason of its own.
func (res *Formulation) refused(in *instance, out *hint.PolicyResult, reason abi.Reason, detail []byte) {
	text := string(detail)
	if detail == nil && reason == in.call.reason {
		text = in.call.detail
	}
	res.skip(out, reason, text)
}

// offer offers the actions of an answer, in order, and notes those that are left out.
func (res *Formulation) offer(s *slot, out *hint.PolicyResult, f *hint.Frame) {
	from := len(res.dropped)
	for i := range f.Len() {
		reason, detail := res.compose.Offer(f, i, out.Name)
		if reason == abi.ReasonNone {
			out.Actions++
			continue
		}
		a := f.Action(i)
		res.dropped = append(res.dropped, hint.DroppedAction{ActionID: a.ID, ActionType: a.Type, Reason: reason, Detail: detail})
		s.stats.dropped[reasonIndex(reason)]++
	}
	s.stats.emitted += uint64(out.Actions)
	out.Dropped = res.dropped[from:len(res.dropped):len(res.dropped)]
}

// The kinds of the warnings about policies, beside those about hints.
const (
	warnPolicy = 2 << 32
	warnAction = 3 << 32
)

// reportFormulation logs what was left out: once per policy and reason, or per type and
// reason, as a warning, else at debug.
func (r *Runtime) reportFormulation(res *Formulation) {
	for i := range res.Policies {
		p := &res.Policies[i]
		if p.Reason == abi.ReasonNone && len(p.Dropped) == 0 {
			continue
		}
		id := res.Context.Identity().RequestID
		if p.Reason != abi.ReasonNone {
			level := slog.LevelDebug
			if p.Reason != abi.ReasonNotFound && r.warned.first(warnPolicy|uint64(p.Reason), []byte(p.Name)) {
				level = slog.LevelWarn
			}
			r.log.Log(context.Background(), level, "policy left out; the request goes on without it", "policy", p.Name,
				"reason", p.Reason.String(), "detail", string(p.Detail), "request_id", id, "generation", p.Generation)
		}
		for j := range p.Dropped {
			d := &p.Dropped[j]
			level := slog.LevelDebug
			if r.warned.first(warnAction|uint64(d.Reason), d.ActionType) {
				level = slog.LevelWarn
			}
			r.log.Log(context.Background(), level, "action of a policy left out", "policy", p.Name, "action_id", string(d.ActionID),
				"action_type", string(d.ActionType), "reason", d.Reason.String(), "detail", d.Detail, "request_id", id)
		}
	}
}
