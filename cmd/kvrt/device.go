package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/cuda"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
)

// device is the daemon's device, and why it is that one.
type device struct {
	*gpu.Device
	why string
}

// openDevice opens the device that the configuration asks for.
func openDevice(cfg *config.Config) (*device, error) {
	d, err := openDeviceFrom(cfg.GPU.Device, cuda.Config{})
	if err != nil {
		return nil, &config.Error{Problems: []config.Problem{cfg.Problem("gpu.device", err.Error())}}
	}
	return d, nil
}

// openDeviceFrom: auto takes a GPU where there is one; cuda takes nothing else, so that
// nobody copies slowly without knowing it. Without a word it is host memory: a GPU belongs
// to its serving engine until an operator says otherwise.
func openDeviceFrom(choice config.Device, cfg cuda.Config) (*device, error) {
	why := "chosen by the configuration"
	switch choice {
	case config.DeviceAuto, config.DeviceCUDA:
		d, err := cuda.Open(cfg)
		if err == nil {
			if choice == config.DeviceAuto {
				why = "auto: there is a GPU"
			}
			return &device{gpu.New(d, gpu.Config{}), why}, nil
		}
		var absent *cuda.AbsentError
		if choice == config.DeviceCUDA || !errors.As(err, &absent) {
			return nil, err
		}
		why = "auto: " + err.Error()
	case "":
		why = "the default"
	}
	return &device{gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{}), why}, nil
}

// pin registers the block store's memory.
func (d *device) pin(slab []byte) (unpin func() error, err error) {
	id, err := d.Register(slab, 0)
	if err != nil {
		return nil, fmt.Errorf("register the block store's memory with the device: %w", err)
	}
	return func() error { return d.Free(context.Background(), id) }, nil
}
