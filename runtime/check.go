package runtime

import (
	"context"
	"errors"

	"github.com/kvrt/kvrt/runtime/admit"
)

// Admit is [Inspect] with the function bodies: every rule that the module by itself can
// break. When rules are broken the error is a *LoadError.
func Admit(name string, wasm []byte) (*Info, error) {
	info, err := Inspect(name, wasm)
	refused := &LoadError{Guest: name}
	if err != nil && !errors.As(err, &refused) {
		return info, err
	}
	refused.addBodies(info, wasm)
	if len(refused.Problems) > 0 {
		return info, refused
	}
	return info, nil
}

// addBodies adds what is wrong with the function bodies of a module that could be read.
func (e *LoadError) addBodies(info *Info, wasm []byte) {
	if info != nil {
		e.add(info.Module.Validate(wasm, admit.Limits{}))
	}
}

// Check applies every rule that comes before compilation: those of [Admit], and what
// cfg and spec say of grants, offers, parameters and limits. Nothing of the guest is
// run, and cfg needs no engine. When rules are broken the error is a *LoadError.
func Check(cfg Config, spec GuestSpec) (*Info, error) {
	admitted := &admitted{}
	cfg.Engine = admitted
	r, err := New(cfg)
	if err != nil {
		return nil, err
	}
	admitted.budget = &r.budget
	info, _, err := r.check(&spec)
	refused := &LoadError{Guest: spec.Name}
	switch {
	case err == nil:
		// What is left of a load: limits, parameters and bodies, one after the other.
		if _, err = r.load(context.Background(), spec); !admitted.reached {
			return info, err
		}
		info.Reserves = admitted.reserved
		return info, nil
	case !errors.As(err, &refused):
		return nil, err
	}
	info, _ = Inspect(spec.Name, spec.Module) // its problems are among the refused
	refused.addBodies(info, spec.Module)
	return info, refused
}

// admitted is an engine that compiles nothing. A load gets to it when the guest holds
// every rule that needs no engine.
type admitted struct {
	budget   *budget
	reached  bool
	reserved uint64
}

func (*admitted) Name() string { return "none" }

func (a *admitted) Compile(context.Context, []byte, CompileOptions) (Module, error) {
	a.reached, a.reserved = true, a.budget.taken.Load()
	return nil, errors.New("admitted")
}
