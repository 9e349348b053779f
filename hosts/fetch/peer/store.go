package peer

import "errors"

// A Block is a block of a source's store, under a lease.
type Block struct {
	Hash       uint64
	Generation uint64 // of its slot
	CRC        uint32 // CRC32C of Data, as it was when the block was committed
	Data       []byte
	Offset     int64 // of Data in the slab; read only when the store has one
}

// A Lease is a run of blocks that stay as they are until Release. Blocks is reused
// memory: a holder does not keep it.
type Lease struct {
	Blocks []Block
	Refs   []uint64 // the store's own
	Full   bool     // Lease stopped at maxBytes, not at a block that is missing
}

// Source is the store that a [Server] serves from.
type Source interface {
	// Lease pins the blocks of the longest prefix of hashes that the namespace has, no
	// more than maxBytes of them, and fills l, whose slices it may reuse. An empty prefix needs no Release.
	Lease(namespace []byte, hashes []uint64, maxBytes int64, l *Lease)
	// Release ends a lease. It is called once for each that is not empty.
	Release(l *Lease)
	// Current is the generation of a leased block's slot now. It differs from that in
	// the lease only if the store broke its promise.
	Current(l *Lease, i int) uint64
	// Slab is the file that all blocks lie in, which must be sealed against any change
	// of its size; false if there is none, or none to share.
	Slab() (Slab, bool)
}

// Slab is shared memory. Whoever maps it can read all of it.
type Slab struct {
	FD   uintptr
	Size int64
}

// A Slot is memory reserved for a block that is not there yet.
type Slot struct {
	Data []byte
	Ref  uint64 // the store's own
}

// What [Sink.Reserve] answers. ErrPresent: the block is there already.
var (
	ErrPresent = errors.New("the block is in the store already")
	ErrNoRoom  = errors.New("the store has no room for the block")
)

// Sink is the store that a [Client] fills. A slot is written by one goroutine, from
// Reserve to exactly one Commit or Abort.
type Sink interface {
	// Reserve takes memory of size bytes. No lookup sees the block before Commit.
	Reserve(namespace []byte, hash uint64, size int) (Slot, error)
	// Commit makes the block visible. crc is the CRC32C of the slot's bytes. False: the
	// store did not keep it.
	Commit(s Slot, crc uint32) bool
	// Abort gives the memory back.
	Abort(s Slot)
}
