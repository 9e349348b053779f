package metrics

import (
	goruntime "runtime"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/server"
)

// hintStore is what is read of a hint store; *fetch.Store is one.
type hintStore interface{ Stats() fetch.Stats }

// collector reads all counters at a scrape.
type collector struct {
	server *server.Server
	store  hintStore // nil without one
	descs  descs
	fleet  fleetDescs
	blocks blockDescs
	device deviceDescs
	peers  peerDescs

	mu      sync.Mutex // guards what follows, and orders looks at the runtime
	runtime runtime.RuntimeStats
	guests  map[string]*totals
	round   uint64
}

// totals are the counters of all guests that had one name, one after the other.
type totals struct {
	now   runtime.GuestStats // of the one that is loaded
	past  runtime.GuestStats // of those before it
	round uint64             // the look that saw it last
}

func newCollector(s *server.Server) *collector {
	c := &collector{server: s, descs: newDescs(), fleet: newFleetDescs(), blocks: newBlockDescs(), device: newDeviceDescs(), peers: newPeerDescs(), guests: map[string]*totals{}}
	c.store, _ = s.Store().(hintStore)
	return c
}

// Describe sends every description.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs.all {
		ch <- d
	}
	for _, d := range c.fleet.all {
		ch <- d
	}
	for _, d := range c.blocks.all {
		ch <- d
	}
	for _, d := range c.device.all {
		ch <- d
	}
	for _, d := range c.peers.all {
		ch <- d
	}
}

// look reads the runtime's counters.
func (c *collector) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
}

func (c *collector) lookLocked() {
	c.round++
	c.server.Runtime().Observe((*observer)(c))
	for name, t := range c.guests {
		if t.round != c.round {
			delete(c.guests, name)
		}
	}
}

// observer is the collector while it looks.
type observer collector

// Runtime takes the runtime's own counters.
func (o *observer) Runtime(s runtime.RuntimeStats) { o.runtime = s }

// Guest takes a guest's counters.
func (o *observer) Guest(s runtime.GuestStats) {
	t := o.guests[s.Name]
	if t == nil {
		t = &totals{}
		o.guests[s.Name] = t
	} else if t.now.Generation != s.Generation {
		add(&t.past, &t.now)
	}
	t.now, t.round = s, o.round
}

// add adds the counters of o to g.
func add(g, o *runtime.GuestStats) {
	g.Calls += o.Calls
	g.Accepted += o.Accepted
	g.LogDropped += o.LogDropped
	g.Fuel += o.Fuel
	g.Unavailable += o.Unavailable
	g.Crowded += o.Crowded
	g.Stalls += o.Stalls
	g.Quarantines += o.Quarantines
	for i, n := range o.Rejected {
		g.Rejected[i] += n
	}
	g.Emitted += o.Emitted
	g.Skipped += o.Skipped
	for i, n := range o.Dropped {
		g.Dropped[i] += n
	}
	for i, n := range o.Traps {
		g.Traps[i] += n
	}
	g.Idle.Calls += o.Idle.Calls
	g.Idle.Fuel += o.Idle.Fuel
	g.Idle.NS += o.Idle.NS
	for i, n := range o.Idle.Traps {
		g.Idle.Traps[i] += n
	}
	g.Durations.SumNS += o.Durations.SumNS
	for i, n := range o.Durations.Buckets {
		g.Durations.Buckets[i] += n
	}
}

// Collect sends every metric.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	out := sink{ch}
	c.collectRuntime(out)
	for name, t := range c.guests {
		c.collectGuest(out, name, t)
	}
	c.collectServer(out)
	if c.store != nil {
		c.collectStore(out)
	}
	if b := c.server.Blocks(); b != nil {
		c.collectBlocks(out, b.Stats())
	}
	if d := c.server.Device(); d != nil {
		c.collectDevice(out, d.Info(), d.Stats())
	}
	if t := c.server.Tier(); t != nil {
		c.collectTier(out, t.Stats())
	}
	if x := c.server.Exchange(); x != nil {
		c.collectPeers(out, x)
	}
	if f := c.server.Fleet(); f != nil {
		c.collectFleet(out, f)
	}
}

func (c *collector) collectRuntime(out sink) {
	d, s := &c.descs, &c.runtime
	out.gauge(d.build, 1, c.server.Version(), goruntime.Version(), strconv.Itoa(abi.Major)+"."+strconv.Itoa(abi.Minor))
	out.gauge(d.generation, float64(s.Generation))
	out.gauge(d.guests, float64(s.Guests))
	out.counter(d.dispatches, s.Dispatches)
	out.counter(d.malformed, s.Malformed)
	out.counter(d.formulations, s.Formulations)
	out.counter(d.badContexts, s.MalformedContexts)
	out.counter(d.swaps, s.Swaps, "ok")
	out.counter(d.swaps, s.FailedSwaps, "refused")
	out.gauge(d.budget, float64(s.MemoryBudget))
	out.gauge(d.reserved, float64(s.MemoryReserved))
	out.gauge(d.heavyRunning, float64(s.HeavyRunning))
	out.gauge(d.heavyMost, float64(s.HeavyMost))
	for reason, n := range byReason(&s.Unrouted) {
		out.counter(d.unrouted, n, reason)
	}
}

func (c *collector) collectGuest(out sink, name string, t *totals) {
	d, s := &c.descs, t.past
	add(&s, &t.now)
	out.gauge(d.guestInfo, 1, name, t.now.Version, t.now.SHA256, strconv.FormatUint(t.now.Generation, 10))
	out.counter(d.calls, s.Calls, name)
	out.counter(d.results, s.Accepted, name, abi.StatusAccepted.String(), "")
	for reason, n := range byReason(&s.Rejected) {
		out.counter(d.results, n, name, abi.StatusRejected.String(), reason)
	}
	if s.Emitted > 0 {
		out.counter(d.emitted, s.Emitted, name)
	}
	if s.Skipped > 0 {
		out.counter(d.skipped, s.Skipped, name)
	}
	for reason, n := range byReason(&s.Dropped) {
		out.counter(d.left, n, name, reason)
	}
	for i, kind := range server.TrapKinds() {
		out.counter(d.traps, s.Traps[i], name, kind)
	}
	out.counter(d.fuel, s.Fuel, name)
	out.counter(d.idles, s.Idle.Calls, name)
	out.counter(d.idleFuel, s.Idle.Fuel, name)
	out.ch <- prometheus.MustNewConstMetric(d.idleTime, prometheus.CounterValue, float64(s.Idle.NS)/1e9, name)
	for i, kind := range server.TrapKinds() {
		out.counter(d.idleTraps, s.Idle.Traps[i], name, kind)
	}
	out.counter(d.logDropped, s.LogDropped, name)
	out.counter(d.unavailable, s.Unavailable, name)
	out.counter(d.quarantines, s.Quarantines, name)
	out.counter(d.crowded, s.Crowded, name)
	out.gauge(d.quarantined, oneIf(t.now.Quarantined), name)
	out.gauge(d.heavy, oneIf(t.now.Heavy), name)
	out.gauge(d.instances, float64(t.now.Instances-t.now.Vacant-t.now.Stuck), name, "ready")
	out.gauge(d.instances, float64(t.now.Stuck), name, "stuck")
	out.counter(d.stalls, s.Stalls, name)
	out.gauge(d.instances, float64(t.now.Vacant), name, "vacant")
	out.gauge(d.memory, float64(t.now.MemoryBytes), name)
	out.ch <- &durations{desc: d.durations, labels: prometheus.MakeLabelPairs(d.durations, []string{name}), counts: s.Durations}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (c *collector) collectServer(out sink) {
	d, s := &c.descs, c.server.Stats()
	out.gauge(d.connections, float64(s.Connections))
	out.counter(d.opened, s.Accepted, "accepted")
	out.counter(d.opened, s.Refused, "refused")
	out.counter(d.bytesIn, s.BytesIn)
	out.counter(d.bytesOut, s.BytesOut)
	out.gauge(d.buffered, float64(s.Buffered))
	out.counter(d.oneway, s.Oneway)
	for i, name := range s.OpNames() {
		if name != "" {
			out.counter(d.frames, s.Requests[i], name)
		}
	}
	for i, n := range s.Errors {
		if n > 0 {
			out.counter(d.errors, n, server.Code(i).String())
		}
	}
	if c.server.HTTPPath() != "" {
		for i := 2; i < len(s.HTTP); i++ {
			out.counter(c.fleet.http, s.HTTP[i], strconv.Itoa(i)+"xx")
		}
	}
	r := c.server.LastReload()
	ok := 0.0
	if r.OK {
		ok = 1
	}
	out.gauge(d.reloadOK, ok)
	out.gauge(d.reloadTime, float64(r.LastOK.UnixMilli())/1e3)
}

func (c *collector) collectStore(out sink) {
	d, s := &c.descs, c.store.Stats()
	out.gauge(d.entries, float64(s.Entries))
	out.gauge(d.tombstones, float64(s.Tombstones))
	out.gauge(d.hashBytes, float64(s.Bytes))
	out.gauge(d.prepared, float64(s.Prepared))
	out.counter(d.submits, s.Submitted, "stored")
	out.counter(d.submits, s.Replaced, "replaced")
	out.counter(d.submits, s.Unkeyed, "not_stored")
	out.counter(d.ended, s.Finished, "finished")
	out.counter(d.ended, s.Discarded, "discarded")
	out.counter(d.ended, s.Expired, "expired")
	out.counter(d.fetchRefused, s.Conflicts, abi.ReasonConflictingSource.String())
	out.counter(d.fetchRefused, s.RefusedFinished, abi.ReasonRequestFinished.String())
	out.counter(d.fetchRefused, s.RefusedInvalid, abi.ReasonInvalidPayload.String())
	out.counter(d.fetchRefused, s.RefusedLimit, abi.ReasonLimitExceeded.String())
}

// byReason names the counters that are not 0. Codes that have no name count as one.
func byReason(counts *[runtime.NumReasons]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for i, n := range counts {
		if n > 0 {
			out[abi.Reason(i).String()] += n
		}
	}
	return out
}

// sink sends metrics.
type sink struct{ ch chan<- prometheus.Metric }

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) counter(d *prometheus.Desc, v uint64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}
