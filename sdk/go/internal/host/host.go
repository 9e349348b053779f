// Package host is the host functions: the imports of the module in a guest, and a host
// that a test sets elsewhere. What a guest does not use is not imported, and needs no
// grant.
package host

import (
	"encoding/binary"

	"github.com/kvrt/kvrt/abi"
)

// HintStatus is how the hint of a request stands.
type HintStatus struct {
	State              abi.FetchState
	Hashes             uint32 // distinct blocks of the live hint
	Submitted, Expires uint64 // Unix ns
	HasSource          bool   // false: local storage only
}

// Claim is what a run of blocks, or of the request's tokens, is worth.
type Claim struct {
	From, To  uint32 // To is the one after the last; ToEnd: to the end
	Priority  uint32 // at most 100; 0 takes the scope's claim back
	TTLMillis uint64 // 0: for as long as the store has the block
}

// ToEnd, as Claim.To, is the end of the list, or of the request.
const ToEnd = 1<<32 - 1

// AppendClaims appends claims as kvrt_store.retain reads them.
func AppendClaims(b []byte, claims []Claim) []byte {
	for _, c := range claims {
		at := len(b)
		b = append(b, make([]byte, abi.SizeStoreClaim)...)
		put := func(off int, v uint32) { binary.LittleEndian.PutUint32(b[at+off:], v) }
		put(abi.OffStoreClaimFrom, c.From)
		put(abi.OffStoreClaimTo, c.To)
		put(abi.OffStoreClaimPriority, c.Priority)
		binary.LittleEndian.PutUint64(b[at+abi.OffStoreClaimTTLMs:], c.TTLMillis)
	}
	return b
}

// DeviceMemory describes the device's memory for blocks.
type DeviceMemory struct {
	Device     abi.Device
	BlockBytes uint64 // a longer block is not brought
	Blocks     uint64 // that there is room for
	Used       uint64 // blocks that are there now
}
