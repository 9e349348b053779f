package hostmem_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/gputest"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// awkward is a device whose copies a test holds up, fails and shuffles.
type awkward struct {
	dev  *hostmem.Device
	gate sync.RWMutex
	fail atomic.Bool
}

func harness(workers int, seed uint64) gputest.Harness {
	a := new(awkward)
	release := func() {}
	return gputest.Harness{
		Open: func(*testing.T) gpu.Driver {
			a.fail.Store(false)
			a.dev = hostmem.New(hostmem.Config{Workers: workers, Seed: seed, Gate: func() error {
				a.gate.RLock()
				defer a.gate.RUnlock()
				if a.fail.CompareAndSwap(true, false) {
					return errors.New("told to fail")
				}
				return nil
			}})
			return a.dev
		},
		Hold: func() func() {
			a.gate.Lock()
			release = sync.OnceFunc(a.gate.Unlock)
			return release
		},
		FailNext: func() { a.fail.Store(true) },
		Lose: func() {
			a.dev.Lose()
			release()
		},
	}
}

func TestDevice(t *testing.T) {
	t.Run("one worker", func(t *testing.T) { gputest.Run(t, harness(1, 0)) })
	t.Run("shuffled, three workers", func(t *testing.T) { gputest.Run(t, harness(3, 5)) })
}
