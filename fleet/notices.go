package fleet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/kvevents"
)

// Of one thing that happens to one feed there is a line every noticeEvery, at most;
// maxNotices bounds what is remembered for that.
const (
	noticeEvery = 30 * time.Second
	maxNotices  = 1 << 16
)

// notices writes what happens to feeds to the log. A bad publisher makes several notices
// of each batch.
type notices struct {
	log  *slog.Logger
	next func(kvevents.Notice)

	mu   sync.Mutex
	told map[noticeKey]*noticeState
}

type noticeKey struct {
	worker hint.Worker
	what   kvevents.What
}

type noticeState struct {
	at     time.Time
	untold int
}

func (n *notices) tell(x kvevents.Notice) {
	if n.next != nil {
		n.next(x)
	}
	level := levelOf(x.What)
	if !n.log.Enabled(context.Background(), level) {
		return
	}
	untold, ok := n.due(noticeKey{x.Worker, x.What}, time.Now())
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("worker", x.Worker.String())}
	switch x.What {
	case kvevents.Gap:
		attrs = append(attrs, slog.Uint64("from", x.From), slog.Uint64("to", x.To))
	case kvevents.Replayed:
		attrs = append(attrs, slog.Uint64("next", x.To))
	case kvevents.Unreadable:
		attrs = append(attrs, slog.Uint64("batch", x.From))
	case kvevents.OtherRank:
		attrs = append(attrs, slog.Uint64("rank", x.To))
	}
	if x.Err != nil {
		attrs = append(attrs, slog.String("why", x.Err.Error()))
	}
	if untold > 0 {
		attrs = append(attrs, slog.Int("since_the_last_line", untold))
	}
	n.log.LogAttrs(context.Background(), level, "KV events: "+x.What.String(), attrs...)
}

func levelOf(w kvevents.What) slog.Level {
	switch w {
	case kvevents.Connected, kvevents.Replayed, kvevents.Restarted, kvevents.Cleared:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// due tells whether there is to be a line, and how many there were not since the last.
func (n *notices) due(k noticeKey, now time.Time) (untold int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.told[k]
	if s == nil {
		if n.told == nil || len(n.told) >= maxNotices {
			n.told = map[noticeKey]*noticeState{}
		}
		n.told[k] = &noticeState{at: now}
		return 0, true
	}
	if now.Sub(s.at) < noticeEvery {
		s.untold++
		return 0, false
	}
	untold, s.untold, s.at = s.untold, 0, now
	return untold, true
}

// forget drops what is remembered of a worker.
func (n *notices) forget(id hint.WorkerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for k := range n.told {
		if k.worker.ID == id {
			delete(n.told, k)
		}
	}
}
