package server

import (
	"fmt"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// Exchange is the exchange of blocks with peers, as far as the server shows it.
type Exchange interface {
	// Addresses are the endpoints that are served.
	Addresses() []string
	Stats() (peer.ServerStats, fetcher.Stats, outcome.Stats)
	// Sources are those that links may be kept to, and Brought what came from whom; the
	// last of Brought is of all that are not counted apart.
	Sources() []fetcher.SourceStats
	Brought() []fetcher.Brought
	// Readers are the peers that have asked for blocks; the last is of all others.
	Readers() []Reader
	// Ahead are the prefetches that have not ended.
	Ahead() AheadStatus
}

// AheadStatus is what guests have brought ahead of need and has not ended.
type AheadStatus struct {
	Waiting int `json:"waiting"` // prefetches
	Running int `json:"running"`
	Blocks  int `json:"blocks"` // of both
}

// Reader is a peer that has asked for blocks.
type Reader struct {
	Peer     string `json:"peer"` // name:NAME of its certificate, uid:UID of its process, or other
	Requests uint64 `json:"requests"`
	Denied   uint64 `json:"denied"`
	Blocks   uint64 `json:"blocks"` // served
	Bytes    uint64 `json:"bytes"`
}

// Exchange is what the server was given; nil without peers.
func (s *Server) Exchange() Exchange { return s.cfg.Exchange }

// PeersStatus is the exchange of blocks with peers.
type PeersStatus struct {
	Serving []string       `json:"serving"` // endpoints
	Served  ServedStatus   `json:"served"`
	Readers []Reader       `json:"readers"`
	Sources []SourceStatus `json:"sources"`

	Fetched       uint64 `json:"fetched"` // blocks, from all sources
	FetchedBytes  uint64 `json:"fetched_bytes"`
	InFlight      int    `json:"in_flight"` // blocks
	Operations    uint64 `json:"operations"`
	Incomplete    uint64 `json:"incomplete"`      // operations that did not bring every block
	Coalesced     uint64 `json:"coalesced"`       // blocks that another operation was bringing already
	RefusedAsBusy uint64 `json:"refused_as_busy"` // too many bytes were under way

	Prefetches AheadStatus `json:"prefetches"`
}

// ServedStatus is what peers were served.
type ServedStatus struct {
	Links    int    `json:"links"` // open
	Leased   int64  `json:"leased_bytes"`
	Blocks   uint64 `json:"blocks"`
	Bytes    uint64 `json:"bytes"`
	Requests uint64 `json:"requests"`
	Denied   uint64 `json:"denied"`
	Cut      uint64 `json:"cut"`     // requests whose link broke before their end
	Refused  uint64 `json:"refused"` // connections over a cap
	Failed   uint64 `json:"failed"`  // handshakes
}

// SourceStatus is a source that links may be kept to. Totals are since the first of them.
type SourceStatus struct {
	Source       string    `json:"source"`
	Connected    bool      `json:"connected"`
	Operations   int       `json:"operations"`  // under way
	Incarnation  string    `json:"incarnation"` // of its last answer, in hexadecimal; "": it never answered
	Blocks       uint64    `json:"blocks"`
	Bytes        uint64    `json:"bytes"`
	Mapped       uint64    `json:"mapped"` // blocks that were copied out of the source's own memory
	Dials        uint64    `json:"dials"`
	DialFailures uint64    `json:"dial_failures"`
	Restarts     uint64    `json:"restarts"`
	Violations   uint64    `json:"violations"` // of the protocol
	LastError    string    `json:"last_error,omitempty"`
	LastErrorAt  time.Time `json:"last_error_at,omitzero"`
}

// OutcomesStatus counts accepted hints by what became of them.
type OutcomesStatus struct {
	Accepted   uint64            `json:"accepted"`
	Open       uint64            `json:"open"`
	Completed  uint64            `json:"completed"`
	Partial    uint64            `json:"partial"`
	Failed     uint64            `json:"failed"`
	Superseded uint64            `json:"superseded"`
	Discarded  uint64            `json:"discarded"`
	Expired    uint64            `json:"expired"`
	FailedBy   map[string]uint64 `json:"failed_by"` // reason
	PartialBy  map[string]uint64 `json:"partial_by"`
}

// exchangeStatus fills in what is known of peers and outcomes.
func (s *Server) exchangeStatus(st *StatusReport) {
	x := s.cfg.Exchange
	if x == nil {
		return
	}
	served, fetching, ends := x.Stats()
	p := &PeersStatus{
		Serving: append([]string{}, x.Addresses()...), Readers: x.Readers(), Sources: []SourceStatus{},
		Served: ServedStatus{
			Links: served.Open, Leased: served.Leased, Blocks: served.Blocks, Bytes: served.Bytes, Requests: served.Requests, Denied: served.Denied,
			Cut: served.Cut, Refused: served.Refused, Failed: served.Failed,
		},
		InFlight: fetching.Flights, Operations: fetching.Operations, Incomplete: fetching.Incomplete, Coalesced: fetching.Coalesced, RefusedAsBusy: fetching.Busy,
		Prefetches: x.Ahead(),
	}
	for _, b := range x.Brought() {
		p.Fetched += b.Blocks
		p.FetchedBytes += b.Bytes
	}
	for _, f := range x.Sources() {
		o := SourceStatus{
			Source: f.Source, Connected: f.Client.Idle > 0 || f.Incarnation != 0 && f.InUse > 0, Operations: f.InUse, Blocks: f.Client.Blocks, Bytes: f.Client.Bytes,
			Mapped: f.Client.Mapped, Dials: f.Client.Dials, DialFailures: f.Client.DialFailures, Restarts: f.Client.Restarts, Violations: f.Client.Violations,
			LastError: f.LastError, LastErrorAt: f.LastErrorAt,
		}
		if f.Incarnation != 0 {
			o.Incarnation = fmt.Sprintf("%016x", f.Incarnation)
		}
		p.Sources = append(p.Sources, o)
	}
	st.Peers = p
	st.Outcomes = &OutcomesStatus{
		ends.Accepted, ends.Open, ends.Completed, ends.Partial, ends.Failed, ends.Superseded, ends.Discarded, ends.Expired,
		endsBy(&ends.FailedBy), endsBy(&ends.PartialBy),
	}
}

// endsBy names the counters that are not 0.
func endsBy(counts *[outcome.NumReasons]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for i, n := range counts {
		if n > 0 {
			out[ReasonName(i)] += n
		}
	}
	return out
}

// ReasonName names a counter of outcomes by reason; those that have none are "other".
func ReasonName(i int) string {
	if i == 0 {
		return "other"
	}
	return abi.Reason(i).String()
}
