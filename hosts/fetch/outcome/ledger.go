package outcome

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// State is how a hint stands.
type State uint8

const (
	Open State = iota
	Completed
	Partial
	Failed
	Superseded
	Discarded
	Expired
	states
)

func (s State) String() string {
	return [...]string{"open", "completed", "partial", "failed", "superseded", "discarded", "expired", "unknown"}[min(s, states)]
}

// Outcome is what is known of one hint. Its strings are its own.
type Outcome struct {
	Identity  hint.Identity
	MessageID string
	Index     uint32 // of the action in its envelope

	State    State
	Reason   abi.Reason // of partial and failed
	Blocks   uint32     // that the hint names
	Fetched  uint32     // of them
	Bytes    uint64     // fetched
	Accepted int64      // ns since 1970
	Ended    int64      // likewise; 0 while it is open
}

// Config bounds a [Ledger]. A field that is zero or negative takes its default.
type Config struct {
	// Size is how many hints are kept, open and ended. Default 16,384.
	Size int
	// TTL is how long a hint may be open, which is how long it lives in the hint store.
	// Default 10 minutes.
	TTL time.Duration
	// Now is a clock in ns since 1970. Default: the wall clock.
	Now func() int64
}

// Ledger is safe for concurrent use. Its methods copy the strings that they keep.
type Ledger struct {
	ttl  int64
	now  func() int64
	seed maphash.Seed

	mu     sync.Mutex
	ring   []record
	next   int              // the place that is overwritten next
	turns  uint64           // uses of places
	newest map[uint64]int32 // by hash of the identity
	open   list
	stats  Stats
	subs   map[*Subscription]struct{}
}

// A record is one place of the ring. Its buffer is reused.
type record struct {
	used       bool
	key        []byte // engine, request id, message id
	engine, id int    // lengths of the first two
	hash       uint64
	dpRank     uint32
	attempt    uint32
	leg        abi.Leg
	out        Outcome // without its strings
	turn       uint64  // counts the uses of all places
	ahead      bool    // opened by Begin
	older      int32   // of the same hash; -1: none
	newer      int32
	prev, next int32 // in the list of open ones
}

// list is the open hints, in the order of acceptance and so of expiry.
type list struct {
	head, tail int32
	len        int
}

// Stats counts hints. The sum of the others is Accepted, at any time.
type Stats struct {
	Accepted, Open, Completed, Partial, Failed, Superseded, Discarded, Expired uint64
	// Overrun are those of Expired whose place was needed.
	Overrun uint64
	// Dropped are outcomes that subscribers were too slow for, all together.
	Dropped uint64
	// FailedBy and PartialBy are Failed and Partial by reason; a larger code than the last
	// counts as reason 0, which has no others.
	FailedBy, PartialBy [NumReasons]uint64
}

// NumReasons bounds the reason codes that are counted apart.
const NumReasons = 32

// NewLedger makes an empty ledger.
func NewLedger(cfg Config) *Ledger {
	if cfg.Size <= 0 {
		cfg.Size = 16384
	}
	if cfg.TTL <= 0 {
		cfg.TTL = 10 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = func() int64 { return time.Now().UnixNano() }
	}
	return &Ledger{
		ttl: int64(cfg.TTL), now: cfg.Now, seed: maphash.MakeSeed(), ring: make([]record, min(cfg.Size, 1<<30)),
		newest: make(map[uint64]int32), open: list{head: -1, tail: -1}, subs: make(map[*Subscription]struct{}),
	}
}

func (r *record) is(hash uint64, id *hint.Identity) bool {
	return r.hash == hash && r.dpRank == id.DPRank && r.attempt == id.Attempt && r.leg == id.Leg &&
		string(r.key[:r.engine]) == id.Engine && string(r.key[r.engine:r.engine+r.id]) == id.RequestID
}

func (r *record) message() []byte { return r.key[r.engine+r.id:] }

// copyOut makes an Outcome with strings of its own.
func (r *record) copyOut() Outcome {
	all := string(r.key)
	o := r.out
	o.Identity = hint.Identity{
		Engine: all[:r.engine], RequestID: all[r.engine : r.engine+r.id], DPRank: r.dpRank, Attempt: r.attempt, Leg: r.leg,
	}
	o.MessageID = all[r.engine+r.id:]
	return o
}

// MaxMessageID is how many bytes of a message id are kept.
const MaxMessageID = 512

// Accept opens the outcome of a hint that was taken. An earlier one of its request that
// is open is superseded. A hint without a request id is not stored anywhere: it is
// discarded at once.
func (l *Ledger) Accept(id hint.Identity, messageID []byte, index, blocks uint32) {
	now := l.now()
	hash := maphash.Comparable(l.seed, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	l.endOpen(hash, &id, Superseded, abi.ReasonNone, now)
	at := l.add(hash, &id, messageID, index, blocks, now)
	if id.RequestID == "" {
		l.end(at, Discarded, abi.ReasonNone, now)
	}
}

// add takes the next place of the ring.
func (l *Ledger) add(hash uint64, id *hint.Identity, messageID []byte, index, blocks uint32, now int64) int32 {
	at := int32(l.next)
	l.next = (l.next + 1) % len(l.ring)
	l.turns++
	r := &l.ring[at]
	if r.used {
		if r.out.State == Open {
			l.stats.Overrun++
			l.end(at, Expired, abi.ReasonLimitExceeded, now)
		}
		l.unlink(at)
	}
	key := append(append(r.key[:0], id.Engine...), id.RequestID...)
	key = append(key, messageID[:min(len(messageID), MaxMessageID)]...)
	*r = record{
		used: true, key: key, engine: len(id.Engine), id: len(id.RequestID),
		hash: hash, dpRank: id.DPRank, attempt: id.Attempt, leg: id.Leg,
		out:  Outcome{Index: index, Blocks: blocks, Accepted: now},
		turn: l.turns, older: -1, newer: -1,
	}
	if before, ok := l.newest[hash]; ok {
		r.older, l.ring[before].newer = before, at
	}
	l.newest[hash] = at
	l.push(at)
	l.stats.Accepted++
	l.stats.Open++
	return at
}

// Fetched says that blocks of a request's hint have come. When they are all that it
// names, it is completed.
func (l *Ledger) Fetched(id hint.Identity, blocks uint32, bytes uint64) {
	l.change(&id, func(at int32, now int64) { l.fetched(at, blocks, bytes, now) })
}

func (l *Ledger) fetched(at int32, blocks uint32, bytes uint64, now int64) {
	o := &l.ring[at].out
	o.Fetched, o.Bytes = min(o.Blocks, o.Fetched+blocks), o.Bytes+bytes
	if o.Fetched == o.Blocks {
		l.end(at, Completed, abi.ReasonNone, now)
	}
}

// Complete says that every block of a request's hint is here, wherever it came from.
func (l *Ledger) Complete(id hint.Identity) {
	l.change(&id, func(at int32, now int64) { l.end(at, Completed, abi.ReasonNone, now) })
}

// Fail says that no more blocks of a request's hint will come.
func (l *Ledger) Fail(id hint.Identity, why abi.Reason) {
	l.change(&id, func(at int32, now int64) { l.failed(at, why, now) })
}

func (l *Ledger) failed(at int32, why abi.Reason, now int64) {
	state := Failed
	if l.ring[at].out.Fetched > 0 {
		state = Partial
	}
	l.end(at, state, why, now)
}

// Discard says that a request has ended, or that its hints were discarded.
func (l *Ledger) Discard(id hint.Identity) {
	l.change(&id, func(at int32, now int64) { l.end(at, Discarded, abi.ReasonNone, now) })
}

// Sweep ends what has expired. Reads and changes do that too; a ticker that calls it
// lets subscribers hear of it when nothing else happens.
func (l *Ledger) Sweep() {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
}

// Stats reads the counters.
func (l *Ledger) Stats() Stats {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	return l.stats
}

// change does something to the open hint of a request, if there is one.
func (l *Ledger) change(id *hint.Identity, do func(at int32, now int64)) {
	hash := maphash.Comparable(l.seed, *id)
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.find(hash, id)
	if at < 0 {
		return // the end of a request without a hint costs no reading of a clock
	}
	now := l.now()
	l.expire(now)
	if l.ring[at].out.State == Open {
		do(at, now)
	}
}

// find is the open hint of a request, of which there is at most one, or -1.
func (l *Ledger) find(hash uint64, id *hint.Identity) int32 {
	at, ok := l.newest[hash]
	if !ok {
		return -1
	}
	for ; at >= 0; at = l.ring[at].older {
		if r := &l.ring[at]; !r.ahead && r.is(hash, id) {
			if r.out.State == Open {
				return at
			}
			return -1 // those before it were superseded by it
		}
	}
	return -1
}

func (l *Ledger) endOpen(hash uint64, id *hint.Identity, s State, why abi.Reason, now int64) {
	if at := l.find(hash, id); at >= 0 {
		l.end(at, s, why, now)
	}
}

// end closes an open hint and tells the subscribers.
func (l *Ledger) end(at int32, s State, why abi.Reason, now int64) {
	r := &l.ring[at]
	r.out.State, r.out.Reason, r.out.Ended = s, why, now
	l.drop(at)
	l.stats.Open--
	*l.stats.of(s)++
	if why >= NumReasons {
		why = abi.ReasonNone
	}
	switch s {
	case Failed:
		l.stats.FailedBy[why]++
	case Partial:
		l.stats.PartialBy[why]++
	}
	l.publish(r)
}

func (st *Stats) of(s State) *uint64 {
	return [...]*uint64{&st.Open, &st.Completed, &st.Partial, &st.Failed, &st.Superseded, &st.Discarded, &st.Expired}[s]
}

func (l *Ledger) expire(now int64) {
	for at := l.open.head; at >= 0 && now-l.ring[at].out.Accepted >= l.ttl; at = l.open.head {
		l.end(at, Expired, abi.ReasonNone, now)
	}
}

func (l *Ledger) push(at int32) {
	r := &l.ring[at]
	r.prev, r.next = l.open.tail, -1
	if l.open.tail >= 0 {
		l.ring[l.open.tail].next = at
	} else {
		l.open.head = at
	}
	l.open.tail = at
	l.open.len++
}

func (l *Ledger) drop(at int32) {
	r := &l.ring[at]
	if r.prev >= 0 {
		l.ring[r.prev].next = r.next
	} else {
		l.open.head = r.next
	}
	if r.next >= 0 {
		l.ring[r.next].prev = r.prev
	} else {
		l.open.tail = r.prev
	}
	l.open.len--
}

// unlink takes a place, the oldest of all, out of the index.
func (l *Ledger) unlink(at int32) {
	r := &l.ring[at]
	if r.newer >= 0 {
		l.ring[r.newer].older = -1
		return
	}
	delete(l.newest, r.hash)
}
