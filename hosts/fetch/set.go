package fetch

import (
	"encoding/binary"
	"math/bits"
)

// A set is an open-addressing table over the hashes of a hint: each slot holds the
// position of a hash plus one, 0 when free. At most half of the slots are taken. The
// hashes are the sender's to choose, so the place of a hash depends on a secret.
type secret struct{ xor, mul uint64 }

func (s secret) slot(h uint64, mask uint32) uint32 {
	hi, lo := bits.Mul64(h^s.xor, s.mul)
	return uint32(hi^lo) & mask
}

func hashAt(hashes []byte, i uint32) uint64 { return binary.LittleEndian.Uint64(hashes[8*i:]) }

// build fills slots, whose number is a power of two of at least twice as many as
// there are hashes, and returns how many hashes are distinct.
func (s secret) build(slots []uint32, hashes []byte) (distinct uint32) {
	clear(slots)
	mask := uint32(len(slots) - 1)
next:
	for i := uint32(0); i < uint32(len(hashes)/8); i++ {
		h := hashAt(hashes, i)
		at := s.slot(h, mask)
		for slots[at] != 0 {
			if hashAt(hashes, slots[at]-1) == h {
				continue next
			}
			at = (at + 1) & mask
		}
		slots[at] = i + 1
		distinct++
	}
	return distinct
}

func (s secret) has(slots []uint32, hashes []byte, h uint64) bool {
	mask := uint32(len(slots) - 1)
	for at := s.slot(h, mask); slots[at] != 0; at = (at + 1) & mask {
		if hashAt(hashes, slots[at]-1) == h {
			return true
		}
	}
	return false
}
