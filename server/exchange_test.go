package server

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/hostmem"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
)

// madeUp is an exchange whose counters are all different.
type madeUp struct{ at time.Time }

func (madeUp) Addresses() []string { return []string{"/run/p"} }
func (madeUp) Readers() []Reader   { return []Reader{{"uid:7", 5, 1, 7, 8}, {Peer: "other"}} }
func (madeUp) Ahead() AheadStatus  { return AheadStatus{15, 16, 17} }
func (madeUp) Brought() []fetcher.Brought {
	return []fetcher.Brought{{Source: "tcp://a:1", Blocks: 5, Bytes: 500}, {Blocks: 2, Bytes: 20}}
}

func (m madeUp) Sources() []fetcher.SourceStats {
	return []fetcher.SourceStats{
		{Source: "tcp://a:1", InUse: 1, Incarnation: 255, Client: peer.ClientStats{Dials: 1, DialFailures: 2, Restarts: 3, Blocks: 4, Bytes: 5, Mapped: 6, Violations: 7}},
		{Source: "tcp://b:1", InUse: 1, LastError: "refused", LastErrorAt: m.at},
		{Source: "tcp://c:1", Incarnation: 1},
		{Source: "tcp://d:1", Incarnation: 1, Client: peer.ClientStats{Idle: 1}},
	}
}

func (madeUp) Stats() (peer.ServerStats, fetcher.Stats, outcome.Stats) {
	return peer.ServerStats{Open: 1, Leased: 2, Refused: 3, Failed: 4, Requests: 5, Denied: 6, Blocks: 7, Bytes: 8, Cut: 9},
		fetcher.Stats{Flights: 10, Operations: 11, Coalesced: 12, Busy: 13, Incomplete: 14},
		outcome.Stats{
			Accepted: 28, Open: 1, Completed: 2, Partial: 3, Failed: 4, Superseded: 5, Discarded: 6, Expired: 7,
			FailedBy: [outcome.NumReasons]uint64{abi.ReasonNone: 1, abi.ReasonUnavailable: 3}, PartialBy: [outcome.NumReasons]uint64{abi.ReasonNotFound: 3},
		}
}

// TestExchangeStatus: what is shown of peers and outcomes, through the admin API.
func TestExchangeStatus(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := newRig(t, withAdmin, func(c *rigConfig) { c.Exchange = madeUp{at} })
	st, err := NewAdmin(g.srv.AdminAddr()).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &PeersStatus{
		Serving: []string{"/run/p"}, Served: ServedStatus{1, 2, 7, 8, 5, 6, 9, 3, 4}, Readers: []Reader{{"uid:7", 5, 1, 7, 8}, {Peer: "other"}},
		Sources: []SourceStatus{
			{"tcp://a:1", true, 1, "00000000000000ff", 4, 5, 6, 1, 2, 3, 7, "", time.Time{}},
			{Source: "tcp://b:1", Operations: 1, LastError: "refused", LastErrorAt: at},
			{Source: "tcp://c:1", Incarnation: "0000000000000001"},
			{Source: "tcp://d:1", Connected: true, Incarnation: "0000000000000001"},
		},
		Fetched: 7, FetchedBytes: 520, InFlight: 10, Operations: 11, Incomplete: 14, Coalesced: 12, RefusedAsBusy: 13,
		Prefetches: AheadStatus{15, 16, 17},
	}
	if !reflect.DeepEqual(st.Peers, want) {
		t.Errorf("%+v, want %+v", st.Peers, want)
	}
	ends := &OutcomesStatus{28, 1, 2, 3, 4, 5, 6, 7, map[string]uint64{"other": 1, "unavailable": 3}, map[string]uint64{"not_found": 3}}
	if !reflect.DeepEqual(st.Outcomes, ends) {
		t.Errorf("%+v, want %+v", st.Outcomes, ends)
	}
	g = newRig(t, withAdmin)
	if st, err := NewAdmin(g.srv.AdminAddr()).Status(t.Context()); err != nil || st.Peers != nil || st.Outcomes != nil {
		t.Errorf("without peers: %+v, %v", st, err)
	}
}

// failing are blocks on a device whose copies fail.
type failing struct{}

func (failing) Stats() tier.Stats {
	return tier.Stats{BlockBytes: 64, Slots: 9, Used: 5, Filling: 1, Leased: 2, Loaded: 6, Saved: 7, BytesIn: 8, BytesOut: 10, Evicted: 11, NoRoom: 12, Failed: 13,
		Failure: errors.New("lost"), Prefetches: 14, Refused: 15, Late: 16, Broken: 17, Queued: 18, Quarantined: 19}
}

func TestDeviceStatus(t *testing.T) {
	dev := gpu.New(hostmem.New(hostmem.Config{}), gpu.Config{})
	t.Cleanup(func() { _ = dev.Close(context.Background()) })
	g := newRig(t, withAdmin, func(c *rigConfig) { c.Device, c.DeviceChoice, c.Tier = dev, "told to", failing{} })
	st, err := NewAdmin(g.srv.AdminAddr()).Status(t.Context())
	if err != nil || st.Device == nil {
		t.Fatal(err)
	}
	want := &DeviceBlocks{64, 9, 5, 1, 2, 6, 7, 8, 10, 11, 12, 13, "lost", 14, 15, 16, 17, 18, 19}
	if st.Device.Driver != "hostmem" || st.Device.Choice != "told to" || !reflect.DeepEqual(st.Device.Blocks, want) {
		t.Errorf("%+v %+v", st.Device, st.Device.Blocks)
	}
}
