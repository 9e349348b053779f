package runtime

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Request is one envelope, or a document of a foreign dialect, to dispatch.
type Request struct {
	Body     []byte
	Format   abi.Format // FormatUnknown: told from the first byte
	Dialect  string     // empty: Body is an envelope; else a loaded parser reads it
	Identity hint.Identity
	Forward  bool // make the envelope to pass on
	// FromClient says that the body came with a client's request, and no router made it.
	// Where Config.StripRequestHints is set each of its actions is rejected as stripped,
	// and none is passed on.
	FromClient bool
}

// Response receives the results of a Dispatch. It is reused from call to call by one
// goroutine at a time, and what it holds is valid until the next call.
type Response struct {
	// Results has one entry per action, in envelope order. After an error it has those of
	// the actions that were read, and a status where a handler ran.
	Results []hint.Result
	// Forward is the envelope to pass on, when the request asked for it.
	Forward []byte

	start   uint32 // where to begin looking for a free instance
	shard   *shard
	frame   hint.Frame
	doc     hint.Document // the tree of a foreign document
	groups  []group
	groupOf []int32 // by guest, while routing: index into groups, plus 1
	next    []int32 // by action: the next one of the same group, or -1
	actions []int32 // of the group that is running
	scratch []byte  // the frame of a guest that does not get the whole envelope
	answer  []byte
	text    []byte   // details and rewritten actions; Results and blocks refer to it
	blocks  [][]byte // by action: what the handler made of it; empty when nobody rewrote
	keep    []hint.Forward
	clock   int64 // when the last result was ready, in the runtime's monotonic ns
}

// MessageID is the envelope's message id, nil when it has none. Like the results it
// belongs to the last Dispatch, if that has results.
func (res *Response) MessageID() []byte { return res.frame.MessageID() }

// group is the actions of one envelope that go to one guest.
type group struct {
	guest       *guest
	id          int32 // of the guest in its generation
	first, last int32
}

// NewResponse makes a Response for the use of one goroutine at a time.
func (r *Runtime) NewResponse() *Response {
	n := r.hints.Add(1)
	return &Response{start: n, shard: &r.shards[n%uint32(len(r.shards))]}
}

// Dispatch runs one envelope: it decodes all of it, gives each action to the handler
// of its type, and puts one result per action into res. Only a malformed envelope, a
// refusing parser, or a fatal failure of the native side is an error; everything else
// is a result.
//
// It takes no lock and, once res has grown to its working size, allocates nothing.
func (r *Runtime) Dispatch(req *Request, res *Response) error {
	res.reset()
	gen := r.current.Load()
	if gen == nil {
		return ErrClosed
	}
	res.shard.dispatches.Add(1)
	if err := req.Identity.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	if err := r.decode(gen, req, res); err != nil {
		res.shard.malformed.Add(1)
		return err
	}
	res.frame.Finish(req.Identity)
	res.clock = r.nanos()
	var a hint.ActionView
	for i := range res.frame.Len() {
		res.frame.View(i, &a)
		res.result(&a)
		if req.FromClient && r.cfg.StripRequestHints {
			res.Results[i].Generation = gen.number
			res.unrouted(&res.Results[i], abi.ReasonStripped, "it came with a client's request, whose hints the operator drops")
			continue
		}
		res.route(gen, &a)
	}
	res.endRouting()
	for i := 0; i < len(res.groups); i++ { // a group that is routed again is appended
		if err := r.handleGroup(req, res, res.groups[i]); err != nil {
			return err
		}
	}
	r.report(req, res)
	if req.Forward {
		return res.forward(req, r.cfg.DropUnknown)
	}
	return nil
}

// route gives an action to its handler's group, or decides it here.
func (res *Response) route(gen *generation, a *hint.ActionView) {
	out := &res.Results[a.Index()]
	out.Generation = gen.number
	reason, detail := abi.ReasonNone, ""
	if !res.frame.Sound(a.Index()) {
		reason, detail = a.Fault()
	}
	if reason == abi.ReasonMalformedAction || reason == abi.ReasonLimitExceeded {
		res.unrouted(out, reason, detail)
		return
	}
	id, known := gen.handler(a.Type)
	switch {
	case !known:
		res.unrouted(out, abi.ReasonUnsupportedActionType, "no loaded guest handles this action type")
	case reason != abi.ReasonNone:
		res.unrouted(out, reason, detail)
	case a.Payload.Tag == abi.TagAbsent:
		res.unrouted(out, abi.ReasonMalformedAction, "payload is missing")
	default:
		res.enqueue(gen, id, int32(a.Index()))
	}
}

// handleGroup runs the actions of one guest on one instance. When an instance traps,
// the rest goes on with another.
func (r *Runtime) handleGroup(req *Request, res *Response, gr group) error {
	g := gr.guest
	var s *slot
	defer func() {
		if s != nil { // only when the native side panics: the panic goes on to the caller
			g.pool.poison(s)
		}
	}()
	res.list(gr)
	for pos, i := range res.actions {
		out := &res.Results[i]
		if out.Status != 0 {
			continue // judged before its guest was replaced; here for the others' sake
		}
		if s == nil {
			var drained bool
			if s, drained = g.pool.acquire(res.start, r.cfg.Wait); drained {
				r.routeAgain(res)
				return nil
			}
			if s == nil {
				res.rejectRest(g, pos, abi.ReasonHandlerUnavailable, g.pool.why())
				return nil
			}
			frame := res.guestFrame(s.inst)
			if len(frame) > int(s.inst.size) { // the guest is asked for room
				s.inst.call.beginAt(res.clock, &req.Identity, g.limits.Fuel)
			}
			if err := s.inst.write(frame); err != nil {
				failed := s
				s = nil
				return g.noRoom(failed, res, pos, err)
			}
		}
		if err := r.handle(g, s, req, res, out, uint32(pos)); err != nil {
			g.pool.poison(s)
			s = nil
			if fatal, ok := err.(*FatalError); ok {
				return fatal
			}
		} else if g.pool.wake != nil && s.inst.overdue(&g.limits) {
			g.pool.release(s) // and the rest goes on with another
			s = nil
		}
	}
	if s != nil {
		g.pool.release(s)
		s = nil
	}
	return nil
}

// handle makes one call: one action in, one result out. Its effects take place only
// if the action is accepted. An error means that the instance is used up.
func (r *Runtime) handle(g *guest, s *slot, req *Request, res *Response, out *hint.Result, pos uint32) error {
	call := s.inst.call
	out.Guest = g.spec.Name
	call.beginAt(res.clock, &req.Identity, g.limits.Fuel)
	call.message, call.action = res.frame.MessageID(), out.Index
	ret, err := s.inst.run(ExportHandle, pos)
	out.Fuel = call.used()
	if err == nil && call.fatal == nil {
		res.verdict(s.inst, out, ret)
	} else {
		err = res.failed(s, out, err)
	}
	if out.Status == abi.StatusAccepted {
		if reason, detail := call.commit(); reason != abi.ReasonNone {
			res.reject(out, reason, detail)
		}
	} else {
		call.drop()
	}
	now := r.nanos()
	out.DurationNS, res.clock = now-res.clock, now
	s.stats.count(out, call)
	if err == nil {
		s.past.note(false)
	}
	return err
}

// report logs the results: all at debug, rejections once per type and reason.
func (r *Runtime) report(req *Request, res *Response) {
	debug := r.log.Enabled(context.Background(), slog.LevelDebug)
	for i := range res.Results {
		out := &res.Results[i]
		if out.Status == abi.StatusRejected && r.warned.first(uint64(out.Reason), out.ActionType) {
			r.logResult(slog.LevelWarn, "hint rejected (further ones of this type and reason are logged at debug)", req, res, out)
		} else if debug {
			r.logResult(slog.LevelDebug, "hint", req, res, out)
		}
	}
	if v := res.frame.ProtocolVersion(); string(v) != "0.1" && r.warned.first(warnProtocol, nil) {
		r.log.Warn("protocol_version is not 0.1; going on", "protocol_version", string(v), "request_id", req.Identity.RequestID)
	}
}

// warnProtocol is the kind of the warning about protocol versions, beside the reasons.
const warnProtocol = 1 << 32

func (r *Runtime) logResult(level slog.Level, msg string, req *Request, res *Response, out *hint.Result) {
	r.log.Log(context.Background(), level, msg, "request_id", req.Identity.RequestID, "message_id", string(res.frame.MessageID()),
		"action_id", string(out.ActionID), "action_type", string(out.ActionType), "action_version", string(out.ActionVersion),
		"status", out.Status.String(), "reason", out.Reason.String(), "detail", string(out.Detail), "guest", out.Guest, "generation", out.Generation)
}
