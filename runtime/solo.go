package runtime

import (
	"bytes"
	"context"
	"errors"
	"math"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Solo is one guest by itself, in no generation: its calls are made one at a time, and
// told in full. It is for looking at guests: a verb that makes one call, a conformance
// kit, the tests of an author. It is used by one goroutine at a time.
type Solo struct {
	guest *guest
	inst  *instance // nil: the next call starts one
}

// Start is what bringing up an instance took.
type Start struct {
	Fuel     uint64
	Memory   uint64      // bytes of linear memory afterwards
	Features abi.Feature // that the guest chose
}

// NewSolo loads a guest by itself: the same checks, calls and errors as in
// [Runtime.Load]. cfg.Log receives the guest's lines, repeated ones too.
func NewSolo(ctx context.Context, cfg Config, spec GuestSpec) (*Solo, error) {
	cfg.Memory = math.MaxUint64 // there are no others
	r, err := New(cfg)
	if err != nil {
		return nil, err
	}
	spec.Limits.Instances = 1
	g, err := r.load(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &Solo{guest: g}, nil
}

// Info describes the module.
func (s *Solo) Info() *Info { return s.guest.info }

// Limits are the guest's, with defaults.
func (s *Solo) Limits() Limits { return s.guest.limits }

// Fresh puts a new instance in the place of the one that is there.
func (s *Solo) Fresh(ctx context.Context) (Start, error) {
	s.drop()
	in, _, err := s.guest.newInstance(ctx)
	if err != nil {
		return Start{}, err
	}
	s.inst = in
	return Start{in.started, uint64(len(in.wasm.Memory())), in.features}, nil
}

func (s *Solo) drop() {
	if s.inst != nil {
		s.inst.wasm.Close()
		s.inst = nil
	}
}

// Close frees everything.
func (s *Solo) Close() {
	s.drop()
	s.guest.pool.drain()
}

// SoloCall is one call of one role.
type SoloCall struct {
	Role     abi.Role
	Frame    []byte // of the role's kind, as the ABI lays it out
	Position uint32 // handler: of the action to judge, in the frame's list
	Identity hint.Identity
	// Wall and Monotonic are what the guest's clocks say; 0 is the machine's.
	Wall, Monotonic int64
	// Dirty writes noise over what is left of the arena before the call.
	Dirty bool
}

// SoloResult is what became of a call.
type SoloResult struct {
	Status abi.Status
	Reason abi.Reason
	Detail string
	// Body is the answer's: of a handler the rewritten action, else an envelope frame.
	Body []byte

	Return     int64    // as the export returned it
	Frame      abi.Span // where the frame lay in the guest's memory
	Fuel       uint64
	Memory     uint64 // bytes of linear memory afterwards; 0 after a trap
	LogDropped uint64 // lines past the call's quota

	// Trap says how the call ended without an answer. The next call is made on another
	// instance.
	Trap *Trap
	// NoRoom tells that the guest handed out no buffer for the frame, and was not called.
	NoRoom bool
	// Broken says what the ABI does not allow in the answer, which Reason then is
	// handler_error for; nil otherwise.
	Broken error
	// Spoilt is the offset of the first byte of the frame that the guest wrote to, or -1.
	Spoilt int
}

// Call makes one call. Its effects take place when it is accepted. An error is none of
// the guest's: no instance could be started, or the native side failed for good.
func (s *Solo) Call(ctx context.Context, c SoloCall) (SoloResult, error) {
	res := SoloResult{Status: abi.StatusRejected, Spoilt: -1}
	if s.inst == nil {
		if _, err := s.Fresh(ctx); err != nil {
			return res, err
		}
	}
	in := s.inst
	in.call.warned = new(warnOnce)
	begin := func() {
		in.call.begin(c.Identity, s.guest.limits.roleFuel(c.Role))
		in.call.wall, in.call.mono = c.Wall, c.Monotonic
		if c.Role == abi.RolePolicy {
			in.call.context = c.Frame
		}
	}
	begin()
	err := in.write(c.Frame)
	var out hint.Result
	var answer Response
	if err == nil {
		if c.Role == abi.RoleHandler {
			begin() // a frame is written once for several calls, so none of them pays
		}
		if c.Dirty {
			in.soil()
		}
		res.Frame = abi.Span{Off: in.arena, Len: in.frame}
		if res.Return, err = in.run(exportOf(c.Role), c.Position); err == nil && in.call.fatal == nil {
			res.Spoilt = differs(in.wasm.Memory()[in.arena:][:in.frame], c.Frame)
			res.Broken = answer.told(in, &out, &res, c)
		}
	}
	if fatal := in.call.failure(); fatal != nil {
		in.call.drop()
		s.drop()
		return res, fatal
	}
	switch trap := (*Trap)(nil); {
	case errors.Is(err, errNoRoom):
		answer.reject(&out, abi.ReasonLimitExceeded, "the guest has no room for a frame of this size: raise its limits.memory")
		res.NoRoom = true
	case errors.As(err, &trap):
		res.Trap = trap
		answer.reject(&out, trap.Reason(), trap.Msg)
	case err != nil:
		res.Trap = &Trap{TrapGuest, err.Error()}
		answer.reject(&out, abi.ReasonHandlerTrap, err.Error())
	}
	res.Fuel, res.LogDropped = in.call.used(), in.call.logDropped
	if out.Status == abi.StatusAccepted {
		if reason, detail := in.call.commit(); reason != abi.ReasonNone {
			answer.reject(&out, reason, detail)
		}
	} else {
		in.call.drop()
	}
	res.Status, res.Reason, res.Detail = out.Status, out.Reason, string(out.Detail)
	if res.Trap != nil {
		s.drop()
	} else {
		res.Memory = uint64(len(in.wasm.Memory()))
	}
	return res, nil
}

// Arena calls kvrt_arena and returns what it returned, and where the buffer lies; a
// Span of length 0 stands for a refusal or for what the ABI does not allow.
func (s *Solo) Arena(ctx context.Context, size uint32) (ret int64, arena abi.Span, err error) {
	if s.inst == nil {
		if _, err := s.Fresh(ctx); err != nil {
			return 0, arena, err
		}
	}
	in := s.inst
	in.call.begin(hint.Identity{}, s.guest.limits.Fuel)
	switch err := in.grow(size); {
	case err == nil:
		arena = abi.Span{Off: in.arena, Len: in.size}
	case !errors.Is(err, errNoRoom):
		s.drop()
		return 0, arena, err
	}
	return int64(in.stack[0]), arena, nil
}

// soil writes noise behind the frame.
func (in *instance) soil() {
	rest := in.wasm.Memory()[in.arena:][in.frame:in.size]
	for i := range rest {
		rest[i] = 0xa5
	}
}

func exportOf(role abi.Role) Export {
	switch role {
	case abi.RoleParser:
		return ExportParse
	case abi.RolePolicy:
		return ExportFormulate
	}
	return ExportHandle
}

// differs returns the first offset at which the two differ, or -1.
func differs(got, want []byte) int {
	if bytes.Equal(got, want) {
		return -1
	}
	for i := range want {
		if got[i] != want[i] {
			return i
		}
	}
	return len(want)
}

// told reads what a role answered, by the rules of a dispatch, and returns what the
// answer breaks of the ABI.
func (res *Response) told(in *instance, out *hint.Result, to *SoloResult, c SoloCall) error {
	a, err := in.read(to.Return)
	body := a.Body
	switch c.Role {
	case abi.RoleHandler:
		action := abi.EnvelopeFrame(c.Frame).Action(int(c.Position))
		out.ActionID, out.ActionType = action.ID(), action.Type()
		body = nil
		if res.verdict(in, out, to.Return); len(res.blocks) > 0 {
			body = res.blocks[0]
		}
	case abi.RoleParser:
		res.envelope(in, out, to.Return, abi.FormatJSON, in.call.runtime.cfg.Limits)
	default:
		if ref, ok := abi.SplitResult(to.Return); !ok || ref.Len == 0 {
			res.verdict(in, out, to.Return)
			break
		}
		if err == nil && a.Body != nil {
			err = abi.CheckEnvelope(a.Body)
		}
		if err != nil {
			res.reject(out, abi.ReasonHandlerError, err.Error())
		} else {
			out.Status, out.Reason, out.Detail = a.Status, a.Reason, res.store(a.Detail)
		}
	}
	if out.Status == abi.StatusAccepted {
		to.Body = bytes.Clone(body)
	}
	if itself := err == nil && a.Status == abi.StatusRejected; out.Reason == abi.ReasonHandlerError && !itself {
		return errors.New(string(out.Detail))
	}
	return nil
}
