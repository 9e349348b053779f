// Package gputest is the suite that every device passes: the same bytes as a model of byte
// arrays, in the order that fences give, and nothing promised that did not happen.
//
// A device under test makes itself as awkward as it can: copies late and in any order.
// With the hooks of a Harness a test holds copies up and makes them fail; a device that
// cannot do that leaves a hook nil, and the tests that need it are skipped.
package gputest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// Harness is a kind of device to be tested.
type Harness struct {
	// Open makes a driver that nobody has used.
	Open func(t *testing.T) gpu.Driver
	// Hold stops all copies of the driver that was opened last until release is called,
	// which may be more than once.
	Hold func() (release func())
	// FailNext makes the next batch of the driver that was opened last fail when a part
	// of it is copied.
	FailNext func()
	// Lose ends the driver that was opened last, as a fault of hardware does. Held copies
	// never happen.
	Lose func()
	// Clean fails the test when the driver has left anything behind. It is called when
	// the device is closed.
	Clean func(t *testing.T)
	// Large makes batches of some hundred MiB, too.
	Large bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name  string
		test  func(*testing.T, *rig)
		needs bool
	}{
		{"there and back", thereAndBack, true},
		{"random batches against a model", againstModel, true},
		{"refused spans touch nothing", refusedSpans, true},
		{"write after read across queues", writeAfterRead, true},
		{"many at a time", manyAtATime, true},
		{"free under load", freeUnderLoad, true},
		{"a batch is used again", usedAgain, true},
		{"no byte before the fence", notBeforeTheFence, h.Hold != nil},
		{"a full queue", fullQueue, h.Hold != nil},
		{"memory in flight is not released", heldMemory, h.Hold != nil},
		{"memory of a refused batch is let go", refusedMemory, true},
		{"close with work in flight", closeInFlight, h.Hold != nil},
		{"a part is no success", partFails, h.FailNext != nil},
		{"a lost device", lost, h.Hold != nil && h.Lose != nil},
		{"a large batch", large, h.Large},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.needs {
				t.Skip("this device cannot be made to")
			}
			r := &rig{Harness: h, t: t}
			r.open(gpu.Config{})
			c.test(t, r)
			r.close()
		})
	}
}

// rig is a device under test.
type rig struct {
	Harness
	t   *testing.T
	dev *gpu.Device
}

func (r *rig) open(cfg gpu.Config) {
	if r.dev != nil {
		r.close()
	}
	r.dev = gpu.New(r.Open(r.t), cfg)
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.dev.Close(patience(r.t)); err != nil {
		r.t.Errorf("close: %v", err)
	}
	if s := r.dev.Stats(); s.Submitted != s.Ended {
		r.t.Errorf("%d batches were submitted and %d have ended", s.Submitted, s.Ended)
	}
	if r.Clean != nil {
		r.Clean(r.t)
	}
}

// patience bounds what would otherwise hang.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// hurry has no patience at all.
func hurry() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (r *rig) alloc(kind gpu.Kind, size uint64) gpu.Region {
	r.t.Helper()
	id, err := r.dev.Alloc(kind, size, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// host allocates host memory and returns it with its bytes.
func (r *rig) host(size uint64) (gpu.Region, []byte) {
	r.t.Helper()
	id := r.alloc(gpu.HostMemory, size)
	m, err := r.dev.Memory(id)
	if err != nil || uint64(len(m.Host)) != size {
		r.t.Fatalf("host memory of %d bytes: %d, %v", size, len(m.Host), err)
	}
	return id, m.Host
}

// hold holds copies up, not beyond the test.
func (r *rig) hold() (release func()) {
	release = r.Hold()
	r.t.Cleanup(release)
	return release
}

func (r *rig) queue() *gpu.Queue {
	r.t.Helper()
	q, err := r.dev.NewQueue()
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

// submit starts a batch of its own for the spans.
func (r *rig) submit(q *gpu.Queue, after gpu.After, spans ...gpu.Span) gpu.Fence {
	r.t.Helper()
	b := new(gpu.Batch)
	for _, s := range spans {
		b.Add(s)
	}
	f, err := q.Submit(b, after)
	if err != nil {
		r.t.Fatalf("submit: %v", err)
	}
	return f
}

func (r *rig) wait(f gpu.Fence) {
	r.t.Helper()
	if err := f.Wait(patience(r.t)); err != nil {
		r.t.Fatalf("fence: %v", err)
	}
}

// fill fills memory with random bytes and returns a copy of them.
func fill(rnd *rand.ChaCha8, b []byte) []byte {
	_, _ = rnd.Read(b) // never fails
	return bytes.Clone(b)
}

func seeded(n byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{n}) }

func (r *rig) same(got, want []byte, what string) {
	r.t.Helper()
	for i := range want {
		if got[i] != want[i] {
			r.t.Fatalf("%s: byte %d is %#x, not %#x", what, i, got[i], want[i])
		}
	}
}

func mustBe(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}
