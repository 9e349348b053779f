//go:build wasmtime && amd64

package wasmtime

import (
	"testing"

	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/enginetest"
	"github.com/kvrt/kvrt/runtime/wazero"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, func() runtime.Engine { return New() })
}

// TestAsWazero runs both engines side by side, on the guests of this repository too.
func TestAsWazero(t *testing.T) {
	guests := map[string][]byte{}
	for _, name := range policies.Guests() {
		guests[name+" of this tree"], _ = policies.Module(name)
	}
	enginetest.Compare(t, New(), wazero.New(wazero.Config{}), guests)
}
