package kvevents

import (
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
)

var rank0 = hint.Worker{ID: hint.UintWorker(7), HasRank: true}

// quick is a configuration that waits for nothing but what a test is about.
func quick(l *log) Config {
	return Config{Notify: l.notify, BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond,
		ReplayTimeout: time.Minute, ReplayBurst: 1000}
}

// follow runs one feed until the test ends.
func follow(t testing.TB, l *log, cfg Config, w hint.Worker, e Endpoints) *Manager {
	t.Helper()
	man := New(cfg)
	t.Cleanup(man.Close)
	if err := man.Set(w, e, l); err != nil {
		t.Fatal(err)
	}
	return man
}

// bound binds a publisher and returns where.
func bound(p *publisher, e Endpoints, args m) Endpoints {
	p.t.Helper()
	command := m{"events": e.Events, "replay": e.Replay}
	for k, v := range args {
		command[k] = v
	}
	got := p.Do("bind", command)
	e.Events, e.Replay = got["events"].(string), got["replay"].(string)
	return e
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestSteady(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, Endpoints{Events: "tcp://127.0.0.1:*", Replay: "tcp://127.0.0.1:*"}, m{"topic": "kv"})
	e.Topic = "kv"
	p.publish(nil, stored(nil, 1, 2), removed(2))
	man := follow(t, l, quick(l), rank0, e)
	same(t, l.wait(t, "replayed 0 2"), "connected", "7 rank 0 stored [1 2]", "7 rank 0 removed [2]")
	p.Do("subscribed", nil)
	p.publish(nil, stored(1, 3), []m{{"type": "cleared"}}, stored(nil, 4))
	same(t, l.wait(t, "7 rank 0 stored [4]"), "7 rank 0 stored [3]", "7 rank 0 cleared")

	man.Close()
	s := man.Stats()
	if len(s) != 0 {
		t.Errorf("%d feeds after Close", len(s))
	}
}

func TestStats(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), nil)
	man := follow(t, l, quick(l), rank0, e)
	l.wait(t, "replayed 0 0")
	p.Do("subscribed", nil)
	p.Do("publish", m{"batches": []m{
		{"events": append(stored(nil, 1), m{"type": "migrated", "block_hashes": []int{1}, "target": "x"}), "ts": 1},
		{"events": removed(1), "data_parallel_rank": 1},
		{"raw": "92c0"},
		{"raw": "92c09193ac426c6f636b52656d6f766564910506"},
		{"events": []m{{"type": "cleared"}}, "data_parallel_rank": 0},
		{"events": stored(nil, 5)},
	}})
	same(t, l.wait(t, "7 rank 0 stored [5]"), "7 rank 0 stored [1]", "other rank 0 1", "unreadable",
		"7 rank 0 cleared", "cleared", "7 rank 0 cleared", "cleared", "7 rank 0 cleared")
	p.Do("send", m{"frames": []string{"", "00", ""}})
	p.publish(nil, stored(nil, 6))
	l.wait(t, "7 rank 0 stored [6]")
	s := man.Stats()[0]
	if s.Lag < 0 || s.Lag > time.Hour {
		t.Errorf("lag %v", s.Lag)
	}
	s.Lag, s.Bytes = 0, 0
	want := Stats{Worker: rank0, Endpoints: e, Connected: true, Live: true, Connections: 1, Sequence: 7, Batches: 7, Stored: 3, Cleared: 1,
		Unknown: 1, Malformed: 1, DecodeErrors: 1, BadMessages: 1, OtherRank: 1, Replays: 1, Clears: 2}
	if s != want {
		t.Errorf("\n got %+v\nwant %+v", s, want)
	}
	if live, all := man.Live(); live != 1 || all != 1 {
		t.Errorf("%d of %d live", live, all)
	}
}

// TestRankAbsent follows a publisher whose feed was told no rank: no rank, rank 0 and rank 1
// are three, and are cleared together when the publisher is lost track of.
func TestRankAbsent(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, Endpoints{Events: place(t).Events}, nil)
	follow(t, l, quick(l), hint.Worker{ID: hint.NamedWorker("w")}, e)
	p.Do("subscribed", nil)
	p.Do("publish", m{"batches": []m{
		{"events": stored(nil, 1)}, {"events": stored(nil, 1), "data_parallel_rank": 0}, {"events": stored(nil, 1), "data_parallel_rank": 1},
		{"events": []m{{"type": "cleared"}}, "data_parallel_rank": 1},
	}})
	same(t, l.wait(t, `"w" rank 1 cleared`), "connected", `"w" stored [1]`, `"w" rank 0 stored [1]`, `"w" rank 1 stored [1]`)
	p.publish(m{"lose": true}, removed(1))
	p.publish(nil, stored(nil, 2))
	same(t, l.wait(t, `"w" rank 0 stored [2]`), "gap 4 5", `"w" cleared`, `"w" rank 0 cleared`, `"w" rank 1 cleared`, "cleared")
}

func TestGapIsReplayed(t *testing.T) {
	for _, frames := range []int{2, 3} {
		p, l := newPublisher(t), newLog()
		e := bound(p, place(t), m{"frames": frames, "topic": "kv-events"})
		man := follow(t, l, quick(l), rank0, e)
		l.wait(t, "replayed 0 0")
		p.Do("subscribed", nil)
		p.publish(nil, stored(nil, 1))
		p.publish(m{"lose": true}, stored(1, 2), removed(2))
		p.publish(nil, stored(1, 3))
		same(t, l.wait(t, "replayed 0 4"), "7 rank 0 stored [1]", "gap 1 3", "7 rank 0 stored [2]", "7 rank 0 removed [2]", "7 rank 0 stored [3]")
		p.publish(nil, stored(3, 4))
		same(t, l.wait(t, "7 rank 0 stored [4]"))
		if s := man.Stats()[0]; s.Gaps != 1 || s.Replayed != 3 || s.Duplicates != 1 || s.Clears != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestReplayNeverResurrects holds a replay's answer back until a newer live event has
// removed one of its blocks.
func TestReplayNeverResurrects(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), nil)
	follow(t, l, quick(l), rank0, e)
	l.wait(t, "replayed 0 0")
	p.Do("subscribed", nil)
	p.Do("set", m{"answer": "hold"})
	p.publish(m{"lose": true}, stored(nil, 1, 2, 3))
	p.publish(nil, stored(3, 4))
	if got := p.Do("asked", nil)["from"].([]any); len(got) != 1 || got[0] != 0.0 {
		t.Errorf("asked from %v", got)
	}
	p.publish(nil, removed(2), removed(1))
	p.Do("release", nil)
	l.wait(t, "replayed 0 4")
	p.publish(nil, stored(3, 5))
	l.wait(t, "7 rank 0 stored [5]")
	if n := l.blocks(rank0); n != 3 {
		t.Errorf("%d blocks: %v", n, l.holds)
	}
}

func TestGapWithoutReplayClears(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := place(t)
	e.Replay = ""
	e = bound(p, e, nil)
	p.publish(nil, stored(nil, 9))
	man := follow(t, l, quick(l), rank0, e)
	p.Do("subscribed", nil)
	p.publish(nil, stored(nil, 1))
	p.publish(m{"lose": true}, removed(1))
	p.publish(nil, stored(nil, 2))
	same(t, l.wait(t, "7 rank 0 stored [2]"), "connected", "7 rank 0 stored [1]", "gap 2 3", "7 rank 0 cleared", "cleared")
	if n := l.blocks(rank0); n != 1 {
		t.Errorf("%d blocks", n)
	}
	if s := man.Stats()[0]; s.Gaps != 1 || s.Clears != 1 || s.Replays != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRingTooShort replays what the publisher still has: what came before is unknown.
func TestRingTooShort(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), m{"ring": 2})
	p.publish(nil, stored(nil, 1), stored(1, 2), stored(2, 3), stored(3, 4))
	man := follow(t, l, quick(l), rank0, e)
	same(t, l.wait(t, "replayed 0 4"), "connected", "gap 0 2", "7 rank 0 cleared", "cleared", "7 rank 0 stored [3]", "7 rank 0 stored [4]")
	p.Do("subscribed", nil)
	p.publish(m{"lose": true}, removed(3), removed(4), stored(nil, 5))
	p.publish(nil, stored(5, 6))
	same(t, l.wait(t, "replayed 0 8"), "gap 4 7", "gap 4 6", "7 rank 0 cleared", "cleared", "7 rank 0 stored [5]", "7 rank 0 stored [6]")
	if s := man.Stats()[0]; s.Clears != 2 || l.blocks(rank0) != 2 {
		t.Errorf("%+v", s)
	}
}

// TestRebind closes the publisher's sockets and binds them again: nothing is lost.
func TestRebind(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), nil)
	man := follow(t, l, quick(l), rank0, e)
	l.wait(t, "replayed 0 0")
	p.Do("subscribed", nil)
	p.publish(nil, stored(nil, 1))
	l.wait(t, "7 rank 0 stored [1]")
	p.Do("close", nil)
	l.wait(t, "disconnected")
	if live, _ := man.Live(); live != 0 {
		t.Error("live without a connection")
	}
	bound(p, e, nil)
	l.wait(t, "replayed 0 1")
	p.Do("subscribed", nil)
	p.publish(nil, stored(1, 2))
	same(t, l.wait(t, "7 rank 0 stored [2]"))
	if s := man.Stats()[0]; s.Gaps+s.Clears+s.Restarts != 0 || s.Connections < 2 || !s.Live {
		t.Errorf("%+v", s)
	}
}

// TestMissedWhileAway publishes before the feed is back.
func TestMissedWhileAway(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := place(t)
	bound(p, e, nil)
	man := follow(t, l, quick(l), rank0, e)
	l.wait(t, "replayed 0 0")
	p.Do("subscribed", nil)
	p.publish(nil, stored(nil, 1))
	l.wait(t, "7 rank 0 stored [1]")
	p.Do("close", nil)
	l.wait(t, "disconnected")
	bound(p, Endpoints{Events: place(t).Events}, nil)
	p.publish(nil, removed(1), stored(nil, 2))
	p.Do("close", nil)
	bound(p, e, nil)
	skipped := l.wait(t, "replayed 0 3")
	if got := strings.Join(skipped, "\n"); !strings.HasSuffix(got, "connected\n7 rank 0 removed [1]\n7 rank 0 stored [2]") {
		t.Error(got)
	}
	if s := man.Stats()[0]; s.Clears+s.Restarts != 0 || s.Replayed != 2 {
		t.Errorf("%+v", s)
	}
}

// TestRanksShareAnEndpoint follows one publisher as two ranks: each takes its own batches,
// and a batch that clears rank 1 spares rank 0.
func TestRanksShareAnEndpoint(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), nil)
	man := New(quick(l))
	t.Cleanup(man.Close)
	rank1 := hint.Worker{ID: rank0.ID, Rank: 1, HasRank: true}
	p.Do("publish", m{"batches": []m{
		{"events": stored(nil, 1), "data_parallel_rank": 0}, {"events": stored(nil, 1, 2), "data_parallel_rank": 1},
		{"events": []m{{"type": "cleared"}}, "data_parallel_rank": 1},
	}})
	for _, w := range []hint.Worker{rank0, rank1} {
		if err := man.Set(w, e, l); err != nil {
			t.Fatal(err)
		}
		l.wait(t, "replayed 0 3")
	}
	if l.blocks(rank0) != 1 || l.blocks(rank1) != 0 {
		t.Errorf("%v", l.holds)
	}
	for _, s := range man.Stats() {
		if s.OtherRank+s.Stored+s.Cleared != 3 || s.Gaps+s.Clears != 0 {
			t.Errorf("%+v", s)
		}
	}
}
