package tck_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

// TestMutated: guests in which one byte is another are judged; most of them run. It
// goes further into the probes than the fuzzer gets in a short time.
func TestMutated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	found := map[string]bool{}
	for _, seed := range [][]byte{faultyGuest(t, "seed", faultyManifest).Module, embedded(t, "kv-fetch").Module} {
		for range 100 {
			wasm := slices.Clone(seed)
			wasm[random.IntN(len(wasm))] ^= byte(1 + random.IntN(255))
			for _, rule := range judge(t, wasm) {
				found[rule] = true
			}
		}
	}
	if len(found) < 20 || !found[tck.RuleFuel] {
		t.Errorf("the mutations break few rules: %v", found)
	}
}

// judge verifies a module under small limits and returns the rules that it breaks.
func judge(t *testing.T, wasm []byte) []string {
	k := &tck.Kit{Engine: wazero.New(wazero.Config{Interpreter: true})}
	r, err := k.Verify(context.Background(), runtime.GuestSpec{Name: "fuzz", Module: wasm, Grants: []string{abi.ModuleFetch, abi.ModuleLog, abi.ModuleClock},
		Limits: runtime.Limits{Fuel: 20_000, InitFuel: 100_000, Memory: 1 << 20}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		if p.Rule == "" || p.Msg == "" {
			t.Errorf("a problem without rule or text: %+v", p)
		}
	}
	return rules(r.Problems)
}

// FuzzVerify: any bytes are judged, without a panic and without an error that is none
// of the module's, and every rule that is named says what to do.
func FuzzVerify(f *testing.F) {
	f.Add(faultyGuest(f, "seed", faultyManifest).Module)
	for _, name := range []string{"kv-fetch", "router-hint"} {
		f.Add(embedded(f, name).Module)
	}
	modules, err := filepath.Glob("../../runtime/testdata/*.wasm")
	if err != nil || len(modules) == 0 {
		f.Fatalf("no modules: %v", err)
	}
	for _, file := range modules {
		wasm, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if guest, err := abi.AppendManifest(wasm, []byte(faultyManifest)); err == nil {
			wasm = guest
		}
		f.Add(wasm)
	}
	f.Fuzz(func(t *testing.T, wasm []byte) { judge(t, wasm) })
}
