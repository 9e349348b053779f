package fetch

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/kvrt/kvrt/hint"
)

// Store keeps the fetch hints of requests. It is safe for concurrent use, holds one
// shard's lock at a time and calls nobody while it does. The path of a hint, Prepare,
// Commit and Discard, allocates nothing once the free lists are warm.
type Store struct {
	cfg           Config
	hasher        hasher
	secret        secret
	preparedLimit int       // bytes of hints that a shard lets wait for a verdict
	tombs         int       // that a shard keeps
	tombsAtOnce   int       // how many give way together, for their memory is in no cache
	started       time.Time // of the default clock; zero: Config.Now is another one
	shift         uint      // the top bits of a hash pick the shard
	shards        []shard

	entries budget // hints
	bytes   budget // of their buffers

	refusedInvalid atomic.Uint64
	refusedLimit   atomic.Uint64
	unkeyed        atomic.Uint64
}

// Fault is the panic value of a failure that a store cannot go on from: it was used
// wrongly, or is broken.
type Fault struct{ What string }

func (f *Fault) Error() string { return "fetch hint store: " + f.What }

// New makes an empty store.
func New(cfg Config) *Store {
	var started time.Time
	if cfg.Now == nil {
		started = time.Now()
		cfg.Now = clockSince(started)
	}
	cfg.setDefaults()
	s := &Store{
		cfg:     cfg,
		started: started,
		secret:  secret{rand.Uint64(), rand.Uint64() | 1},
		shift:   uint(64 - bits.TrailingZeros(uint(cfg.Shards))),
		shards:  make([]shard, cfg.Shards),

		entries: newBudget(int64(cfg.MaxEntries), 64, cfg.Shards),
		bytes:   newBudget(cfg.MaxBytes, 64<<10, cfg.Shards),
	}
	// A shard's part of all, and enough for a few of the largest hints. It stops a guest
	// that submits in a loop within one call.
	s.preparedLimit = max(s.perShard(int(cfg.MaxBytes)), 4*(sizeOf(classOf(cfg.MaxHashes))+pendingOverhead))
	s.tombs = s.perShard(cfg.MaxTombstones)
	s.tombsAtOnce = max(1, min(16, s.tombs/64))
	s.hasher = hasher{maphash.MakeSeed(), rand.Uint64() | 1}
	second := hasher{maphash.MakeSeed(), rand.Uint64() | 1}
	for i := range s.shards {
		s.shards[i].second = second
		s.shards[i].hashes.limit = poolBytes / cfg.Shards
		s.shards[i].sets.limit = poolBytes / cfg.Shards
	}
	return s
}

// at is what the default clock showed at t, without reading it, and 0 of another clock.
func (s *Store) at(t time.Time) int64 {
	if s.started.IsZero() {
		return 0
	}
	return s.started.UnixNano() + int64(t.Sub(s.started))
}

func (s *Store) locate(id *hint.Identity) (uint64, *shard) {
	h := s.hasher.of(id)
	return h, &s.shards[h>>s.shift]
}

// perShard is a shard's part of a cap on all.
func (s *Store) perShard(n int) int { return max(1, n/len(s.shards)) }

// fits tells whether an identity can be in the store at all.
func (s *Store) fits(id *hint.Identity) bool {
	return id.RequestID != "" && len(id.Engine)+len(id.RequestID) <= s.cfg.MaxIDBytes
}

// ttl is how long an entry in this state lives.
func (s *Store) ttl(st state) int64 {
	if st >= finished {
		return int64(s.cfg.TombstoneTTL)
	}
	return int64(s.cfg.TTL)
}

// lookup finds what is there and has not expired.
func (s *Store) lookup(sh *shard, hash uint64, id *hint.Identity, now int64) *entry {
	e := sh.find(hash, id)
	if e == nil {
		return nil
	}
	if now-e.since >= s.ttl(e.state) { // since is never after now
		s.expire(sh, e)
		return nil
	}
	return e
}

// expire removes an entry whose time is over.
func (s *Store) expire(sh *shard, e *entry) {
	if e.state < finished {
		sh.stats.expired++
	}
	s.forget(sh, e)
}

// forget removes an entry, hint or tombstone.
func (s *Store) forget(sh *shard, e *entry) {
	sh.remove(e)
	if e.state >= finished {
		sh.tombs.remove(e)
	} else {
		sh.hints.remove(e)
		s.release(sh, e)
		sh.putBody(e)
		s.entries.give(&sh.entries, 1)
	}
	sh.putEntry(e)
}

// release gives back the buffers of a hint.
func (s *Store) release(sh *shard, e *entry) {
	if e.hashes == nil {
		return
	}
	s.bytes.give(&sh.bytes, int64(sizeOf(e.hashes.class)))
	sh.hashes.put(e.hashes)
	sh.sets.put(e.set)
	e.hashes, e.set, e.count, e.distinct = nil, nil, 0, 0
}

// sweep removes what has expired in a shard, up to limit entries, and returns how many.
func (s *Store) sweep(sh *shard, now int64, limit int) (n int) {
	for ; n < limit && sh.hints.len > 0 && now-sh.hints.oldest >= s.ttl(live); n++ {
		s.expire(sh, sh.hints.head)
	}
	for ; n < limit && sh.tombs.len > 0 && now-sh.tombs.oldest >= s.ttl(finished); n++ {
		s.expire(sh, sh.tombs.head)
	}
	return n
}

// reclaim makes room at a cap: it visits every shard once, takes back what that has of
// the budgets in hand, and removes up to reclaimLimit expired entries in all. The
// caller holds no lock.
func (s *Store) reclaim(now int64) {
	const reclaimLimit = 256
	left := reclaimLimit
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		left -= s.sweep(sh, sh.tick(now), left)
		s.entries.takeBack(&sh.entries)
		s.bytes.takeBack(&sh.bytes)
		sh.mu.Unlock()
	}
}

// Sweep removes everything that has expired and returns how many hints and tombstones
// that were. Expired hints are never seen, and every commit removes a few; a ticker
// that calls Sweep keeps their memory from lingering when no hints come.
func (s *Store) Sweep() (n int) {
	const batch = 512 // bounds the time under a lock
	now := s.cfg.Now()
	for i := range s.shards {
		for sh, more := &s.shards[i], true; more; {
			sh.mu.Lock()
			k := s.sweep(sh, sh.tick(now), batch)
			sh.mu.Unlock()
			n, more = n+k, k == batch
		}
	}
	return n
}

// Discard drops the hint of a request and leaves a tombstone. It is idempotent.
func (s *Store) Discard(id hint.Identity) { s.end(&id, discarded) }

// Finish ends a request and leaves a tombstone. It is idempotent.
func (s *Store) Finish(id hint.Identity, wasAborted bool) { s.end(&id, finishState(wasAborted)) }

func finishState(wasAborted bool) state {
	if wasAborted {
		return aborted
	}
	return finished
}

func (s *Store) end(id *hint.Identity, how state) {
	if s.fits(id) {
		s.endKnown(id, how)
	}
	if s.cfg.Ended != nil && id.RequestID != "" {
		s.cfg.Ended(*id)
	}
}

func (s *Store) endKnown(id *hint.Identity, how state) {
	now := s.cfg.Now()
	hash, sh := s.locate(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.endLocked(sh, hash, id, how, sh.tick(now))
}

func (s *Store) endLocked(sh *shard, hash uint64, id *hint.Identity, how state, now int64) {
	e := s.lookup(sh, hash, id, now)
	if e != nil && e.state >= finished {
		return
	}
	if how == discarded {
		sh.stats.discarded++
	} else {
		sh.stats.finished++
	}
	if sh.tombs.len >= s.tombs {
		for range s.tombsAtOnce {
			s.forget(sh, sh.tombs.head)
		}
	}
	if e != nil { // the hint becomes the tombstone
		s.release(sh, e)
		sh.hints.remove(e)
		sh.putBody(e)
		s.entries.give(&sh.entries, 1)
	} else {
		e = sh.takeEntry()
		e.hash = hash
		sh.insert(e)
	}
	e.check, e.state, e.since = sh.second.of(id), how, now
	sh.tombs.push(e)
}
