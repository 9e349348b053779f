package fetch

import (
	"math/bits"
	"time"

	"github.com/kvrt/kvrt/hint"
)

// Config bounds a [Store]. The zero value is ready to use: a field that is zero or
// negative takes its default.
type Config struct {
	// TTL is how long a hint lives after the first submit of its request. Default 10 minutes.
	TTL time.Duration
	// TombstoneTTL is how long a finished request refuses submits. Default 30 s.
	TombstoneTTL time.Duration
	// MaxEntries caps the hints in the store. Default 65,536.
	MaxEntries int
	// MaxTombstones caps the remembered ends of requests; the oldest give way, a 64th of
	// them together. Default 65,536, and never less than one per shard.
	MaxTombstones int
	// MaxHashes caps the block hashes of one hint, duplicates counted. Default 131,072.
	MaxHashes int
	// MaxBytes caps the memory that hashes of stored hints take, by the size of their
	// buffers (64 bytes at least, then powers of two). Default 256 MiB. The sets that
	// the first queries build come on top and take at most as much again.
	MaxBytes int64
	// MaxIDBytes caps engine and request id together. Default 512.
	MaxIDBytes int
	// Shards is rounded up to a power of two, at most 1,024. Default 32.
	Shards int
	// Now is a clock in ns since 1970 that does not run backwards; where it does, it is
	// taken to stand still. Default: the wall clock at New plus the monotonic time since.
	Now func() int64
	// Ended, when set, hears of each request that has been finished or discarded, by
	// whomever, after that took place and with no lock held. It may hear of one request
	// more than once. The identity's strings are views of reused memory.
	Ended func(id hint.Identity)
}

const (
	maxShards = 1024
	// hashLimit bounds MaxHashes, so that sizes in bytes fit 32 bits.
	hashLimit = 1 << 28
	// poolBytes is what the free lists of all shards keep together, at most: once for
	// hashes and once for sets.
	poolBytes = 32 << 20
	// freeEntries is how many unused entries a shard keeps, and how many unused Pendings.
	freeEntries = 256
	// pendingOverhead is what a prepared hint counts for beside its hashes, in bytes.
	pendingOverhead = 256
)

func orDefault[T int | int64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

func (c *Config) setDefaults() {
	orDefault(&c.TTL, 10*time.Minute)
	orDefault(&c.TombstoneTTL, 30*time.Second)
	orDefault(&c.MaxEntries, 65536)
	orDefault(&c.MaxTombstones, 65536)
	orDefault(&c.MaxHashes, 131072)
	orDefault(&c.MaxBytes, 256<<20)
	orDefault(&c.MaxIDBytes, 512)
	orDefault(&c.Shards, 32)
	c.MaxHashes = min(c.MaxHashes, hashLimit)
	c.Shards = 1 << bits.Len(uint(min(c.Shards, maxShards)-1))
	if c.Now == nil {
		c.Now = clockSince(time.Now())
	}
}

// clockSince is the default clock.
func clockSince(started time.Time) func() int64 {
	wall := started.UnixNano()
	return func() int64 { return wall + int64(time.Since(started)) }
}
