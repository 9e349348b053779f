package tck

import (
	"context"
	"fmt"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Soak is what became of many calls of a guest.
type Soak struct {
	Calls int
	// Early and Late are bytes of linear memory of all instances, the most in the first
	// tenth of the calls and the most after it.
	Early, Late uint64
	// LeastFuel and MostFuel are by body, of the first action.
	LeastFuel, MostFuel []uint64
	Idle                runtime.IdleStats
	Elapsed             time.Duration
}

// Soak calls a handler again and again through a pool, with the given bodies in turn. An
// error tells of the first call that was not answered as the first with its body was:
// equal inputs have equal answers, whatever the guest's collector does.
func (k *Kit) Soak(ctx context.Context, spec runtime.GuestSpec, bodies [][]byte, calls int) (*Soak, error) {
	rec := &Recorder{}
	cfg := k.Config(rec)
	cfg.Log = nil
	cfg.Wait = time.Minute // a busy machine is no finding
	r, err := runtime.New(cfg)
	if err != nil {
		return nil, err
	}
	defer r.Close(ctx)
	if err := r.Apply(ctx, []runtime.GuestSpec{spec}); err != nil {
		return nil, err
	}
	s := &Soak{LeastFuel: make([]uint64, len(bodies)), MostFuel: make([]uint64, len(bodies))}
	first := make([]string, len(bodies))
	res := r.NewResponse()
	begun := time.Now()
	for ; s.Calls < calls; s.Calls++ {
		if s.Calls%max(calls/1000, 1) == 0 {
			s.sample(r, s.Calls < calls/10)
		}
		i := s.Calls % len(bodies)
		rec.Effects = rec.Effects[:0]
		if err := r.Dispatch(&runtime.Request{Body: bodies[i], Identity: hint.Identity{RequestID: "soak"}}, res); err != nil {
			return nil, err
		}
		out := &res.Results[0]
		if s.Calls < len(bodies) {
			first[i] = verdictOf(out)
			s.LeastFuel[i] = out.Fuel
		} else if out.Reason.String() != "" || first[i] != accepted {
			if got := verdictOf(out); got != first[i] {
				return nil, fmt.Errorf("call %d, body %d: %s, and the first time %s", s.Calls, i, got, first[i])
			}
		}
		s.LeastFuel[i], s.MostFuel[i] = min(s.LeastFuel[i], out.Fuel), max(s.MostFuel[i], out.Fuel)
	}
	s.Elapsed = time.Since(begun)
	s.sample(r, false)
	return s, nil
}

func (s *Soak) sample(r *runtime.Runtime, early bool) {
	var o observer
	r.Observe(&o)
	s.Idle = o.guest.Idle
	if early {
		s.Early = max(s.Early, o.guest.MemoryBytes)
	} else {
		s.Late = max(s.Late, o.guest.MemoryBytes)
	}
}

// accepted is the verdict that is not spelled out again for each call.
const accepted = "ACCEPTED: "

func verdictOf(r *hint.Result) string {
	return r.Status.String() + r.Reason.String() + ": " + string(r.Detail)
}

// observer keeps what a runtime says of its one guest.
type observer struct{ guest runtime.GuestStats }

func (*observer) Runtime(runtime.RuntimeStats) {}

func (o *observer) Guest(s runtime.GuestStats) { o.guest = s }
