package enginetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// load makes a runtime with one guest, whose host functions are those given of kvrt_fetch.
func (x *exam) load(spec runtime.GuestSpec, fetch map[string]func(*runtime.Call, []byte, []uint64)) *runtime.Runtime {
	x.Helper()
	r, err := runtime.New(runtime.Config{
		Engine: x.engine,
		Hosts: []runtime.HostModule{
			offer{abi.ModuleFetch, runtime.Functions(abi.ModuleFetch, fetch)},
			offer{abi.ModuleLog, runtime.Functions(abi.ModuleLog, map[string]func(*runtime.Call, []byte, []uint64){"write": func(*runtime.Call, []byte, []uint64) {}})},
		},
		Wait: time.Minute, // a busy machine is no finding
	})
	if err != nil {
		x.Fatalf("%v", err)
	}
	x.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			x.Errorf("closing the runtime: %v", err)
		}
	})
	if err := r.Apply(context.Background(), []runtime.GuestSpec{spec}); err != nil {
		x.Fatalf("%v", err)
	}
	return r
}

// envelope has n actions of a type, with one payload.
func envelope(n int, typ, payload string) []byte {
	actions := make([]string, n)
	for i := range actions {
		actions[i] = fmt.Sprintf(`{"action_id":"a%d","action_type":%q,"action_version":"1.0","payload":%s}`, i, typ, payload)
	}
	return []byte(`{"protocol_version":"0.1","message_id":"m1","actions":[` + strings.Join(actions, ",") + `]}`)
}

// dispatch: a pool of instances behind a runtime, on several goroutines, with every way
// in which a call can end among them; instances that trapped are replaced meanwhile.
func (x *exam) dispatch() {
	wasm, err := abi.AppendManifest(x.source("answers"), []byte(`{"name":"answers","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"test.answer"}],"capabilities":["kvrt_fetch"]}`))
	if err != nil {
		x.Fatalf("%v", err)
	}
	r := x.load(runtime.GuestSpec{Name: "answers", Module: wasm, Grants: []string{abi.ModuleFetch}, Limits: runtime.Limits{Instances: 2, Fuel: 50_000}},
		map[string]func(*runtime.Call, []byte, []uint64){"discard": func(*runtime.Call, []byte, []uint64) { panic("boom") }})
	want := map[int]abi.Reason{3: abi.ReasonHandlerTrap, 5: abi.ReasonHandlerOutOfFuel, 7: abi.ReasonInvalidPayload, 9: abi.ReasonHandlerError, 11: abi.ReasonHandlerTrap}
	body := envelope(16, "test.answer", "{}")
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			res := r.NewResponse()
			for range 10 {
				if err := r.Dispatch(&runtime.Request{Body: body}, res); err != nil {
					x.Errorf("%v", err)
					return
				}
				for i := range res.Results {
					got := &res.Results[i]
					if got.Reason != want[i] || (got.Status == abi.StatusAccepted) != (want[i] == abi.ReasonNone) {
						x.Errorf("action %d: %s %s (%s), want %s", i, got.Status, got.Reason, got.Detail, want[i])
					}
				}
				if len(res.Results) != 16 {
					x.Errorf("%d results of 16 actions", len(res.Results))
				}
			}
		})
	}
	wait.Wait()
}

// charges: the fuel of a call through the runtime is that of the instance by itself and
// what its host functions cost by the ABI's table.
func (x *exam) charges() {
	const payload = `{"block_hashes":[1,2,3]}`
	s := x.script()
	defer s.close()
	g := s.guest("kv-fetch")
	body := envelope(1, "kv.fetch", payload)
	frame := x.envelopeFrame(body)
	copy(g.Memory()[s.arena:], frame)
	alone := g.run(runtime.ExportHandle, plenty, uint64(s.arena), uint64(len(frame)), 0)
	if alone.trap != nil {
		x.Fatalf("%v", alone.trap)
	}
	var cost int64
	for _, f := range abi.Contract().Functions {
		if f.Module == abi.ModuleFetch && f.Name == "submit" {
			cost = int64(f.Fuel)
		}
	}
	r := x.load(runtime.GuestSpec{Name: "kv-fetch", Module: x.source("kv-fetch"), Grants: []string{abi.ModuleFetch, abi.ModuleLog}, Limits: runtime.Limits{Instances: 1}},
		map[string]func(*runtime.Call, []byte, []uint64){"submit": submit})
	res := r.NewResponse()
	if err := r.Dispatch(&runtime.Request{Body: body, Identity: hint.Identity{RequestID: "r1"}}, res); err != nil {
		x.Fatalf("%v", err)
	}
	if got := res.Results[0]; got.Status != abi.StatusAccepted || int64(got.Fuel) != alone.fuel+cost {
		x.Errorf("%s with %d fuel, want ACCEPTED with %d and %d of kvrt_fetch.submit", got.Status, got.Fuel, alone.fuel, cost)
	}
}
