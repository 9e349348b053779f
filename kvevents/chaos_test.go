package kvevents

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// TestReplayIsDropped replays through a ROUTER that keeps a few messages and drops the
// others, as libzmq's does without a word. When it drops the last ones and lets the end
// through, only the next live batch tells.
func TestReplayIsDropped(t *testing.T) {
	const batches = 1000
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), m{"replay_hwm": 20})
	p.publish(m{"times": batches / 2}, stored(nil, 1, 2, 3, 4), removed(1))
	cfg := quick(l)
	cfg.ReplayIdle, cfg.ReplayRounds = 50*time.Millisecond, batches
	man := follow(t, l, cfg, rank0, e)
	until(t, "replayed", func() bool { return man.Stats()[0].Live })
	p.Do("subscribed", nil)
	p.publish(nil, stored(nil, 1))
	until(t, "all of it", func() bool { return man.Stats()[0].Sequence == batches+1 })
	if s := man.Stats()[0]; s.Clears+s.ReplaysFailed+s.Restarts != 0 || l.blocks(rank0) != 4 {
		t.Errorf("%d blocks, %+v", l.blocks(rank0), s)
	}
}

// TestChaos loses batches, closes, binds and restarts a publisher in any order. In the end
// the sink has what the publisher has.
func TestChaos(t *testing.T) {
	const rounds = 60
	for seed := range uint64(3) {
		p, l := newPublisher(t), newLog()
		e := bound(p, place(t), nil)
		follow(t, l, quick(l), rank0, e)
		rng := rand.New(rand.NewPCG(seed, 0))
		truth := map[uint64]bool{}
		publish := func(lose bool) {
			h := rng.Uint64N(20)
			if rng.IntN(3) == 0 {
				p.publish(m{"lose": lose}, removed(h))
				delete(truth, h)
			} else {
				p.publish(m{"lose": lose}, stored(nil, h))
				truth[h] = true
			}
		}
		rebind := func(restart bool) {
			p.Do("close", m{"restart": restart})
			bound(p, e, nil)
			if restart {
				clear(truth)
			}
		}
		for range rounds {
			switch n := rng.IntN(10); n {
			case 0:
				rebind(false)
			case 1:
				rebind(true)
			case 2, 3:
				publish(true)
			default:
				publish(false)
			}
		}
		rebind(false)
		p.Do("subscribed", nil)
		p.publish(nil, stored(nil, 1000))
		truth[1000] = true
		// A batch of an old sequence may still wait: it clears, and the last connection
		// makes up for it.
		until(t, "what the publisher has", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return maps.Equal(l.holds[rank0], truth)
		})
	}
}
