package peers

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/store"
)

// Blocks is a block store as peers see it: a [peer.Source], and a [fetcher.Local].
type Blocks struct{ store *store.Store }

// NewBlocks wraps a store.
func NewBlocks(s *store.Store) *Blocks { return &Blocks{s} }

var (
	_ peer.Source   = (*Blocks)(nil)
	_ fetcher.Local = (*Blocks)(nil)
)

// view is b as a string, for a call that keeps nothing of it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Lease pins a prefix. A block without a checksum of its own gets one for the answer.
func (b *Blocks) Lease(namespace []byte, hashes []uint64, maxBytes int64, l *peer.Lease) {
	l.Blocks, l.Refs, l.Full = l.Blocks[:0], l.Refs[:0], false
	for _, h := range hashes {
		token, data, err := b.store.Acquire(view(namespace), h)
		if err != nil {
			return
		}
		info, err := b.store.Describe(token)
		if maxBytes -= int64(len(data)); err != nil || maxBytes < 0 {
			l.Full = maxBytes < 0
			b.end(token)
			return
		}
		if !info.HasSum {
			info.Sum = peer.Checksum(data)
		}
		l.Refs = append(l.Refs, token)
		l.Blocks = append(l.Blocks, peer.Block{Hash: h, Generation: info.Generation, CRC: info.Sum, Data: data, Offset: info.Offset})
	}
}

// Release ends a lease.
func (b *Blocks) Release(l *peer.Lease) {
	for _, token := range l.Refs {
		b.end(token)
	}
	l.Blocks, l.Refs = l.Blocks[:0], l.Refs[:0]
}

// end releases a token that this type took. That it is unknown would be a fault of this
// program, and blocks would be served that nothing holds.
func (b *Blocks) end(token uint64) {
	if err := b.store.Release(token); err != nil {
		panic(fmt.Errorf("release a lease of a peer: %w", err))
	}
}

// Current is the generation of a leased block's slot.
func (b *Blocks) Current(l *peer.Lease, i int) uint64 {
	info, err := b.store.Describe(l.Refs[i])
	if err != nil {
		return 0 // which no published block has
	}
	return info.Generation
}

// Slab is the store's file.
func (b *Blocks) Slab() (peer.Slab, bool) {
	f, err := b.store.File()
	if err != nil {
		return peer.Slab{}, false
	}
	st, err := f.Stat()
	if err != nil {
		return peer.Slab{}, false
	}
	return peer.Slab{FD: f.Fd(), Size: st.Size()}, true
}

// Reserve takes a slot. A block that somebody else is bringing counts as present.
func (b *Blocks) Reserve(namespace []byte, hash uint64, size int) (peer.Slot, error) {
	token, data, err := b.store.Reserve(strings.Clone(view(namespace)), hash, size)
	var filling *store.FillingError
	var full *store.FullError
	switch {
	case err == nil:
		return peer.Slot{Data: data, Ref: token}, nil
	case errors.Is(err, store.ErrExists), errors.As(err, &filling):
		return peer.Slot{}, peer.ErrPresent
	case errors.As(err, &full):
		return peer.Slot{}, fmt.Errorf("%w: %w", peer.ErrNoRoom, err)
	case errors.Is(err, store.ErrTooLarge):
		return peer.Slot{}, fmt.Errorf("%w: it has %d bytes: %w", peer.ErrNoRoom, size, err)
	}
	return peer.Slot{}, err
}

// Commit publishes a block whose checksum was found right. While a device still writes
// into it, which nobody asks it to, it is not kept.
func (b *Blocks) Commit(s peer.Slot, crc uint32) bool {
	if err := b.store.CommitSummed(s.Ref, crc); err != nil {
		b.Abort(s)
		return false
	}
	return true
}

// Abort gives a slot back.
func (b *Blocks) Abort(s peer.Slot) {
	if err := b.store.Abort(s.Ref); err != nil && !errors.Is(err, store.ErrToken) {
		panic(fmt.Errorf("give back a slot of a peer: %w", err))
	}
}

// Where tells how blocks stand.
func (b *Blocks) Where(namespace []byte, hashes []uint64, blockBytes int, out []fetcher.Place) {
	var lengths []int
	if blockBytes > 0 {
		lengths = make([]int, len(hashes))
		b.store.Lengths(view(namespace), hashes, lengths)
	}
	found := make([]abi.Residency, len(hashes))
	b.store.Residency(view(namespace), hashes, found)
	for i, r := range found {
		switch r {
		case abi.ResidencyDRAM:
			out[i] = fetcher.Ready
			if blockBytes > 0 && lengths[i] > 0 && lengths[i] != blockBytes {
				out[i] = fetcher.Unfit
			}
		case abi.ResidencyFilling:
			out[i] = fetcher.Filling
		default:
			out[i] = fetcher.Missing
		}
	}
}
