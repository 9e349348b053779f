package fetch

import "sync/atomic"

// A budget is a cap that shards share. Each has some of it in hand, under its own
// lock, so that most hints touch nothing that all processors write to. At the cap,
// [Store.reclaim] takes back what the shards have in hand, so that nothing is refused
// for that.
type budget struct {
	_     [64]byte
	taken atomic.Int64 // by all shards, what they have in hand included
	_     [56]byte
	max   int64
	chunk int64 // what a shard has in hand, at most twice
}

// newBudget lets all shards together have no more than a sixteenth of max in hand.
func newBudget(max, chunk int64, shards int) budget {
	return budget{max: max, chunk: min(chunk, max/int64(32*shards))}
}

func (b *budget) take(hand *int64, n int64) bool {
	if *hand >= n {
		*hand -= n
		return true
	}
	n -= *hand
	if b.taken.Add(n+b.chunk) <= b.max {
		*hand = b.chunk
		return true
	}
	if b.taken.Add(-b.chunk) <= b.max {
		*hand = 0
		return true
	}
	b.taken.Add(-n)
	return false
}

func (b *budget) give(hand *int64, n int64) {
	if *hand += n; *hand > 2*b.chunk {
		b.taken.Add(b.chunk - *hand)
		*hand = b.chunk
	}
}

func (b *budget) takeBack(hand *int64) {
	b.taken.Add(-*hand)
	*hand = 0
}
