package tier

import (
	"errors"
	"fmt"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/gpu"
)

// Reader is where blocks come from, under leases. store.Store is one.
type Reader interface {
	// Acquire leases a published block, whose memory is registered with the device.
	Acquire(namespace string, hash uint64) (token uint64, block []byte, err error)
	Release(token uint64) error
	// Residency tells where blocks are, and returns how many are published.
	Residency(namespace string, hashes []uint64, out []abi.Residency) (published int)
}

// Writer is where blocks go, under reservations.
type Writer interface {
	// Reserve takes a place, whose memory is registered with the device.
	Reserve(namespace string, hash uint64, size int) (token uint64, block []byte, err error)
	Commit(token uint64) error
	Abort(token uint64) error
	// Transfer keeps the place of a reservation from everybody else, after its end too.
	Transfer(token uint64) (transfer uint64, err error)
}

// Blocks is a block store.
type Blocks interface {
	Reader
	Writer
}

// Config configures a Tier. Device, Blocks and Capacity have to be set.
type Config struct {
	Device *gpu.Device
	Blocks Blocks

	// Capacity is the memory on the device in bytes. It is taken at once.
	Capacity uint64
	// BlockBytes is the size of a slot, rounded up to 256. Default: 1 MiB.
	BlockBytes uint64

	Batch int // blocks of one batch; default 128
	Depth int // batches in flight each way, at most as many as a queue of the device takes; default 16
	// Queued is how many blocks may wait in prefetches, half of them of one namespace;
	// default 65,536. Requests is how many prefetches may; default 1,024.
	Queued, Requests int
	// Patience is from when a prefetch is asked for until it is given up; default 1 s.
	Patience time.Duration
	// Now is a monotonic clock in ns.
	Now func() int64
}

const (
	slotAlign = 256
	maxSlots  = 1 << 24
)

func (c Config) withDefaults() (Config, error) {
	for _, v := range []struct {
		at  *int
		def int
	}{{&c.Batch, 128}, {&c.Depth, 16}, {&c.Queued, 1 << 16}, {&c.Requests, 1 << 10}} {
		if *v.at <= 0 {
			*v.at = v.def
		}
	}
	if c.BlockBytes == 0 {
		c.BlockBytes = 1 << 20
	}
	if c.Patience <= 0 {
		c.Patience = time.Second
	}
	if c.Now == nil {
		start := time.Now()
		c.Now = func() int64 { return int64(time.Since(start)) }
	}
	c.BlockBytes = (c.BlockBytes + slotAlign - 1) &^ (slotAlign - 1)
	switch n := c.Capacity / c.BlockBytes; {
	case n == 0:
		return c, fmt.Errorf("%d bytes have no room for a block of %d bytes: give the device's blocks more memory, or make them smaller", c.Capacity, c.BlockBytes)
	case n > maxSlots:
		return c, fmt.Errorf("%d bytes in blocks of %d are more than %d blocks: make them larger", c.Capacity, c.BlockBytes, maxSlots)
	}
	return c, nil
}

// What the calls of a Tier refuse.
var (
	// ErrClosed: the tier was closed.
	ErrClosed = errors.New("the device's blocks are closed")
	// ErrBusy: as many prefetches wait as may. Nothing was queued.
	ErrBusy = errors.New("as many prefetches wait as may")
	// ErrNotFound: the block is not on the device.
	ErrNotFound = errors.New("the block is not on the device")
	// ErrLease: the lease has ended.
	ErrLease = errors.New("the lease of a block on the device has ended")
)

// Status is what became of one block of a list.
type Status uint8

// Statuses.
const (
	Failed  Status = iota // the copy failed, was never begun, or has not ended yet
	Copied                // by this call
	Present               // it was there before
	Coming                // somebody else is bringing it
	Missing               // it is not where it was to come from, or has another length there
	NoRoom                // no slot can be freed for it, or it is longer than one
)

// String is the status's name.
func (s Status) String() string {
	return [...]string{"failed", "copied", "present", "coming", "missing", "no_room", "unknown"}[min(s, 6)]
}

// Result counts the blocks of a call by what became of them.
type Result struct {
	Copied, Present, Coming, Missing, NoRoom, Failed int
	Bytes                                            uint64 // of those copied
}

func (r *Result) add(s Status) {
	switch s {
	case Copied:
		r.Copied++
	case Present:
		r.Present++
	case Coming:
		r.Coming++
	case Missing:
		r.Missing++
	case NoRoom:
		r.NoRoom++
	}
}

func (r *Result) settled() int { return r.Copied + r.Present + r.Coming + r.Missing + r.NoRoom }
