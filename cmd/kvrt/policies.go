package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
)

// located is a guest with its place in the configuration.
type located struct {
	spec runtime.GuestSpec
	path string // guests[1], kv_hint_policy[0]
	typ  string // of a policy
}

// loader reads the guests of a configuration.
type loader struct {
	cfg   *config.Config
	wrong config.Error
	specs []located // of guests, then of kv_hint_policy, in order
	base  map[string]int
}

// readGuests reads the modules of a configuration and chooses its policies. What it
// returns leaves out what is wrong, which the second result lists.
func readGuests(cfg *config.Config) ([]located, []config.Problem) {
	l := &loader{cfg: cfg, base: map[string]int{}}
	for i := range cfg.Guests {
		g := &cfg.Guests[i]
		path := fmt.Sprintf("guests[%d]", i)
		wasm, err := readModule(g.Module)
		if err != nil {
			l.problem(path+".module", err.Error())
			continue
		}
		l.base[g.Name] = len(l.specs)
		l.specs = append(l.specs, located{spec: specOf(g, wasm), path: path})
	}
	guests := len(l.specs)
	for i := range cfg.KVHintPolicy {
		l.policy(i)
	}
	l.dropTemplates(guests)
	l.checkOnError()
	return l.specs, l.wrong.Problems
}

func (l *loader) problem(path, msg string) {
	l.wrong.Problems = append(l.wrong.Problems, l.cfg.Problem(path, msg))
}

// policy adds one policy: the guest that its type names, with parameters of its own.
func (l *loader) policy(i int) {
	p, path := &l.cfg.KVHintPolicy[i], l.cfg.PolicyPath(i)
	spec, ok := l.typed(p.Type)
	if !ok {
		if !slices.ContainsFunc(l.cfg.Guests, func(g config.Guest) bool { return g.Name == p.Type }) { // else its module could not be read
			l.problem(path+".type", fmt.Sprintf("unknown policy type %q; known types: %s", p.Type, l.known()))
		}
		return
	}
	if info, err := runtime.Inspect(spec.Name, spec.Module); err == nil && !info.Manifest.Has(abi.RolePolicy) {
		l.problem(path+".type", fmt.Sprintf("the guest %q is no policy: its roles are %s; known types: %s", p.Type, joinRoles(info.Manifest.Roles), l.known()))
		return
	}
	spec.Name = p.Called()
	if p.Parameters != nil {
		spec.Parameters = p.Parameters
	}
	spec.Policy = &runtime.PolicyUse{Partition: partitionOf(p.Partition)}
	for _, s := range l.cfg.Formulate.Partitions {
		spec.Policy.Supplies = append(spec.Policy.Supplies, runtime.Supply{Partition: partitionOf(s.Partition), Fields: s.Supplies})
	}
	if _, taken := l.base[spec.Name]; taken && spec.Name != p.Type {
		l.problem(path+".name", fmt.Sprintf("a guest is called %q: give the policy another name", spec.Name))
		return
	}
	l.specs = append(l.specs, located{spec, path, p.Type})
}

func partitionOf(p config.Partition) runtime.Partition {
	return runtime.Partition{Model: p.Model, Group: p.Group, WorkerType: p.WorkerType}
}

// typed finds what a type names: a guest of the configuration, or a built-in one, which
// is granted what it imports.
func (l *loader) typed(name string) (runtime.GuestSpec, bool) {
	if at, ok := l.base[name]; ok {
		return l.specs[at].spec, true
	}
	wasm, ok := policies.Module(name)
	if !ok {
		return runtime.GuestSpec{}, false
	}
	spec := runtime.GuestSpec{Module: wasm, Source: embeddedPrefix + name}
	if info, err := runtime.Inspect(name, wasm); err == nil {
		spec.Grants = info.Imports
	}
	return spec, true
}

// known lists the types that there are.
func (l *loader) known() string { return listTypes(policyTypes(l.specs)) }

// policyTypes lists the policies among guests and among the built-in ones, sorted.
func policyTypes(guests []located) []string {
	names := map[string]bool{}
	isPolicy := func(name string, wasm []byte) {
		if info, err := runtime.Inspect(name, wasm); err == nil && info.Manifest.Has(abi.RolePolicy) {
			names[name] = true
		}
	}
	for i := range guests {
		if g := &guests[i]; g.typ == "" {
			isPolicy(g.spec.Name, g.spec.Module)
		}
	}
	for _, name := range policies.Guests() {
		wasm, _ := policies.Module(name)
		isPolicy(name, wasm)
	}
	return slices.Sorted(maps.Keys(names))
}

func listTypes(types []string) string {
	if len(types) == 0 {
		return "<none>"
	}
	return strings.Join(types, ", ")
}

// dropTemplates leaves out those of the first guests that are loaded as policies: under
// their own name, or, when they are nothing but policies, under others.
func (l *loader) dropTemplates(guests int) {
	var kept []located
	for i, g := range l.specs[:guests] {
		name := g.spec.Name
		own := slices.ContainsFunc(l.specs[guests:], func(p located) bool { return p.spec.Name == name })
		if !own && slices.ContainsFunc(l.cfg.KVHintPolicy, func(p config.Policy) bool { return p.Type == name }) {
			info, err := runtime.Inspect(name, l.specs[i].spec.Module)
			own = err == nil && len(info.Manifest.Roles) == 1 && info.Manifest.Has(abi.RolePolicy)
		}
		if !own {
			kept = append(kept, g)
		}
	}
	l.specs = append(kept, l.specs[guests:]...)
}

// checkOnError holds what on_error says against what the guest does.
func (l *loader) checkOnError() {
	for i := range l.cfg.Guests {
		g := &l.cfg.Guests[i]
		policy := slices.ContainsFunc(l.cfg.KVHintPolicy, func(p config.Policy) bool { return p.Type == g.Name })
		path := fmt.Sprintf("guests[%d].on_error", i)
		switch {
		case policy && g.OnError == config.OnErrorReject:
			l.problem(path, "a policy that fails never takes its request with it: say open, or leave the key out")
		case !policy && g.OnError == config.OnErrorOpen:
			l.problem(path, "a guest that is not in kv_hint_policy rejects the action that it fails on: say reject, or leave the key out")
		}
	}
}

// targetOf is what an envelope must keep to that policies add to.
func targetOf(cfg *config.Config) hint.Target {
	f := &cfg.Formulate
	return hint.Target{ManyFetches: f.KVFetch == config.FetchMany, TokenRanges: f.KVRetain == config.RetainTokenRanges, Struct: f.Payloads == config.PayloadsStruct}
}
