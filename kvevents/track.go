package kvevents

import (
	"context"
	"errors"
	"hash/maphash"
	"time"
	"unsafe"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
)

// A track is where a feed is in its publisher's sequence. Batches are applied
// strictly in order: a replay runs while the live ones wait in the queue, so it cannot
// bring back a block that a newer event removed.
type track struct {
	begun    bool   // next is known
	next     uint64 // number of the batch to apply next
	sequence int    // how many sequences were forgotten

	haveLive bool   // since this connection began
	live     uint64 // the last number that it brought

	seed   maphash.Seed
	digest uint64 // of batch next-1, by which a replay knows its publisher again
	proof  bool   // there is one

	dec    Decoder
	time   float64       // of the last batch, on its publisher's clock
	ranks  []hint.Worker // that events were applied for
	groups [maxGroups]session.Group
	told   bool // of another rank

	tokens float64 // replays that may follow at once
	filled time.Time
	ev     session.Event
}

// maxGroups and maxRanks bound what is remembered of one publisher. Real ones have a
// handful of cache groups, and one rank each.
const (
	maxGroups = 64
	maxRanks  = 1024
)

func (t *track) init(cfg *Config) {
	t.seed = maphash.MakeSeed()
	t.dec.Limits = cfg.Limits
	t.tokens = float64(cfg.ReplayBurst)
	t.filled = time.Now()
}

// Why lineage was cleared.
var (
	errRestarted  = errors.New("the publisher began its sequence anew")
	errGap        = errors.New("batches were missed and could not be replayed")
	errUnproven   = errors.New("a replay did not tell whether the publisher is still the same")
	errUnreadable = errors.New("a batch could not be read")
	errLossy      = errors.New("a removal could not be read")
)

func (f *feed) work(ctx context.Context) {
	for {
		it, ok := f.queue.pop(ctx)
		if !ok {
			return
		}
		switch it.what {
		case itemConnected:
			f.onConnected(ctx, it.seq)
		case itemBatch:
			f.onBatch(ctx, it.seq, it.payload)
		case itemLost:
			f.onLost(ctx, it.seq)
		}
	}
}

// onConnected asks for what happened before the subscription: all of it the first time,
// then what came after the last batch that was applied. When there is no answer, this may be
// another publisher than the one whose batches were applied. Without a replay endpoint
// the first live batch tells, unless its number happens to be the next.
func (f *feed) onConnected(ctx context.Context, number uint64) {
	t := &f.track
	t.haveLive = false
	if f.where.Replay != "" && !f.catchUp(ctx, 0) && t.begun && ctx.Err() == nil {
		f.clear(errUnproven)
		f.begin()
	}
	f.count.caughtUp.Store(number)
}

// onBatch places a live batch in the sequence.
func (f *feed) onBatch(ctx context.Context, seq uint64, payload []byte) {
	t := &f.track
	back := t.haveLive && seq <= t.live
	if back && t.begun && seq == t.next-1 && t.proof && t.digest == maphash.Bytes(t.seed, payload) {
		f.count.duplicates.Add(1) // the same message twice
		return
	}
	known := t.begun && seq < t.next
	t.haveLive, t.live = true, seq
	if known && !back && f.where.Replay != "" { // a replay went ahead of the live batches
		f.count.duplicates.Add(1)
		return
	}
	if back || known {
		f.restarted()
	}
	if !t.begun {
		t.begun = true
		t.next = 0
		if f.where.Replay == "" {
			t.next = seq
		}
	}
	if seq > t.next && !f.gap(ctx, seq) {
		return
	}
	if seq < t.next {
		f.count.duplicates.Add(1)
		return
	}
	f.apply(seq, payload)
	f.count.lag.Store(int64(lagOf(time.Now(), t.time)))
}

// onLost makes up for batches that the queue had no room for when none follow that would
// show the hole.
func (f *feed) onLost(ctx context.Context, seq uint64) {
	t := &f.track
	if t.begun && seq >= t.next {
		t.haveLive, t.live = true, seq
		if f.gap(ctx, seq+1) && !t.proof { // what was lost may be of a sequence that is over
			f.begin()
		}
	}
}

// gap makes up for the batches from next up to, not including, to; next is at least to
// afterwards. When it finds that the publisher has begun anew it is false: then the batch
// behind the gap is of the old sequence, or of the new one and will show as a gap itself.
func (f *feed) gap(ctx context.Context, to uint64) bool {
	t := &f.track
	was := t.sequence
	f.count.gaps.Add(1)
	f.notify(Notice{What: Gap, From: t.next, To: to})
	caughtUp := f.where.Replay != "" && f.catchUp(ctx, to)
	if ctx.Err() != nil {
		return false
	}
	if t.sequence != was {
		if !caughtUp || t.next <= to { // of two sequences neither is known
			f.clear(errGap)
			f.begin()
		}
		return false
	}
	if t.next < to {
		f.clear(errGap)
		f.advance(to)
		t.proof = false
	}
	return true
}

func (f *feed) advance(next uint64) {
	f.track.next = next
	f.count.sequence.Store(next)
}

// restarted begins a new sequence.
func (f *feed) restarted() {
	t := &f.track
	f.count.restarts.Add(1)
	f.notify(Notice{What: Restarted, From: t.next})
	f.clear(errRestarted)
	f.begin()
	t.groups = [maxGroups]session.Group{}
}

// begin forgets the sequence.
func (f *feed) begin() {
	t := &f.track
	f.advance(0)
	t.sequence++
	t.proof, t.begun = false, false
}

// apply decodes a batch and hands its events on.
func (f *feed) apply(seq uint64, payload []byte) {
	t := &f.track
	t.begun = true
	t.digest, t.proof = maphash.Bytes(t.seed, payload), true
	f.advance(seq + 1)
	f.count.batches.Add(1)
	f.count.bytes.Add(uint64(len(payload)))
	b, err := t.dec.Decode(payload)
	if err != nil {
		f.count.decodeErrors.Add(1)
		f.notify(Notice{What: Unreadable, From: seq, Err: err})
		f.clear(errUnreadable)
		return
	}
	f.count.unknown.Add(uint64(b.Unknown))
	f.count.malformed.Add(uint64(b.Malformed))
	t.time = b.Time
	w, ok := f.rankOf(b.Rank)
	if !ok {
		return
	}
	for i := range b.Events {
		f.event(w, &b.Events[i])
	}
	if b.Lossy {
		f.clear(errLossy)
	}
}

// rankOf says whose a batch is. The rank that a feed was told stands for batches that
// name none; of a feed that was told none, each batch says.
func (f *feed) rankOf(r Rank) (hint.Worker, bool) {
	t := &f.track
	w := f.worker
	if !w.HasRank && r != NoRank {
		w.Rank, w.HasRank = uint32(r), true
	}
	if w.HasRank && r != NoRank && w.Rank != uint32(r) {
		f.count.otherRank.Add(1)
		if !t.told {
			t.told = true
			f.notify(Notice{What: OtherRank, To: uint64(r)})
		}
		return w, false
	}
	for _, known := range t.ranks {
		if known == w {
			return w, true
		}
	}
	if len(t.ranks) == maxRanks {
		f.count.otherRank.Add(1)
		return w, false
	}
	t.ranks = append(t.ranks, w)
	return w, true
}

// event hands one event on.
func (f *feed) event(w hint.Worker, e *Event) {
	t := &f.track
	t.ev = session.Event{
		Worker: w, Tier: e.Tier, Group: t.groupOf(e),
		Session: unsafe.String(unsafe.SliceData(e.SessionID), len(e.SessionID)),
		Parent:  e.Parent, HasParent: e.HasParent, Hashes: e.Hashes,
	}
	switch e.Kind {
	case BlockStored:
		t.ev.Op = session.OpStored
		f.count.stored.Add(1)
	case BlockRemoved:
		t.ev.Op = session.OpRemoved
		f.count.removed.Add(1)
	case AllBlocksCleared:
		t.ev.Op = session.OpCleared
		f.count.cleared.Add(1)
	}
	if _, err := f.sink.Apply(&t.ev); err != nil {
		f.count.refused.Add(1)
	}
	t.ev = session.Event{}
}

// groupOf says whether an event is of full attention. A removal names a group by its
// index alone: what stored blocks said of that group is remembered. Group 0, of
// which nothing is known, is taken for a model's only group.
func (t *track) groupOf(e *Event) session.Group {
	known := len(e.SpecKind) > 0 || e.SlidingWindow > 0
	group := session.GroupAbsent
	switch {
	case known && e.FullAttention():
		group = session.GroupFull
	case known || e.Group > 0:
		group = session.GroupOther
	}
	if e.Group < 0 || e.Group >= maxGroups {
		return group
	}
	if known {
		t.groups[e.Group] = group
	} else if g := t.groups[e.Group]; g != session.GroupAbsent {
		return g
	}
	return group
}

// clear drops what the sink knows of this feed. Stale lineage is worse than none.
func (f *feed) clear(why error) {
	t := &f.track
	f.count.clears.Add(1)
	for _, w := range t.ranks {
		t.ev = session.Event{Op: session.OpCleared, Worker: w}
		f.sink.Apply(&t.ev)
	}
	if len(t.ranks) == 0 {
		// What the sink knows may be older than the feed, or come from elsewhere.
		t.ev = session.Event{Op: session.OpCleared, Worker: f.worker}
		f.sink.Apply(&t.ev)
	}
	f.notify(Notice{What: Cleared, Err: why})
}
