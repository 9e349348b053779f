package wazero

import (
	"testing"

	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/enginetest"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, func() runtime.Engine { return New(Config{}) })
}

func TestEngineInterpreted(t *testing.T) {
	enginetest.Run(t, func() runtime.Engine { return New(Config{Interpreter: true}) })
}

// TestCompiledAsInterpreted runs the compiler and the interpreter side by side, on the
// guests of this repository too.
func TestCompiledAsInterpreted(t *testing.T) {
	guests := map[string][]byte{}
	for _, name := range policies.Guests() {
		guests[name+" of this tree"], _ = policies.Module(name)
	}
	enginetest.Compare(t, New(Config{}), New(Config{Interpreter: true}), guests)
}
