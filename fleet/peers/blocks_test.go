package peers_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/store"
)

// TestBlocks: what a store of one small slot says to the fetcher.
func TestBlocks(t *testing.T) {
	s, err := store.New(store.Config{Capacity: 4 << 10, BlockBytes: []uint64{4 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b, ns := peers.NewBlocks(s), []byte(space)
	_, err = b.Reserve(ns, 1, 4<<10+1)
	if !errors.Is(err, peer.ErrNoRoom) || fetcher.ReasonOf(err) != abi.ReasonLimitExceeded {
		t.Errorf("a block that fits no slot: %v", err)
	}
	slot, err := b.Reserve(ns, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	where := func(blockBytes int) []fetcher.Place {
		out := make([]fetcher.Place, 2)
		b.Where(ns, []uint64{1, 2}, blockBytes, out)
		return out
	}
	if got := where(100); !slices.Equal(got, []fetcher.Place{fetcher.Filling, fetcher.Missing}) {
		t.Errorf("while it is filled: %v", got)
	}
	if _, err := b.Reserve(ns, 2, 100); !errors.Is(err, peer.ErrNoRoom) || fetcher.ReasonOf(err) != abi.ReasonLimitExceeded {
		t.Errorf("without a free slot: %v", err)
	}
	if !b.Commit(slot, peer.Checksum(slot.Data)) {
		t.Fatal("not kept")
	}
	for blockBytes, want := range map[int]fetcher.Place{0: fetcher.Ready, 100: fetcher.Ready, 99: fetcher.Unfit} {
		if got := where(blockBytes); !slices.Equal(got, []fetcher.Place{want, fetcher.Missing}) {
			t.Errorf("%d bytes: %v", blockBytes, got)
		}
	}
}
