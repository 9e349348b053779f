package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/kvrt/kvrt/runtime"
)

// The classic buckets are powers of two of a second: these are bounds of the buckets
// that the runtime counts in, so that nothing is estimated.
const (
	firstClassic = -22 // 238 ns
	lastClassic  = -4  // 62.5 ms
)

// durations is a histogram in both forms: classic buckets for the text formats, and
// native ones, of the schema that the runtime counts in, for protobuf.
type durations struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	counts runtime.Durations
}

func (d *durations) Desc() *prometheus.Desc { return d.desc }

// Write fills in the histogram.
func (d *durations) Write(m *dto.Metric) error {
	h := &dto.Histogram{
		SampleSum:     new(float64(d.counts.SumNS) / 1e9),
		Schema:        new(int32(runtime.DurationSchema)),
		ZeroThreshold: new(bound(0)),
		ZeroCount:     new(d.counts.Buckets[0]),
	}
	d.classic(h)
	d.native(h)
	m.Label, m.Histogram = d.labels, h
	return nil
}

// bound is the upper bound of the runtime's bucket i, in seconds.
func bound(i int) float64 {
	return math.Exp2(float64(runtime.DurationFirst+i) / (1 << runtime.DurationSchema))
}

func (d *durations) classic(h *dto.Histogram) {
	var sum uint64
	next := firstClassic
	for i, n := range d.counts.Buckets {
		sum += n
		if next <= lastClassic && runtime.DurationFirst+i == next<<runtime.DurationSchema {
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(math.Exp2(float64(next))), CumulativeCount: new(sum)})
			next++
		}
	}
	h.SampleCount = new(sum)
}

// native writes the buckets from the first to the last that is not empty, as one span.
// The runtime's first bucket is the zero bucket.
func (d *durations) native(h *dto.Histogram) {
	first, last := 0, -1
	for i, n := range d.counts.Buckets {
		if i > 0 && n > 0 {
			if last < 0 {
				first = i
			}
			last = i
		}
	}
	if last < 0 { // a span of no buckets tells that the histogram is native
		h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
		return
	}
	h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(runtime.DurationFirst + first)), Length: new(uint32(last - first + 1))}}
	var before uint64
	for _, n := range d.counts.Buckets[first : last+1] {
		h.PositiveDelta = append(h.PositiveDelta, int64(n-before))
		before = n
	}
}
