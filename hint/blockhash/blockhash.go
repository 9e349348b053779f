// Package blockhash computes the hashes that Dynamo's routers give to blocks of a
// prompt, so that a policy or a test can name blocks that an engine has not told of.
//
// A local hash is XXH3-64 over the tokens of one full block, each as a u32 in little
// endian, under a seed that the adapter and the namespace of the request change. A
// sequence hash chains the local hashes of a block and all before it. Both are what a
// router computes; the hashes that an engine puts in its events are its own, and the
// kinds are never compared with each other.
//
// Tests compare local hashes with Dynamo's own library (scripts/dynamo.sh) and both kinds
// with the xxhash package.
package blockhash

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"
)

// Seed is the seed of a request without adapter and namespace, and that of the chain of
// sequence hashes.
const Seed = 1337

// Hasher hashes the prompts of requests that share its fields. It keeps a buffer, so it
// serves one goroutine at a time.
type Hasher struct {
	BlockSize int    // tokens in a block; 0 or less: there are no blocks
	LoRA      string // name of the adapter; "" is none
	Namespace string // cache salt, or the namespace of the request; "" is none

	// Eagle is for engines that draft with EAGLE: a block is hashed together with the
	// first token after it, and is full only with that one.
	Eagle bool

	buf []byte
}

// Seed is the seed of local hashes.
func (h *Hasher) Seed() uint64 {
	seed := uint64(Seed)
	if h.LoRA != "" {
		seed += xxh3.HashString(h.LoRA)
	}
	if h.Namespace != "" {
		seed += xxh3.HashStringSeed(h.Namespace, 1)
	}
	return seed
}

// Blocks is how many blocks n tokens fill.
func (h *Hasher) Blocks(n int) int {
	if h.Eagle {
		n--
	}
	if h.BlockSize <= 0 || n <= 0 {
		return 0
	}
	return n / h.BlockSize
}

// AppendLocal appends the local hash of each full block of a prompt. images[i] are the
// hashes of the multimodal objects in block i, in any order; images may be shorter than
// there are blocks, or nil.
func (h *Hasher) AppendLocal(dst []uint64, tokens []uint32, images [][]uint64) []uint64 {
	seed, window := h.Seed(), h.BlockSize
	if h.Eagle {
		window++
	}
	dst = slices.Grow(dst, h.Blocks(len(tokens)))
	for i := range h.Blocks(len(tokens)) {
		from := i * h.BlockSize
		buf := h.buf[:0]
		for _, t := range tokens[from : from+window] {
			buf = binary.LittleEndian.AppendUint32(buf, t)
		}
		if i < len(images) && len(images[i]) > 0 {
			tail := len(buf)
			for _, v := range images[i] {
				buf = binary.LittleEndian.AppendUint64(buf, v)
			}
			if len(images[i]) > 1 {
				sortWords(buf[tail:])
			}
		}
		h.buf = buf
		dst = append(dst, xxh3.HashSeed(buf, seed))
	}
	return dst
}

// sortWords sorts u64s in place, by insertion: a block has a handful of objects.
func sortWords(b []byte) {
	for i := 8; i < len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		j := i
		for ; j > 0 && binary.LittleEndian.Uint64(b[j-8:]) > v; j -= 8 {
			copy(b[j:j+8], b[j-8:j])
		}
		binary.LittleEndian.PutUint64(b[j:], v)
	}
}

// AppendSequence appends the sequence hash of each block, given their local hashes from
// the first block of the prompt on.
func AppendSequence(dst, local []uint64) []uint64 {
	var prev uint64
	for i, v := range local {
		if i == 0 {
			prev = v
		} else {
			prev = Next(prev, v)
		}
		dst = append(dst, prev)
	}
	return dst
}

// Next is the sequence hash of a block, given that of the block before it and its own
// local hash. The first block's is its local hash.
func Next(prev, local uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], prev)
	binary.LittleEndian.PutUint64(b[8:], local)
	return xxh3.HashSeed(b[:], Seed)
}

// FromSigned is the hash that an engine sent as a signed integer: the same 64 bits.
func FromSigned(v int64) uint64 { return uint64(v) }

// ToSigned is FromSigned back.
func ToSigned(v uint64) int64 { return int64(v) }

// Object is the hash of a multimodal object by its identifier: the first 16 digits of
// one that is 64 hexadecimal digits, such as a SHA-256, else XXH3-64 of its text. Of all
// that is here only this has no counterpart in Dynamo's library to compare with.
func Object(id string) uint64 {
	if len(id) == 64 && isHex(id) {
		v, _ := strconv.ParseUint(id[:16], 16, 64) // 16 digits fit
		return v
	}
	return xxh3.HashString(id)
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if c-'0' > 9 && c|0x20-'a' > 5 {
			return false
		}
	}
	return true
}
