package tck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// Report is what was found about a guest. It keeps to the ABI when Problems is empty.
type Report struct {
	Problems []runtime.Problem
	// Notes are what is allowed and worth knowing.
	Notes []string

	Info   *runtime.Info  // nil when the module could not be read
	Limits runtime.Limits // with defaults; the rest is zero unless the guest could be loaded
	Start  runtime.Start
	Roles  []RoleReport
	// Memory is the most bytes of linear memory that an instance had.
	Memory uint64
	// LargestFrame is the largest size in bytes, of powers of two, that the guest handed
	// out a buffer for; 0 when it refused twice the first.
	LargestFrame uint32
	Cases        CaseReport
	// Second is the name of the kit's second engine, and Compared how many calls were
	// made on both.
	Second   string
	Compared int
}

// RoleReport is what the calls of a role used, each on a fresh instance.
type RoleReport struct {
	Role                abi.Role
	Calls               int
	LeastFuel, MostFuel uint64
	MostFor             string // what used most
}

// CaseReport counts the guest's own cases.
type CaseReport struct{ Files, Cases, Runs, Failed int }

// OK tells whether no rule is broken.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// maxAlike bounds how often a report names one rule of the probes.
const maxAlike = 4

func (r *Report) problem(rule, item, msg string) {
	alike := 0
	for i := range r.Problems {
		if r.Problems[i].Rule == rule {
			alike++
		}
	}
	switch {
	case alike > maxAlike:
		return
	case alike == maxAlike:
		item, msg = "", "broken by more inputs, which are not listed"
	}
	r.Problems = append(r.Problems, runtime.Problem{Rule: rule, Item: item, Msg: msg})
}

// add takes over the problems of an error, and returns an error that is none of the
// guest's.
func (r *Report) add(err error) error {
	var refused *runtime.LoadError
	if !errors.As(err, &refused) {
		return err
	}
	r.Problems = append(r.Problems, refused.Problems...)
	return nil
}

// Verify judges a guest: first by the rules of admission and of the ABI, then, when it
// can be loaded, by the probes, and by its own cases in the files cases/*.jsonl, of
// which there may be none. The probes call each role with frames of all kinds and hold
// the guest to this:
//
//   - It does not trap, and small frames do not use up its fuel.
//   - Its answers are what the ABI allows, and do not lie over the frame.
//   - It does not write to the frame, and does not rely on the arena behind it.
//   - Two fresh instances give the same answer, log lines, effects and fuel.
//   - Unless it is stateful, its answer is the same after other calls.
//   - kvrt_arena hands out larger buffers or refuses them, and goes on after a refusal.
//   - A handler takes the action types of its manifest.
//   - Where the kit has a second engine, both agree on each call.
//
// The error is none of the guest's: the engine or the files failed.
func (k *Kit) Verify(ctx context.Context, spec runtime.GuestSpec, cases fs.FS) (*Report, error) {
	r, rec := &Report{}, &Recorder{}
	spec.Limits.Instances = 1
	var err error
	if r.Info, err = runtime.Check(k.Config(rec), spec); err != nil {
		return r, r.add(err)
	}
	solo, err := runtime.NewSolo(ctx, k.Config(rec), spec)
	if err != nil {
		return r, r.add(err)
	}
	defer solo.Close()
	r.Limits = solo.Limits()
	if r.Start, err = solo.Fresh(ctx); err != nil {
		return r, err
	}
	r.Memory = r.Start.Memory
	own, err := r.readCases(cases)
	if err != nil {
		return r, err
	}
	p := &prober{ctx: ctx, report: r, solo: solo, rec: rec, inputs: corpus(r.Info.Manifest, r.Start.Features, own)}
	if err := p.run(); err != nil {
		return r, err
	}
	if err := k.compare(ctx, r, spec, own); err != nil {
		return r, err
	}
	return r, r.runCases(ctx, k, spec, own)
}

// Trial does with a guest what a load does (its init, and a call of each role), runs its
// own cases, and where the kit has a second engine compares the two. It is what a host
// asks before it runs a guest itself: a guest may break the rules of the probes and be
// loaded.
//
// The cases are about the module: they get no parameters but their own, and the limits
// that the manifest asks for, or larger ones of spec that the guest may need to start.
//
// The error is none of the guest's.
func (k *Kit) Trial(ctx context.Context, spec runtime.GuestSpec, cases fs.FS) (*Report, error) {
	r := &Report{}
	spec.Limits.Instances = 1
	solo, err := runtime.NewSolo(ctx, k.Config(&Recorder{}), spec)
	if err != nil {
		return r, r.add(err)
	}
	r.Info, r.Limits = solo.Info(), solo.Limits()
	solo.Close()
	own, err := r.readCases(cases)
	if err != nil {
		return r, err
	}
	if err := k.compare(ctx, r, spec, own); err != nil {
		return r, err
	}
	spec.Parameters, spec.Limits = nil, larger(spec.Limits)
	return r, r.runCases(ctx, k, spec, own)
}

// larger keeps of what the operator says of a guest what it may not start without.
func larger(l runtime.Limits) (kept runtime.Limits) {
	if l.Memory > runtime.MaxMemory {
		kept.Memory = l.Memory
	}
	if l.InitFuel > runtime.DefaultInitFuel {
		kept.InitFuel = l.InitFuel
	}
	if l.TableElements > abi.DefaultTableElements {
		kept.TableElements = l.TableElements
	}
	if l.CallDepth > abi.DefaultCallDepth {
		kept.CallDepth = l.CallDepth
	}
	return kept
}

// readCases reads the case files that there are.
func (r *Report) readCases(cases fs.FS) (all []namedCase, err error) {
	if cases == nil {
		return nil, nil
	}
	files, err := fs.Glob(cases, "*.jsonl")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		f, err := cases.Open(file)
		if err != nil {
			return nil, err
		}
		read, err := ReadCases(f)
		f.Close()
		if err != nil {
			r.Problems = append(r.Problems, runtime.Problem{Rule: RuleCaseFile, Item: path.Base(file), Msg: err.Error()})
			continue
		}
		r.Cases.Files++
		for i := range read {
			all = append(all, namedCase{file, read[i]})
		}
	}
	return all, nil
}

// runCases runs the guest's own cases. Every one that does not hold is named.
func (r *Report) runCases(ctx context.Context, k *Kit, spec runtime.GuestSpec, own []namedCase) error {
	runner, err := k.NewRunner(spec)
	if err != nil {
		return err
	}
	defer runner.Close()
	for i := range own {
		out := runner.Run(ctx, &own[i].Case)
		r.Cases.Cases++
		r.Cases.Runs += out.Runs
		if len(out.Failures) > 0 {
			r.Cases.Failed++
		}
		for _, f := range out.Failures {
			r.Problems = append(r.Problems, runtime.Problem{Rule: RuleCaseFailed, Item: fmt.Sprintf("%s: %s", own[i].file, own[i].Name), Msg: f})
		}
	}
	return nil
}
