package peers

import (
	"cmp"
	"slices"
	"sync"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// Reader is what one peer has asked for.
type Reader struct {
	Peer     peer.Identity // as its transport found out
	Others   bool          // all that are not counted apart, instead of Peer
	Requests uint64
	Denied   uint64 // of them: for a namespace that the peer may not read
}

// maxReaders bounds the peers that are counted apart: the first that ask.
const maxReaders = 64

// readers counts requests by peer on the way to who judges them.
type readers struct {
	peer.Authorizer

	mu     sync.Mutex
	known  map[peer.Identity]*Reader
	others Reader
}

func newReaders(auth peer.Authorizer) *readers {
	return &readers{Authorizer: auth, known: map[peer.Identity]*Reader{}, others: Reader{Others: true}}
}

// MayRead is called once for each request.
func (r *readers) MayRead(id peer.Identity, namespace []byte) bool {
	may := r.Authorizer.MayRead(id, namespace)
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.known[id]
	if x == nil {
		x = &r.others
		if len(r.known) < maxReaders {
			x = &Reader{Peer: id}
			r.known[id] = x
		}
	}
	x.Requests++
	if !may {
		x.Denied++
	}
	return may
}

// Readers tells which peers have asked for blocks, by name, and of those that are not
// counted apart last.
func (x *Exchange) Readers() []Reader {
	r := x.readers
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Reader, 0, len(r.known)+1)
	for _, k := range r.known {
		out = append(out, *k)
	}
	slices.SortFunc(out, func(a, b Reader) int {
		return cmp.Or(cmp.Compare(a.Peer.Name, b.Peer.Name), cmp.Compare(a.Peer.UID, b.Peer.UID))
	})
	return append(out, r.others)
}
