package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

// child is what this program does when it is started as a child: everything that is
// done with a guest before it is trusted with a call in the daemon.
func child() wazero.Child { return wazero.Child{Work: work} }

// work does a task. The error of a guest that is refused is a *runtime.LoadError.
func work(ctx context.Context, e runtime.Engine, raw []byte) ([]byte, error) {
	var t task
	module, err := t.decode(raw)
	if err != nil {
		return nil, err
	}
	kit := kitOn(e)
	kit.Second = secondEngine()
	switch {
	case t.Trial != nil:
		t.Trial.Module = module
		r, err := kit.Trial(ctx, *t.Trial, t.Cases.open())
		if err == nil && !r.OK() {
			err = &runtime.LoadError{Guest: t.Trial.Name, Problems: r.Problems}
		}
		return nil, err
	case t.Verify != nil:
		t.Verify.wasm = module
		a, err := t.Verify.run(ctx, kit, t.Cases)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
	return nil, errors.New("the task is none that this version knows: build both programs from the same source")
}

// verifyTask is what a child needs to know to verify a guest. Nothing of the module was
// looked at before.
type verifyTask struct {
	Module string `json:"module"` // as it was named
	wasm   []byte
	// With a configuration: its guests, and which of them has this file, or -1.
	Configured bool           `json:"configured"`
	Guests     []config.Guest `json:"guests,omitempty"`
	File       int            `json:"file"`
	// Flags win over what stands in the configuration and the manifest.
	Flags runtime.GuestSpec `json:"flags"`
}

// verifyAnswer is what a child found.
type verifyAnswer struct {
	Guest   string   `json:"guest"` // its name
	Verdict *verdict `json:"verdict,omitempty"`
	// Unknown tells that the configuration has no guest for the module.
	Unknown bool `json:"unknown,omitempty"`
}

// maxProblems is how many broken rules verify names, of at most so many bytes each.
const (
	maxProblems    = 256
	maxProblemText = 2000
)

func (v *verifyTask) run(ctx context.Context, kit *tck.Kit, cases *caseFolder) (*verifyAnswer, error) {
	spec := runtime.GuestSpec{Name: unnamedGuest, Module: v.wasm, Source: v.Module}
	info, _ := runtime.Inspect(v.Module, v.wasm) // the judge names what is wrong
	if info != nil {
		spec.Grants = info.Imports
	}
	if info != nil && info.Manifest != nil {
		spec.Name = info.Manifest.Name
	}
	if v.Configured {
		g := v.guest(spec.Name)
		if g == nil {
			return &verifyAnswer{Guest: spec.Name, Unknown: true}, nil
		}
		spec = specOf(g, v.wasm)
		if string(spec.Parameters) == "null" { // there were none
			spec.Parameters = nil
		}
		spec.Source = v.Module
	}
	if v.Flags.Limits.Fuel > 0 {
		spec.Limits.Fuel = v.Flags.Limits.Fuel
	}
	if v.Flags.Limits.Memory > 0 {
		spec.Limits.Memory = v.Flags.Limits.Memory
	}
	if v.Flags.Parameters != nil {
		spec.Parameters = v.Flags.Parameters
	}
	report, err := kit.Verify(ctx, spec, cases.open())
	if err != nil {
		return nil, err
	}
	if more := len(report.Problems) - maxProblems; more > 0 {
		report.Problems = append(report.Problems[:maxProblems], runtime.Problem{Rule: report.Problems[maxProblems].Rule, Msg: "and more, which are not listed"})
	}
	for i := range report.Problems {
		p := &report.Problems[i]
		p.Item, p.Msg = clip(p.Item, maxProblemText), clip(p.Msg, maxProblemText)
	}
	return &verifyAnswer{Guest: spec.Name, Verdict: newVerdict(v.Module, v.wasm, kit, report)}, nil
}

// guest finds the guest of a configuration that a module is meant for: that with its
// file, or else with its name.
func (v *verifyTask) guest(name string) *config.Guest {
	if v.File >= 0 && v.File < len(v.Guests) {
		return &v.Guests[v.File]
	}
	for i := range v.Guests {
		if g := &v.Guests[i]; g.Name == name {
			return g
		}
	}
	return nil
}

// unnamedGuest is the name of a guest whose manifest cannot be read.
const unnamedGuest = "guest"

// clip cuts a text to at most so many bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
