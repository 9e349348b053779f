package kvevents

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/kvrt/kvrt/hint"
)

// Stats is what one feed has done since it was started. Sums only grow.
type Stats struct {
	Worker    hint.Worker
	Endpoints Endpoints

	Connected   bool // the subscription stands
	Live        bool // ... and what was missed before it has been asked for
	Connections uint64
	Sequence    uint64        // the next number expected, 0 before the first batch
	Lag         time.Duration // of the last live batch, between being made and being applied
	// Queued and QueuedBytes are batches that wait for being applied.
	Queued, QueuedBytes int

	Batches, Bytes           uint64 // applied, replayed ones included
	Stored, Removed, Cleared uint64 // events handed on
	Unknown, Malformed       uint64 // events passed over
	Refused                  uint64 // events that the sink would not take
	DecodeErrors             uint64 // batches that are no batch
	BadMessages              uint64 // messages without a sequence number and a payload
	OtherRank                uint64 // batches of a rank that this feed is not
	Dropped                  uint64 // batches for which the queue had no room
	Duplicates               uint64 // batches that a replay had brought already
	Gaps                     uint64 // holes in the sequence, and those in replays
	Replays, ReplaysFailed   uint64
	Replayed                 uint64 // batches that replays brought
	Restarts                 uint64 // times that the sequence began anew
	Clears                   uint64 // times that all lineage of the feed was dropped
}

// counters is Stats as the two goroutines of a feed write it.
type counters struct {
	connected                                     atomic.Bool
	connections, caughtUp, sequence               atomic.Uint64
	lag                                           atomic.Int64
	batches, bytes                                atomic.Uint64
	stored, removed, cleared                      atomic.Uint64
	unknown, malformed, refused                   atomic.Uint64
	decodeErrors, badMessages, otherRank, dropped atomic.Uint64
	duplicates, gaps, replays, replaysFailed      atomic.Uint64
	replayed, restarts, clears                    atomic.Uint64
}

func (f *feed) stats() Stats {
	c := &f.count
	queued, bytes := f.queue.len()
	return Stats{
		Worker: f.worker, Endpoints: f.where,
		Connected: c.connected.Load(), Live: f.live(), Connections: c.connections.Load(),
		Sequence: c.sequence.Load(), Lag: time.Duration(c.lag.Load()), Queued: queued, QueuedBytes: bytes,
		Batches: c.batches.Load(), Bytes: c.bytes.Load(),
		Stored: c.stored.Load(), Removed: c.removed.Load(), Cleared: c.cleared.Load(),
		Unknown: c.unknown.Load(), Malformed: c.malformed.Load(), Refused: c.refused.Load(),
		DecodeErrors: c.decodeErrors.Load(), BadMessages: c.badMessages.Load(),
		OtherRank: c.otherRank.Load(), Dropped: c.dropped.Load(), Duplicates: c.duplicates.Load(),
		Gaps: c.gaps.Load(), Replays: c.replays.Load(), ReplaysFailed: c.replaysFailed.Load(),
		Replayed: c.replayed.Load(), Restarts: c.restarts.Load(), Clears: c.clears.Load(),
	}
}

// live says that the connection that stands is the one that was caught up on.
func (f *feed) live() bool {
	return f.count.connected.Load() && f.count.caughtUp.Load() == f.count.connections.Load()
}

// lagOf is how long ago a batch was made, by its own clock and ours: below zero when
// they disagree, 0 when it does not say.
func lagOf(now time.Time, ts float64) time.Duration {
	if ts == 0 || math.IsNaN(ts) || math.Abs(ts) > 1<<33 {
		return 0
	}
	return now.Sub(time.UnixMicro(int64(ts * 1e6)))
}
