package server

import "github.com/kvrt/kvrt/hosts/store"

// Blocks is the block store, as far as the server speaks to it; *store.Store is one.
type Blocks interface {
	Stats() store.Stats
	Reserve(namespace string, hash uint64, size int) (token uint64, slot []byte, err error)
	Commit(token uint64) error
	Abort(token uint64) error
	Acquire(namespace string, hash uint64) (token uint64, block []byte, err error)
	Release(token uint64) error
}

// BlocksStatus is the block store.
type BlocksStatus struct {
	Capacity   uint64       `json:"capacity"` // bytes
	Used       uint64       `json:"used"`     // bytes of the slots that are not free
	Blocks     int          `json:"blocks"`   // that can be read
	Backing    string       `json:"backing"`  // what the memory is
	Namespaces int          `json:"namespaces"`
	Claims     int          `json:"claims"`
	Pools      []PoolStatus `json:"pools"`
	Hits       uint64       `json:"hits"`
	Misses     uint64       `json:"misses"`
	Leases     int          `json:"leases"`    // reservations, pins and transfers too
	Displaced  uint64       `json:"displaced"` // blocks that yielded to others
	Evicted    uint64       `json:"evicted"`   // blocks that were evicted because a hint asked
}

// PoolStatus is the slots of one size.
type PoolStatus struct {
	BlockBytes uint64 `json:"block_bytes"`
	Slots      int    `json:"slots"`
	Free       int    `json:"free"`
	Published  int    `json:"published"`
	Pinned     int    `json:"pinned"` // of the published ones
	Leased     int    `json:"leased"` // of the published ones that are not pinned
	Filling    int    `json:"filling"`
	Waiting    int    `json:"waiting"` // of blocks that are gone, for the last to use them
}

// blocksStatus is nil without a block store.
func blocksStatus(b Blocks) *BlocksStatus {
	if b == nil {
		return nil
	}
	s := b.Stats()
	st := &BlocksStatus{
		Capacity: s.Capacity, Backing: s.Backing, Namespaces: s.Namespaces, Claims: s.Claims,
		Leases: s.Tokens, Hits: s.Hits, Misses: s.Misses, Displaced: s.Displaced, Evicted: s.Evicted,
	}
	for _, p := range s.Pools {
		st.Used += p.BlockBytes * uint64(p.Slots-p.Free)
		st.Blocks += p.Published
		st.Pools = append(st.Pools, PoolStatus{p.BlockBytes, p.Slots, p.Free, p.Published, p.Pinned, p.Leased, p.Filling, p.Waiting})
	}
	return st
}
