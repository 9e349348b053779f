package policies_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

// kit judges on the interpreter, which takes a guest without compiling it.
func kit() *tck.Kit {
	return &tck.Kit{Engine: wazero.New(wazero.Config{Interpreter: true})}
}

// hosts makes runtimes with one guest.
type hosts struct {
	t        testing.TB
	name     string
	wasm     []byte
	manifest *abi.Manifest
	limits   runtime.Limits
}

func newHosts(t testing.TB, name string) *hosts {
	t.Helper()
	wasm, ok := policies.Module(name)
	if !ok {
		t.Fatalf("no guest %s", name)
	}
	info, err := runtime.Inspect(name, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return &hosts{t, name, wasm, info.Manifest, runtime.Limits{Instances: 1}}
}

func (hs *hosts) spec(params json.RawMessage) runtime.GuestSpec {
	spec := runtime.GuestSpec{Name: hs.name, Module: hs.wasm, Grants: hs.manifest.Capabilities, Parameters: params, Limits: hs.limits}
	if hs.manifest.Has(abi.RolePolicy) {
		spec.Policy = &runtime.PolicyUse{}
	}
	return spec
}

func (hs *hosts) load(ctx context.Context, params json.RawMessage) (*host, error) {
	h := &host{manifest: hs.manifest}
	cfg := kit().Config(&h.Recorder)
	cfg.Hosts[0] = free{&h.Recorder}
	rt, err := runtime.New(cfg)
	if err != nil {
		return nil, err
	}
	hs.t.Cleanup(func() { rt.Close(context.Background()) })
	h.runtime = rt
	return h, rt.Apply(ctx, []runtime.GuestSpec{hs.spec(params)})
}

// host is a runtime with one guest, and what the guest asked of it.
type host struct {
	tck.Recorder
	runtime  *runtime.Runtime
	manifest *abi.Manifest
}

// free takes the costs off a capability, so that fuel is what the guest itself used.
type free struct{ runtime.HostModule }

func (f free) Functions() []runtime.HostFunction {
	functions := f.HostModule.Functions()
	for i := range functions {
		functions[i].Fuel, functions[i].PerB = 0, 0
	}
	return functions
}
