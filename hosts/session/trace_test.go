package session

import (
	"fmt"
	"math/rand/v2"

	"github.com/kvrt/kvrt/hint"
)

// A trace makes events that look like those of a fleet, the same for the same seed. Its
// shapes follow public traces: conversations whose prompts have 14 blocks in the middle
// and a few hundred at most, all below one common block; and coding agents whose prompts
// grow to more than a thousand blocks over many turns, below a few common system prompts,
// with subagents that fork from them.
type trace struct {
	rng     *rand.Rand
	agents  bool
	workers int
	next    uint64
	systems [][]uint64
	live    []*talk
	made    int
	removed bool // workers evict
}

type talk struct {
	id     string
	worker hint.Worker
	chain  []uint64
	stored int // blocks of the chain that the worker has
	turns  int
}

func newTrace(seed uint64, agents bool, sessions int) *trace {
	t := &trace{rng: rand.New(rand.NewPCG(seed, 1)), agents: agents, workers: 8}
	common, systems := 1, 1
	if agents {
		common, systems = 96, 4
	}
	for range systems {
		t.systems = append(t.systems, t.fresh(nil, common))
	}
	t.live = make([]*talk, sessions)
	return t
}

// fresh appends n new hashes, which look random as an engine's do.
func (t *trace) fresh(to []uint64, n int) []uint64 {
	for range n {
		t.next++
		x := t.next * 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		to = append(to, x^x>>31)
	}
	return to
}

func (t *trace) begin() *talk {
	t.made++
	w := t.rng.IntN(t.workers)
	k := &talk{id: fmt.Sprintf("session-%08d", t.made), worker: hint.Worker{ID: hint.UintWorker(uint64(w / 2)), Rank: uint32(w % 2), HasRank: true}}
	k.chain = append(k.chain, t.systems[t.rng.IntN(len(t.systems))]...)
	k.turns = 1 + t.rng.IntN(6)
	if t.agents {
		k.turns = 10 + t.rng.IntN(40)
		if parent := t.live[t.rng.IntN(len(t.live))]; parent != nil && t.rng.IntN(3) == 0 { // a subagent
			k.worker = parent.worker
			k.chain = append(k.chain[:0], parent.chain[:1+t.rng.IntN(len(parent.chain))]...)
			k.stored = min(parent.stored, len(k.chain))
			k.turns /= 4
		}
	}
	return k
}

// turn shows the events of one request: the match of what the worker has, what it stores,
// and at times what it evicts.
func (t *trace) turn(show func(Event)) {
	i := t.rng.IntN(len(t.live))
	k := t.live[i]
	if k == nil || k.turns == 0 {
		k = t.begin()
		t.live[i] = k
	}
	k.turns--
	blocks := 1 + int(t.rng.ExpFloat64()*12)
	if t.agents {
		blocks = 1 + int(t.rng.ExpFloat64()*30)
	}
	k.chain = t.fresh(k.chain, min(blocks, 250))
	if k.stored > 0 {
		show(Event{Op: OpMatched, Worker: k.worker, Session: k.id, Hashes: k.chain[:k.stored]})
	}
	e := Event{Op: OpStored, Worker: k.worker, Session: k.id, Tier: TierGPU, Hashes: k.chain[k.stored:]}
	if k.stored > 0 {
		e.Parent, e.HasParent = k.chain[k.stored-1], true
	}
	show(e)
	k.stored = len(k.chain)
	if t.removed && t.rng.IntN(4) == 0 {
		from := max(k.stored-1-t.rng.IntN(16), len(t.systems[0])) // what many share is used
		if from >= k.stored {
			return
		}
		show(Event{Op: OpRemoved, Worker: k.worker, Tier: TierGPU, Hashes: k.chain[from:k.stored]})
		k.chain, k.stored = k.chain[:from], from
	}
}
