// Package staging takes blocks that were fetched from peers on to a device, and has blocks
// that only the device still has brought back before a peer is asked for them.
package staging

import (
	"context"
	"fmt"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/tier"
)

// Device keeps copies of the blocks of a store; *tier.Tier is one.
type Device interface {
	Prefetch(namespace string, hashes []uint64) error
	Save(ctx context.Context, namespace string, hashes []uint64, statuses []tier.Status) (tier.Result, error)
}

// Source fetches blocks into the store; *fetcher.Fetcher is one.
type Source interface {
	Fetch(ctx context.Context, r *fetcher.Request, status []peer.Status) (fetcher.Result, error)
	FetchHint(ctx context.Context, r *fetcher.Request) (fetcher.Result, error)
	Stats() fetcher.Stats
}

// Hints tells what the hint of a request names; *fetch.Store does.
type Hints interface {
	AppendHashes(dst []uint64, id hint.Identity) []uint64
}

// Fetcher is a Source whose blocks go on to the device.
//
// A fetch is over when the blocks are in the store, and its result says nothing of the
// device: what becomes of blocks there is in the tier's own counters.
type Fetcher struct {
	Source
	Device Device
	Hints  Hints
}

// Fetch fetches as the source does.
func (f *Fetcher) Fetch(ctx context.Context, r *fetcher.Request, status []peer.Status) (fetcher.Result, error) {
	namespace := string(r.Namespace)
	f.back(ctx, namespace, r.Hashes)
	res, err := f.Source.Fetch(ctx, r, status)
	if res.Here+res.Fetched > 0 {
		f.on(namespace, r.Hashes)
	}
	return res, err
}

// FetchHint fetches as the source does.
func (f *Fetcher) FetchHint(ctx context.Context, r *fetcher.Request) (fetcher.Result, error) {
	namespace, hashes := string(r.Namespace), f.Hints.AppendHashes(nil, r.Identity)
	f.back(ctx, namespace, hashes)
	res, err := f.Source.FetchHint(ctx, r)
	if res.Here+res.Fetched > 0 {
		f.on(namespace, hashes)
	}
	return res, err
}

// back brings back what only the device has. What does not come is fetched.
func (f *Fetcher) back(ctx context.Context, namespace string, hashes []uint64) {
	_, _ = f.Device.Save(ctx, namespace, hashes, nil)
}

// on brings to the device what is here; it counts what it refuses.
func (f *Fetcher) on(namespace string, hashes []uint64) { _ = f.Device.Prefetch(namespace, hashes) }

// Slots is where fetcher.Deliver brings blocks that are to lie in the tier's own memory.
type Slots struct {
	Tier      *tier.Tier
	Namespace string
}

// Memory is where fetcher.Deliver brings blocks that have places in memory of the program,
// such as the KV tensors of a serving engine in this process, which it has registered
// with the tier's device: block i of the request goes to Places[i]. After is what still
// reads or writes there.
type Memory struct {
	Tier      *tier.Tier
	Namespace string
	Places    []tier.Place
	After     gpu.After
}

var (
	_ fetcher.Destination = Slots{}
	_ fetcher.Destination = Memory{}
)

// Deliver brings blocks to the device. It does not return before they are there but when
// the context ends; the tier has leases of its own then.
func (s Slots) Deliver(ctx context.Context, blocks []peer.Block) error {
	hashes := make([]uint64, len(blocks))
	for i := range blocks {
		hashes[i] = blocks[i].Hash
	}
	res, err := s.Tier.Load(ctx, s.Namespace, hashes, nil)
	return complete(res, res.Copied+res.Present, err)
}

// Deliver brings blocks to their places, as Slots does.
func (m Memory) Deliver(ctx context.Context, blocks []peer.Block) error {
	if len(blocks) > len(m.Places) {
		return fmt.Errorf("%d blocks and %d places for them: %w", len(blocks), len(m.Places), gpu.ErrRange)
	}
	for i := range blocks {
		if blocks[i].Hash != m.Places[i].Hash {
			return fmt.Errorf("place %d is for another block: %w", i, gpu.ErrRange)
		}
	}
	res, err := m.Tier.Deliver(ctx, m.Namespace, m.Places[:len(blocks)], m.After, nil)
	return complete(res, res.Copied, err)
}

// complete makes an error of blocks that are not where they were to go.
func complete(r tier.Result, there int, err error) error {
	if all := r.Copied + r.Present + r.Coming + r.Missing + r.NoRoom + r.Failed; err == nil && there < all {
		return fmt.Errorf("%d of %d blocks are on the device: %d on their way, %d missing, %d without room", there, all, r.Coming, r.Missing, r.NoRoom)
	}
	return err
}
