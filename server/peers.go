package server

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/store"
)

// Fetcher carries out the hints of requests; *fetcher.Fetcher is one.
type Fetcher interface {
	Fetch(ctx context.Context, r *fetcher.Request, status []peer.Status) (fetcher.Result, error)
	FetchHint(ctx context.Context, r *fetcher.Request) (fetcher.Result, error)
	Stats() fetcher.Stats
}

// Outcomes tell what became of hints; *outcome.Ledger is one.
type Outcomes interface {
	Query(f outcome.Filter, limit int) []outcome.Outcome
	Subscribe(f outcome.Filter, buffer int) *outcome.Subscription
	Stats() outcome.Stats
}

const (
	// fetchTimeout bounds a fetch of a client, which may take several rounds.
	fetchTimeout = 10 * time.Second
	// maxOutcomes bounds one answer, so that it fits a frame.
	maxOutcomes = 1024
	// maxFetch bounds the blocks of one fetch.
	maxFetch = 1 << 16
)

const (
	noPeers = "this daemon exchanges no blocks: it has no peers in its configuration"
	noStore = "this daemon has no block store: it has no store.capacity in its configuration"
)

// readOutcomes reads what follows the identity.
func (q *request) readOutcomes(r *reader) {
	q.head(r)
	q.messageID = r.str("the message id", outcome.MaxMessageID)
	q.limit = int(r.uint("the limit", maxOutcomes))
}

func (q *request) readFetch(r *reader) {
	q.head(r)
	q.space(r)
	q.blockBytes = int(r.uint("the bytes of a block", peer.MaxBlock))
	at := r.pos
	hashes, inline := r.body("the block hashes")
	if inline || len(hashes)%8 != 0 || len(hashes)/8 > maxFetch {
		r.fail(at, "the block hashes are bytes, 8 for each, of %d blocks at most", maxFetch)
		return
	}
	q.body = hashes
}

// space reads whose blocks are meant.
func (q *request) space(r *reader) {
	q.tenant = r.str("the tenant", maxNamespace)
	q.namespace = r.str("the namespace", maxNamespace)
}

func (q *request) readBlock(r *reader) {
	q.readFlags(r)
	q.space(r)
	q.hash = r.uint("the hash", math.MaxUint64)
	if q.op == opPutBlock {
		at := r.pos
		block, inline := r.body("the block")
		if inline || len(block) == 0 {
			r.fail(at, "the block is bytes, at least one")
		}
		q.body = block
	}
}

// appendPeers writes what follows the flags in requests about blocks and outcomes.
func (q *request) appendPeers(b []byte) []byte {
	switch q.op {
	case opOutcomes, opFollow:
		b = appendUint(appendStr(q.appendIdentity(b), q.messageID), uint64(q.limit))
		if q.op == opFollow {
			b = appendUint(b, uint64(q.waitMS))
		}
		return b
	case opFetch:
		b = q.appendIdentity(b)
	}
	b = appendStr(appendStr(b, q.tenant), q.namespace)
	switch q.op {
	case opFetch:
		return appendBin(appendUint(b, uint64(q.blockBytes)), q.body)
	case opPutBlock:
		return appendBin(appendUint(b, q.hash), q.body)
	}
	return appendUint(b, q.hash)
}

// outcomes answers what became of hints, the latest first.
func (c *conn) outcomes() bool {
	q := &c.q
	if c.server.cfg.Outcomes == nil {
		c.refuse(CodeUnavailable, noPeers, 0)
		return true
	}
	f := outcome.Filter{MessageID: q.messageID}
	if q.identity.RequestID != "" {
		f.Identity = &q.identity
	}
	limit := q.limit
	if limit == 0 {
		limit = maxOutcomes
	}
	found := c.server.cfg.Outcomes.Query(f, limit)
	if q.oneway() {
		return true
	}
	b, at := beginFrame(c.out)
	c.out = endFrame(appendOutcomes(b, opOutcomes, q.seq, found), at)
	return c.chargeOut()
}

// fetch carries out the hint of a request: of the blocks that are named, or of all that
// it names.
func (c *conn) fetch() bool {
	q := &c.q
	if c.server.cfg.Fetcher == nil {
		c.refuse(CodeUnavailable, noPeers, 0)
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	r := fetcher.Request{Identity: q.identity, Tenant: q.tenant, Namespace: []byte(store.Namespace(q.tenant, q.namespace)), BlockBytes: q.blockBytes}
	var status []peer.Status
	var res fetcher.Result
	var err error
	if len(q.body) == 0 {
		res, err = c.server.cfg.Fetcher.FetchHint(ctx, &r)
	} else {
		for i := 0; i < len(q.body); i += 8 {
			r.Hashes = append(r.Hashes, binary.LittleEndian.Uint64(q.body[i:]))
		}
		status = make([]peer.Status, len(r.Hashes))
		res, err = c.server.cfg.Fetcher.Fetch(ctx, &r, status)
	}
	if q.oneway() {
		return true
	}
	why := ""
	if err != nil {
		why = err.Error()
		why = why[:min(len(why), maxErrorText)]
	}
	states := make([]byte, len(status))
	for i, st := range status {
		states[i] = byte(st)
	}
	c.out = appendFetchReply(c.out, q.seq, res, states, why)
	return c.chargeOut()
}

// block puts a block into the store, or gets one.
func (c *conn) block() bool {
	q, blocks := &c.q, c.server.cfg.Blocks
	if blocks == nil {
		c.refuse(CodeUnavailable, noStore, 0)
		return true
	}
	space := store.Namespace(q.tenant, q.namespace)
	if q.op == opPutBlock {
		stored, err := put(blocks, space, q.hash, q.body)
		if err != nil {
			c.refuse(CodeNotStored, err.Error(), 0)
		} else if !q.oneway() {
			b, at := beginFrame(c.out)
			c.out = endFrame(appendBool(beginReply(b, q.op, q.seq, replyLength[q.op]), stored), at)
		}
		return true
	}
	if q.oneway() {
		return true
	}
	b, at := beginFrame(c.out)
	b = beginReply(b, q.op, q.seq, replyLength[q.op])
	token, data, err := blocks.Acquire(space, q.hash)
	if err != nil {
		c.out = endFrame(appendNil(b), at)
		return true
	}
	defer blocks.Release(token)
	if len(data)+64 > c.in.limit {
		c.refuse(CodeReplyTooLarge, "the block is larger than a frame may be", 0)
		return true
	}
	c.out = endFrame(appendBin(b, data), at)
	return c.chargeOut()
}

// put is false for a block that is there already, or that somebody else brings.
func put(blocks Blocks, space string, hash uint64, data []byte) (stored bool, err error) {
	token, slot, err := blocks.Reserve(space, hash, len(data))
	var filling *store.FillingError
	if errors.Is(err, store.ErrExists) || errors.As(err, &filling) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	copy(slot, data)
	if err := blocks.Commit(token); err != nil {
		return false, errors.Join(err, blocks.Abort(token))
	}
	return true, nil
}
