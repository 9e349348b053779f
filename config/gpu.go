package config

import "time"

// GPU configures the device.
type GPU struct {
	Device     Device
	Capacity   Size // memory for blocks on the device; 0: none are kept there
	BlockBytes Size // of a slot there; 0: as the largest of the block store
	// AfterFetch has blocks that were fetched from a peer brought to the device, and those
	// that only the device has brought back before one is asked.
	AfterFetch bool
	// PrefetchTimeout is when a prefetch is given up; 0: 1 s.
	PrefetchTimeout time.Duration
}

// Device names a device; empty: not set.
type Device string

// Devices.
const (
	DeviceAuto    Device = "auto"
	DeviceHostMem Device = "hostmem"
	DeviceCUDA    Device = "cuda"
)

const maxPrefetchTimeout = time.Minute

func device() object[GPU] {
	return object[GPU]{fields: []field[GPU]{
		opt("device", "hostmem, the default, is host memory. cuda is a GPU, and the daemon does not start without one; it takes a program that was built with cgo. auto takes a GPU where there is one, else host memory, and kvrt status tells which.",
			func(g *GPU) *Device { return &g.Device }, oneOf("device", DeviceAuto, DeviceHostMem, DeviceCUDA)),
		opt("capacity", "Bytes of the device's memory for copies of blocks, such as 1GiB, taken when the daemon starts. They are for guests with kvrt_gpu and for after_fetch, and no process but the daemon can read them. It needs store.capacity. Default: none.",
			func(g *GPU) *Size { return &g.Capacity }, size{1, maxSize, 1}),
		opt("block_bytes", "Size of a slot there; a longer block is not brought. Default: the largest of store.block_bytes.",
			func(g *GPU) *Size { return &g.BlockBytes }, size{256, 1 << 30, 256}),
		opt("after_fetch", "Whether blocks that were fetched from a peer are brought to the device too, and blocks that only the device still has are brought back before a peer is asked.",
			func(g *GPU) *bool { return &g.AfterFetch }, yesNo{}),
		opt("prefetch_timeout", "How long after it was accepted a prefetch is given up, 1m at most. Default: 1s.",
			func(g *GPU) *time.Duration { return &g.PrefetchTimeout }, duration{time.Millisecond}),
	}}
}

// check holds the section against the rest.
func (g *GPU) check(r *reader, n *node, at *path, c *Config) {
	s := &c.Store
	if v := n.child("prefetch_timeout"); v != nil && g.PrefetchTimeout > maxPrefetchTimeout {
		r.add(v.line, v.col, at.under("prefetch_timeout"), "must be at most %s, not %s", maxPrefetchTimeout, g.PrefetchTimeout)
	}
	v := n.child("capacity")
	if v == nil || g.Capacity == 0 { // which was refused, if it is there
		for _, key := range []string{"block_bytes", "after_fetch", "prefetch_timeout"} {
			if w := n.child(key); w != nil && v == nil {
				r.add(w.line, w.col, at.under(key), "needs memory on the device: set gpu.capacity")
			}
		}
		return
	}
	if s.Capacity == 0 {
		r.add(v.line, v.col, at.under("capacity"), "needs a block store: set store.capacity")
	}
	if w := n.child("after_fetch"); w != nil && g.AfterFetch && c.Peers == nil {
		r.add(w.line, w.col, at.under("after_fetch"), "needs peers to fetch from: set peers")
	}
	if b := g.SlotBytes(s); g.Capacity < b {
		r.add(v.line, v.col, at.under("capacity"), "%s has no room for a block of %s", g.Capacity, b)
	}
}

// SlotBytes is the size of a slot on the device, for blocks of a store.
func (g *GPU) SlotBytes(s *Store) Size {
	b := g.BlockBytes
	if b == 0 {
		for _, n := range s.BlockBytes {
			b = max(b, n)
		}
	}
	return b
}
