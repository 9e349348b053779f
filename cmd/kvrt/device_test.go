package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hosts/gpu/cuda"
)

// TestOpenDevice: auto goes on without a GPU and says what it tried, cuda does not.
func TestOpenDevice(t *testing.T) {
	none := cuda.Config{Library: filepath.Join(t.TempDir(), "libcuda.so.1")}
	for choice, want := range map[config.Device]string{
		"":                   "the default",
		config.DeviceHostMem: "chosen by",
		config.DeviceAuto:    "no CUDA device here: ",
	} {
		d, err := openDeviceFrom(choice, none)
		if err != nil || d.Info().Driver != "hostmem" || !strings.Contains(d.why, want) {
			t.Errorf("%q: %v", choice, err)
			continue
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if d, err := openDeviceFrom(config.DeviceCUDA, none); d != nil || err == nil || !strings.Contains(err.Error(), "no CUDA device here: ") {
		t.Errorf("cuda: %v", err)
	}
}
