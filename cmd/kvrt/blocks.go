package main

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/server"
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

// ending is the hint store as the server sees it: that a request has ended concerns its
// blocks too.
type ending struct {
	server.Store
	blocks *store.Host
}

func (e ending) Finish(id hint.Identity, aborted bool) {
	e.Store.Finish(id, aborted)
	e.blocks.Ended(id)
}

func (e ending) Discard(id hint.Identity) {
	e.Store.Discard(id)
	e.blocks.Ended(id)
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
