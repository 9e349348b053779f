package session

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Op is what an Event says happened.
type Op uint8

// The operations. Their rules stand with the methods of Index that carry them out.
const (
	OpNone    Op = iota
	OpMatched    // a request of a session was routed to a worker that holds its prefix
	OpStored     // a worker stored a chain of blocks for a session
	OpRemoved    // a worker no longer holds some blocks
	OpCleared    // a worker rank no longer holds any block
)

// Tier is where the blocks of an event lie. Only the GPU tier moves frontiers.
type Tier uint8

// The tiers. A serving engine that names none means the GPU: engines that know other
// tiers name them.
const (
	TierAbsent Tier = iota
	TierGPU
	TierHost
	TierDisk
	TierExternal
	TierOther // a name that is not known
)

// Group is the KV cache group of an event's blocks. Only full attention moves
// frontiers: a sliding window drops blocks that the chain still needs.
type Group uint8

// The groups. An engine with one group names none.
const (
	GroupAbsent Group = iota
	GroupFull         // full attention
	GroupOther        // sliding window, Mamba, ... or not known
)

// Event is one canonical KV event. An [Index] keeps nothing of it beyond the call, so
// its strings and hashes may be views of a buffer that is used again.
type Event struct {
	Op     Op
	Worker hint.Worker
	Tier   Tier
	Group  Group
	Kind   abi.HashKind // of Parent and Hashes; Absent is taken for the index's own

	// Session is the session that the blocks belong to. A match needs one; of OpStored
	// without one nothing is kept, and the others ignore it.
	Session string
	// Tenant is who owns the session. The first event that tells it binds the session
	// to it; "" leaves the owner as it is.
	Tenant string

	// Parent is the block that Hashes[0] follows, when HasParent.
	Parent    uint64
	HasParent bool
	// Hashes are, of OpStored, a chain, each the parent of the next; of OpMatched the
	// matched blocks, of which the last counts, or none, which says that the session is
	// used and whose it is; of OpRemoved, blocks in any order.
	Hashes []uint64
}
