package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvrt/kvrt/hosts/gpu"
)

// deviceDescs are what is shown of the device that blocks are copied to and from.
type deviceDescs struct {
	info, regions, batches, inFlight, refused, bytes, copies, lost *prometheus.Desc
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
