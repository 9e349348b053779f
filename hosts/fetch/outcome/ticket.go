package outcome

import (
	"hash/maphash"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Ticket is the outcome of one action whose blocks are brought for their own sake, and
// not for its request. Its methods do nothing once the outcome has ended.
type Ticket struct {
	ledger *Ledger
	at     int32
	turn   uint64
}

// Begin opens an outcome that only its Ticket, or time, ends: it supersedes nothing of its
// request, and neither a later hint nor the end of the request ends it. It needs no
// request id.
func (l *Ledger) Begin(id hint.Identity, messageID []byte, index, blocks uint32) *Ticket {
	now := l.now()
	hash := maphash.Comparable(l.seed, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	at := l.add(hash, &id, messageID, index, blocks, now)
	l.ring[at].ahead = true
	return &Ticket{l, at, l.ring[at].turn}
}

// Fetched says that blocks have come. When they are all, the outcome is completed.
func (t *Ticket) Fetched(blocks uint32, bytes uint64) {
	t.change(func(now int64) { t.ledger.fetched(t.at, blocks, bytes, now) })
}

// Complete says that every block is here, wherever it came from.
func (t *Ticket) Complete() {
	t.change(func(now int64) { t.ledger.end(t.at, Completed, abi.ReasonNone, now) })
}

// Fail says that no more blocks will come.
func (t *Ticket) Fail(why abi.Reason) {
	t.change(func(now int64) { t.ledger.failed(t.at, why, now) })
}

// change does something while the outcome is open, and its place still its own.
func (t *Ticket) change(do func(now int64)) {
	l := t.ledger
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if r := &l.ring[t.at]; r.turn == t.turn && r.out.State == Open {
		do(now)
	}
}
