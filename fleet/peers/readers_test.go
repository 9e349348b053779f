package peers

import (
	"testing"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// TestReadersAreBounded: however many peers ask.
func TestReadersAreBounded(t *testing.T) {
	x := &Exchange{readers: newReaders(peer.Rules{{Peer: peer.Identity{UID: 3}, All: true}})}
	for uid := range uint32(200) {
		for range 2 {
			if may := x.readers.MayRead(peer.Identity{UID: uid}, nil); may != (uid == 3) {
				t.Fatalf("user %d may read: %v", uid, may)
			}
		}
	}
	got := x.Readers()
	if len(got) != maxReaders+1 || got[3] != (Reader{Peer: peer.Identity{UID: 3}, Requests: 2}) {
		t.Fatalf("%d readers, %+v", len(got), got[3])
	}
	if last := got[maxReaders]; last != (Reader{Others: true, Requests: 2 * (200 - maxReaders), Denied: 2 * (200 - maxReaders)}) {
		t.Errorf("%+v", last)
	}
	id := peer.Identity{UID: 3}
	if a := testing.AllocsPerRun(100, func() { x.readers.MayRead(id, nil) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
