package server

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
)

const (
	// maxFollowers bounds the connections that follow outcomes, each with a buffer of its own.
	maxFollowers = 64
	// followBuffer is how many outcomes wait for a connection to ask for them.
	followBuffer = 1024
	// maxFollowWait bounds the time for which one request waits, in ms.
	maxFollowWait = 10_000
)

// following is what a connection follows.
type following struct {
	stream   *outcome.Subscription // nil: nothing yet
	identity hint.Identity         // its strings are its own
	message  string
}

// of tells whether this is what a request asks for.
func (f *following) of(q *request) bool {
	return f.stream != nil && f.identity == q.identity && f.message == q.messageID
}

// readFollow reads what follows the identity.
func (q *request) readFollow(r *reader) {
	q.readOutcomes(r)
	q.waitMS = int(r.uint("the time to wait", maxFollowWait))
}

// follow answers which hints have ended since the last time, and waits for one. The first
// time it begins.
func (c *conn) follow() bool {
	q := &c.q
	if c.server.cfg.Outcomes == nil {
		c.refuse(CodeUnavailable, noPeers, 0)
		return true
	}
	if q.oneway() {
		return true
	}
	if !c.followed.of(q) && !c.beginFollowing() {
		c.refuse(CodeTooManyFollowers, fmt.Sprintf("%d connections follow outcomes, which is the most that may", maxFollowers), 0)
		return true
	}
	if !c.flush() { // what was asked before does not wait with this
		return false
	}
	limit := q.limit
	if limit == 0 {
		limit = maxOutcomes
	}
	found := c.ended(limit, time.Duration(q.waitMS)*time.Millisecond)
	b, at := beginFrame(c.out)
	b = appendOutcomes(b, opFollow, q.seq, found)
	c.out = endFrame(appendUint(b, c.followed.stream.Dropped()), at)
	return c.chargeOut()
}

// beginFollowing follows what the request names, in place of what was followed before.
func (c *conn) beginFollowing() bool {
	if c.followed.stream == nil && c.socket.followers.Add(1) > maxFollowers {
		c.socket.followers.Add(-1)
		return false
	}
	if c.followed.stream != nil {
		c.followed.stream.Close()
	}
	q := &c.q
	id := q.identity
	id.Engine, id.RequestID = string([]byte(id.Engine)), string([]byte(id.RequestID))
	f := outcome.Filter{MessageID: string([]byte(q.messageID))}
	if id.RequestID != "" {
		f.Identity = &id
	}
	c.followed = following{c.server.cfg.Outcomes.Subscribe(f, followBuffer), id, f.MessageID}
	return true
}

// endFollowing is for a connection that ends.
func (c *conn) endFollowing() {
	if c.followed.stream != nil {
		c.followed.stream.Close()
		c.followed = following{}
		c.socket.followers.Add(-1)
	}
}

// ended waits for an outcome, and takes with it those that are there too. A server that
// stops waits no longer.
func (c *conn) ended(limit int, wait time.Duration) (found []outcome.Outcome) {
	stream := c.followed.stream.Outcomes()
	if len(stream) == 0 && wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case o := <-stream:
			found = append(found, o)
		case <-t.C:
		case <-c.socket.stop:
		}
	}
	for len(found) < limit && len(stream) > 0 { // this goroutine alone reads it
		found = append(found, <-stream)
	}
	return found
}

// Follow picks hints, and says how long to wait for the end of one.
type Follow struct {
	Identity  hint.Identity // of exactly this request; without a request id: of any
	MessageID string        // "": of any
	Limit     int           // at most 1,024, which is the default too
	Wait      time.Duration // at most 10 s
}

// Follow tells which hints have ended since the connection's last Follow of the same, in
// that order, and waits for one if there is none. The first one begins: what has ended
// before is for [Client.Outcomes] to tell. dropped are those, since then, that the daemon
// had no room for.
func (c *Client) Follow(ctx context.Context, f Follow) (ended []outcome.Outcome, dropped uint64, err error) {
	p, err := c.roundTrip(ctx, &request{op: opFollow, identity: f.Identity, messageID: f.MessageID, limit: f.Limit, waitMS: int(f.Wait / time.Millisecond)})
	return p.outcomes, p.dropped, err
}

func (p *reply) decodeFollow(r *reader) {
	p.decodeOutcomes(r)
	p.dropped = r.uint("how many were dropped", math.MaxUint64)
}
