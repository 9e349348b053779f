package kvevents

import (
	"math"

	"github.com/kvrt/kvrt/hosts/session"
)

// Kind says what an event tells.
type Kind uint8

const (
	BlockStored Kind = iota + 1
	BlockRemoved
	AllBlocksCleared
)

func (k Kind) String() string {
	switch k {
	case BlockStored:
		return "BlockStored"
	case BlockRemoved:
		return "BlockRemoved"
	case AllBlocksCleared:
		return "AllBlocksCleared"
	}
	return "invalid"
}

// tierOf reads a medium, whose spelling is that of vLLM, SGLang or TensorRT-LLM.
// Publishers older than the field had GPU memory alone.
func tierOf(medium []byte) session.Tier {
	switch string(medium) {
	case "":
		return session.TierAbsent
	case "GPU", "gpu", "HBM":
		return session.TierGPU
	case "CPU", "cpu", "CPU_PINNED", "CPU_TIER1", "DRAM":
		return session.TierHost
	case "CPU_TIER2", "DISK", "NVME", "STORAGE":
		return session.TierDisk
	case "EXTERNAL", "NETWORK", "REMOTE", "SHARED":
		return session.TierExternal
	}
	return session.TierOther
}

// Rank is a data-parallel rank. NoRank, not 0, is what a batch has that names none.
type Rank int32

const NoRank Rank = -1

// NoGroup is the cache group of an event that names none.
const NoGroup int32 = -1

// A Batch is what one message carries. It belongs to its Decoder and is overwritten
// by the next call; its texts lie in the bytes that were decoded.
type Batch struct {
	Time   float64 // seconds since 1970 on the publisher's clock, 0 when it gave none
	Rank   Rank
	Events []Event

	Unknown   int // events that were passed over: no tag, or one that is not known
	Malformed int // events that were passed over: a known tag, but not its fields
	// Lossy says that one of the malformed events was a removal, so that what was
	// known before may be wrong.
	Lossy bool
}

// An Event is one entry of a batch. What a kind has no use for is zero.
type Event struct {
	Kind Kind
	// Tier is what Medium says; a block whose locality is REMOTE is external.
	Tier session.Tier

	HasParent bool
	Parent    uint64
	// Hashes are the blocks' hashes as 64 bits, parents before children. A hash
	// that came signed keeps its bits. One that came as bytes is the low 64 bits
	// of the number that they spell, most significant byte first: the last eight
	// bytes of a SHA-256, as vLLM shortens it itself. Hashes of different
	// serving engines must not be compared.
	Hashes []uint64

	BlockSize uint32 // tokens a block
	Tokens    uint32 // length of token_ids
	Eagle     bool   // token_ids are pairs

	Group         int32 // cache group, or NoGroup
	SpecKind      []byte
	SlidingWindow uint32 // tokens, 0 when there is none

	Medium    []byte
	Locality  []byte
	SessionID []byte
	LoraName  []byte
	CacheSalt []byte
}

// FullAttention reports whether the event's own fields say that its blocks are read by
// every later token: such blocks make up a prefix. An event that names no
// kind is of a model with one.
func (e *Event) FullAttention() bool {
	switch string(e.SpecKind) {
	case "":
		return e.SlidingWindow == 0
	case "full_attention", "mla_attention", "sink_full_attention":
		return true
	}
	return false
}

func clampU32(v uint64) uint32 { return uint32(min(v, math.MaxUint32)) }
