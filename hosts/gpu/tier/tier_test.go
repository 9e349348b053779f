package tier_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/gputest"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier/tiertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is host memory whose copies a test holds up, fails and shuffles.
func harness() gputest.Harness {
	var dev *hostmem.Device
	var gate sync.RWMutex
	var fail atomic.Bool
	release := func() {}
	return gputest.Harness{
		Open: func(*testing.T) gpu.Driver {
			fail.Store(false)
			dev = hostmem.New(hostmem.Config{Workers: 2, Seed: 7, Gate: func() error {
				gate.RLock()
				defer gate.RUnlock()
				if fail.CompareAndSwap(true, false) {
					return errors.New("told to fail")
				}
				return nil
			}})
			return dev
		},
		Hold: func() func() {
			gate.Lock()
			release = sync.OnceFunc(gate.Unlock)
			return release
		},
		FailNext: func() { fail.Store(true) },
		Lose: func() {
			dev.Lose()
			release()
		},
	}
}

func TestTier(t *testing.T) { tiertest.Run(t, harness()) }
