package main

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
)

// newBlocks makes the daemon's block store, if it is to have one. The device can copy to and
// from its memory.
func newBlocks(cfg *config.Config, dev *device) (*store.Host, error) {
	if cfg.Store.Capacity == 0 {
		return store.NewHost(nil, nil, blockNamespace), nil
	}
	c := store.Config{Capacity: uint64(cfg.Store.Capacity), Checksum: cfg.Store.Checksum, HugePages: cfg.Store.HugePages, Pin: dev.pin}
	for _, b := range cfg.Store.BlockBytes {
		c.BlockBytes = append(c.BlockBytes, uint64(b))
	}
	s, err := store.New(c)
	if err != nil {
		return nil, &config.Error{Problems: []config.Problem{cfg.Problem("store.capacity", err.Error())}}
	}
	return store.NewHost(s, store.NewRequests(store.RequestsConfig{}), blockNamespace), nil
}

// closeBlocks gives the memory back, if there is a store.
func closeBlocks(h *store.Host) error {
	if s := h.Store(); s != nil {
		return s.Close()
	}
	return nil
}

// ended hears of every request that has ended, whether its engine said so or a guest: what
// was to be evicted after it is evicted, and its hint has an outcome.
func (s *stack) ended(id hint.Identity) {
	s.blocks.Ended(id)
	if s.peers != nil {
		s.peers.Ended(id)
	}
}

// spaceOf: a guest has blocks brought of the tenant and namespace whose blocks in the
// store it asks about.
func spaceOf(blocks *store.Host) fetch.Space {
	about := aboutBlocks(blocks)
	return func(c *runtime.Call) (tenant, namespace string) {
		namespace, _, _ = about(c)
		return store.Tenant(namespace), namespace
	}
}

// blockNamespace: a policy asks about the blocks of its request's tenant and namespace.
// A handler's call serves no routing context.
func blockNamespace(c *runtime.Call) (string, bool) {
	f := c.Context()
	if f == nil {
		return "", false
	}
	return store.Namespace(viewOf(f.Text(abi.OffContextFrameTenant)), viewOf(f.Text(abi.OffContextFrameNamespace))), true
}
