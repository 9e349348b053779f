//go:build !wasip1

package kvrt_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/assemblyscript"
	"github.com/kvrt/kvrt/sdk/go"
	"github.com/kvrt/kvrt/sdk/go/internal/host"
	"github.com/kvrt/kvrt/sdk/tck"
)

// claims is kvrt_store, and hears of the claims that a guest makes.
type claims struct {
	runtime.HostModule
	claims, scope *[]byte
}

func (c claims) Functions() []runtime.HostFunction {
	all := c.HostModule.Functions()
	for i, f := range all {
		if f.Name == "retain" {
			all[i].Call = func(call *runtime.Call, mem []byte, stack []uint64) {
				run := func(at int) []byte { return bytes.Clone(mem[uint32(stack[at]):][:uint32(stack[at+1])]) }
				*c.claims, *c.scope = run(2), run(4)
				f.Call(call, mem, stack)
			}
		}
	}
	return all
}

// TestClaims: claims reach the host from Wasm as the ABI lays them out, of the guests of
// this SDK and of AssemblyScript's.
func TestClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles 2 MB")
	}
	want := host.AppendClaims(nil, []kvrt.Claim{{To: 1, Priority: 50, TTLMillis: 1000}, {From: 1, To: kvrt.ToEnd, Priority: 1}})
	for name, wasm := range map[string][]byte{"go": guest(t, "conformance"), "assemblyscript": assemblyscript.Conformance()} {
		cfg := (&tck.Kit{Engine: engine(t)}).Config(&tck.Recorder{})
		var made, scope []byte
		for i, h := range cfg.Hosts {
			if h.Name() == abi.ModuleStore {
				cfg.Hosts[i] = claims{h, &made, &scope}
			}
		}
		s, err := runtime.NewSolo(context.Background(), cfg, runtime.GuestSpec{Name: name, Module: wasm, Grants: []string{"kvrt_fetch", "kvrt_store", "kvrt_gpu"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, whose := range []string{"", "scope"} {
			var f hint.Frame
			body := `{"protocol_version":"0.1","message_id":"m","actions":[{"action_type":"kv.fetch","payload":{"op":"retain","block_hashes":[1],"source_control_endpoint":"` + whose + `"}}]}`
			if err := f.Decode(abi.FormatJSON, []byte(body), hint.Limits{}); err != nil {
				t.Fatal(err)
			}
			f.Finish(hint.Identity{RequestID: "r"})
			made, scope = nil, nil
			res, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: f.Bytes()})
			if err != nil || res.Reason != abi.ReasonNone || !bytes.Equal(made, want) || string(scope) != whose {
				t.Errorf("%s: %v, %v %q; claims %x of %q, want %x of %q", name, err, res.Reason, res.Detail, made, scope, want, whose)
			}
		}
		s.Close()
	}
}
