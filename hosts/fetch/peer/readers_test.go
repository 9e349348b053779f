package peer

import "testing"

// TestReadersAreBounded: however many peers ask.
func TestReadersAreBounded(t *testing.T) {
	s := NewServer(ServerConfig{})
	for uid := range uint32(200) {
		for range 2 {
			c := s.readers.of(Identity{UID: uid})
			c.requests.Add(1)
			c.bytes.Add(uint64(uid))
		}
	}
	got := s.Readers()
	if len(got) != maxReaders+1 || got[3] != (Reader{Peer: Identity{UID: 3}, Requests: 2, Bytes: 6}) {
		t.Fatalf("%d readers, %+v", len(got), got[3])
	}
	bytes := uint64(0)
	for uid := uint64(maxReaders); uid < 200; uid++ {
		bytes += 2 * uid
	}
	if last := got[maxReaders]; last != (Reader{Others: true, Requests: 2 * (200 - maxReaders), Bytes: bytes}) {
		t.Errorf("%+v", last)
	}
}
