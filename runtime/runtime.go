package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Config configures a Runtime. Only Engine is required.
type Config struct {
	Engine Engine
	// Hosts are the capabilities that this host offers.
	Hosts []HostModule
	// Limits of the envelopes that are decoded.
	Limits hint.Limits
	// DropUnknown leaves actions of unknown types out of the forward envelope.
	DropUnknown bool
	// Target says which rules an envelope that policies add to must keep to.
	Target hint.Target
	// Capable, when set, tells what a worker takes of which a context does not tell.
	Capable hint.Capable
	// StripRequestHints leaves out the hints that came with a client's request.
	StripRequestHints bool
	// Wait is how long a call waits for a free instance. Default 5 ms.
	Wait time.Duration
	// Patience is how long host functions may make one call wait, when they ask as
	// [Call.Patience] wants it. Default 50 ms.
	Patience time.Duration
	// Memory is what all guests may come to in bytes: of each all instances and one spare,
	// linear memory and tables at their limits, its module, and its machine code where the
	// engine tells how large that is. A guest that would not fit is refused; one that is being
	// replaced counts until its last call has ended. Default 1 GiB, or 512 MiB for each of Processors when that is more.
	Memory uint64
	// Processors is how many there are to run guests. Pools have twice as many instances
	// by default. Default: GOMAXPROCS when New is called. A program may raise that
	// afterwards: a guest is not taken off its thread, so guests that compute for long
	// keep others from being served only while they hold all of GOMAXPROCS; with more of
	// those than processors, the system shares these out.
	Processors int
	// HeavyFuel makes a guest heavy: of guests with a call that took as much lately, at most
	// half as many calls as Processors run at once. Default 50,000, within which a guest
	// computes for 0.3 ms at worst.
	HeavyFuel uint64
	// Log receives results (debug), rejections (warn, once per type and reason),
	// lifecycle events and the guests' lines. Default: nothing is logged.
	Log *slog.Logger
	// Unmetered loads modules as they are, without counters for fuel and depth. Only
	// an engine's own deadline stops them then. For measuring what metering costs.
	Unmetered bool
	// CheckParameters, when set, holds a guest's parameters (a JSON object) against
	// the JSON Schema in its manifest.
	CheckParameters func(schema, parameters []byte) error
}

// Runtime holds the loaded guests and dispatches to them. All methods may be called
// from many goroutines.
type Runtime struct {
	cfg     Config
	log     *slog.Logger
	hosts   map[string]HostModule
	started time.Time
	warned  warnOnce
	budget  budget
	upkeep  chan struct{} // has one for each guest in its upkeep
	lane    chan struct{} // has one for each heavy call

	current atomic.Pointer[generation]
	hints   atomic.Uint32 // spreads Responses over instances
	shards  [16]shard

	mu      sync.Mutex // guards what follows: one build at a time
	history map[string][]GuestSpec
	swaps   atomic.Uint64
	failed  atomic.Uint64
	retired []retiree // drained, not seen closed yet
	closed  bool

	watching bool          // somebody looks after calls that do not end
	closing  chan struct{} // to tell him
	watched  chan struct{} // closed when he has left
}

const defaultPatience = 50 * time.Millisecond

// shard counts what belongs to no guest; a Response always counts in the same one.
type shard struct {
	_                         [64]byte // before the first one lies what every dispatch reads
	dispatches, malformed     atomic.Uint64
	formulations, badContexts atomic.Uint64
	unrouted                  [NumReasons]atomic.Uint64
	_                         [64]byte
}

// New makes a runtime without guests.
func New(cfg Config) (*Runtime, error) {
	if cfg.Engine == nil {
		return nil, errors.New("runtime.Config.Engine is required")
	}
	if cfg.Wait <= 0 {
		cfg.Wait = 5 * time.Millisecond
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Processors <= 0 {
		cfg.Processors = goruntime.GOMAXPROCS(0)
	}
	if cfg.HeavyFuel == 0 {
		cfg.HeavyFuel = defaultHeavyFuel
	}
	cfg.Memory = cfg.Budget()
	r := &Runtime{upkeep: make(chan struct{}, upkeepAtOnce(cfg.Processors)), lane: make(chan struct{}, laneWidth(cfg.Processors)), closing: make(chan struct{}), watched: make(chan struct{}), cfg: cfg, log: cfg.Log, budget: budget{most: cfg.Memory}, hosts: map[string]HostModule{}, started: time.Now(), history: map[string][]GuestSpec{}}
	for _, h := range cfg.Hosts {
		if _, twice := r.hosts[h.Name()]; twice {
			return nil, fmt.Errorf("the capability %s is offered twice", h.Name())
		}
		r.hosts[h.Name()] = h
	}
	r.current.Store(&generation{})
	return r, nil
}

// nanos reads the monotonic clock.
func (r *Runtime) nanos() int64 { return int64(time.Since(r.started)) }

func (r *Runtime) hostNames() []string {
	names := make([]string, 0, len(r.hosts))
	for n := range r.hosts {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Apply makes the guests exactly those of specs, in one generation. Guests whose
// specification did not change are kept as they are, but for a quarantine, which ends;
// when none did there is no new generation. When any guest is refused, nothing changes.
func (r *Runtime) Apply(ctx context.Context, specs []GuestSpec) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.offer(ctx, specs); err != nil {
		return err
	}
	for _, g := range r.current.Load().guests {
		g.pool.resume()
	}
	return nil
}

// Load adds a guest. A guest of that name must not be loaded.
func (r *Runtime) Load(ctx context.Context, spec GuestSpec) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	specs := r.Specs()
	if slices.ContainsFunc(specs, func(s GuestSpec) bool { return s.Name == spec.Name }) {
		return &LoadError{spec.Name, []Problem{{"spec/name", spec.Name, "a guest of that name is loaded: swap it, or choose another name"}}}
	}
	return r.offer(ctx, append(specs, spec))
}

// Swap replaces the guest of spec's name. One that is the same is kept, but for its
// quarantine, which ends.
func (r *Runtime) Swap(ctx context.Context, spec GuestSpec) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	specs, i, err := r.find(spec.Name)
	if err != nil {
		return err
	}
	specs[i] = spec
	if err := r.offer(ctx, specs); err != nil {
		return err
	}
	r.current.Load().guests[i].pool.resume()
	return nil
}

// Unload removes a guest.
func (r *Runtime) Unload(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	specs, i, err := r.find(name)
	if err != nil {
		return err
	}
	return r.offer(ctx, slices.Delete(specs, i, i+1))
}

// Rollback replaces a guest by what it was before its last change.
func (r *Runtime) Rollback(ctx context.Context, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	specs, i, err := r.find(name)
	if err != nil {
		return err
	}
	past := r.history[name]
	if len(past) == 0 {
		return fmt.Errorf("%w: %s has not been changed since it was loaded", ErrNoHistory, name)
	}
	specs[i] = past[len(past)-1]
	if err := r.offer(ctx, specs); err != nil {
		return err
	}
	r.history[name] = past[:len(past)-1]
	return nil
}

// find returns what is loaded, and which of it has that name.
func (r *Runtime) find(name string) (specs []GuestSpec, i int, err error) {
	specs = r.Specs()
	i = slices.IndexFunc(specs, func(s GuestSpec) bool { return s.Name == name })
	switch {
	case r.closed:
		err = ErrClosed
	case i < 0:
		err = fmt.Errorf("%w: %s", ErrUnknownGuest, name)
	}
	return specs, i, err
}

// Specs returns what is loaded.
func (r *Runtime) Specs() []GuestSpec {
	gen := r.current.Load()
	if gen == nil {
		return nil
	}
	specs := make([]GuestSpec, len(gen.guests))
	for i, g := range gen.guests {
		specs[i] = g.spec
	}
	return specs
}

// maxHistory is how many earlier specifications of a guest are kept.
const maxHistory = 8

// offer builds the generation of specs and, when every new guest is ready, makes it
// the current one.
func (r *Runtime) offer(ctx context.Context, specs []GuestSpec) error {
	if r.closed {
		return ErrClosed
	}
	old := r.current.Load()
	next, built, err := r.build(ctx, old, specs)
	if err != nil {
		for _, g := range built {
			g.pool.drain()
		}
		r.failed.Add(1)
		r.log.Warn("generation refused; the running one stays", "generation", old.number, "error", err)
		return err
	}
	if old.number > 0 && slices.Equal(next.guests, old.guests) {
		return nil // nothing changed
	}
	r.current.Store(next)
	r.swaps.Add(1)
	if !r.watching {
		r.watching = true
		go r.watchOver()
	}
	for _, g := range old.guests {
		if slices.Contains(next.guests, g) {
			continue
		}
		g.pool.drain()
		r.retired = append(r.retired, g.retire())
		if slices.ContainsFunc(specs, func(s GuestSpec) bool { return s.Name == g.spec.Name }) {
			past := append(r.history[g.spec.Name], g.spec)
			r.history[g.spec.Name] = past[max(0, len(past)-maxHistory):]
		} else {
			delete(r.history, g.spec.Name)
		}
	}
	r.retired = slices.DeleteFunc(r.retired, func(g retiree) bool {
		select {
		case <-g.closed:
			return true
		default:
			return false
		}
	})
	for _, g := range built {
		r.log.Info("guest loaded", "guest", g.spec.Name, "version", g.info.Manifest.Version, "sha256", g.info.SHA256, "generation", next.number)
	}
	return nil
}

// build makes the generation of specs; built are the guests that old did not have.
func (r *Runtime) build(ctx context.Context, old *generation, specs []GuestSpec) (next *generation, built []*guest, err error) {
	next = &generation{number: old.number + 1, byType: map[string]int32{}, byDialect: map[string]int32{}}
	names := map[string]bool{}
	for _, spec := range specs {
		if names[spec.Name] {
			return nil, built, &LoadError{spec.Name, []Problem{{"spec/name", spec.Name, "two guests have this name"}}}
		}
		names[spec.Name] = true
		i := slices.IndexFunc(old.guests, func(g *guest) bool { return g.spec.equal(&spec) })
		var g *guest
		if i >= 0 {
			g = old.guests[i]
		} else {
			if g, err = r.load(ctx, spec); err != nil {
				return nil, built, err
			}
			g.generation = next.number
			built = append(built, g)
		}
		if err := next.add(g); err != nil {
			return nil, built, err
		}
	}
	return next, built, nil
}

// add enters a guest into the routes. A declared action type has one handler, and a
// dialect one parser.
func (gen *generation) add(g *guest) error {
	id := int32(len(gen.guests))
	gen.guests = append(gen.guests, g)
	taken := func(what, name string, by int32) error {
		return &LoadError{g.spec.Name, []Problem{{"route/" + what, name, "guest " + gen.guests[by].spec.Name + " has it already: one generation has one guest for each"}}}
	}
	if m := g.info.Manifest; m.Has(abi.RoleHandler) {
		for _, t := range m.ActionTypes {
			if by, twice := gen.byType[t.Type]; twice {
				return taken("action-type", t.Type, by)
			}
			gen.byType[t.Type] = id
		}
	}
	for _, d := range g.info.Manifest.Dialects {
		if by, twice := gen.byDialect[d]; twice {
			return taken("dialect", d, by)
		}
		gen.byDialect[d] = id
	}
	if g.spec.Policy != nil {
		gen.policies = append(gen.policies, id)
	}
	return nil
}

// Close stops taking work, waits until calls in flight have ended or ctx is done, and
// frees everything.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed && r.watching {
		close(r.closing)
		<-r.watched
	}
	r.closed = true
	if old := r.current.Swap(nil); old != nil {
		for _, g := range old.guests {
			g.pool.drain()
			r.retired = append(r.retired, g.retire())
		}
	}
	for _, g := range r.retired {
		select { // first by itself: ctx may be done as well by now
		case <-g.closed:
			continue
		default:
		}
		select {
		case <-g.closed:
		case <-ctx.Done():
			return fmt.Errorf("guest %s still has calls in flight: %w", g.name, ctx.Err())
		}
	}
	return nil
}

// Generation is the number of the generation that is current.
func (r *Runtime) Generation() uint64 {
	if gen := r.current.Load(); gen != nil {
		return gen.number
	}
	return 0
}
