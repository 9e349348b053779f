package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvrt/kvrt/hosts/store"
)

// blockDescs are what is shown of the block store. Pools are the operator's to choose, so
// their sizes are labels.
type blockDescs struct {
	capacity, used, slots, namespaces, tokens, claims *prometheus.Desc
	lookups, writes, gone, refused, corrupt           *prometheus.Desc
	all                                               []*prometheus.Desc
}

func newBlockDescs() (d blockDescs) {
	for _, x := range []struct {
		to     **prometheus.Desc
		name   string
		help   string
		labels []string
	}{
		{&d.capacity, "store_capacity_bytes", "Memory of all slots of the block store.", []string{"backing"}},
		{&d.used, "store_used_bytes", "Memory of the slots that are not free, which may be longer than their blocks.", nil},
		{&d.slots, "store_slots", "Slots by state. Those that are waiting hold a block that is gone, until the last to use it has ended.", []string{"block_bytes", "state"}},
		{&d.namespaces, "store_namespaces", "Namespaces that have blocks.", nil},
		{&d.tokens, "store_leases", "Leases, reservations, pins and transfers.", nil},
		{&d.claims, "store_claims", "Claims of blocks; those whose time is over count until they are looked at.", nil},
		{&d.lookups, "store_lookups_total", "Blocks that were asked for to be read.", []string{"result"}},
		{&d.writes, "store_writes_total", "Blocks that were to be written: committed; aborted; coalesced with another writer's; duplicates of what was there.", []string{"result"}},
		{&d.gone, "store_evicted_total", "Blocks that went: displaced by others, or evicted because a hint asked.", []string{"why"}},
		{&d.refused, "store_full_total", "Blocks that found no slot.", nil},
		{&d.corrupt, "store_checksum_failures_total", "Blocks whose bytes did not have their checksum. None of them was served after that.", nil},
	} {
		*x.to = prometheus.NewDesc("kvrt_"+x.name, x.help, x.labels, nil)
		d.all = append(d.all, *x.to)
	}
	return d
}

func (c *collector) collectBlocks(out sink, s store.Stats) {
	d := &c.blocks
	out.gauge(d.capacity, float64(s.Capacity), s.Backing)
	used := uint64(0)
	for _, p := range s.Pools {
		used += p.BlockBytes * uint64(p.Slots-p.Free)
		size := strconv.FormatUint(p.BlockBytes, 10)
		for state, n := range map[string]int{
			"free": p.Free, "idle": p.Published - p.Pinned - p.Leased, "pinned": p.Pinned, "leased": p.Leased, "filling": p.Filling, "waiting": p.Waiting,
		} {
			out.gauge(d.slots, float64(n), size, state)
		}
	}
	out.gauge(d.used, float64(used))
	out.gauge(d.namespaces, float64(s.Namespaces))
	out.gauge(d.tokens, float64(s.Tokens))
	out.gauge(d.claims, float64(s.Claims))
	out.counter(d.lookups, s.Hits, "hit")
	out.counter(d.lookups, s.Misses, "miss")
	out.counter(d.writes, s.Committed, "committed")
	out.counter(d.writes, s.Aborted, "aborted")
	out.counter(d.writes, s.Coalesced, "coalesced")
	out.counter(d.writes, s.Duplicates, "duplicate")
	out.counter(d.gone, s.Displaced, "displaced")
	out.counter(d.gone, s.Evicted, "asked")
	out.counter(d.refused, s.Full)
	out.counter(d.corrupt, s.ChecksumFailures)
}
