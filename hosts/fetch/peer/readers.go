package peer

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Reader is what one peer has asked for and was served, over all its links.
type Reader struct {
	Peer     Identity // as its transport found out
	Others   bool     // all that are not counted apart, instead of Peer
	Requests uint64
	Denied   uint64 // of them: for a namespace that the peer may not read
	Blocks   uint64 // served
	Bytes    uint64 // of them
}

// maxReaders bounds the peers that are counted apart: the first that ask.
const maxReaders = 64

// readers counts by peer.
type readers struct {
	mu     sync.Mutex
	known  map[Identity]*readerCounters
	others readerCounters
}

type readerCounters struct{ requests, denied, blocks, bytes atomic.Uint64 }

// of is where a peer that asks is counted, from now on.
func (r *readers) of(id Identity) *readerCounters {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.known[id]
	if c == nil {
		if len(r.known) >= maxReaders {
			return &r.others
		}
		if r.known == nil {
			r.known = map[Identity]*readerCounters{}
		}
		c = &readerCounters{}
		r.known[id] = c
	}
	return c
}

func (c *readerCounters) read(r Reader) Reader {
	r.Requests, r.Denied, r.Blocks, r.Bytes = c.requests.Load(), c.denied.Load(), c.blocks.Load(), c.bytes.Load()
	return r
}

// Readers tells which peers have asked for blocks, by name, and of those that are not
// counted apart last.
func (s *Server) Readers() []Reader {
	r := &s.readers
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Reader, 0, len(r.known)+1)
	for id, c := range r.known {
		out = append(out, c.read(Reader{Peer: id}))
	}
	slices.SortFunc(out, func(a, b Reader) int {
		return cmp.Or(cmp.Compare(a.Peer.Name, b.Peer.Name), cmp.Compare(a.Peer.UID, b.Peer.UID))
	})
	return append(out, r.others.read(Reader{Others: true}))
}
