package kvevents

import (
	"fmt"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
)

// A Sink takes the events of a feed in their publisher's order: a session.Index, of the
// routing partition that the worker belongs to. Apply must not block and must keep nothing
// of an event beyond the call; an error is counted and changes nothing else.
// Events of all tiers and groups come, and the sink tells which move lineage. Different
// feeds call concurrently.
type Sink interface {
	Apply(*session.Event) (moved bool, err error)
}

var _ Sink = (*session.Index)(nil)

// Endpoints say where a worker-rank publishes. They are comparable.
type Endpoints struct {
	Events string // tcp://HOST:PORT or ipc://PATH
	Replay string // the same, "" where there is none
	Topic  string // prefix of the topics to take, "" for all
}

// Check says what is wrong with endpoints.
func (e Endpoints) Check() error {
	if _, err := parseEndpoint(e.Events); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if e.Replay == "" {
		return nil
	}
	if e.Replay == e.Events {
		return fmt.Errorf("replay: endpoint %q is that of the events; it has one of its own", e.Replay)
	}
	if _, err := parseEndpoint(e.Replay); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}

// Config is what all feeds of a Manager share; the zero value means the defaults.
type Config struct {
	// Notify, when not nil, is told of what happens to a feed, on the feed's own
	// goroutines: it must not block, nor call the Manager. A bad publisher can make
	// several notices of each batch.
	Notify func(Notice)

	Limits Limits // of a batch

	DialTimeout time.Duration // for connecting and shaking hands, 5 s
	// BackoffMin and BackoffMax bound the wait between two connections, 100 ms and
	// 10 s. It doubles, each wait is shortened by up to a half at random, and a
	// message begins anew.
	BackoffMin, BackoffMax time.Duration

	// QueueBatches and QueueBytes bound what one feed holds between its socket and
	// its sink, also while a replay runs: 8,192 and 32 MiB; QueueTotal bounds the bytes
	// of all feeds together, 512 MiB.
	QueueBatches, QueueBytes, QueueTotal int

	// A replay asks several times, if it must, in all for at most ReplayTimeout
	// (15 s), ReplayRounds (16), ReplayBatches (65,536) and ReplayBytes (256 MiB).
	// An answer that began and stays away for ReplayIdle (500 ms) is asked for again:
	// a publisher's socket drops what does not fit, the end as well.
	ReplayTimeout time.Duration
	ReplayIdle    time.Duration
	ReplayRounds  int
	ReplayBatches int
	ReplayBytes   int
	// ReplayBurst replays (4) may follow each other at once; there is one more for every
	// ReplayEvery (5 s) that passes. A serving engine answers them on the thread
	// that publishes. A hole for which there is none left clears.
	ReplayBurst int
	ReplayEvery time.Duration
}

func (c Config) withDefaults() Config {
	c.Limits = c.Limits.withDefaults()
	count := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	span(&c.DialTimeout, 5*time.Second)
	span(&c.BackoffMin, 100*time.Millisecond)
	span(&c.BackoffMax, 10*time.Second)
	c.BackoffMax = max(c.BackoffMax, c.BackoffMin)
	count(&c.QueueBatches, 8192)
	count(&c.QueueBytes, 32<<20)
	count(&c.QueueTotal, 512<<20)
	c.QueueBytes = max(c.QueueBytes, c.Limits.Bytes) // one batch always fits
	span(&c.ReplayTimeout, 15*time.Second)
	span(&c.ReplayIdle, 500*time.Millisecond)
	count(&c.ReplayRounds, 16)
	count(&c.ReplayBatches, 1<<16)
	count(&c.ReplayBytes, 256<<20)
	count(&c.ReplayBurst, 4)
	span(&c.ReplayEvery, 5*time.Second)
	return c
}

// What says what a Notice is about.
type What uint8

const (
	Connected    What = iota + 1 // the subscription stands
	Disconnected                 // ... no longer, or could not be made: Err says why
	Gap                          // batches from From up to To were missed
	Replayed                     // a replay ended; the next number expected is To
	ReplayFailed                 // ... without an end: Err says why
	Restarted                    // the sequence began anew
	Cleared                      // all that was known of the feed's worker-rank is dropped: Err says why
	Unreadable                   // batch From could not be decoded: Err says why
	OtherRank                    // the first batch of a rank that the feed is not; To is the rank
)

func (w What) String() string {
	names := [...]string{"?", "connected", "disconnected", "gap", "replayed", "replay failed", "restarted", "cleared", "unreadable", "other rank"}
	if int(w) < len(names) {
		return names[w]
	}
	return names[0]
}

// A Notice is for people and tests.
type Notice struct {
	Worker   hint.Worker
	What     What
	From, To uint64
	Err      error
}
