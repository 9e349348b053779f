package tck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// The rules that probes and cases hold a guest to. They are stable, like those of
// admission.
const (
	RuleTrap          = "conform/trap"          // a role trapped on a well-formed frame
	RuleFuel          = "conform/fuel"          // a role used up its fuel on a small frame
	RuleAnswer        = "conform/answer"        // an answer that the ABI does not allow
	RuleActionType    = "conform/action-type"   // a handler refuses a type that its manifest names
	RuleFrameWritten  = "conform/frame-written" // a role wrote to its frame
	RuleDeterministic = "conform/deterministic" // the same call on two fresh instances differs
	RuleStateful      = "conform/stateful"      // an answer depends on earlier calls
	RuleArena         = "conform/arena"         // kvrt_arena returned what it may not
	RuleArenaUsed     = "conform/arena-used"    // an answer depends on the arena behind the frame
	RuleCaseFailed    = "case/failed"           // a case of the guest does not hold
	RuleCaseFile      = "case/file"             // a case file cannot be read
)

// The clocks of every call that is probed.
const (
	wall      = 1_700_000_000_000_000_000
	monotonic = 1_000_000_000
)

// smallFrame is the size in bytes of frames that the default fuel must do for.
const smallFrame = abi.FirstArena

// maxStarts bounds the instructions that starting instances for the probes may take.
const maxStarts = 4_000_000_000

// reply is what came back from a call.
type reply struct {
	runtime.SoloResult
	lines   []string
	effects []Effect
}

// prober calls a guest and notes what it breaks.
type prober struct {
	ctx    context.Context
	report *Report
	solo   *runtime.Solo
	rec    *Recorder
	inputs []input
	refs   []reply // by input, of a fresh instance
	skip   []bool  // by input: it trapped, or its answers differ already
	err    error   // of the native side: nothing more can be said
}

// run makes all calls.
func (p *prober) run() error {
	for _, probe := range []func(){p.fresh, p.sequence, p.noise, p.arena} {
		if p.err == nil {
			probe()
		}
	}
	p.figures()
	return p.err
}

func (p *prober) call(in *input, dirty bool) reply {
	p.rec.Reset(Answers{})
	if in.seed != nil {
		p.rec.Sessions.Seed(in.seed, func(int, error) {}) // the cases say what is wrong with it
	}
	res, err := p.solo.Call(p.ctx, runtime.SoloCall{Role: in.role, Frame: in.frame, Position: in.pos,
		Identity: hint.Identity{RequestID: "r1", Engine: "test"}, Wall: wall, Monotonic: monotonic, Dirty: dirty})
	p.fail(err)
	p.report.Memory = max(p.report.Memory, res.Memory)
	return reply{res, p.rec.Lines, p.rec.Effects}
}

func (p *prober) restart() {
	_, err := p.solo.Fresh(p.ctx)
	p.fail(err)
}

func (p *prober) fail(err error) {
	if err != nil && p.err == nil {
		p.err = err
	}
}

// fresh calls each input on two fresh instances. What the first answers is what all
// later answers are compared with.
func (p *prober) fresh() {
	p.inputs = few(p.inputs, p.report.Start)
	for i := range p.inputs {
		in := &p.inputs[i]
		p.restart()
		ref := p.call(in, false)
		p.restart()
		again := p.call(in, false)
		if p.err != nil {
			return
		}
		p.refs = append(p.refs, ref)
		p.judge(in, &ref)
		diff := ref.differs(&again, true)
		p.skip = append(p.skip, ref.Trap != nil || diff != "")
		if diff != "" {
			p.broken(RuleDeterministic, in.name, "two fresh instances differ: "+diff+": a role's answer depends on parameters, frame and host functions alone")
		}
	}
}

// few leaves out inputs where each of the two starts that they need takes long.
func few(all []input, start runtime.Start) []input {
	if perInput := 2 * (start.Fuel + 1); perInput > maxStarts/maxInputs {
		return all[:min(len(all), max(8, int(maxStarts/perInput)))]
	}
	return all
}

// judge notes what one reply breaks.
func (p *prober) judge(in *input, r *reply) {
	switch {
	case r.Trap != nil && r.Trap.Kind == runtime.TrapOutOfFuel && len(in.frame) > smallFrame:
		p.note("%s: %d of fuel do not do for a frame of %d bytes; the instance is lost", in.name, p.solo.Limits().Fuel, len(in.frame))
	case r.Trap != nil && r.Trap.Kind == runtime.TrapOutOfFuel:
		p.broken(RuleFuel, in.name, fmt.Sprintf("%d of fuel do not do for a frame of %d bytes: stop at a bound, or ask for more in the manifest's limits.fuel", p.solo.Limits().Fuel, len(in.frame)))
	case r.Trap != nil:
		p.broken(RuleTrap, in.name, r.Trap.Msg+": a role must not trap on a well-formed frame; reject what it does not take")
	case r.Broken != nil:
		p.broken(RuleAnswer, in.name, r.Broken.Error())
	case r.NoRoom && len(in.frame) <= smallFrame:
		p.broken(RuleArena, in.name, fmt.Sprintf("no buffer for a frame of %d bytes", len(in.frame)))
	case r.NoRoom:
		p.note("%s: no buffer for a frame of %d bytes", in.name, len(in.frame))
	case in.plain && r.Reason == abi.ReasonUnsupportedActionType:
		p.broken(RuleActionType, in.typ, "the manifest names it and the handler answers unsupported_action_type: take it, or leave it out of the manifest")
	}
	if r.Spoilt >= 0 {
		p.broken(RuleFrameWritten, in.name, fmt.Sprintf("the guest wrote to byte %d of its frame: the frame is the host's, and is used for the calls that follow", r.Spoilt))
	}
}

// sequence calls all inputs on one instance, there and back, so that each is called
// again after all others.
func (p *prober) sequence() {
	if p.solo.Info().Manifest.Stateful {
		return
	}
	p.restart()
	order := make([]int, 0, 2*len(p.inputs))
	for i := range p.inputs {
		order = append(order, i)
	}
	order = append(order, order...)
	slices.Reverse(order[len(p.inputs):])
	cheaper, dearer, before := 0, 0, "a start"
	for _, i := range order {
		in, ref := &p.inputs[i], &p.refs[i]
		if p.skip[i] {
			continue
		}
		got := p.call(in, false)
		if p.err != nil {
			return
		}
		if diff := ref.differs(&got, false); diff != "" {
			p.skip[i] = true
			p.broken(RuleStateful, in.name, "on a fresh instance and after "+before+" the answers differ: "+diff+": keep nothing between calls, or say stateful in the manifest")
		}
		switch before = in.name; {
		case got.Fuel < ref.Fuel:
			cheaper++
		case got.Fuel > ref.Fuel:
			dearer++
		}
	}
	if cheaper+dearer > 0 {
		p.note("fuel depends on earlier calls: %d of %d calls cost less than on a fresh instance, %d more", cheaper, len(order), dearer)
	}
}

// noise fills the arena behind the frame before each call.
func (p *prober) noise() {
	p.restart()
	stateful := p.solo.Info().Manifest.Stateful
	for i := range p.inputs {
		in, ref := &p.inputs[i], &p.refs[i]
		if p.skip[i] {
			continue
		}
		if stateful {
			p.restart()
		}
		got := p.call(in, true)
		if p.err != nil {
			return
		}
		if diff := ref.differs(&got, false); diff != "" {
			p.broken(RuleArenaUsed, in.name, "with noise in the arena behind the frame the answer differs: "+diff+": the whole buffer is the host's to write to")
		}
	}
}

// differs says how two replies differ, "" when they do not. What it cost and where
// it lay counts only where exact is set.
func (r *reply) differs(o *reply, exact bool) string {
	switch {
	case r.verdict() != o.verdict():
		return r.verdict() + ", then " + o.verdict()
	case !bytes.Equal(r.Body, o.Body):
		return fmt.Sprintf("what it made has %d bytes, then %d, and they are not the same", len(r.Body), len(o.Body))
	case !slices.Equal(r.lines, o.lines):
		return fmt.Sprintf("it logged %q, then %q", r.lines, o.lines)
	case fmt.Sprint(r.effects) != fmt.Sprint(o.effects):
		return fmt.Sprintf("its effects were %v, then %v", r.effects, o.effects)
	case exact && r.Fuel != o.Fuel:
		return fmt.Sprintf("it used %d of fuel, then %d", r.Fuel, o.Fuel)
	case exact && (r.Return != o.Return || r.Memory != o.Memory):
		return fmt.Sprintf("it returned %#x with %d bytes of memory, then %#x with %d", r.Return, r.Memory, o.Return, o.Memory)
	}
	return ""
}

func (r *reply) verdict() string {
	text := r.Status.String()
	if r.Reason != abi.ReasonNone {
		text += " " + r.Reason.String()
	}
	if r.Detail != "" {
		text += fmt.Sprintf(" %q", r.Detail)
	}
	return text
}

// figures counts what the calls used, by role.
func (p *prober) figures() {
	for _, role := range rolesOf(p.solo.Info().Manifest) {
		f := RoleReport{Role: role}
		alike := map[string]bool{}
		for i := range p.refs {
			in, ref := &p.inputs[i], &p.refs[i]
			if in.role != role {
				continue
			}
			if f.Calls == 0 || ref.Fuel < f.LeastFuel {
				f.LeastFuel = ref.Fuel
			}
			if ref.Fuel >= f.MostFuel {
				f.MostFuel, f.MostFor = ref.Fuel, in.name
			}
			f.Calls++
			alike[fmt.Sprint(ref.Status, ref.Reason, ref.Detail, len(ref.Body), ref.Fuel)] = true
		}
		if f.Calls > 3 && len(alike) == 1 {
			p.note("%s answered all %d frames alike, for the same fuel: if it looks at them, its arena may be constant data, which compilers read once, as zeros", role.Export(), f.Calls)
		}
		p.report.Roles = append(p.report.Roles, f)
	}
}

func (p *prober) note(format string, args ...any) {
	p.report.Notes = append(p.report.Notes, fmt.Sprintf(format, args...))
}

func (p *prober) broken(rule, item, msg string) { p.report.problem(rule, item, msg) }

// trapOf returns the trap behind an error.
func trapOf(err error) *runtime.Trap {
	var trap *runtime.Trap
	errors.As(err, &trap)
	return trap
}
