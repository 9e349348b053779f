package server

import (
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/kvevents"
)

// FeedStatus is the feed of one worker-rank's KV events. Totals are since it was started.
type FeedStatus struct {
	Worker hint.WorkerID `json:"worker"`
	DPRank *uint32       `json:"dp_rank,omitempty"`
	Events string        `json:"events"`
	Replay string        `json:"replay,omitempty"`
	// State is live; connected, when what was missed before is still being asked for; or
	// waiting.
	State    string  `json:"state"`
	Sequence uint64  `json:"sequence"`    // of the next batch
	Lag      float64 `json:"lag_seconds"` // of the last one, by its publisher's clock
	Queued   int     `json:"queued"`      // batches
	Batches  uint64  `json:"batches"`
	Stored   uint64  `json:"stored"` // events
	Removed  uint64  `json:"removed"`
	Cleared  uint64  `json:"cleared"`

	Gaps          uint64 `json:"gaps"`
	Replays       uint64 `json:"replays"`
	ReplaysFailed uint64 `json:"replays_failed"`
	Restarts      uint64 `json:"restarts"`
	Clears        uint64 `json:"clears"`     // times that its lineage was dropped
	Dropped       uint64 `json:"dropped"`    // batches for which there was no room
	Refused       uint64 `json:"refused"`    // events that the lineage index refused
	Unreadable    uint64 `json:"unreadable"` // batches and events
}

// FeedState is the state of a feed in one word.
func FeedState(s *kvevents.Stats) string {
	switch {
	case s.Live:
		return "live"
	case s.Connected:
		return "connected"
	}
	return "waiting"
}

func feedStatus(s *kvevents.Stats) FeedStatus {
	out := FeedStatus{Worker: s.Worker.ID, Events: s.Endpoints.Events, Replay: s.Endpoints.Replay, State: FeedState(s),
		Sequence: s.Sequence, Lag: s.Lag.Seconds(), Queued: s.Queued, Batches: s.Batches, Stored: s.Stored, Removed: s.Removed, Cleared: s.Cleared,
		Gaps: s.Gaps, Replays: s.Replays, ReplaysFailed: s.ReplaysFailed, Restarts: s.Restarts, Clears: s.Clears, Dropped: s.Dropped,
		Refused: s.Refused, Unreadable: s.DecodeErrors + s.Malformed + s.BadMessages}
	if s.Worker.HasRank {
		rank := s.Worker.Rank
		out.DPRank = &rank
	}
	return out
}

// LineageStatus is the lineage index of one namespace.
type LineageStatus struct {
	Namespace string `json:"namespace"`
	Sessions  uint64 `json:"sessions"`
	Nodes     uint64 `json:"nodes"`
	Bytes     uint64 `json:"bytes"`
	Evicted   uint64 `json:"evicted_sessions"`
}

// FeedsReady says which feeds are live.
type FeedsReady struct {
	Live int `json:"live"`
	All  int `json:"all"`
	// NotLive names some that are not.
	NotLive []string `json:"not_live,omitempty"`
}

// maxNotLive bounds the names in a FeedsReady.
const maxNotLive = 32

func feedsReady(all []kvevents.Stats) FeedsReady {
	out := FeedsReady{All: len(all)}
	for i := range all {
		if s := &all[i]; s.Live {
			out.Live++
		} else if len(out.NotLive) < maxNotLive {
			out.NotLive = append(out.NotLive, s.Worker.String())
		}
	}
	return out
}

// fleetStatus tells of workers, feeds and lineage.
func (s *Server) fleetStatus(st *StatusReport) {
	st.Feeds, st.Lineage = []FeedStatus{}, []LineageStatus{}
	f := s.cfg.Fleet
	if f == nil {
		return
	}
	st.Workers = f.Catalogue().Len()
	for _, x := range f.Feeds() {
		st.Feeds = append(st.Feeds, feedStatus(&x))
	}
	for _, x := range f.Lineage() {
		st.Lineage = append(st.Lineage, LineageStatus{x.Namespace, x.Sessions, x.Nodes, x.Bytes, x.EvictedSessions})
	}
}
