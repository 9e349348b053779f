package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/fleet/staging"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/server"
)

// newTier takes the memory for blocks on the device, if there is to be some.
func newTier(cfg *config.Config, dev *device, blocks *store.Host) (*tier.Host, error) {
	g := &cfg.GPU
	if g.Capacity == 0 {
		return tier.NewHost(nil, nil), nil
	}
	if have := store.Available(); dev.Info().Driver == "hostmem" && uint64(g.Capacity) > have-have/8 { // as the block store leaves an eighth to others
		why := fmt.Sprintf("the device is host memory here, of which %d MiB are left: give its blocks less, or none", have>>20)
		return nil, &config.Error{Problems: []config.Problem{cfg.Problem("gpu.capacity", why)}}
	}
	t, err := tier.New(tier.Config{
		Device: dev.Device, Blocks: blocks.Store(), Capacity: uint64(g.Capacity), BlockBytes: uint64(g.SlotBytes(&cfg.Store)), Patience: g.PrefetchTimeout,
	})
	if err != nil {
		return nil, &config.Error{Problems: []config.Problem{cfg.Problem("gpu.capacity", err.Error())}}
	}
	blocks.SetCopies(t)
	return tier.NewHost(t, aboutBlocks(blocks)), nil
}

// aboutBlocks: a guest asks about blocks of its request on the device as it does about
// those in the store.
func aboutBlocks(blocks *store.Host) tier.About {
	return func(c *runtime.Call) (string, []uint64, bool) {
		req, described := blocks.Requests().Of(c.Identity())
		if described && c.Context() == nil {
			return req.Namespace, req.Hashes, true
		}
		namespace, ok := blockNamespace(c)
		if !ok {
			namespace = store.Namespace("", "")
		}
		return namespace, req.Hashes, described && req.Namespace == namespace
	}
}

// tellOfDevice logs that copies of blocks have failed since so many had, for whom nobody
// waits: at most once a sweep, however many there are. It returns how many have now.
func (d *daemon) tellOfDevice(failed uint64) uint64 {
	t := d.onDevice.Tier()
	if t == nil {
		return 0
	}
	s := t.Stats()
	if s.Failed > failed {
		d.log.Warn("blocks could not be copied to or from the device", "blocks", s.Failed-failed, "last_error", s.Failure, "quarantined", s.Quarantined)
	}
	return s.Failed
}

// fetcher is the exchange's, by way of the device where that is asked for.
func (d *daemon) fetcher() server.Fetcher {
	if t := d.onDevice.Tier(); t != nil && d.started.GPU.AfterFetch {
		return &staging.Fetcher{Source: d.peers.Fetcher, Device: t, Hints: d.store}
	}
	return d.peers.Fetcher
}

// closeMemory gives back the memory of blocks, in the order in which it was taken the
// other way round. What is in flight may come to its end meanwhile.
func (s *stack) closeMemory(ctx context.Context) error {
	var errs []error
	if s.onDevice != nil && s.onDevice.Tier() != nil {
		errs = append(errs, s.onDevice.Tier().Close(ctx))
	}
	if s.blocks != nil {
		errs = append(errs, closeBlocks(s.blocks))
	}
	return errors.Join(append(errs, s.device.Close(ctx))...)
}
