package kvevents

import (
	"strings"
	"testing"
	"time"
)

// live starts a feed that has applied two batches.
func live(t *testing.T, e Endpoints, cfg func(*Config)) (*publisher, *log, *Manager, Endpoints) {
	t.Helper()
	p, l := newPublisher(t), newLog()
	e = bound(p, e, nil)
	c := quick(l)
	if cfg != nil {
		cfg(&c)
	}
	man := follow(t, l, c, rank0, e)
	if e.Replay != "" {
		l.wait(t, "replayed 0 0")
	}
	p.Do("subscribed", nil)
	p.publish(nil, stored(nil, 1), stored(1, 2))
	l.wait(t, "7 rank 0 stored [2]")
	return p, l, man, e
}

// TestRestartWhileIdle restarts the publisher, which then says nothing: the replay endpoint
// no longer knows what it once sent.
func TestRestartWhileIdle(t *testing.T) {
	p, l, man, e := live(t, place(t), nil)
	p.Do("close", m{"restart": true})
	bound(p, e, nil)
	l.wait(t, "restarted 2 0")
	same(t, l.wait(t, "replayed 0 0"), "7 rank 0 cleared", "cleared")
	p.Do("subscribed", nil)
	p.publish(nil, stored(nil, 3))
	same(t, l.wait(t, "7 rank 0 stored [3]"))
	if s := man.Stats()[0]; s.Restarts != 1 || s.Clears != 1 || s.Gaps != 0 || s.Sequence != 1 {
		t.Errorf("%+v", s)
	}
}

// TestRestartThatOvertakes restarts the publisher, which goes past the old sequence before
// the feed is back: the numbers fit and the batches do not.
func TestRestartThatOvertakes(t *testing.T) {
	for _, batches := range []int{1, 2, 3, 5} {
		p, l, man, e := live(t, place(t), nil)
		p.Do("close", m{"restart": true})
		bound(p, Endpoints{Events: place(t).Events}, nil)
		for i := range batches {
			p.publish(nil, stored(nil, uint64(10+i)))
		}
		p.Do("close", nil)
		bound(p, e, nil)
		l.wait(t, "restarted 2 0")
		p.Do("subscribed", nil)
		p.publish(nil, stored(nil, 99))
		l.wait(t, "7 rank 0 stored [99]")
		if s := man.Stats()[0]; s.Restarts != 1 || s.Sequence != uint64(batches)+1 || l.blocks(rank0) != batches+1 {
			t.Errorf("%d batches: %d blocks, %+v", batches, l.blocks(rank0), s)
		}
	}
}

func TestRestartWithoutReplay(t *testing.T) {
	e := place(t)
	e.Replay = ""
	p, l, man, e := live(t, e, nil)
	p.Do("close", m{"restart": true})
	l.wait(t, "disconnected")
	bound(p, e, nil)
	l.wait(t, "connected")
	p.Do("subscribed", nil)
	p.publish(nil, stored(nil, 3))
	same(t, l.wait(t, "7 rank 0 stored [3]"), "restarted 2 0", "7 rank 0 cleared", "cleared")
	if s := man.Stats()[0]; s.Restarts != 1 || s.Gaps != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRestartBehindProxy has the sequence go back on a connection that lasts, as a
// forwarder between shows it; a batch that comes twice is none.
func TestRestartBehindProxy(t *testing.T) {
	p, l, man, _ := live(t, place(t), nil)
	again := m{"events": stored(nil, 5), "ts": 1}
	p.Do("set", m{"seq": 0, "ring": []int{}})
	p.Do("publish", m{"batches": []m{again}})
	p.Do("set", m{"seq": 0, "ring": []int{}})
	p.Do("publish", m{"batches": []m{again}})
	p.publish(nil, stored(nil, 3))
	same(t, l.wait(t, "7 rank 0 stored [3]"), "restarted 2 0", "7 rank 0 cleared", "cleared", "7 rank 0 stored [5]")
	if s := man.Stats()[0]; s.Restarts != 1 || s.Duplicates != 1 || s.Gaps != 0 {
		t.Errorf("%+v", s)
	}
}

// TestReplayAnswers is about replay endpoints that do not answer as they should.
func TestReplayAnswers(t *testing.T) {
	tests := []struct {
		name  string
		set   m
		cfg   func(*Config)
		whole bool // the gap is closed all the same
	}{
		{"two frames", m{"frames": 2}, nil, true},
		{"three frames", m{"frames": 3}, nil, true},
		{"a hole in it, as from a full socket", m{"answer": "once-holed"}, nil, true},
		{"its last batches are missing, as from a full socket", m{"answer": "once-cut"}, nil, true},
		{"no end, once", m{"answer": "no-end"}, func(c *Config) { c.ReplayIdle = 50 * time.Millisecond }, true},
		{"something else", m{"answer": "wrong"}, nil, false},
		{"never", m{"answer": "hold"}, func(c *Config) { c.ReplayTimeout = 2 * time.Second }, false},
		{"more batches than are allowed", nil, func(c *Config) { c.ReplayBatches = 3 }, false},
		{"more bytes than are allowed", nil, func(c *Config) { c.ReplayBytes = 100 }, false},
		{"too often", nil, func(c *Config) { c.ReplayBurst, c.ReplayEvery = 1, time.Hour }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, l, man, _ := live(t, place(t), tt.cfg)
			if tt.set != nil {
				p.Do("set", tt.set)
			}
			p.publish(m{"lose": true}, stored(2, 3), stored(3, 4), removed(4))
			p.publish(nil, stored(3, 5))
			got := strings.Join(l.wait(t, "7 rank 0 stored [5]"), "\n")
			s, blocks := man.Stats()[0], l.blocks(rank0)
			if tt.whole && (s.Clears != 0 || s.ReplaysFailed != 0 || blocks != 4) || !tt.whole && (s.Clears != 1 || s.ReplaysFailed != 1 || blocks != 1) {
				t.Errorf("%d blocks, %+v\n%s", blocks, s, got)
			}
			// Whatever it was, the feed goes on; an answer that is late finds nobody.
			p.Do("release", nil)
			p.publish(nil, stored(5, 6))
			l.wait(t, "7 rank 0 stored [6]")
			if after := man.Stats()[0]; after.Clears != s.Clears || after.Restarts+after.BadMessages != 0 {
				t.Errorf("%+v", after)
			}
		})
	}
}

// TestReplayUnreachable names a replay endpoint where nobody is.
func TestReplayUnreachable(t *testing.T) {
	p, l := newPublisher(t), newLog()
	e := place(t)
	bound(p, Endpoints{Events: e.Events}, nil)
	cfg := quick(l)
	cfg.ReplayRounds = 2
	man := follow(t, l, cfg, rank0, e)
	l.wait(t, "replay failed")
	p.Do("subscribed", nil)
	p.publish(nil, stored(nil, 1))
	same(t, l.wait(t, "7 rank 0 stored [1]"))
	if live, _ := man.Live(); live != 1 {
		t.Error("not live")
	}
}
