package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kvrt/kvrt/runtime"
)

// refusing is an engine that compiles nothing, and sees what it is told of the guest.
type refusing struct {
	err  error
	spec *runtime.GuestSpec
}

func (*refusing) Name() string { return "refusing" }

func (r *refusing) Compile(_ context.Context, _ []byte, opts runtime.CompileOptions) (runtime.Module, error) {
	r.spec = opts.Spec
	return nil, r.err
}

// TestEngineNamesRules: what an engine says of the rules that a guest breaks is what the
// load says, under the guest's own name.
func TestEngineNamesRules(t *testing.T) {
	rule := runtime.Problem{Rule: "trial/wall", Msg: "it takes too long"}
	for _, c := range []struct {
		err  error
		want runtime.Problem
	}{
		{fmt.Errorf("in a child: %w", &runtime.LoadError{Problems: []runtime.Problem{rule}}), rule},
		{errors.New("no memory"), runtime.Problem{Rule: "engine/compile", Item: "refusing", Msg: "no memory"}},
	} {
		e := &refusing{err: c.err}
		spec := scriptedGuest(t, '0')
		spec.Parameters = []byte(`{}`)
		_, err := runtime.NewSolo(context.Background(), runtime.Config{Engine: e, Hosts: []runtime.HostModule{&effects{}}}, spec)
		var refused *runtime.LoadError
		if !errors.As(err, &refused) || refused.Guest != spec.Name || len(refused.Problems) != 1 || refused.Problems[0] != c.want {
			t.Errorf("%v: got %v", c.err, err)
		}
		if e.spec == nil || e.spec.Name != spec.Name || string(e.spec.Parameters) != `{}` || string(e.spec.Module) != string(spec.Module) {
			t.Errorf("the engine is told of %+v", e.spec)
		}
	}
}
