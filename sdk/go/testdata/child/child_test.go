// Package child is what compiles the tests' guests, built without the race detector: so
// it takes a tenth of the time. It is a test binary as its parent is, since only those
// agree on the name of wazero's version.
package child

import (
	"testing"

	"github.com/kvrt/kvrt/runtime/wazero"
)

func TestMain(*testing.M) { wazero.RunChild(wazero.Child{}) }
