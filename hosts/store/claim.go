package store

import (
	"math"
	"time"
)

// What a claim may ask for.
const (
	MaxPriority = 100
	MaxTTL      = 30 * 24 * time.Hour
	// MaxClaims is how many claims a block keeps. Of more, those stay that protect most.
	MaxClaims = 8
)

// Claim declares what blocks are worth to somebody.
type Claim struct {
	// Owner tells apart who claims: a later claim of an owner replaces its earlier one.
	Owner uint64
	// Priority is from 0 to MaxPriority. 0 takes the owner's claim back.
	Priority int
	// TTL is for how long, from when the claim takes effect: at once, or when the block
	// is published. Using the block does not renew it. 0: for as long as the block stays.
	TTL time.Duration
}

func (c Claim) valid() bool {
	return c.Priority >= 0 && c.Priority <= MaxPriority && c.TTL >= 0 && c.TTL <= MaxTTL
}

// TTLSeconds is a number of seconds as a TTL. NaN, infinities and what is out of range
// are refused.
func TTLSeconds(seconds float64) (time.Duration, error) {
	if !(seconds >= 0 && seconds <= MaxTTL.Seconds()) { // NaN fails both
		return 0, ErrClaim
	}
	if seconds == 0 {
		return time.Nanosecond, nil // over at once, where 0 would be for ever
	}
	return max(time.Duration(seconds*float64(time.Second)), time.Nanosecond), nil
}

const never = math.MaxInt64

// claims are those of one block.
type claims struct {
	n    int
	list [MaxClaims]claim
}

type claim struct {
	owner uint64
	until int64 // ns; of a block that is not published yet: the TTL; never
	prio  uint8
}

// stronger orders claims for who stays when there are too many.
func (c *claim) stronger(d *claim) bool {
	return c.prio > d.prio || c.prio == d.prio && c.until > d.until
}

// covers tells that d changes nothing while c is there.
func (c *claim) covers(d *claim) bool { return c.prio >= d.prio && c.until >= d.until }

func (cs *claims) drop(i int) {
	cs.n--
	cs.list[i] = cs.list[cs.n]
}

func (cs *claims) of(owner uint64) int {
	for i := range cs.n {
		if cs.list[i].owner == owner {
			return i
		}
	}
	return -1
}

// add puts a claim in. It is false when the others protect more and there is no room.
func (cs *claims) add(c claim) bool {
	if cs.n < MaxClaims {
		cs.list[cs.n] = c
		cs.n++
		return true
	}
	at := cs.covered()
	if at < 0 {
		at = 0
		for i := 1; i < cs.n; i++ {
			if cs.list[at].stronger(&cs.list[i]) {
				at = i
			}
		}
		if !c.stronger(&cs.list[at]) {
			return false
		}
	}
	cs.list[at] = c
	return true
}

// covered is a claim that another one covers, or -1.
func (cs *claims) covered() int {
	for i := range cs.n {
		for j := range cs.n {
			if i != j && cs.list[j].covers(&cs.list[i]) {
				return i
			}
		}
	}
	return -1
}

// claim gives a block a claim, under its shard's lock.
func (s *Store) claim(sh *shard, n uint32, c Claim, now int64) Outcome {
	sl := &s.slots[n]
	if sl.claims == nil {
		if c.Priority == 0 {
			return Applied
		}
		sl.claims = new(claims) // once for each slot that ever has a claim
	}
	cs := sl.claims
	before := cs.n
	if sl.state == ready {
		cs.expire(now)
	}
	if i := cs.of(c.Owner); i >= 0 {
		cs.drop(i)
	}
	outcome := Applied
	if c.Priority > 0 {
		until := int64(never)
		switch {
		case c.TTL == 0:
		case sl.state == ready:
			until = later(now, c.TTL)
		default:
			until = int64(c.TTL)
		}
		if !cs.add(claim{c.Owner, until, uint8(c.Priority)}) {
			outcome = Clipped
		}
	}
	sh.count.claims += uint64(cs.n) - uint64(before) // may wrap, and wraps back
	if sl.state != ready {
		if outcome == Applied && c.Priority > 0 {
			outcome = Deferred
		}
		return outcome
	}
	s.reprice(sh, n)
	return outcome
}

// later is now and a while, at most never.
func later(now int64, d time.Duration) int64 {
	if int64(d) > never-now {
		return never
	}
	return now + int64(d)
}

// expire drops the claims whose time is over.
func (cs *claims) expire(now int64) {
	for i := 0; i < cs.n; {
		if cs.list[i].until <= now {
			cs.drop(i)
		} else {
			i++
		}
	}
}

// reprice works out a published block's priority, and when it changes next.
func (s *Store) reprice(sh *shard, n uint32) {
	sl := &s.slots[n]
	prio, due := uint8(0), int64(never)
	for i := range sl.claims.n {
		c := &sl.claims.list[i]
		prio, due = max(prio, c.prio), min(due, c.until)
	}
	if due == never {
		sh.due.remove(n)
	} else {
		sh.due.set(n, uint64(due))
	}
	sh.nextDue.Store(sh.due.least())
	if prio != sl.prio {
		sl.prio = prio
		if sh.victims[sl.pool].has(n) {
			sh.victims[sl.pool].set(n, rank(sl))
			sh.head(sl.pool)
		}
	}
}

// takeEffect starts the time of claims that were made before the block was published.
func (s *Store) takeEffect(sh *shard, n uint32) {
	sl := &s.slots[n]
	if sl.claims == nil || sl.claims.n == 0 {
		return
	}
	now := s.clock.read()
	for i := range sl.claims.n {
		if c := &sl.claims.list[i]; c.until != never {
			c.until = later(now, time.Duration(c.until))
		}
	}
	s.reprice(sh, n)
}

// unclaim forgets all claims of a block that goes.
func (s *Store) unclaim(sh *shard, n uint32) {
	sl := &s.slots[n]
	if sl.claims != nil {
		sh.count.claims -= uint64(sl.claims.n)
		sl.claims.n = 0
	}
	if sl.prio = 0; sh.due.has(n) {
		sh.due.remove(n)
		sh.nextDue.Store(sh.due.least())
	}
}

// expire ends the claims whose time is over, in every shard that has some.
func (s *Store) expire() {
	now := s.clock.read()
	for i := range s.shards {
		sh := &s.shards[i]
		if sh.nextDue.Load() > uint64(now) {
			continue
		}
		sh.mu.Lock()
		for sh.due.least() <= uint64(now) {
			n := sh.due.items[0].slot
			cs := s.slots[n].claims
			before := cs.n
			cs.expire(now)
			sh.count.claims -= uint64(before - cs.n)
			s.reprice(sh, n)
		}
		sh.mu.Unlock()
	}
}
