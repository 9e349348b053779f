package wazero

import (
	"testing"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/enginetest"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, func() runtime.Engine { return New(Config{}) })
}

func TestEngineInterpreted(t *testing.T) {
	enginetest.Run(t, func() runtime.Engine { return New(Config{Interpreter: true}) })
}
