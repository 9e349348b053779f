package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

const (
	defaultBlock      = 1 << 20
	defaultLeases     = 1 << 16
	defaultNamespaces = 1 << 12

	pageSize  = 4096
	maxSlots  = 1 << 30
	maxBlock  = 1 << 30
	maxShards = 16
	// slotsPerShard is how many slots a shard has at least before there is another one.
	slotsPerShard = 64
)

// Config configures a Store. Only Capacity has to be set.
type Config struct {
	// Capacity is the memory for blocks in bytes. It is taken at once. All pools together
	// have it, each an equal part.
	Capacity uint64
	// BlockBytes are the sizes of slots, one pool each; each is rounded up to 4 KiB.
	// Default: 1 MiB.
	BlockBytes []uint64
	// Checksum has a CRC32C made of each block whose writer brings none.
	Checksum bool
	// HugePages asks for huge pages. Where none are reserved the store does without, and
	// [Store.Backing] says so.
	HugePages bool
	// Pin is told the slab before it is used, to register it with a device, and returns
	// how to take that back. Its failure is New's.
	Pin func(slab []byte) (unpin func() error, err error)

	MaxLeases     int // leases, reservations and transfers at once; default 65,536
	MaxNamespaces int // that have blocks; default 4,096

	// Now is a monotonic clock in ns. One that goes back stands still meanwhile.
	Now func() int64

	memory func(size int, huge bool) (*slab, error) // a test's; nil: newSlab
	shards int                                      // a test's; 0: as many as are good
}

// withDefaults checks what is there and fills in the rest.
func (c Config) withDefaults() (Config, error) {
	if len(c.BlockBytes) == 0 {
		c.BlockBytes = []uint64{defaultBlock}
	}
	c.BlockBytes = slices.Clone(c.BlockBytes)
	for i, n := range c.BlockBytes {
		if n == 0 || n > maxBlock {
			return c, fmt.Errorf("a block has from 1 to %d bytes, not %d", maxBlock, n)
		}
		c.BlockBytes[i] = (n + pageSize - 1) &^ (pageSize - 1)
	}
	slices.Sort(c.BlockBytes)
	c.BlockBytes = slices.Compact(c.BlockBytes)
	part := c.Capacity / uint64(len(c.BlockBytes))
	for _, n := range c.BlockBytes {
		if part < n {
			return c, &CapacityError{Capacity: c.Capacity, BlockBytes: n, Pools: len(c.BlockBytes)}
		}
		if part/n > maxSlots {
			return c, fmt.Errorf("%d bytes in blocks of %d are more than %d blocks", part, n, maxSlots)
		}
	}
	if c.MaxLeases == 0 {
		c.MaxLeases = defaultLeases
	}
	if c.MaxNamespaces == 0 {
		c.MaxNamespaces = defaultNamespaces
	}
	if c.memory == nil {
		c.memory = newSlab
	}
	if c.Now == nil {
		start := time.Now()
		c.Now = func() int64 { return int64(time.Since(start)) }
	}
	return c, nil
}

// clock never goes back.
type clock struct {
	now  func() int64
	last atomic.Int64
}

func (c *clock) read() int64 {
	now := c.now()
	for {
		last := c.last.Load()
		if now <= last {
			return last
		}
		if c.last.CompareAndSwap(last, now) {
			return now
		}
	}
}

// What the calls of a Store refuse.
var (
	ErrClosed     = errors.New("the block store is closed")
	ErrNotFound   = errors.New("the block store does not have the block")
	ErrExists     = errors.New("the block store has the block already")
	ErrToken      = errors.New("the lease or reservation has ended")
	ErrInFlight   = errors.New("a transfer into the block is still in flight")
	ErrTooLarge   = errors.New("the block is larger than the slots of every pool")
	ErrLeases     = errors.New("as many leases are held as the block store allows")
	ErrNamespaces = errors.New("as many namespaces have blocks as the block store allows")
	ErrChecksum   = errors.New("the block's bytes do not have its checksum")
	ErrClaim      = errors.New("a claim has a priority from 0 to 100 and a time of at most 30 days")
	ErrBusy       = errors.New("blocks of the store are leased or being filled")
	// ErrNoFile: the slab is not memory that another process could map.
	ErrNoFile = fmt.Errorf("the block store has no file to share: %w", os.ErrInvalid)
)

// CapacityError refuses a store in which a pool has no room for a single block.
type CapacityError struct {
	Capacity, BlockBytes uint64
	Pools                int
}

// Error says what to do.
func (e *CapacityError) Error() string {
	return fmt.Sprintf("a capacity of %d bytes over %d pools has no room for a block of %d bytes: give the store more memory or smaller blocks", e.Capacity, e.Pools, e.BlockBytes)
}

// MemoryError refuses a store that is larger than the memory that can be had.
type MemoryError struct{ Want, Available uint64 }

// Error says what to do.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("memory for blocks: %d bytes are wanted and %d available: give the store less", e.Want, e.Available)
}

// FullError refuses a reservation: no slot of the pool can be taken from anybody. The
// counts are of that moment.
type FullError struct {
	BlockBytes               uint64
	Slots                    int
	Pinned, Leased, Reserved int
}

// Error says who holds the slots.
func (e *FullError) Error() string {
	return fmt.Sprintf("no slot for a block of %d bytes can be freed: of %d, %d are pinned, %d leased and %d reserved", e.BlockBytes, e.Slots, e.Pinned, e.Leased, e.Reserved)
}

// FillingError refuses a second writer of a block.
type FillingError struct {
	// Done is closed when the writer has committed or given up.
	Done <-chan struct{}
}

// Error says what to do.
func (e *FillingError) Error() string { return "another writer fills the block: wait for it" }
