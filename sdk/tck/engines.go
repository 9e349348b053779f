package tck

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvrt/kvrt/runtime"
)

// RuleEngines is broken when the two engines of a kit do not agree on a guest.
const RuleEngines = "conform/engines"

// compare makes every call of the probes on a fresh instance on both engines: what the
// guest answers, logs and does, how it traps, and the fuel that it takes are the same.
func (k *Kit) compare(ctx context.Context, r *Report, spec runtime.GuestSpec, own []namedCase) error {
	if k.Second == nil {
		return nil
	}
	r.Second = k.Second.Name()
	var sides [2]*prober
	for i, e := range []runtime.Engine{k.Engine, k.Second} {
		p := &prober{ctx: ctx, report: r, rec: &Recorder{}}
		cfg := k.Config(p.rec)
		cfg.Engine = e
		var err error
		var refused *runtime.LoadError
		if p.solo, err = runtime.NewSolo(ctx, cfg, spec); i == 1 && errors.As(err, &refused) {
			for _, b := range refused.Problems {
				r.differ("", fmt.Sprintf("%s loads the guest and %s does not: %s", k.Engine.Name(), r.Second, b))
			}
			return nil
		}
		if err != nil {
			return r.add(err)
		}
		defer p.solo.Close()
		sides[i] = p
	}
	var starts [2]runtime.Start
	for i, p := range sides {
		var err error
		if starts[i], err = p.solo.Fresh(ctx); err != nil {
			return err
		}
	}
	if starts[0] != starts[1] {
		r.differ("", fmt.Sprintf("a start takes %d of fuel and %d bytes of memory on %s, and %d and %d on %s", starts[0].Fuel, starts[0].Memory, k.Engine.Name(), starts[1].Fuel, starts[1].Memory, r.Second))
	}
	inputs := few(corpus(sides[0].solo.Info().Manifest, starts[0].Features, own), starts[0])
	for i := range inputs {
		var said [2]reply
		for j, p := range sides {
			p.restart()
			if said[j] = p.call(&inputs[i], false); p.err != nil {
				return p.err
			}
		}
		r.Compared++
		if diff := said[0].differs(&said[1], true); diff != "" {
			r.differ(inputs[i].name, fmt.Sprintf("on %s, and then on %s: %s", k.Engine.Name(), r.Second, diff))
		}
	}
	return nil
}

func (r *Report) differ(item, msg string) {
	r.problem(RuleEngines, item, msg+": one of the two engines is wrong; do not load the module, and report it")
}
