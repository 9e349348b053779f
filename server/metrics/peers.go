package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvrt/kvrt/server"
)

// peerDescs are what is shown of peers, and of what became of hints.
type peerDescs struct {
	outcomes, open, lost                                    *prometheus.Desc
	fetched, fetchedBytes, inFlight, operations, incomplete *prometheus.Desc
	fetches, coalesced, busy                                *prometheus.Desc
	served, servedBytes, requests, links, opened, leased    *prometheus.Desc
	cut, ahead, aheadBlocks                                 *prometheus.Desc
	all                                                     []*prometheus.Desc
}

func newPeerDescs() (d peerDescs) {
	for _, x := range []struct {
		to     **prometheus.Desc
		name   string
		help   string
		labels []string
	}{
		{&d.outcomes, "outcomes_total", "Accepted hints for blocks of others that have ended, by their end. Only what is partial or failed has a reason.", []string{"state", "reason"}},
		{&d.open, "outcomes_open", "Accepted hints that have not ended.", nil},
		{&d.lost, "outcomes_lost_total", "Outcomes that those who follow them were too slow for.", nil},
		{&d.fetched, "peer_fetched_blocks_total", "Blocks that came from a source; other: from all that are not counted apart.", []string{"source"}},
		{&d.fetchedBytes, "peer_fetched_bytes_total", "Bytes of them.", []string{"source"}},
		{&d.fetches, "peer_fetches_in_flight", "Operations that bring blocks from a source, and have not ended.", nil},
		{&d.inFlight, "peer_fetching_blocks", "Blocks that are on their way.", nil},
		{&d.operations, "peer_operations_total", "Rounds in which a source was turned to.", nil},
		{&d.incomplete, "peer_operations_incomplete_total", "Of them, those that did not bring every block.", nil},
		{&d.coalesced, "peer_coalesced_blocks_total", "Blocks that another operation was bringing already.", nil},
		{&d.busy, "peer_busy_total", "Requests that were refused, since too many bytes were under way for the source or the tenant, or too many sources in use.", nil},
		{&d.ahead, "peer_prefetches", "Orders to bring blocks from a source ahead of need that have not ended.", []string{"state"}},
		{&d.aheadBlocks, "peer_prefetch_blocks", "Blocks of them.", nil},
		{&d.served, "peer_served_blocks_total", "Blocks that a peer was served; other: all that are not counted apart.", []string{"peer"}},
		{&d.servedBytes, "peer_served_bytes_total", "Bytes of them.", []string{"peer"}},
		{&d.requests, "peer_requests_total", "Requests for blocks, by who asked; denied: for a namespace that the peer may not read.", []string{"peer", "result"}},
		{&d.links, "peer_links_open", "Links of peers that are open.", nil},
		{&d.opened, "peer_links_total", "Connections of peers: welcomed; refused for a cap; failed in the handshake.", []string{"result"}},
		{&d.leased, "peer_leased_bytes", "Bytes that are held for requests of peers.", nil},
		{&d.cut, "peer_cut_total", "Requests of peers whose link broke before their end.", nil},
	} {
		*x.to = prometheus.NewDesc("kvrt_"+x.name, x.help, x.labels, nil)
		d.all = append(d.all, *x.to)
	}
	return d
}

func (c *collector) collectPeers(out sink, x server.Exchange) {
	d := &c.peers
	served, fetching, ends := x.Stats()
	for state, n := range map[string]uint64{"completed": ends.Completed, "superseded": ends.Superseded, "discarded": ends.Discarded, "expired": ends.Expired} {
		out.counter(d.outcomes, n, state, "")
	}
	for i := range ends.FailedBy {
		for state, n := range map[string]uint64{"failed": ends.FailedBy[i], "partial": ends.PartialBy[i]} {
			if n > 0 {
				out.counter(d.outcomes, n, state, server.ReasonName(i))
			}
		}
	}
	out.gauge(d.open, float64(ends.Open))
	out.counter(d.lost, ends.Dropped)
	for _, b := range x.Brought() {
		source := b.Source
		if source == "" {
			source = "other"
		}
		out.counter(d.fetched, b.Blocks, source)
		out.counter(d.fetchedBytes, b.Bytes, source)
	}
	fetches := 0
	for _, s := range x.Sources() {
		fetches += s.InUse
	}
	out.gauge(d.fetches, float64(fetches))
	out.gauge(d.inFlight, float64(fetching.Flights))
	out.counter(d.operations, fetching.Operations)
	out.counter(d.incomplete, fetching.Incomplete)
	out.counter(d.coalesced, fetching.Coalesced)
	out.counter(d.busy, fetching.Busy)
	ahead := x.Ahead()
	out.gauge(d.ahead, float64(ahead.Waiting), "waiting")
	out.gauge(d.ahead, float64(ahead.Running), "running")
	out.gauge(d.aheadBlocks, float64(ahead.Blocks))
	for _, r := range x.Readers() {
		out.counter(d.served, r.Blocks, r.Peer)
		out.counter(d.servedBytes, r.Bytes, r.Peer)
		out.counter(d.requests, r.Requests-r.Denied, r.Peer, "allowed")
		out.counter(d.requests, r.Denied, r.Peer, "denied")
	}
	out.gauge(d.links, float64(served.Open))
	out.counter(d.opened, served.Links, "welcomed")
	out.counter(d.opened, served.Refused, "refused")
	out.counter(d.opened, served.Failed, "failed")
	out.gauge(d.leased, float64(served.Leased))
	out.counter(d.cut, served.Cut)
}
