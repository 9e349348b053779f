package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/clock"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/hosts/wasi"
	"github.com/kvrt/kvrt/hosts/worker"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/tck"
)

// The engine, by name and by the module that it comes from.
const (
	engineName   = "wazero"
	engineModule = "github.com/tetratelabs/wazero"
)

// subsystems are what the capabilities of this program speak to. The zero value will do
// where nothing runs.
type subsystems struct {
	fetch    *fetch.Host
	sessions *session.Set
	workers  *worker.Catalogue
	blocks   *store.Host
	onDevice *tier.Host
}

// nothingKept are subsystems that are empty: every index is off, no worker is known, and
// there is no block store.
func nothingKept() subsystems {
	return subsystems{sessions: &session.Set{}, workers: worker.New(worker.Config{}), blocks: store.NewHost(nil, nil, nil), onDevice: tier.NewHost(nil, nil)}
}

// modules are the capabilities that this program offers.
func (s subsystems) modules() []runtime.HostModule {
	return []runtime.HostModule{s.fetch, session.NewHost(s.sessions, sessionScope), worker.NewHost(s.workers), s.blocks, s.onDevice, log.Module{}, clock.Module{}, wasi.Module{}}
}

// sessionScope: a policy asks about the sessions of its request's tenant and namespace.
func sessionScope(c *runtime.Call) session.Scope {
	f := c.Context()
	if f == nil { // a handler's call, which serves no routing context
		return session.Scope{}
	}
	return session.Scope{Namespace: viewOf(f.Text(abi.OffContextFrameNamespace)), Tenant: viewOf(f.Text(abi.OffContextFrameTenant))}
}

func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// newKit makes what a guest is looked at on by itself: the engine that it runs on, and
// hosts that keep nothing.
func newKit() *tck.Kit {
	return kitOn(newEngine(slog.New(slog.DiscardHandler), config.Default().Compile, false))
}

func kitOn(e runtime.Engine) *tck.Kit {
	hosts := nothingKept().modules()
	hosts = slices.DeleteFunc(hosts, func(h runtime.HostModule) bool { return h.Name() == abi.ModuleFetch }) // the kit has its own
	return &tck.Kit{Engine: e, Hosts: hosts, CheckParameters: checkParameters}
}

// stack is everything that a configuration asks for, wired together and running.
type stack struct {
	runtime *runtime.Runtime
	store   *fetch.Store
	subsystems
	fleet       *fleet.Fleet    // of the daemon
	device      *device         // of the daemon
	peers       *peers.Exchange // of the daemon; nil without one
	trust       *trust          // of the exchange
	peersClosed bool
	log         *slog.Logger
}

// wire builds a stack with the configuration's guests loaded, for work in this process:
// it knows the workers, and follows nobody's events.
func wire(ctx context.Context, cfg *config.Config, log *slog.Logger) (*stack, error) {
	s := &stack{log: log, subsystems: nothingKept()}
	put := workersOf(cfg)
	if err := s.workers.Update(put, nil); err != nil {
		return nil, workersProblem(cfg, put, err)
	}
	return s, s.build(ctx, cfg)
}

// wireDaemon builds a stack that follows the workers' events.
func wireDaemon(ctx context.Context, cfg *config.Config, log *slog.Logger) (*stack, error) {
	f := fleet.New(fleet.Config{Index: session.Config{MaxSessions: cfg.Lineage.MaxSessions, MaxNodes: cfg.Lineage.MaxNodes}, Log: log})
	s := &stack{log: log, fleet: f, subsystems: subsystems{sessions: f.Sessions(), workers: f.Catalogue()}}
	put := workersOf(cfg)
	if err := f.Check(put); err != nil {
		return nil, workersProblem(cfg, put, err)
	}
	var err error
	if s.device, err = openDevice(cfg); err != nil {
		return nil, err
	}
	if s.blocks, err = newBlocks(cfg, s.device); err != nil {
		return nil, errors.Join(err, s.closeMemory(ctx))
	}
	if s.onDevice, err = newTier(cfg, s.device, s.blocks); err != nil {
		return nil, errors.Join(err, s.closeMemory(ctx))
	}
	if err := s.build(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.closeMemory(ctx))
	}
	if s.peers, s.trust, err = newExchange(cfg, s.store, s.blocks.Store()); err != nil {
		return nil, errors.Join(err, s.closeMemory(ctx))
	}
	if s.peers != nil {
		s.fetch.SetPrefetcher(s.peers, spaceOf(s.blocks))
	}
	i := s.device.Info()
	log.Info("device", "driver", i.Driver, "name", i.Name, "detail", i.Detail, "choice", s.device.why)
	return s, f.Reconcile(put) // last: feeds start
}

// build makes the runtime and loads the guests.
func (s *stack) build(ctx context.Context, cfg *config.Config) error {
	allow, err := s.allowList(ctx, cfg)
	if err != nil {
		return err
	}
	specs, err := guestSpecs(cfg)
	if err != nil {
		return err
	}
	s.store = fetch.New(fetch.Config{
		TTL: cfg.Fetch.TTL, TombstoneTTL: cfg.Fetch.TombstoneTTL, MaxEntries: cfg.Fetch.MaxEntries, MaxHashes: cfg.Fetch.MaxHashes,
		Ended: s.ended,
	})
	s.fetch = fetch.NewHost(s.store, allow)
	if s.runtime, err = runtime.New(runtimeConfig(cfg, newEngine(s.log, cfg.Compile, true), s.subsystems, s.log)); err != nil {
		return err
	}
	return s.runtime.Apply(ctx, specs)
}

func runtimeConfig(cfg *config.Config, engine runtime.Engine, s subsystems, log *slog.Logger) runtime.Config {
	return runtime.Config{
		Engine:          engine,
		Memory:          uint64(cfg.GuestMemory),
		HeavyFuel:       cfg.Limits.HeavyFuel,
		Hosts:           s.modules(),
		Limits:          hint.Limits{BodyBytes: int(cfg.Limits.BodyBytes), Actions: cfg.Limits.Actions},
		DropUnknown:     cfg.ForwardUnknown == config.UnknownDrop,
		Target:          targetOf(cfg),
		Capable:         s.workers.Capable,
		Log:             log,
		CheckParameters: checkParameters,

		StripRequestHints: cfg.RequestHints == config.HintsStrip,
	}
}

// reconfigure makes the guests, workers and allowed sources those of cfg. When anything
// is wrong nothing changes: what can fail comes first.
func (s *stack) reconfigure(ctx context.Context, cfg *config.Config) error {
	allow, err := s.allowList(ctx, cfg)
	if err != nil {
		return err
	}
	specs, err := guestSpecs(cfg)
	if err != nil {
		return err
	}
	put := workersOf(cfg)
	if err := s.fleet.Check(put); err != nil {
		return workersProblem(cfg, put, err)
	}
	trusted, err := readCredentials(cfg)
	if err != nil {
		return err
	}
	if err := s.runtime.Apply(ctx, specs); err != nil {
		return err
	}
	if err := s.fleet.Reconcile(put); err != nil { // it was checked, and the server makes one change at a time
		return workersProblem(cfg, put, err)
	}
	s.fetch.SetAllowed(allow)
	s.trust.renew(trusted)
	return nil
}

// allowList reads and resolves the allowed sources and logs what they leave in doubt.
func (s *stack) allowList(ctx context.Context, cfg *config.Config) (*fetch.AllowList, error) {
	allow, err := parseAllowList(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for _, warning := range allow.Warnings() {
		s.log.Warn("fetch.allowed_sources: " + warning)
	}
	return allow, nil
}

func parseAllowList(ctx context.Context, cfg *config.Config) (*fetch.AllowList, error) {
	sources := append([]string{}, cfg.Fetch.AllowedSources...) // not nil: an empty list allows nothing
	allow, err := fetch.ParseAllowList(ctx, sources, nil)
	var bad *fetch.AllowListError
	if errors.As(err, &bad) {
		wrong := &config.Error{}
		for _, b := range bad.Bad {
			wrong.Problems = append(wrong.Problems, cfg.Problem(fmt.Sprintf("fetch.allowed_sources[%d]", b.Index), b.Error()))
		}
		return nil, wrong
	}
	return allow, err
}

// guestSpecs reads the modules of a configuration and chooses its policies. The error is
// a *config.Error with everything that is wrong.
func guestSpecs(cfg *config.Config) ([]runtime.GuestSpec, error) {
	guests, problems := readGuests(cfg)
	if len(problems) > 0 {
		return nil, &config.Error{Problems: problems}
	}
	specs := make([]runtime.GuestSpec, len(guests))
	for i, g := range guests {
		specs[i] = g.spec
	}
	return specs, nil
}

// specOf is a guest as its configuration has it.
func specOf(g *config.Guest, wasm []byte) runtime.GuestSpec {
	return runtime.GuestSpec{
		Name: g.Name, Module: wasm, Source: g.Module, SHA256: g.SHA256, Grants: g.Grants, Parameters: g.Parameters,
		Limits: limitsOf(&g.Limits),
	}
}

func limitsOf(l *config.GuestLimits) runtime.Limits {
	return runtime.Limits{
		Memory: uint64(l.Memory), TableElements: l.TableElements, Instances: l.Instances, CallDepth: uint32(l.CallDepth),
		Fuel: l.Fuel, ParseFuel: l.ParseFuel, FormulateFuel: l.FormulateFuel, InitFuel: l.InitFuel,
		IdleFuel: l.IdleFuel, IdleCalls: l.IdleCalls, IdleBytes: uint64(l.IdleBytes),
		OutputBytes: uint32(l.OutputBytes), Actions: l.Actions, LogLines: l.LogLines, LogBytes: int(l.LogBytes), HostCalls: l.HostCalls, HostBytes: uint64(l.HostBytes),
	}
}

// embeddedPrefix begins the reference of a built-in guest.
const embeddedPrefix = "embedded:"

// maxModule is how much of a file is read as a module: more than admission takes.
const maxModule = 32 << 20

// readModule reads a module: a path, or embedded:NAME for a built-in guest.
func readModule(ref string) ([]byte, error) {
	if name, ok := strings.CutPrefix(ref, embeddedPrefix); ok {
		wasm, ok := policies.Module(name)
		if !ok {
			return nil, fmt.Errorf("there is no built-in guest %q; there are %s", name, strings.Join(policies.Guests(), ", "))
		}
		return wasm, nil
	}
	f, err := os.Open(ref)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxModule))
}
