package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/tck"
)

func newCall() *cobra.Command {
	var (
		flags                   soloFlags
		id                      identityFlags
		format, dialect, output string
	)
	cmd := &cobra.Command{
		Use:   "call MODULE parse|handle|formulate [INPUT|-]",
		Short: "Make one call of one guest and tell all about it",
		Long: `call loads a guest by itself, without a daemon and without a configuration, calls it
and writes one JSON line per call: the verdict, what the guest made, the fuel that it
used, its memory, its log lines and its effects.

  handle     INPUT is an envelope; every action that the guest takes is called in turn
  parse      INPUT is a document of the guest's dialect
  formulate  INPUT is a routing context; its events feed the lineage index, and no
             worker is in the catalogue

INPUT is a file, or standard input for - and when it is left out. MODULE is the path of
a .wasm file, or embedded:NAME for a built-in guest.

Every capability that the guest imports is granted. Effects are shown and not kept: no
hint is stored, and a source is not held against a list of allowed ones.

A call that gave an answer ends with code 0, whatever the verdict. A call that trapped,
used up its fuel or answered what the ABI does not allow ends with code 1, and a module
that is refused with code 4.`,
		Example: `  kvrt call embedded:kv-fetch handle envelope.json
  kvrt call guest.wasm handle -o text --fuel 1000 envelope.json
  kvrt call guest.wasm parse --parameters '{"strict":true}' document.json
  kvrt call embedded:retain-session formulate context.json
  kvrt call guest.wasm handle envelope.json | jq .fuel`,
		Args: func(cmd *cobra.Command, args []string) error {
			want := []string{"MODULE", "parse|handle|formulate", "INPUT"}
			return arguments(want[:max(2, min(3, len(args)))]...)(cmd, args)
		},
		ValidArgs: []string{"parse", "handle", "formulate"},
		RunE: func(cmd *cobra.Command, args []string) error {
			role, known := map[string]abi.Role{"parse": abi.RoleParser, "handle": abi.RoleHandler, "formulate": abi.RolePolicy}[args[1]]
			if !known {
				return &usageError{cmd.CommandPath(), fmt.Sprintf("%q is no call: say parse, handle or formulate", args[1])}
			}
			request := id.identity()
			if err := request.Check(); err != nil {
				return fmt.Errorf("%w: %w", runtime.ErrIdentity, err)
			}
			input := "-"
			if len(args) == 3 {
				input = args[2]
			} else if in, ok := cmd.InOrStdin().(*os.File); ok && isTerminal(in) {
				return &usageError{cmd.CommandPath(), "INPUT is missing, and standard input is a terminal"}
			}
			spec, info, err := flags.spec(cmd, args[0])
			if err != nil {
				return err
			}
			if !info.Manifest.Has(role) {
				return &usageError{cmd.CommandPath(), fmt.Sprintf("the guest is no %s: its roles are %s", role, joinRoles(info.Manifest.Roles))}
			}
			body, err := readInput(cmd, input, int(config.Default().Limits.BodyBytes))
			if err != nil {
				return err
			}
			c, err := newCaller(cmd, spec, role, request)
			if err != nil {
				return err
			}
			defer c.solo.Close()
			c.text = output == "text"
			f := (&envelopeFlags{format: format}).inputFormat()
			if f == abi.FormatUnknown {
				f = hint.Detect(body)
			}
			switch role {
			case abi.RoleParser:
				return c.parse(f, body, dialect)
			case abi.RolePolicy:
				return c.formulate(f, body)
			}
			return c.handle(f, body)
		},
	}
	flags.add(cmd)
	id.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&id.requestID, "request-id", "", "the request that the input is attached to")
	fs.StringVar(&dialect, "dialect", "", "parse: the dialect of the document (default: the first in the manifest)")
	choose(cmd, &format, "format", "", "encoding of the input", "auto", "json", "msgpack")
	choose(cmd, &output, "output", "o", "form of the output", "json", "text")
	return cmd
}

// soloFlags say how a guest is loaded by itself.
type soloFlags struct {
	parameters, memory string
	fuel               uint64
}

func (f *soloFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.parameters, "parameters", "", "JSON object for the guest, or @`file` that holds one")
	fs.StringVar(&f.memory, "memory", "", "linear memory, such as 16MiB (default: what the manifest asks for)")
	fs.Uint64Var(&f.fuel, "fuel", 0, "instructions per call (default: what the manifest asks for)")
}

// spec reads a module and describes it as a guest that is granted all that it imports.
func (f *soloFlags) spec(cmd *cobra.Command, module string) (runtime.GuestSpec, *runtime.Info, error) {
	var none runtime.GuestSpec
	wasm, err := readModule(module)
	if err != nil {
		return none, nil, &inputError{err}
	}
	info, err := runtime.Inspect(module, wasm)
	if err != nil {
		return none, nil, err
	}
	spec := runtime.GuestSpec{Name: info.Manifest.Name, Module: wasm, Source: module, Grants: info.Imports, Limits: runtime.Limits{Fuel: f.fuel}}
	return spec, info, f.apply(cmd, &spec)
}

// apply puts in what the flags say.
func (f *soloFlags) apply(cmd *cobra.Command, spec *runtime.GuestSpec) error {
	if f.fuel > 0 {
		spec.Limits.Fuel = f.fuel
	}
	if f.memory != "" {
		size, ok := parseSize(f.memory)
		if !ok {
			return &usageError{cmd.CommandPath(), fmt.Sprintf("--memory %q: want a size such as 16777216, 64KiB or 16MiB", f.memory)}
		}
		spec.Limits.Memory = size
	}
	if f.parameters != "" {
		p, err := readParameters(f.parameters)
		if err != nil {
			return &inputError{fmt.Errorf("--parameters: %w", err)}
		}
		spec.Parameters = p
	}
	return nil
}

// caller makes the calls of the verb call.
type caller struct {
	ctx       context.Context
	out, errs io.Writer
	text      bool
	role      abi.Role
	id        hint.Identity
	solo      *runtime.Solo
	rec       *tck.Recorder
	start     runtime.Start
	context   *hint.Context // of a policy's call
	failed    []string      // calls without an answer
}

func newCaller(cmd *cobra.Command, spec runtime.GuestSpec, role abi.Role, id hint.Identity) (*caller, error) {
	c := &caller{ctx: cmd.Context(), out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr(), role: role, id: id, rec: &tck.Recorder{}}
	var err error
	if c.solo, err = runtime.NewSolo(c.ctx, newKit().Config(c.rec), spec); err != nil {
		return nil, err
	}
	if c.start, err = c.solo.Fresh(c.ctx); err != nil {
		c.solo.Close()
		return nil, err
	}
	return c, nil
}

// parse makes the one call of a parser.
func (c *caller) parse(format abi.Format, body []byte, dialect string) error {
	known := c.solo.Info().Manifest.Dialects
	if dialect == "" {
		dialect = known[0]
	} else if !slices.Contains(known, dialect) {
		return fmt.Errorf("%w: %q; the guest reads %v", runtime.ErrUnknownDialect, dialect, known)
	}
	t := told{Call: "parse", Dialect: dialect}
	return c.done(c.call(&t, tck.ParseFrame(format, body, c.id.RequestID, dialect), 0, envelopeOf))
}

// formulate makes the one call of a policy.
func (c *caller) formulate(format abi.Format, body []byte) error {
	var x hint.Context
	if err := x.Decode(format, body, hint.ContextOptions{}); err != nil {
		return err
	}
	c.id, c.context = x.Identity(), &x
	return c.done(c.call(&told{Call: "formulate"}, x.Bytes(), 0, envelopeOf))
}

// envelopeOf is an envelope that a guest answered, as JSON.
func envelopeOf(body []byte) (json.RawMessage, error) {
	var f hint.Frame
	if err := f.Load(abi.FormatJSON, body, hint.Limits{}); err != nil {
		return nil, err
	}
	all := make([]hint.Forward, f.Len())
	for i := range all {
		all[i].Index = i
	}
	return hint.AppendEnvelope(nil, abi.FormatJSON, &f, all)
}

// handle calls a handler for every action that it takes.
func (c *caller) handle(format abi.Format, body []byte) error {
	var f hint.Frame
	if err := f.Decode(format, body, hint.Limits{}); err != nil {
		return err
	}
	f.Finish(c.id)
	var actions []int32
	for i := range f.Len() {
		if reason, detail := tck.Skips(c.solo.Info().Manifest, f.Action(i)); reason != abi.ReasonNone {
			fmt.Fprintf(c.errs, "action %d is not called: %s: %s\n", i, reason, detail)
			continue
		}
		actions = append(actions, int32(i))
	}
	if len(actions) == 0 && f.Len() > 0 {
		return &listed{exitWrong, []string{"kvrt: the envelope has no action that the guest takes: " + joinTypes(c.solo.Info().Manifest.ActionTypes)}}
	}
	frame := tck.HandleFrame(&f, actions, c.start.Features)
	for pos, i := range actions {
		a := f.Action(int(i))
		t := told{Call: "handle", action: &action{int(i), string(a.ID), string(a.Type), string(a.Version)}}
		err := c.call(&t, frame, uint32(pos), func(block []byte) (json.RawMessage, error) {
			return rewritten(&f, int(i), block)
		})
		if err != nil {
			return err
		}
	}
	return c.done(nil)
}

// rewritten is an action as its handler gave it back, as JSON.
func rewritten(f *hint.Frame, i int, block []byte) (json.RawMessage, error) {
	text, err := hint.AppendEnvelope(nil, abi.FormatJSON, f, []hint.Forward{{Index: i, Block: block}})
	if err != nil {
		return nil, err
	}
	var envelope struct {
		Actions []json.RawMessage `json:"actions"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return nil, err
	}
	return envelope.Actions[0], nil
}

// call makes one call and writes what became of it.
func (c *caller) call(t *told, frame []byte, pos uint32, made func(body []byte) (json.RawMessage, error)) error {
	c.rec.Reset(tck.Answers{})
	if c.context != nil {
		c.rec.Sessions.Seed(c.context, func(i int, err error) { fmt.Fprintf(c.errs, "events[%d]: %v\n", i, err) })
	}
	res, err := c.solo.Call(c.ctx, runtime.SoloCall{Role: c.role, Frame: frame, Position: pos, Identity: c.id})
	if err != nil {
		return err
	}
	t.Status, t.Reason, t.Detail = res.Status.String(), res.Reason.String(), res.Detail
	t.Fuel, t.Memory, t.Log, t.LogDropped, t.Effects = res.Fuel, res.Memory, c.rec.Lines, res.LogDropped, c.rec.Effects
	var text json.RawMessage
	if res.Body != nil {
		if text, err = made(res.Body); err != nil {
			fmt.Fprintf(c.errs, "%s: what the guest made cannot be written as JSON: %v\n", t.name(), err)
		}
	}
	t.made(text)
	switch {
	case res.Trap != nil:
		c.failed = append(c.failed, fmt.Sprintf("kvrt: %s: %s: %s", t.name(), t.Reason, t.Detail))
	case res.Broken != nil:
		c.failed = append(c.failed, fmt.Sprintf("kvrt: %s: what the guest answered breaks the ABI: %s", t.name(), t.Detail))
	case res.Spoilt >= 0:
		fmt.Fprintf(c.errs, "%s: the guest wrote to byte %d of its frame: the frame is the host's, and the calls that follow see it\n", t.name(), res.Spoilt)
	}
	if c.text {
		return t.write(c.out, c.solo.Limits())
	}
	return t.writeLine(c.out)
}

// done ends the verb: with code 1 when a call gave no answer.
func (c *caller) done(err error) error {
	if err == nil && len(c.failed) > 0 {
		return &listed{exitWrong, c.failed}
	}
	return err
}
