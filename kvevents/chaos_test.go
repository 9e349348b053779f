package kvevents

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestReplayIsDropped replays through a ROUTER that keeps a few messages and drops the
// others, the end among them, as libzmq's does without a word.
func TestReplayIsDropped(t *testing.T) {
	const batches = 1000
	p, l := newPublisher(t), newLog()
	e := bound(p, place(t), m{"replay_hwm": 20})
	p.publish(m{"times": batches / 2}, stored(nil, 1, 2, 3, 4), removed(1))
	cfg := quick(l)
	cfg.ReplayIdle, cfg.ReplayRounds = 20*time.Millisecond, batches
	man := follow(t, l, cfg, rank0, e)
	until(t, "all of it", func() bool { return man.Stats()[0].Sequence == batches })
	if s := man.Stats()[0]; s.Clears+s.ReplaysFailed+s.Restarts != 0 || l.blocks(rank0) != 3 {
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
			p.do("close", m{"restart": restart})
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
		p.do("subscribed", nil)
		p.publish(nil, stored(nil, 1000))
		truth[1000] = true
		l.wait(t, "7 rank 0 stored [1000]")
		if got := l.holds[rank0]; len(got) != len(truth) {
			t.Errorf("seed %d: the sink has %v, the publisher %v", seed, keys(got), keys(truth))
		}
	}
}
