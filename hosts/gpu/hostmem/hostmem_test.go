package hostmem_test

import (
	"context"
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

// TestAnotherDevice: a fence of another device cannot be waited for, and an event of a GPU
// not either; nor is it taken as waited for.
func TestAnotherDevice(t *testing.T) {
	open := func() (*gpu.Device, *gpu.Queue) {
		d := gpu.New(hostmem.New(hostmem.Config{Gate: func() error { <-t.Context().Done(); return nil }}), gpu.Config{})
		q, err := d.NewQueue()
		if err != nil {
			t.Fatal(err)
		}
		return d, q
	}
	a, qa := open()
	b, qb := open()
	f, err := qa.Submit(new(gpu.Batch), gpu.After{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := qb.Submit(new(gpu.Batch), gpu.After{Fences: []gpu.Fence{f}}); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("a fence of another device: %v", err)
	}
	if _, err := qb.Submit(new(gpu.Batch), gpu.After{Events: []uintptr{1}}); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("an event: %v", err)
	}
	if _, err := a.Adopt(4096, 4096, 0); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("adopted: %v", err)
	}
	t.Cleanup(func() { // the gate has opened
		for _, d := range []*gpu.Device{a, b} {
			if err := d.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}
