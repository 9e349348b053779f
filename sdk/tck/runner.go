package tck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Runner runs the cases of one guest through the real dispatch, in JSON and in msgpack.
// It is used by one goroutine at a time.
type Runner struct {
	kit      *Kit
	spec     runtime.GuestSpec
	manifest *abi.Manifest
	shared   map[string]*loaded // by parameters
}

// loaded is a runtime with the guest alone.
type loaded struct {
	runtime *runtime.Runtime
	rec     *Recorder
}

// Outcome is what became of a case.
type Outcome struct {
	Runs     int      // starts and calls that were compared, a call in each encoding
	Failures []string // empty: it holds
}

// NewRunner makes a runner for a guest. The parameters of spec are those of cases that
// name none. The error is a *runtime.LoadError.
func (k *Kit) NewRunner(spec runtime.GuestSpec) (*Runner, error) {
	info, err := runtime.Inspect(spec.Name, spec.Module)
	if err != nil {
		return nil, err
	}
	spec.Limits.Instances = 1
	return &Runner{k, spec, info.Manifest, map[string]*loaded{}}, nil
}

// Close frees what the cases used.
func (r *Runner) Close() {
	for _, l := range r.shared {
		l.close()
	}
	clear(r.shared)
}

func (l *loaded) close() { _ = l.runtime.Close(context.Background()) } // there is no call in flight

func (r *Runner) load(ctx context.Context, params json.RawMessage) (*loaded, error) {
	l := &loaded{rec: &Recorder{}}
	spec := r.spec
	if params != nil {
		spec.Parameters = params
	}
	if string(params) == "null" { // none
		spec.Parameters = nil
	}
	if r.manifest.Has(abi.RolePolicy) {
		spec.Policy = &runtime.PolicyUse{}
	}
	cfg := r.kit.Config(l.rec)
	cfg.CheckParameters = nil // what a case shows is that the guest itself refuses them
	var err error
	if l.runtime, err = runtime.New(cfg); err != nil {
		return nil, err
	}
	return l, l.runtime.Apply(ctx, []runtime.GuestSpec{spec})
}

// maxShared bounds the runtimes that are kept for later cases.
const maxShared = 8

// get returns a runtime for a case. Cases with the same parameters share one, unless
// they look at the log: an equal warning is written once.
func (r *Runner) get(ctx context.Context, c *Case) (l *loaded, done func(), err error) {
	if c.Log != nil && len(*c.Log) > 0 {
		if l, err = r.load(ctx, c.Params); err != nil {
			return nil, nil, err
		}
		return l, l.close, nil
	}
	key := string(c.Params)
	if l = r.shared[key]; l == nil {
		if l, err = r.load(ctx, c.Params); err != nil {
			return nil, nil, err
		}
		if len(r.shared) == maxShared {
			r.Close()
		}
		r.shared[key] = l
	}
	return l, func() {}, nil
}

// Run runs one case.
func (r *Runner) Run(ctx context.Context, c *Case) (out Outcome) {
	if c.Init != nil {
		out = Outcome{1, r.initialize(ctx, c)}
		if *c.Init != "" || out.Failures != nil {
			return out
		}
	}
	for _, format := range []abi.Format{abi.FormatJSON, abi.FormatMsgpack} {
		body, ok, err := c.body(r.manifest, format)
		if err != nil {
			return Outcome{0, []string{err.Error()}}
		}
		if !ok {
			continue
		}
		l, done, err := r.get(ctx, c)
		if err != nil {
			return Outcome{0, []string{"loading: " + err.Error()}}
		}
		l.rec.Reset(c.answers)
		run := r.dispatch
		if c.Context != nil {
			run = r.formulate
		}
		failures := append(run(l, c, format, body), c.traces(l.rec)...)
		done()
		for _, f := range failures {
			out.Failures = append(out.Failures, format.String()+": "+f)
		}
		out.Runs++
	}
	if out.Runs == 0 {
		out.Failures = []string{"the case sends nothing: give it an input, payload, document, context or init"}
	}
	return out
}

// initialize holds the start of the guest against what the case says of it.
func (r *Runner) initialize(ctx context.Context, c *Case) []string {
	_, done, err := r.get(ctx, c)
	if err == nil {
		done()
	}
	switch {
	case err == nil && *c.Init == "":
		return nil
	case err == nil:
		return []string{"init accepted, want a refusal: " + *c.Init}
	case *c.Init == "":
		return []string{"loading: " + err.Error()}
	}
	if !strings.HasSuffix(err.Error(), "kvrt_init refused: "+abi.ReasonInvalidPayload.String()+": "+*c.Init) {
		return []string{fmt.Sprintf("loading: got %v, want kvrt_init to refuse with invalid_payload: %s", err, *c.Init)}
	}
	return nil
}

// traces compares what the call left behind.
func (c *Case) traces(rec *Recorder) (failures []string) {
	if c.Log != nil && !slices.Equal(rec.Lines, *c.Log) {
		failures = append(failures, fmt.Sprintf("log: got %q, want %q", rec.Lines, *c.Log))
	}
	if c.Submits != nil && fmt.Sprint(rec.Submits()) != fmt.Sprint(*c.Submits) {
		failures = append(failures, fmt.Sprintf("submits: got %v, want %v", rec.Submits(), *c.Submits))
	}
	if c.Effects != nil && fmt.Sprint(rec.Done()) != fmt.Sprint(*c.Effects) {
		failures = append(failures, fmt.Sprintf("effects: got %v, want %v", rec.Done(), *c.Effects))
	}
	return failures
}

func (r *Runner) dispatch(l *loaded, c *Case, format abi.Format, body []byte) (failures []string) {
	req := runtime.Request{Body: body, Format: format, Identity: hint.Identity{Engine: "test", RequestID: "r1"}, Forward: true}
	if c.parses() {
		req.Dialect, req.Identity.RequestID = r.manifest.Dialects[0], ""
		if c.RequestID != nil {
			req.Identity.RequestID = *c.RequestID
		}
	}
	res := l.runtime.NewResponse()
	err := l.runtime.Dispatch(&req, res)
	if c.parses() {
		return c.parsed(format, res, err)
	}
	if err != nil {
		return []string{err.Error()}
	}
	if len(res.Results) != len(c.Results) {
		return []string{fmt.Sprintf("%d results, want %d", len(res.Results), len(c.Results))}
	}
	for i, want := range c.Results {
		got := res.Results[i]
		failures = append(failures, want.differs(fmt.Sprintf("action %d", i), got.Status.String(), got.Reason, string(got.Detail))...)
	}
	if c.Forward != nil {
		failures = append(failures, same("forward", format, res.Forward, c.Forward)...)
	}
	return failures
}

// formulate runs the policy on a context. The context's events come first.
func (r *Runner) formulate(l *loaded, c *Case, format abi.Format, body []byte) (failures []string) {
	req := runtime.FormulateRequest{Body: body, Format: format, Output: format, Seed: func(x *hint.Context) error {
		l.rec.Sessions.Seed(x, func(event int, err error) { failures = append(failures, fmt.Sprintf("events[%d]: %v", event, err)) })
		return nil
	}}
	if err := l.rec.Workers.Update(c.Workers, nil); err != nil {
		return []string{"workers: " + err.Error()}
	}
	res := l.runtime.NewFormulation()
	switch err := l.runtime.Formulate(context.Background(), &req, res); {
	case err != nil:
		return append(failures, err.Error())
	case len(res.Policies) != 1:
		return append(failures, fmt.Sprintf("%d policies ran, want 1", len(res.Policies)))
	case c.Envelope == nil && c.Refused == nil:
		return append(failures, "want an envelope, null for none, or refused")
	}
	p := &res.Policies[0]
	refused := Verdict{}
	if c.Refused != nil {
		refused = *c.Refused
	}
	failures = append(failures, refused.differs("policy", "", p.Reason, string(p.Detail))...)
	if c.Dropped != nil {
		dropped := []string{}
		for _, d := range p.Dropped {
			dropped = append(dropped, d.Reason.String())
		}
		if !slices.Equal(dropped, *c.Dropped) {
			failures = append(failures, fmt.Sprintf("dropped: got %q, want %q", dropped, *c.Dropped))
		}
	}
	switch none := string(c.Envelope) == "null"; {
	case c.Envelope == nil, none && len(res.Envelope) == 0:
	case none:
		failures = append(failures, fmt.Sprintf("envelope: got %q, want none", res.Envelope))
	case len(res.Envelope) == 0:
		failures = append(failures, fmt.Sprintf("envelope: got none, want %s", c.Envelope))
	default:
		failures = append(failures, same("envelope", format, res.Envelope, c.Envelope)...)
	}
	return failures
}

func (c *Case) parsed(format abi.Format, res *runtime.Response, err error) []string {
	var refused *runtime.ParseError
	switch {
	case errors.As(err, &refused) && c.Refused != nil:
		return c.Refused.differs("refusal", "", refused.Reason, refused.Detail)
	case err != nil:
		return []string{err.Error()}
	case c.Refused != nil:
		return []string{fmt.Sprintf("not refused: %s", res.Forward)}
	case c.Envelope == nil:
		return []string{"want an envelope or refused"}
	}
	return same("envelope", format, res.Forward, c.Envelope)
}

// same compares an envelope with what a case expects, both without white space.
func same(what string, format abi.Format, got []byte, want json.RawMessage) []string {
	texts := [2][]byte{got, want}
	for i, f := range [2]abi.Format{format, abi.FormatJSON} {
		envelope, err := hint.DecodeEnvelope(f, texts[i])
		if err == nil {
			texts[i], err = envelope.AppendJSON(nil)
		}
		if err != nil {
			return []string{fmt.Sprintf("%s: %v: %q", what, err, texts[i])}
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		return []string{fmt.Sprintf("%s: got %s, want %s", what, texts[0], texts[1])}
	}
	return nil
}
