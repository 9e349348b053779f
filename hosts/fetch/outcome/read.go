package outcome

import (
	"hash/maphash"
	"slices"

	"github.com/kvrt/kvrt/hint"
)

// Filter picks hints. Its zero value picks all.
type Filter struct {
	Identity  *hint.Identity // of exactly this request
	MessageID string         // of this message; "": of any
	Index     *uint32        // with this index
	Ended     bool           // not those that are open
}

func (f *Filter) match(r *record) bool {
	return (f.Identity == nil || r.is(r.hash, f.Identity)) && (f.MessageID == "" || string(r.message()) == f.MessageID) &&
		(f.Index == nil || r.out.Index == *f.Index) && (!f.Ended || r.out.State != Open)
}

// Query returns up to limit hints, the latest first. With an identity it looks at that
// request's only.
func (l *Ledger) Query(f Filter, limit int) (out []Outcome) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if f.Identity != nil {
		at, ok := l.newest[maphash.Comparable(l.seed, *f.Identity)]
		for ok && at >= 0 && len(out) < limit {
			if r := &l.ring[at]; f.match(r) {
				out = append(out, r.copyOut())
			}
			at = l.ring[at].older
		}
		return out
	}
	for i := range l.ring {
		r := &l.ring[(l.next-1-i+2*len(l.ring))%len(l.ring)]
		if !r.used || len(out) >= limit {
			break
		}
		if f.match(r) {
			out = append(out, r.copyOut())
		}
	}
	return out
}

// Subscription is a stream of hints as they end, through a buffer of fixed size. Who
// does not keep up loses the newest, and can see how many.
type Subscription struct {
	ledger  *Ledger
	filter  Filter
	ch      chan Outcome
	dropped uint64 // under the ledger's lock
	closed  bool
}

// Subscribe begins a stream of the hints that match and end from now on. The filter's
// contents are copied.
func (l *Ledger) Subscribe(f Filter, buffer int) *Subscription {
	if f.Identity != nil {
		id := *f.Identity
		id.Engine, id.RequestID = string(slices.Clone([]byte(id.Engine))), string(slices.Clone([]byte(id.RequestID)))
		f.Identity = &id
	}
	if f.Index != nil {
		i := *f.Index
		f.Index = &i
	}
	s := &Subscription{ledger: l, filter: f, ch: make(chan Outcome, max(1, buffer))}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs[s] = struct{}{}
	return s
}

// Outcomes is the stream. It ends with Close.
func (s *Subscription) Outcomes() <-chan Outcome { return s.ch }

// Dropped is how many outcomes found the buffer full.
func (s *Subscription) Dropped() uint64 {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.dropped
}

// Close ends the stream. What is in the buffer can still be read.
func (s *Subscription) Close() {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	if !s.closed {
		s.closed = true
		delete(s.ledger.subs, s)
		close(s.ch)
	}
}

// publish hands an ended hint to the subscribers, without waiting for any.
func (l *Ledger) publish(r *record) {
	if len(l.subs) == 0 {
		return
	}
	var o Outcome
	for s := range l.subs {
		if !s.filter.match(r) {
			continue
		}
		if o.Ended == 0 {
			o = r.copyOut()
		}
		select {
		case s.ch <- o:
		default:
			s.dropped++
			l.stats.Dropped++
		}
	}
}
