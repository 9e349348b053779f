//go:build cgo && linux

package cuda

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/fakecuda"
	"github.com/kvrt/kvrt/hosts/gpu/gputest"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/gpu/tier/tiertest"
)

// The fake drivers, of today and of CUDA 11.2.
var modern, old *fakecuda.Fake

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if code := check(); code >= 0 {
		return code
	}
	if mode := os.Getenv(checkEnv); mode != "" && mode != "fake" {
		return m.Run() // a machine for this may have no compiler
	}
	dir, err := os.MkdirTemp("", "fakecuda")
	if err == nil {
		defer os.RemoveAll(dir)
		modern, err = fake(dir, "libcuda.so.1")
	}
	if err == nil {
		old, err = fake(dir, "libcuda-old.so.1", "-DOLD")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func fake(dir, name string, flags ...string) (*fakecuda.Fake, error) {
	path, err := fakecuda.Build(dir, name, append(flags, sanitize...)...)
	if err != nil {
		return nil, err
	}
	f, err := fakecuda.Open(path)
	if err == nil {
		f.Do("reset 13000")
	}
	return f, err
}

// A driver is a fake one in a state.
type driver struct {
	name  string
	fake  **fakecuda.Fake
	setup []string
	want  string // how it copies
}

var drivers = []driver{
	{"11.2", &old, []string{"reset 11020"}, "a loop"},
	{"12.4", &modern, []string{"reset 12040"}, "a loop"},
	{"12.8", &modern, []string{"reset 12080"}, "batch (12.8)"},
	{"13.0", &modern, []string{"reset 13000"}, "batch (12.8)"},
	{"13.0, its own interface only", &modern, []string{"reset 13000", "no12 1"}, "batch (13)"},
}

func (d *driver) open(tb testing.TB, cfg Config) *Device {
	tb.Helper()
	for _, line := range d.setup {
		if got := (*d.fake).Do("%s", line); got != "ok" {
			tb.Fatalf("%s: %s", line, got)
		}
	}
	cfg.Library = (*d.fake).Path
	dev, err := Open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return dev.(*Device)
}

// harness opens the driver again and again for the suite.
func (d *driver) harness() gputest.Harness {
	lost := false
	return gputest.Harness{
		Open: func(t *testing.T) gpu.Driver {
			lost = false
			dev := d.open(t, Config{Chunk: 32 << 10})
			if got := dev.Copying(); got != d.want {
				t.Errorf("copies by %s, not %s", got, d.want)
			}
			return dev
		},
		Hold: func() func() {
			(*d.fake).Do("hold 1")
			return func() { (*d.fake).Do("hold 0") }
		},
		FailNext: func() {
			if d.want == "a loop" {
				(*d.fake).Do("fail cuMemcpyAsync 3 2")
			} else {
				(*d.fake).Do("fail cuMemcpyBatchAsync 1 2 1")
			}
		},
		Lose:  func() { (*d.fake).Do("lose 700"); lost = true },
		Clean: func(t *testing.T) { d.clean(t, lost) },
	}
}

// clean holds what the fake has seen against what it is owed.
func (d *driver) clean(tb testing.TB, lost bool) {
	tb.Helper()
	if v := (*d.fake).Do("violations"); v != "" {
		tb.Errorf("the driver was asked what it must not be asked:\n%s", v)
	}
	want := "0 allocations, 0 registrations, 0 streams, 0 events, 0 contexts"
	if got := (*d.fake).Do("left"); got != want && !lost {
		tb.Errorf("left behind: %s", got)
	}
}

func TestDevice(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) { gputest.Run(t, d.harness()) })
	}
}

// TestTier: blocks of a store on a device whose memory the host cannot read.
func TestTier(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) { tiertest.Run(t, d.harness()) })
	}
}

// TestTierOutOfMemory: the GPU has not got what the configuration asks for, or no queue.
func TestTierOutOfMemory(t *testing.T) {
	for _, call := range []string{"cuMemAlloc", "cuStreamCreate"} {
		d := &drivers[3]
		dev := gpu.New(d.open(t, Config{}), gpu.Config{})
		(*d.fake).Do("fail %s 1 2", call)
		_, err := tier.New(tier.Config{Device: dev, Blocks: tiertest.NewBlocks(t, dev, 4), Capacity: 1 << 20})
		if err == nil || !strings.Contains(err.Error(), "OUT_OF_MEMORY") {
			t.Errorf("%s: %v", call, err)
		}
		if err := dev.Close(t.Context()); err != nil {
			t.Error(err)
		}
		d.clean(t, false)
	}
}
