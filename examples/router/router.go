// Package router is a step in a router's request path, after the worker is chosen and
// before the request is sent, where llm-d has its PreRequest plugins: it runs kvrt's
// policies in the router's own process and puts their hints into the request. It embeds
// the runtime, an engine, and a fleet whose KV events it follows; nothing listens.
package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/hosts/worker"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// HintKey is where a request has its hint envelope. Package hint/lower turns it into what
// a serving engine takes.
const HintKey = "kv_hint"

// Request is a request as the router has it.
type Request struct {
	ID        string
	Model     string
	Tenant    string
	SessionID string // "": none
	// BlockHashes are those of the prompt, as the serving engines compute them; nil when
	// the router does not know them.
	BlockHashes []uint64
	BlockSize   int // tokens
	Body        map[string]json.RawMessage
}

// Endpoint is one worker that could have been chosen.
type Endpoint struct {
	ID            hint.WorkerID
	Rank          *uint32
	Source        string // where its blocks can be fetched; "" when they cannot
	MatchedBlocks int    // of the prompt, that it has on its device
}

// Config configures a Plugin.
type Config struct {
	// Policies are built-in ones by name, in order, with their parameters as JSON objects.
	Policies []Policy
	// Workers are the fleet, with the endpoints of their KV events.
	Workers []worker.Worker
	// Timeout is how long a request may wait. Default 2 ms. A policy that has begun is
	// bounded by its fuel; one that has not begun by then is left out.
	Timeout time.Duration
	Log     *slog.Logger // default: nothing is logged
}

// Policy is one policy.
type Policy struct {
	Name       string
	Parameters json.RawMessage
}

// Plugin adds hints to requests. Its methods may be called from many goroutines.
type Plugin struct {
	cfg     Config
	fleet   *fleet.Fleet
	runtime *runtime.Runtime
	pool    sync.Pool // of *runtime.Formulation
}

// New starts a plugin. A policy that is unknown or given parameters that it does not take
// is an error: a router fails here, and never in a request.
func New(ctx context.Context, cfg Config) (*Plugin, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Millisecond
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &Plugin{cfg: cfg, fleet: fleet.New(fleet.Config{Log: cfg.Log})}
	scope := func(c *runtime.Call) session.Scope { // lineage of the request's own tenant
		f := c.Context()
		return session.Scope{Namespace: string(f.Text(abi.OffContextFrameNamespace)), Tenant: string(f.Text(abi.OffContextFrameTenant))}
	}
	rt, err := runtime.New(runtime.Config{
		Engine:  wazero.New(wazero.Config{}),
		Hosts:   []runtime.HostModule{session.NewHost(p.fleet.Sessions(), scope), worker.NewHost(p.fleet.Catalogue()), log.Module{}},
		Capable: p.fleet.Catalogue().Capable,
		Wait:    cfg.Timeout,
		Log:     cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	p.runtime = rt
	if err := p.load(ctx); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

// load makes everything that can be wrong, and then lets feeds start.
func (p *Plugin) load(ctx context.Context) error {
	if err := p.fleet.Check(p.cfg.Workers); err != nil {
		return err
	}
	var specs []runtime.GuestSpec
	for _, x := range p.cfg.Policies {
		wasm, ok := policies.Module(x.Name)
		if !ok {
			return fmt.Errorf("there is no built-in policy %q", x.Name)
		}
		info, err := runtime.Inspect(x.Name, wasm)
		if err != nil {
			return err
		}
		specs = append(specs, runtime.GuestSpec{Name: x.Name, Module: wasm, Parameters: x.Parameters, Grants: info.Imports, Policy: &runtime.PolicyUse{}})
	}
	if err := p.runtime.Apply(ctx, specs); err != nil {
		return err
	}
	return p.fleet.Reconcile(p.cfg.Workers)
}

// Close ends the feeds and the policies.
func (p *Plugin) Close(ctx context.Context) error {
	p.fleet.Close()
	return p.runtime.Close(ctx)
}

// Fleet is the workers, to be changed as they come and go.
func (p *Plugin) Fleet() *fleet.Fleet { return p.fleet }

// PreRequest puts the policies' hints into a request that goes to target. Whatever goes
// wrong is logged, and the request goes on as it was.
func (p *Plugin) PreRequest(ctx context.Context, r *Request, target Endpoint, candidates []Endpoint) {
	if err := p.hint(ctx, r, target, candidates); err != nil {
		p.cfg.Log.Warn("a request goes on without new hints", "request_id", r.ID, "error", err)
	}
}

func (p *Plugin) hint(ctx context.Context, r *Request, target Endpoint, candidates []Endpoint) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	body, err := json.Marshal(routed(r, target, candidates))
	if err != nil {
		return err
	}
	f, _ := p.pool.Get().(*runtime.Formulation)
	if f == nil {
		f = p.runtime.NewFormulation()
	}
	req := runtime.FormulateRequest{Body: body, Format: abi.FormatJSON, Seed: p.fleet.Seed}
	if err := p.runtime.Formulate(ctx, &req, f); err != nil {
		return err
	}
	if len(f.Envelope) > 0 {
		if r.Body == nil {
			return errors.New("the request has no body")
		}
		r.Body[HintKey] = bytes.Clone(f.Envelope)
	}
	p.pool.Put(f)
	return nil
}

// routed is the routing context of a request. What the router does not know is left out:
// absent is not zero.
func routed(r *Request, target Endpoint, candidates []Endpoint) map[string]any {
	c := map[string]any{"request_id": r.ID, "selected": endpoint(target), "partition": map[string]any{"model": r.Model}}
	if r.Tenant != "" {
		c["tenant"] = r.Tenant
	}
	if r.SessionID != "" {
		c["session"] = map[string]any{"session_id": r.SessionID}
	}
	if r.BlockHashes != nil {
		c["block_hashes"], c["hash_kind"] = r.BlockHashes, "engine"
	}
	if r.BlockSize > 0 {
		c["block_size"] = r.BlockSize
	}
	if candidates != nil {
		list := []any{}
		for _, e := range candidates {
			list = append(list, endpoint(e))
		}
		c["candidates"] = list
	}
	if h := r.Body[HintKey]; h != nil { // the client's own
		c["request_hint"] = h
	}
	return c
}

func endpoint(e Endpoint) map[string]any {
	w := map[string]any{"worker_id": e.ID, "matched_blocks": map[string]any{"gpu": e.MatchedBlocks}}
	if e.Rank != nil {
		w["dp_rank"] = *e.Rank
	}
	if e.Source != "" {
		w["source_control_endpoint"] = e.Source
	}
	return w
}
