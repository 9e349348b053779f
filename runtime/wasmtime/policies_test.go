//go:build wasmtime && amd64

package wasmtime

import (
	"context"
	"os"
	"testing"

	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

// TestBuiltIn holds the built-in guests to the kit on both engines, with the lineage of
// their cases.
func TestBuiltIn(t *testing.T) {
	kit := &tck.Kit{Engine: wazero.New(wazero.Config{}), Second: New()}
	for _, name := range policies.Guests() {
		wasm, _ := policies.Module(name)
		info, err := runtime.Inspect(name, wasm)
		if err != nil {
			t.Fatal(err)
		}
		report, err := kit.Verify(context.Background(), runtime.GuestSpec{Name: name, Module: wasm, Grants: info.Imports}, os.DirFS("../../policies/"+name+"/cases"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Problems {
			t.Errorf("%s: %v", name, p)
		}
		if report.Compared < 5 {
			t.Errorf("%s: %d calls were compared", name, report.Compared)
		}
	}
}
