package runtime

import (
	"fmt"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// decode fills res.frame from the request's bytes.
func (r *Runtime) decode(gen *generation, req *Request, res *Response) error {
	format := req.Format
	if format == abi.FormatUnknown {
		format = hint.Detect(req.Body)
	}
	if req.Dialect == "" {
		return res.frame.Decode(format, req.Body, r.cfg.Limits)
	}
	if err := r.cfg.Limits.CheckBody(req.Body); err != nil {
		return err
	}
	for {
		id, known := gen.byDialect[req.Dialect]
		if !known {
			return fmt.Errorf("%w: %q", ErrUnknownDialect, req.Dialect)
		}
		g := gen.guests[id]
		s, drained := g.pool.acquire(res.start, r.cfg.Wait)
		if drained {
			if gen = r.current.Load(); gen == nil {
				return ErrClosed
			}
			continue
		}
		if s == nil {
			return &ParseError{g.spec.Name, abi.ReasonHandlerUnavailable, g.pool.why()}
		}
		return r.parse(g, s, format, req, res)
	}
}

// parse makes one call of a parser: a foreign document in, an envelope out.
func (r *Runtime) parse(g *guest, s *slot, format abi.Format, req *Request, res *Response) error {
	used := true
	defer func() { // the native side may panic; the panic goes on to the caller
		if used {
			g.pool.poison(s)
		} else {
			g.pool.release(s)
		}
	}()
	frame := abi.BeginParse(res.scratch[:0], format, req.Body, req.Identity.RequestID, req.Dialect)
	res.doc.Limits = r.cfg.Limits
	frame, doc, err := res.doc.Append(frame, format, req.Body)
	if err != nil {
		doc = abi.Node{} // not JSON or msgpack, or its tree is too large: the parser has the raw bytes
	}
	res.scratch = abi.FinishParse(frame, doc)

	res.clock = r.nanos()
	in, out := s.inst, hint.Result{Guest: g.spec.Name}
	in.call.beginAt(res.clock, &req.Identity, g.limits.ParseFuel)
	var ret int64
	if err = in.write(res.scratch); err == nil {
		ret, err = in.run(ExportParse, 0)
	}
	out.Fuel = in.call.used()
	switch {
	case err == errNoRoom:
		res.reject(&out, abi.ReasonLimitExceeded, "the parser has no room for a document of this size: raise its limits.memory")
		err = nil
	case err != nil || in.call.fatal != nil:
		err = res.failed(s, &out, err)
	default:
		res.envelope(in, &out, ret, format, r.cfg.Limits)
	}
	if out.Status == abi.StatusAccepted {
		if reason, detail := in.call.commit(); reason != abi.ReasonNone {
			res.reject(&out, reason, detail)
		}
	} else {
		in.call.drop()
	}
	out.DurationNS = r.nanos() - res.clock
	s.stats.count(&out, in.call)
	if used = err != nil; !used {
		s.past.note(false)
	}
	if fatal, ok := err.(*FatalError); ok {
		return fatal
	}
	if out.Status != abi.StatusAccepted {
		return &ParseError{g.spec.Name, out.Reason, string(out.Detail)}
	}
	return nil
}

// envelope takes the envelope out of a parser's answer.
func (res *Response) envelope(in *instance, out *hint.Result, ret int64, format abi.Format, lim hint.Limits) {
	ref, ok := abi.SplitResult(ret)
	if !ok || ref.Len == 0 {
		res.verdict(in, out, ret)
		if ret == 0 {
			res.reject(out, abi.ReasonHandlerError, "the parser accepted without an envelope")
		}
		return
	}
	var a abi.Answer
	answer, err := in.answer(res.answer[:0], ref)
	if err == nil {
		res.answer = answer
		a, err = abi.CheckAnswer(answer)
	}
	if err == nil && a.Status == abi.StatusAccepted {
		if err = abi.CheckEnvelope(a.Body); err == nil {
			if detail := in.tooMany(a.Body); detail != "" {
				res.reject(out, abi.ReasonLimitExceeded, detail)
				return
			}
			err = res.frame.Load(format, a.Body, lim)
		}
	}
	if err != nil {
		res.reject(out, abi.ReasonHandlerError, err.Error())
		return
	}
	out.Status, out.Reason, out.Detail = a.Status, a.Reason, res.store(a.Detail)
}
