package tck

import (
	"context"
	"fmt"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Soak is what became of many calls of a guest.
type Soak struct {
	Calls int
	// Early and Late are bytes of linear memory of all instances, the most in the first
	// tenth of the calls and the most after it.
	Early, Late uint64
	// LeastFuel and MostFuel are by body, of all its actions.
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
	first := make([][]verdict, len(bodies))
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
		var fuel uint64
		for pos := range res.Results {
			out := &res.Results[pos]
			fuel += out.Fuel
			if s.Calls < len(bodies) {
				first[i] = append(first[i], verdictOf(out))
			} else if want := first[i][pos]; want.status != out.Status || want.reason != out.Reason || want.detail != string(out.Detail) {
				return nil, fmt.Errorf("call %d, body %d, action %d: %v, and the first time %v", s.Calls, i, pos, verdictOf(out), want)
			}
		}
		if s.Calls < len(bodies) {
			s.LeastFuel[i] = fuel
		}
		s.LeastFuel[i], s.MostFuel[i] = min(s.LeastFuel[i], fuel), max(s.MostFuel[i], fuel)
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

// verdict is what is compared of a result.
type verdict struct {
	status abi.Status
	reason abi.Reason
	detail string
}

func (v verdict) String() string {
	return v.status.String() + " " + v.reason.String() + ": " + v.detail
}

func verdictOf(r *hint.Result) verdict { return verdict{r.Status, r.Reason, string(r.Detail)} }

// observer keeps what a runtime says of its one guest.
type observer struct{ guest runtime.GuestStats }

func (*observer) Runtime(runtime.RuntimeStats) {}

func (o *observer) Guest(s runtime.GuestStats) { o.guest = s }
