package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
)

// deviceDescs are what is shown of the device that blocks are copied to and from.
type deviceDescs struct {
	info, regions, batches, inFlight, refused, bytes, copies, lost *prometheus.Desc
	slots, slotBytes, moved, movedBytes, displaced, missed         *prometheus.Desc
	prefetches, queued, abandoned, quarantined                     *prometheus.Desc
	all                                                            []*prometheus.Desc
}

func newDeviceDescs() (d deviceDescs) {
	for _, x := range []struct {
		to     **prometheus.Desc
		name   string
		help   string
		labels []string
	}{
		{&d.info, "device_info", "The device, always 1.", []string{"driver", "name"}},
		{&d.regions, "device_regions", "Regions of memory that it can copy to and from.", nil},
		{&d.batches, "device_batches_total", "Batches of copies that have ended.", []string{"result"}},
		{&d.inFlight, "device_batches_in_flight", "Batches of copies that have not ended.", nil},
		{&d.refused, "device_batches_refused_total", "Batches of which nothing was started.", nil},
		{&d.bytes, "device_bytes_total", "Bytes of batches that are done.", nil},
		{&d.copies, "device_copies_total", "Copies that batches that are done were made of.", nil},
		{&d.slots, "device_slots", "Slots for blocks on the device, by state.", []string{"state"}},
		{&d.slotBytes, "device_slot_bytes", "Memory of one of them.", nil},
		{&d.moved, "device_blocks_total", "Blocks that were copied: loaded from the block store, saved to it, delivered to the engine's memory, offloaded from it.", []string{"what"}},
		{&d.movedBytes, "device_block_bytes_total", "Bytes of them: in, to the device, and out.", []string{"direction"}},
		{&d.displaced, "device_blocks_displaced_total", "Blocks on the device that yielded to others.", nil},
		{&d.missed, "device_blocks_missed_total", "Blocks that did not come: missing in the block store, without room for them, or with a copy that failed.", []string{"why"}},
		{&d.prefetches, "device_prefetches_total", "Orders to bring blocks to the device ahead of need: asked for; of those refused, since too many waited; late; or broken, since not all came in time.", []string{"what"}},
		{&d.queued, "device_prefetch_blocks", "Blocks that wait in orders to bring them to the device.", nil},
		{&d.abandoned, "device_batches_abandoned_total", "Batches of copies of blocks that nobody waited for any longer.", nil},
		{&d.quarantined, "device_quarantined_total", "Places in host memory that are given to nobody, since a lost device may write to them.", nil},
		{&d.lost, "device_lost", "1 when the device is dead and copies nothing any more.", nil},
	} {
		*x.to = prometheus.NewDesc("kvrt_"+x.name, x.help, x.labels, nil)
		d.all = append(d.all, *x.to)
	}
	return d
}

func (c *collector) collectDevice(out sink, i gpu.Info, s gpu.Stats) {
	d := &c.device
	out.gauge(d.info, 1, i.Driver, i.Name)
	out.gauge(d.regions, float64(s.Regions))
	out.counter(d.batches, s.Ended-s.Failed, "done")
	out.counter(d.batches, s.Failed, "failed")
	out.gauge(d.inFlight, float64(s.Submitted-s.Ended))
	out.counter(d.refused, s.Refused)
	out.counter(d.bytes, s.Bytes)
	out.counter(d.copies, s.Copies)
	lost := 0.0
	if s.Lost {
		lost = 1
	}
	out.gauge(d.lost, lost)
}

// collectTier shows the blocks on the device.
func (c *collector) collectTier(out sink, s tier.Stats) {
	d := &c.device
	for state, n := range map[string]int{"free": s.Slots - s.Used, "idle": s.Used - s.Filling - s.Leased, "filling": s.Filling, "leased": s.Leased} {
		out.gauge(d.slots, float64(n), state)
	}
	out.gauge(d.slotBytes, float64(s.BlockBytes))
	for what, n := range map[string]uint64{"loaded": s.Loaded, "saved": s.Saved, "delivered": s.Delivered, "offloaded": s.Offloaded} {
		out.counter(d.moved, n, what)
	}
	out.counter(d.movedBytes, s.BytesIn, "in")
	out.counter(d.movedBytes, s.BytesOut, "out")
	out.counter(d.displaced, s.Evicted)
	for why, n := range map[string]uint64{"missing": s.Missing, "no_room": s.NoRoom, "failed": s.Failed} {
		out.counter(d.missed, n, why)
	}
	for what, n := range map[string]uint64{"asked": s.Prefetches, "refused": s.Refused, "late": s.Late, "broken": s.Broken} {
		out.counter(d.prefetches, n, what)
	}
	out.gauge(d.queued, float64(s.Queued))
	out.counter(d.abandoned, s.Abandoned)
	out.counter(d.quarantined, s.Quarantined)
}
