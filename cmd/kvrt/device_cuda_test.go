//go:build cgo && linux

package main

import (
	"testing"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hosts/gpu/cuda"
	"github.com/kvrt/kvrt/hosts/gpu/fakecuda"
)

// TestBlocksOnCUDA is TestBlocksOnDevice with the shim for CUDA, on a driver that is none
// and lets nobody read the device's memory.
func TestBlocksOnCUDA(t *testing.T) {
	path, err := fakecuda.Build(t.TempDir(), "libcuda.so.1")
	if err != nil {
		t.Fatal(err)
	}
	fake, err := fakecuda.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	fake.Do("reset 13000")
	t.Cleanup(func() {
		if v := fake.Do("violations"); v != "" {
			t.Error(v)
		}
		if left := fake.Do("left"); left != "0 allocations, 0 registrations, 0 streams, 0 events, 0 contexts" {
			t.Errorf("left behind: %s", left)
		}
	})
	dev, err := openDeviceFrom(config.DeviceCUDA, cuda.Config{Library: path})
	if err != nil {
		t.Fatal(err)
	}
	s := memoryOn(t, parse(t, onDevice), dev)
	s.subsystems.sessions, s.subsystems.workers = nothingKept().sessions, nothingKept().workers
	prefetches(t, s)
}
