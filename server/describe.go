package server

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/store"
)

// Requests are told what blocks a request has; *store.Requests is one. Describe copies what
// it keeps, and is false when it keeps nothing.
type Requests interface {
	Describe(id hint.Identity, req store.Request) bool
}

// describe reads what follows the identity.
func (q *request) describe(r *reader) {
	q.head(r)
	q.tenant = r.str("the tenant", maxNamespace)
	q.namespace = r.str("the namespace", maxNamespace)
	q.blockSize = int(r.uint("the block size", math.MaxInt32))
	at := r.pos
	hashes, inline := r.body("the block hashes")
	if inline || len(hashes)%8 != 0 {
		r.fail(at, "the block hashes are bytes, 8 for each")
		return
	}
	q.body = hashes
}

// describe hands on what an engine says of a request.
func (c *conn) describe() {
	q := &c.q
	if c.server.cfg.Requests == nil {
		c.refuse(CodeUnavailable, noStore, 0)
		return
	}
	hashes := make([]uint64, len(q.body)/8)
	for i := range hashes {
		hashes[i] = binary.LittleEndian.Uint64(q.body[8*i:])
	}
	kept := c.server.cfg.Requests.Describe(q.identity, store.Request{Namespace: store.Namespace(q.tenant, q.namespace), BlockSize: q.blockSize, Hashes: hashes})
	if q.oneway() {
		return
	}
	b, at := beginFrame(c.out)
	c.out = endFrame(appendBool(beginReply(b, opDescribe, q.seq, replyLength[opDescribe]), kept), at)
}

// Description is what the daemon's block store has to know of a request, so that hints can
// speak of its tokens and its blocks.
type Description struct {
	Tenant, Namespace string
	BlockSize         int      // tokens of a block
	Hashes            []uint64 // of its full blocks, from the first token on
}

// Describe tells the daemon what blocks a request has, before its hints. It is false when
// that is not kept: the request has no id, or too many blocks.
func (c *Client) Describe(ctx context.Context, id hint.Identity, d Description) (kept bool, err error) {
	hashes := make([]byte, 0, 8*len(d.Hashes))
	for _, h := range d.Hashes {
		hashes = binary.LittleEndian.AppendUint64(hashes, h)
	}
	p, err := c.roundTrip(ctx, &request{op: opDescribe, identity: id, tenant: d.Tenant, namespace: d.Namespace, blockSize: d.BlockSize, body: hashes})
	return p.kept, err
}
