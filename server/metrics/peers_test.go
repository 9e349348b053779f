package metrics

import (
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/server"
)

// exchange is an exchange with a ledger of its own and made-up peers.
type exchange struct{ *outcome.Ledger }

func (exchange) Addresses() []string            { return []string{"/run/p"} }
func (exchange) Sources() []fetcher.SourceStats { return []fetcher.SourceStats{{InUse: 2}, {InUse: 3}} }
func (exchange) Brought() []fetcher.Brought {
	return []fetcher.Brought{{Source: "tcp://10.0.0.9:1", Blocks: 5, Bytes: 500}, {Blocks: 2, Bytes: 20}}
}

func (exchange) Ahead() server.AheadStatus {
	return server.AheadStatus{Waiting: 4, Running: 2, Blocks: 77}
}

func (exchange) Readers() []server.Reader {
	return []server.Reader{{Peer: "uid:1000", Requests: 5, Denied: 1, Blocks: 6, Bytes: 7}, {Peer: "other", Blocks: 2, Bytes: 3}}
}

func (x exchange) Stats() (peer.ServerStats, fetcher.Stats, outcome.Stats) {
	return peer.ServerStats{Open: 1, Leased: 64, Links: 2, Refused: 3, Failed: 4, Requests: 5, Denied: 1, Blocks: 6, Bytes: 7, Cut: 8},
		fetcher.Stats{Flights: 9, Operations: 10, Coalesced: 11, Busy: 12, Incomplete: 13}, x.Ledger.Stats()
}

// TestPeers: what became of hints, by end and reason, and what went to and came from whom.
func TestPeers(t *testing.T) {
	l := outcome.NewLedger(outcome.Config{})
	slow := l.Subscribe(outcome.Filter{}, 1)
	defer slow.Close()
	for request, end := range map[string]func(hint.Identity){
		"1": l.Complete, "2": l.Discard, "3": l.Discard, "4": func(hint.Identity) {},
		"5": func(id hint.Identity) { l.Fail(id, abi.ReasonUnavailable) },
		"6": func(id hint.Identity) { l.Fail(id, abi.ReasonNotFound) },
		"7": func(id hint.Identity) { l.Fetched(id, 1, 10); l.Fail(id, abi.ReasonNotFound) },
		"8": func(id hint.Identity) { l.Accept(id, nil, 1, 2); l.Complete(id) },
	} {
		id := hint.Identity{RequestID: request}
		l.Accept(id, nil, 0, 2)
		end(id)
	}
	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, rt: rt, store: fetch.New(fetch.Config{}), peers: exchange{l}}
	g.serve()
	for _, v := range []struct {
		name string
		with []string
		want float64
	}{
		{"kvrt_outcomes_total", []string{"state=completed", "reason="}, 2},
		{"kvrt_outcomes_total", []string{"state=discarded", "reason="}, 2},
		{"kvrt_outcomes_total", []string{"state=superseded", "reason="}, 1},
		{"kvrt_outcomes_total", []string{"state=expired", "reason="}, 0},
		{"kvrt_outcomes_total", []string{"state=failed", "reason=unavailable"}, 1},
		{"kvrt_outcomes_total", []string{"state=failed", "reason=not_found"}, 1},
		{"kvrt_outcomes_total", []string{"state=partial", "reason=not_found"}, 1},
		{"kvrt_outcomes_open", nil, 1},
		{"kvrt_outcomes_lost_total", nil, 7},
		{"kvrt_peer_fetched_blocks_total", []string{"source=tcp://10.0.0.9:1"}, 5},
		{"kvrt_peer_fetched_bytes_total", []string{"source=tcp://10.0.0.9:1"}, 500},
		{"kvrt_peer_fetched_bytes_total", []string{"source=other"}, 20},
		{"kvrt_peer_fetches_in_flight", nil, 5},
		{"kvrt_peer_fetching_blocks", nil, 9},
		{"kvrt_peer_operations_total", nil, 10},
		{"kvrt_peer_operations_incomplete_total", nil, 13},
		{"kvrt_peer_coalesced_blocks_total", nil, 11},
		{"kvrt_peer_busy_total", nil, 12},
		{"kvrt_peer_prefetches", []string{"state=waiting"}, 4},
		{"kvrt_peer_prefetches", []string{"state=running"}, 2},
		{"kvrt_peer_prefetch_blocks", nil, 77},
		{"kvrt_peer_served_blocks_total", []string{"peer=uid:1000"}, 6},
		{"kvrt_peer_served_bytes_total", []string{"peer=uid:1000"}, 7},
		{"kvrt_peer_served_bytes_total", []string{"peer=other"}, 3},
		{"kvrt_peer_requests_total", []string{"peer=uid:1000", "result=allowed"}, 4},
		{"kvrt_peer_requests_total", []string{"peer=uid:1000", "result=denied"}, 1},
		{"kvrt_peer_requests_total", []string{"peer=other", "result=denied"}, 0},
		{"kvrt_peer_links_open", nil, 1},
		{"kvrt_peer_links_total", []string{"result=welcomed"}, 2},
		{"kvrt_peer_links_total", []string{"result=refused"}, 3},
		{"kvrt_peer_links_total", []string{"result=failed"}, 4},
		{"kvrt_peer_leased_bytes", nil, 64},
		{"kvrt_peer_cut_total", nil, 8},
	} {
		if got := g.value(v.name, v.with...); got != v.want {
			t.Errorf("%s%v: %v, want %v", v.name, v.with, got, v.want)
		}
	}
	g.lint()
}
