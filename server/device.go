package server

import "github.com/kvrt/kvrt/hosts/gpu"

// Device is the device, as far as the server shows it; *gpu.Device is one.
type Device interface {
	Info() gpu.Info
	Stats() gpu.Stats
}

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
}

// deviceStatus is nil without a device.
func (s *Server) deviceStatus() *DeviceStatus {
	if s.cfg.Device == nil {
		return nil
	}
	i, n := s.cfg.Device.Info(), s.cfg.Device.Stats()
	return &DeviceStatus{i.Driver, i.Name, i.Memory, i.Detail, s.cfg.DeviceChoice, n.Regions, n.Ended, n.Failed, n.Bytes, n.Lost}
}
