package runtime

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime/admit"
)

// hostFeatures are the feature bits that this host offers.
const hostFeatures = abi.FeatureRawPayload

// guest is one loaded guest: code, pool, and what dispatch asks of it. It is shared
// by every generation that holds it and drained when the last one is replaced.
type guest struct {
	runtime    *Runtime
	spec       GuestSpec // as given
	limits     Limits    // with defaults
	info       *Info
	module     Module
	pool       *pool
	reserved   uint64 // bytes of the runtime's budget
	initFrame  []byte
	requires   abi.ContextFields // of a policy
	skipped    atomic.Uint64     // requests that a policy was not called for
	generation uint64            // the one that loaded it
	warned     warnOnce
	long       atomic.Bool // a start or a kvrt_idle took as much fuel as makes a guest heavy
}

// Info is what can be told about a module without running it.
type Info struct {
	Manifest *abi.Manifest
	Module   *admit.Module
	SHA256   string
	// Imports are the import modules, each a capability but abi.ModuleWASI; sorted.
	Imports []string
	// Reserves is what the guest takes of [Config].Memory, its machine code not counted.
	// [Check] tells it of a guest that holds every rule.
	Reserves uint64
}

// Inspect reads a module and applies every rule that needs neither an engine nor a
// grant: the binary, the ABI's exports and imports, the memory, the manifest. When
// rules are broken the error is a *LoadError; the Info holds what could be read.
func Inspect(name string, wasm []byte) (*Info, error) { return inspect(name, wasm, admit.Limits{}) }

func inspect(name string, wasm []byte, limits admit.Limits) (*Info, error) {
	refused := &LoadError{Guest: name}
	m, err := admit.Read(wasm, limits)
	refused.add(err)
	if m == nil {
		return nil, refused
	}
	info := &Info{Module: m, SHA256: hex.EncodeToString(m.SHA256[:])}
	refused.add(m.CheckStart())
	refused.add(m.CheckMemory(0xffff))
	if err := m.CheckCustom(abi.ManifestSection); err != nil {
		refused.problem("abi/manifest", abi.ManifestSection, "the module carries no manifest, or several: append one with kvrt.manifest as the section's name")
	} else if raw, _ := m.Custom(abi.ManifestSection); raw != nil {
		if info.Manifest, err = abi.ParseManifest(raw); err != nil {
			refused.problem("abi/manifest", abi.ManifestSection, err.Error())
		}
	}
	for _, i := range m.Imports {
		if !slices.Contains(info.Imports, i.Module) {
			info.Imports = append(info.Imports, i.Module)
		}
	}
	slices.Sort(info.Imports)
	refused.checkExports(info)
	refused.checkImports(info)
	if len(refused.Problems) > 0 {
		return info, refused
	}
	return info, nil
}

// checkExports holds the exports of the ABI against the module and its manifest.
func (e *LoadError) checkExports(info *Info) {
	for _, x := range abi.Contract().Exports {
		_, has := info.Module.Export(x.Name)
		if x.Need == "required" || has {
			e.add(info.Module.CheckExport(x.Name, valTypes(x.Params), valTypes(x.Results)))
		}
	}
	if info.Manifest == nil {
		return
	}
	for _, r := range info.Manifest.Roles {
		if _, has := info.Module.Export(r.Export()); !has {
			e.problem("abi/role", r.Export(), fmt.Sprintf("the manifest names the role %s, and the module does not export %s", r, r.Export()))
		}
	}
}

// checkImports holds the imports against the ABI's table and the manifest.
func (e *LoadError) checkImports(info *Info) {
	offered := map[string]admit.FuncType{}
	modules := map[string]bool{}
	table := abi.Contract()
	for _, f := range append(table.Functions, table.Stubs...) {
		t := admit.FuncType{}
		for _, p := range f.Params {
			t.Params = append(t.Params, admit.ValType(p.Type))
		}
		if f.Result != 0 {
			t.Results = []admit.ValType{admit.ValType(f.Result)}
		}
		offered[f.Module+"."+f.Name] = t
		modules[f.Module] = f.Module != abi.ModuleWASI
	}
	e.add(info.Module.CheckImports(func(module, name string) (admit.FuncType, error) {
		if t, ok := offered[module+"."+name]; ok {
			return t, nil
		}
		if modules[module] {
			return admit.FuncType{}, fmt.Errorf("%s has no function %s in ABI %d.%d", module, name, abi.Major, abi.Minor)
		}
		if module == abi.ModuleWASI {
			return admit.FuncType{}, fmt.Errorf("the stub of WASI has no function %s: a guest has no file system, network or environment", name)
		}
		return admit.FuncType{}, fmt.Errorf("%s is not a capability of the ABI: a guest has no file system, network or environment", module)
	}))
	if info.Manifest == nil {
		return
	}
	for _, m := range info.Imports {
		if modules[m] && !slices.Contains(info.Manifest.Capabilities, m) {
			e.problem("capability/undeclared", m, "the module imports it and its manifest does not say so: add it to capabilities")
		}
	}
}

func valTypes(ts []abi.ValType) []admit.ValType {
	out := make([]admit.ValType, len(ts))
	for i, t := range ts {
		out[i] = admit.ValType(t)
	}
	return out
}

func (e *LoadError) problem(rule, item, msg string) {
	e.Problems = append(e.Problems, Problem{rule, item, msg})
}

// add takes over the violations that the binary reader found.
func (e *LoadError) add(err error) {
	if err == nil {
		return
	}
	violations := admit.Violations(err)
	for _, v := range violations {
		msg := v.Msg
		if v.Err != nil && !strings.Contains(msg, v.Err.Error()) {
			msg += ": " + v.Err.Error()
		}
		e.problem(v.Rule, v.Item, msg)
	}
	if len(violations) == 0 {
		e.problem("wasm", "", err.Error())
	}
}

// load builds a guest completely: checks, compilation, the pool's instances, a smoke
// call. Nothing is visible to dispatch before it returns.
func (r *Runtime) load(ctx context.Context, spec GuestSpec) (*guest, error) {
	info, hosts, err := r.check(&spec)
	if err != nil {
		return nil, err
	}
	g := &guest{runtime: r, spec: spec, info: info, requires: abi.ContextFieldSet(info.Manifest.Requires)}
	asked := spec.Limits
	if asked.Instances <= 0 {
		asked.Instances = 2 * r.cfg.Processors
	}
	g.limits = asked.withDefaults(info.Manifest.Limits.Memory, info.Manifest.Limits.Fuel)
	refuse := func(rule, item string, err error) error {
		return &LoadError{spec.Name, []Problem{{rule, item, err.Error()}}}
	}
	if g.limits.Memory > maxMemory {
		return nil, refuse("limit/memory", "limits.memory", fmt.Errorf("%d bytes: a memory has at most 4 GiB", spec.Limits.Memory))
	}
	if uint64(info.Module.Memories[0].Min)*pageSize > g.limits.Memory {
		return nil, refuse("limit/memory", "memory", fmt.Errorf("it starts with %d pages of 64 KiB and the limit is %d bytes: raise limits.memory", info.Module.Memories[0].Min, g.limits.Memory))
	}
	frame := abi.BeginInit(nil, hostFeatures, spec.Name)
	var params abi.Node
	if len(spec.Parameters) > 0 {
		if frame, params, err = hint.AppendTree(frame, abi.FormatJSON, spec.Parameters); err != nil {
			return nil, refuse("parameters", "", err)
		}
		if params.Tag == abi.TagNull {
			params = abi.Node{} // none
		} else if params.Tag != abi.TagMap {
			return nil, refuse("parameters", "", errors.New("want a JSON object"))
		}
	}
	g.initFrame = abi.FinishInit(frame, params)
	code := spec.Module
	if !r.cfg.Unmetered {
		if code, _, err = admit.Rewrite(spec.Module, admit.Options{
			Limits: spec.Limits.admission(), MemoryPages: uint32(g.limits.Memory / pageSize), TableElements: g.limits.TableElements, Depth: int32(g.limits.CallDepth), DropCustoms: true,
		}); err != nil {
			refused := &LoadError{Guest: spec.Name}
			refused.add(err)
			return nil, refused
		}
	}
	if err := g.reserve(code); err != nil {
		return nil, refuse("limit/guest-memory", "guest_memory", err)
	}
	kept := false
	defer func() {
		if !kept {
			g.giveBack()
		}
	}()
	g.module, err = r.cfg.Engine.Compile(ctx, code, CompileOptions{Hosts: hosts, MemoryPages: uint32(g.limits.Memory / pageSize), Spec: &spec})
	if broken := (*LoadError)(nil); errors.As(err, &broken) {
		return nil, &LoadError{spec.Name, broken.Problems}
	}
	if err != nil {
		return nil, refuse("engine/compile", r.cfg.Engine.Name(), err)
	}
	if err := g.reserveCode(); err != nil {
		g.module.Close()
		return nil, refuse("limit/guest-memory", "guest_memory", err)
	}
	if g.pool, err = newPool(ctx, g, g.limits.Instances); err != nil {
		g.module.Close()
		return nil, refuse("guest/init", "kvrt_init", err)
	}
	kept = true // by the pool, until it is closed
	end := r.turn(true)
	err = g.smoke()
	end()
	if err != nil {
		g.pool.drain()
		return nil, refuse("guest/smoke", "", err)
	}
	return g, nil
}

// check applies every rule that comes before compilation.
func (r *Runtime) check(spec *GuestSpec) (*Info, []HostModule, error) {
	info, err := inspect(spec.Name, spec.Module, spec.Limits.admission())
	refused := &LoadError{Guest: spec.Name}
	if err != nil && !errors.As(err, &refused) {
		return nil, nil, err
	}
	if !abi.ValidName(spec.Name) {
		refused.problem("spec/name", spec.Name, "want lower-case letters, digits, dot, dash, underscore, at most 64")
	}
	if info == nil {
		return nil, nil, refused
	}
	if spec.SHA256 != "" && !strings.EqualFold(spec.SHA256, info.SHA256) {
		refused.problem("spec/sha256", spec.Name, fmt.Sprintf("the module's digest is %s, the configuration wants %s", info.SHA256, spec.SHA256))
	}
	var hosts []HostModule
	for _, name := range info.Imports {
		h, offered := r.hosts[name]
		switch {
		case !offered:
			if strings.HasPrefix(name, "kvrt_") || name == abi.ModuleWASI {
				refused.problem("capability/not-offered", name, "this host does not offer it; it offers "+strings.Join(r.hostNames(), ", "))
			}
		case !slices.Contains(spec.Grants, name) && name != abi.ModuleWASI:
			refused.problem("capability/not-granted", name, "the module imports it: add it to the guest's grants if it may have it")
		default:
			hosts = append(hosts, h)
		}
	}
	for _, i := range info.Module.Imports {
		if h, ok := r.hosts[i.Module]; ok && !slices.ContainsFunc(h.Functions(), func(f HostFunction) bool { return f.Name == i.Name }) {
			refused.problem("capability/not-offered", i.Module+"."+i.Name, "the ABI reserves it and this host does not offer it yet")
		}
	}
	if r.cfg.CheckParameters != nil && info.Manifest != nil && len(info.Manifest.Parameters) > 0 {
		params := spec.Parameters
		if len(params) == 0 {
			params = []byte("{}")
		}
		if err := r.cfg.CheckParameters(info.Manifest.Parameters, params); err != nil {
			refused.problem("parameters", spec.Name, err.Error())
		}
	}
	refused.checkPolicy(spec.Policy, info.Manifest)
	if len(refused.Problems) > 0 {
		return nil, nil, refused
	}
	return info, hosts, nil
}

// smoke calls each role once with the smallest input that the role can get. The guest
// may refuse it, but must not trap or break the ABI. Its effects are dropped.
func (g *guest) smoke() error {
	in := g.pool.slots[0].inst // nobody else knows the pool yet
	in.call.starting = true
	defer func() { in.call.starting = false }()
	for _, role := range g.info.Manifest.Roles {
		frame, export := g.smokeFrame(role)
		in.call.begin(hint.Identity{}, g.limits.InitFuel)
		if role == abi.RolePolicy {
			in.call.context = frame
		}
		if err := in.write(frame); err != nil {
			return fmt.Errorf("kvrt_arena: %w", err)
		}
		ret, err := in.run(export, 0)
		in.call.drop()
		if err == nil {
			err = in.call.failure()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", role.Export(), err)
		}
		if _, err := in.read(ret); err != nil {
			return fmt.Errorf("%s: %w", role.Export(), err)
		}
	}
	return nil
}

func (g *guest) smokeFrame(role abi.Role) ([]byte, Export) {
	switch role {
	case abi.RoleParser:
		frame := abi.BeginParse(nil, abi.FormatJSON, []byte("{}"), "smoke", g.info.Manifest.Dialects[0])
		frame, doc, err := hint.AppendTree(frame, abi.FormatJSON, []byte("{}"))
		if err != nil {
			panic(err) // an empty object is a tree
		}
		return abi.FinishParse(frame, doc), ExportParse
	case abi.RolePolicy:
		return smokeContext(), ExportFormulate
	}
	var f hint.Frame
	body := []byte(`{"protocol_version":"0.1","message_id":"smoke","actions":[{"action_id":"smoke","action_type":` +
		strconv.Quote(g.info.Manifest.ActionTypes[0].Type) + `,"action_version":"1.0","payload":{}}]}`)
	if err := f.Decode(abi.FormatJSON, body, hint.Limits{}); err != nil {
		panic(err) // action types are printable ASCII, which Quote writes as JSON does
	}
	f.Finish(hint.Identity{RequestID: "smoke"})
	return f.Bytes(), ExportHandle
}

// smokeContext is the smallest context frame: a request id and a selected worker.
func smokeContext() []byte {
	b := abi.Align(append(make([]byte, abi.SizeContextFrame), "smoke"...))
	abi.PutU32(b, abi.OffContextFrameKind, uint32(abi.KindContext))
	abi.PutU32(b, abi.OffContextFrameSize, uint32(len(b)))
	abi.PutSpan(b, abi.OffContextFrameRequestID, abi.Span{Off: abi.SizeContextFrame, Len: 5})
	abi.PutNode(b, abi.OffContextFrameSelected+abi.OffWorkerID, abi.Node{Tag: abi.TagU64})
	return b
}
