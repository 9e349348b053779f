package server

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// outcomeLength is the number of elements of a row of outcomes.
const outcomeLength = 14

// appendOutcomes begins a reply that has outcomes.
func appendOutcomes(b []byte, o op, seq uint64, found []outcome.Outcome) []byte {
	b = appendArray32(beginReply(b, o, seq, replyLength[o]), len(found))
	for i := range found {
		b = appendOutcome(b, &found[i])
	}
	return b
}

func appendFetchReply(b []byte, seq uint64, res fetcher.Result, states []byte, why string) []byte {
	b, at := beginFrame(b)
	b = beginReply(b, opFetch, seq, replyLength[opFetch])
	b = appendUint(appendUint(appendUint(b, uint64(res.Here)), uint64(res.Fetched)), uint64(res.Bytes))
	return endFrame(appendText(appendBin(b, states), []byte(why)), at)
}

func appendOutcome(b []byte, o *outcome.Outcome) []byte {
	id := &o.Identity
	b = appendStr(appendArray(b, outcomeLength), id.Engine)
	b = appendUint(appendUint(appendUint(b, uint64(id.DPRank)), uint64(id.Leg)), uint64(id.Attempt))
	b = appendText(appendStr(b, id.RequestID), []byte(o.MessageID))
	b = appendUint(appendUint(appendUint(b, uint64(o.Index)), uint64(o.State)), uint64(o.Reason))
	b = appendUint(appendUint(appendUint(b, uint64(o.Blocks)), uint64(o.Fetched)), o.Bytes)
	return appendUint(appendUint(b, uint64(max(o.Accepted, 0))), uint64(max(o.Ended, 0)))
}

func (p *reply) decodeOutcomes(r *reader) {
	r.b = append([]byte(nil), r.b...) // outcomes are views of it
	n := r.array("the outcomes")
	if n > maxOutcomes {
		r.fail(r.pos, "%d outcomes, at most %d", n, maxOutcomes)
		return
	}
	p.outcomes = make([]outcome.Outcome, n)
	for i := range p.outcomes {
		o := &p.outcomes[i]
		if k := r.array("an outcome"); r.err == nil && k != outcomeLength {
			r.fail(r.pos, "an outcome of %d elements, not %d", k, outcomeLength)
		}
		id := &o.Identity
		id.Engine = r.str("the engine", maxEngine)
		id.DPRank = uint32(r.uint("the DP rank", math.MaxUint32))
		id.Leg = abi.Leg(r.uint("the leg", math.MaxUint8))
		id.Attempt = uint32(r.uint("the attempt", math.MaxUint32))
		id.RequestID = r.str("the request id", maxRequestID)
		o.MessageID = r.str("the message id", 3*outcome.MaxMessageID)
		o.Index = uint32(r.uint("the index", math.MaxUint32))
		o.State = outcome.State(r.uint("the state", math.MaxUint8))
		o.Reason = abi.Reason(r.uint("the reason", math.MaxUint32))
		o.Blocks = uint32(r.uint("the blocks", math.MaxUint32))
		o.Fetched = uint32(r.uint("the fetched blocks", math.MaxUint32))
		o.Bytes = r.uint("the bytes", math.MaxUint64)
		o.Accepted = int64(r.uint("accepted", math.MaxInt64))
		o.Ended = int64(r.uint("ended", math.MaxInt64))
		if r.err != nil {
			return
		}
	}
}

func (p *reply) decodeFetch(r *reader) {
	f := &p.fetched
	f.Here = int(r.uint("the blocks that were here", math.MaxInt32))
	f.Fetched = int(r.uint("the fetched blocks", math.MaxInt32))
	f.Bytes = int64(r.uint("the bytes", math.MaxInt64))
	status, _ := r.body("the status of blocks")
	if len(status) > 0 {
		f.Status = make([]peer.Status, len(status))
		for i, st := range status {
			f.Status[i] = peer.Status(st)
		}
	}
	f.Why = string([]byte(r.str("why not all came", 3*maxErrorText)))
}

// OutcomesQuery picks hints.
type OutcomesQuery struct {
	Identity  hint.Identity // of exactly this request; without a request id: of any
	MessageID string        // "": of any
	Limit     int           // at most 1,024, which is the default too
}

// Outcomes tells what became of the hints that the daemon has accepted, the latest first.
func (c *Client) Outcomes(ctx context.Context, q OutcomesQuery) ([]outcome.Outcome, error) {
	p, err := c.roundTrip(ctx, &request{op: opOutcomes, identity: q.Identity, messageID: q.MessageID, limit: q.Limit})
	return p.outcomes, err
}

// Fetch asks for the blocks of a request.
type Fetch struct {
	Identity          hint.Identity
	Tenant, Namespace string
	BlockBytes        int      // length of every block; 0: any
	Hashes            []uint64 // in order; none: all that the request's hint names
}

// Fetched is what a fetch brought.
type Fetched struct {
	Here, Fetched int           // blocks
	Bytes         int64         // fetched
	Status        []peer.Status // by block; nil where none were named
	Why           string        // not all are here; "": they are
}

// Fetch has the daemon carry out the hint of a request, and waits.
func (c *Client) Fetch(ctx context.Context, f Fetch) (Fetched, error) {
	hashes := make([]byte, 0, 8*len(f.Hashes))
	for _, h := range f.Hashes {
		hashes = binary.LittleEndian.AppendUint64(hashes, h)
	}
	p, err := c.roundTrip(ctx, &request{op: opFetch, identity: f.Identity, tenant: f.Tenant, namespace: f.Namespace, blockBytes: f.BlockBytes, body: hashes})
	return p.fetched, err
}

// ErrNoBlock is returned for a block that the daemon does not have.
var ErrNoBlock = errors.New("the daemon does not have the block")

// PutBlock stores a block. It is false when the block is there already.
func (c *Client) PutBlock(ctx context.Context, tenant, namespace string, hash uint64, block []byte) (stored bool, err error) {
	p, err := c.roundTrip(ctx, &request{op: opPutBlock, tenant: tenant, namespace: namespace, hash: hash, body: block})
	return p.kept, err
}

// GetBlock copies a block, or says [ErrNoBlock].
func (c *Client) GetBlock(ctx context.Context, tenant, namespace string, hash uint64) ([]byte, error) {
	p, err := c.roundTrip(ctx, &request{op: opGetBlock, tenant: tenant, namespace: namespace, hash: hash})
	if err == nil && p.block == nil {
		err = ErrNoBlock
	}
	return p.block, err
}
