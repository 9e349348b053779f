package server

import (
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
)

// Device is the device, as far as the server shows it; *gpu.Device is one.
type Device interface {
	Info() gpu.Info
	Stats() gpu.Stats
}

// Tier is the blocks on the device, as far as the server shows them; *tier.Tier is one.
type Tier interface{ Stats() tier.Stats }

// DeviceStatus is the device that blocks are copied to and from.
type DeviceStatus struct {
	Driver  string `json:"driver"`
	Name    string `json:"name"`
	Memory  uint64 `json:"memory,omitempty"` // bytes of its own
	Detail  string `json:"detail"`
	Choice  string `json:"choice"`  // why it is this one
	Regions int    `json:"regions"` // of memory that it can copy to and from
	Batches uint64 `json:"batches"` // of copies that have ended
	Failed  uint64 `json:"failed"`  // of those
	Bytes   uint64 `json:"bytes"`
	Lost    bool   `json:"lost"` // it copies nothing any more

	Blocks *DeviceBlocks `json:"blocks,omitempty"` // that it keeps
}

// DeviceBlocks is the part of the device's memory that blocks are kept in.
type DeviceBlocks struct {
	SlotBytes  uint64 `json:"slot_bytes"`
	Slots      int    `json:"slots"`
	Used       int    `json:"used"`    // with a block, or one on its way
	Filling    int    `json:"filling"` // of them on its way
	Leased     int    `json:"leased"`  // of them in use
	Loaded     uint64 `json:"loaded"`  // blocks, from the block store
	Saved      uint64 `json:"saved"`   // blocks, to the block store
	BytesIn    uint64 `json:"bytes_in"`
	BytesOut   uint64 `json:"bytes_out"`
	Displaced  uint64 `json:"displaced"`            // blocks that yielded to others
	NoRoom     uint64 `json:"no_room"`              // blocks that found no slot
	Failed     uint64 `json:"failed"`               // blocks whose copy failed
	LastError  string `json:"last_error,omitempty"` // of a copy
	Prefetches uint64 `json:"prefetches"`
	Refused    uint64 `json:"prefetches_refused"` // too many waited
	Late       uint64 `json:"prefetches_late"`
	Broken     uint64 `json:"prefetches_broken"` // not all of their blocks came
	Queued     int    `json:"prefetches_queued"` // blocks that wait in them
	// Quarantined are places in host memory that are given to nobody, since a lost device
	// may write to them.
	Quarantined uint64 `json:"quarantined"`
}

// deviceStatus is nil without a device.
func (s *Server) deviceStatus() *DeviceStatus {
	if s.cfg.Device == nil {
		return nil
	}
	i, n := s.cfg.Device.Info(), s.cfg.Device.Stats()
	st := &DeviceStatus{i.Driver, i.Name, i.Memory, i.Detail, s.cfg.DeviceChoice, n.Regions, n.Ended, n.Failed, n.Bytes, n.Lost, nil}
	if s.cfg.Tier != nil {
		t := s.cfg.Tier.Stats()
		st.Blocks = &DeviceBlocks{
			SlotBytes: t.BlockBytes, Slots: t.Slots, Used: t.Used, Filling: t.Filling, Leased: t.Leased, Loaded: t.Loaded, Saved: t.Saved,
			BytesIn: t.BytesIn, BytesOut: t.BytesOut, Displaced: t.Evicted, NoRoom: t.NoRoom, Failed: t.Failed,
			Prefetches: t.Prefetches, Refused: t.Refused, Late: t.Late, Broken: t.Broken, Queued: t.Queued, Quarantined: t.Quarantined,
		}
		if t.Failure != nil {
			st.Blocks.LastError = t.Failure.Error()
		}
	}
	return st
}

// Tier is what the server was given; nil without blocks on the device.
func (s *Server) Tier() Tier { return s.cfg.Tier }
