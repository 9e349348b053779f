package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/kvevents"
	"github.com/kvrt/kvrt/server"
)

// maxFeeds and maxNamespaces bound the series: of more feeds, or namespaces, those that
// come last in order have none, and the totals count them all.
const (
	maxFeeds      = 1024
	maxNamespaces = 256
)

// fleetDescs are what is shown of workers, feeds and lineage.
type fleetDescs struct {
	workers, feeds, notShown                                      *prometheus.Desc
	connected, live, lag, queued, queuedBytes, sequence           *prometheus.Desc
	events, passed, batches, gaps, replays, restarts, clears      *prometheus.Desc
	sessions, nodes, frontiers, bytes, evicted, lost, lineageSeen *prometheus.Desc
	lineageRefused, routerEvents, http                            *prometheus.Desc
	all                                                           []*prometheus.Desc
}

func newFleetDescs() (d fleetDescs) {
	feed := func(more ...string) []string { return append([]string{"worker", "dp_rank"}, more...) }
	namespace := func(more ...string) []string { return append([]string{"namespace"}, more...) }
	for _, x := range []struct {
		to     **prometheus.Desc
		name   string
		help   string
		labels []string
	}{
		{&d.workers, "workers", "Workers in the catalogue.", nil},
		{&d.feeds, "feeds", "Feeds of KV events: live; connected, while what was missed is being asked for; waiting.", []string{"state"}},
		{&d.notShown, "feeds_not_shown", "Feeds that have no series of their own, since there are too many.", nil},
		{&d.connected, "feed_connected", "1 while the subscription to a worker-rank's KV events stands.", feed()},
		{&d.live, "feed_live", "1 while it stands and what was missed before has been asked for.", feed()},
		{&d.lag, "feed_lag_seconds", "How long before it was applied the last batch was made, by its publisher's clock.", feed()},
		{&d.queued, "feed_queued_batches", "Batches that wait for being applied.", feed()},
		{&d.queuedBytes, "feed_queued_bytes", "Bytes of the batches that wait.", feed()},
		{&d.sequence, "feed_sequence", "The number that is expected next.", feed()},
		{&d.events, "feed_events_total", "Events that were handed on to the lineage index.", feed("event")},
		{&d.passed, "feed_events_left_out_total", "Events that were not: of unknown type, malformed, or refused by the index.", feed("why")},
		{&d.batches, "feed_batches_total", "Batches by what became of them; replayed ones are applied ones, too.", feed("result")},
		{&d.gaps, "feed_gaps_total", "Holes in a worker-rank's sequence.", feed()},
		{&d.replays, "feed_replays_total", "Replays that were asked for.", feed("result")},
		{&d.restarts, "feed_restarts_total", "Times that a publisher began its sequence anew.", feed()},
		{&d.clears, "feed_clears_total", "Times that all lineage of a feed was dropped.", feed()},
		{&d.sessions, "lineage_sessions", "Sessions in the lineage index of a namespace.", namespace()},
		{&d.nodes, "lineage_nodes", "Blocks in it.", namespace()},
		{&d.frontiers, "lineage_frontiers", "Ends of sessions' chains on workers.", namespace()},
		{&d.bytes, "lineage_bytes", "Memory of its blocks.", namespace()},
		{&d.evicted, "lineage_evicted_sessions_total", "Sessions that were dropped to keep within its bounds.", namespace()},
		{&d.lost, "lineage_lost_frontiers_total", "Frontiers that were dropped because a session had too many.", namespace()},
		{&d.lineageSeen, "lineage_events_total", "Events that came to it, those that moved nothing included.", namespace()},
		{&d.lineageRefused, "lineage_refused_total", "Events that it refused.", namespace("why")},
		{&d.routerEvents, "router_events_total", "Events in routing contexts by what became of them.", []string{"result"}},
		{&d.http, "http_requests_total", "Requests on the HTTP socket, by status.", []string{"code"}},
	} {
		*x.to = prometheus.NewDesc("kvrt_"+x.name, x.help, x.labels, nil)
		d.all = append(d.all, *x.to)
	}
	return d
}

func (c *collector) collectFleet(out sink, f *fleet.Fleet) {
	d := &c.fleet
	out.gauge(d.workers, float64(f.Catalogue().Len()))
	feeds := f.Feeds()
	states := map[string]int{"live": 0, "connected": 0, "waiting": 0}
	for i := range feeds {
		states[server.FeedState(&feeds[i])]++
		if i < maxFeeds {
			c.collectFeed(out, &feeds[i])
		}
	}
	for state, n := range states {
		out.gauge(d.feeds, float64(n), state)
	}
	out.gauge(d.notShown, float64(max(0, len(feeds)-maxFeeds)))
	for i, l := range f.Lineage() {
		if i < maxNamespaces {
			c.collectLineage(out, &l)
		}
	}
	s := f.SeedStats()
	out.counter(d.routerEvents, s.Matched, "taken")
	out.counter(d.routerEvents, s.Refused, "refused")
	out.counter(d.routerEvents, s.UnknownWorker, "unknown_worker")
	out.counter(d.routerEvents, s.LeftOut, "left_out")
}

func (c *collector) collectFeed(out sink, s *kvevents.Stats) {
	d, worker, rank := &c.fleet, server.FormatWorkerID(s.Worker.ID), ""
	if s.Worker.HasRank {
		rank = strconv.FormatUint(uint64(s.Worker.Rank), 10)
	}
	gauge := func(desc *prometheus.Desc, v float64) { out.gauge(desc, v, worker, rank) }
	count := func(desc *prometheus.Desc, v uint64, more ...string) {
		out.counter(desc, v, append([]string{worker, rank}, more...)...)
	}
	gauge(d.connected, flag(s.Connected))
	gauge(d.live, flag(s.Live))
	gauge(d.lag, s.Lag.Seconds())
	gauge(d.queued, float64(s.Queued))
	gauge(d.queuedBytes, float64(s.QueuedBytes))
	gauge(d.sequence, float64(s.Sequence))
	count(d.events, s.Stored, "stored")
	count(d.events, s.Removed, "removed")
	count(d.events, s.Cleared, "cleared")
	count(d.passed, s.Unknown, "unknown")
	count(d.passed, s.Malformed, "malformed")
	count(d.passed, s.Refused, "refused")
	count(d.batches, s.Batches, "applied")
	count(d.batches, s.Replayed, "replayed")
	count(d.batches, s.Duplicates, "duplicate")
	count(d.batches, s.Dropped, "dropped")
	count(d.batches, s.DecodeErrors+s.BadMessages, "unreadable")
	count(d.batches, s.OtherRank, "other_rank")
	count(d.gaps, s.Gaps)
	count(d.replays, s.Replays-min(s.Replays, s.ReplaysFailed), "ok")
	count(d.replays, s.ReplaysFailed, "failed")
	count(d.restarts, s.Restarts)
	count(d.clears, s.Clears)
}

func (c *collector) collectLineage(out sink, l *fleet.Lineage) {
	d := &c.fleet
	out.gauge(d.sessions, float64(l.Sessions), l.Namespace)
	out.gauge(d.nodes, float64(l.Nodes), l.Namespace)
	out.gauge(d.frontiers, float64(l.Frontiers), l.Namespace)
	out.gauge(d.bytes, float64(l.Bytes), l.Namespace)
	out.counter(d.evicted, l.EvictedSessions, l.Namespace)
	out.counter(d.lost, l.LostFrontiers, l.Namespace)
	out.counter(d.lineageSeen, l.Events, l.Namespace)
	for _, x := range []struct {
		why string
		n   uint64
	}{
		{"other_tier", l.OtherTier}, {"other_group", l.OtherGroup}, {"no_session", l.NoSession}, {"wrong_kind", l.WrongKind},
		{"invalid", l.Invalid}, {"other_tenant", l.OtherTenant}, {"unknown_parent", l.UnknownParent},
		{"conflicting_parent", l.ConflictingParent}, {"cyclic_parent", l.CyclicParent}, {"full", l.Full},
	} {
		out.counter(d.lineageRefused, x.n, l.Namespace, x.why)
	}
}

func flag(v bool) float64 {
	if v {
		return 1
	}
	return 0
}
