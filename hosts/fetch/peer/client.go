package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ClientConfig bounds a [Client]. A field that is zero or negative takes its default.
type ClientConfig struct {
	// Incarnation of this process. Default: a new one.
	Incarnation uint64
	// HandshakeTimeout bounds the time to connect and be welcomed. Default 2 s.
	HandshakeTimeout time.Duration
	// OpTimeout is the time of an operation whose context has no deadline. Default 1 s.
	OpTimeout time.Duration
	// IdleTimeout ends links that are not used. Default 1 minute; shorter than the
	// source's, so that it is seldom the source that ends them.
	IdleTimeout time.Duration
	// MaxLinks caps the connections to the peer, and so the operations at a time.
	// Others wait. Default 2.
	MaxLinks int
	// MaxBlock caps the bytes of one block. Default 64 MiB, at most [MaxBlock].
	MaxBlock int
	// NoSlab never maps a source's slab.
	NoSlab bool
}

func (c *ClientConfig) setDefaults() {
	orDefault(&c.HandshakeTimeout, 2*time.Second)
	orDefault(&c.OpTimeout, time.Second)
	orDefault(&c.IdleTimeout, time.Minute)
	orDefault(&c.MaxLinks, 2)
	orDefault(&c.MaxBlock, 64<<20)
	c.MaxBlock = min(c.MaxBlock, MaxBlock)
	if c.Incarnation == 0 {
		c.Incarnation = NewIncarnation()
	}
}

// Client pulls from one peer. It is safe for concurrent use.
type Client struct {
	cfg  ClientConfig
	dial DialFunc
	sink Sink

	slots  chan struct{} // one for each link that may be
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	idle   []*puller // the most recently used last
	reaper *time.Timer
	work   sync.WaitGroup
	peer   atomic.Uint64 // its last known incarnation
	stats  clientCounters
}

type clientCounters struct {
	dials, dialFailures, restarts, pulls, redials, blocks, bytes, violations atomic.Uint64
	mapped                                                                   atomic.Uint64
}

// ClientStats counts what a client holds and has done.
type ClientStats struct {
	Idle         int    // links
	Dials        uint64 // links that were welcomed
	DialFailures uint64
	Restarts     uint64 // times that another incarnation answered
	Pulls        uint64
	Redials      uint64 // pulls that began again, since the link was ended before an answer
	Blocks       uint64 // committed
	Bytes        uint64 // of them
	Mapped       uint64 // blocks that were copied out of the source's slab
	Violations   uint64 // links that were closed for what the peer sent
}

// ErrClosed is what a closed client answers.
var ErrClosed = errors.New("the peer client is closed")

// NewClient makes a client that fills a sink. It connects when it has to.
func NewClient(cfg ClientConfig, dial DialFunc, sink Sink) *Client {
	cfg.setDefaults()
	c := &Client{cfg: cfg, dial: dial, sink: sink, slots: make(chan struct{}, cfg.MaxLinks)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Stats reads the counters.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	idle := len(c.idle)
	c.mu.Unlock()
	return ClientStats{
		Idle: idle, Dials: c.stats.dials.Load(), DialFailures: c.stats.dialFailures.Load(), Restarts: c.stats.restarts.Load(),
		Pulls: c.stats.pulls.Load(), Redials: c.stats.redials.Load(), Blocks: c.stats.blocks.Load(), Bytes: c.stats.bytes.Load(),
		Mapped: c.stats.mapped.Load(), Violations: c.stats.violations.Load(),
	}
}

// Status is what became of one block of a request.
type Status uint8

const (
	Failed  Status = iota // it did not come
	Success               // it is in the sink
	Dropped               // it came, or was there already, and the sink did not take it
)

func (s Status) String() string {
	switch s {
	case Success:
		return "SUCCESS"
	case Dropped:
		return "DROPPED"
	}
	return "FAILED"
}

// Request names blocks, in an order that a prefix of makes sense.
type Request struct {
	Namespace  []byte
	Hashes     []uint64
	BlockBytes int   // length of every block; 0: any
	MaxBytes   int64 // credit: the source sends no more; at least 1
}

// Result tells what a pull brought.
type Result struct {
	Blocks int    // of the prefix that came; their status is not Failed
	Bytes  int64  // of them
	Stop   Stop   // why the source announced no more
	Source uint64 // its incarnation; 0 if it never answered
}

var errRequest = errors.New("a request names 1 to 16,384 blocks, a namespace of at most 1,024 bytes, and bytes that may come")

// Pull fetches what it can of a request and reports on each block in status, which is
// as long as the request's hashes. What was fetched before an error stays fetched.
// ctx bounds the operation; when Pull returns, its slots are committed or given back.
func (c *Client) Pull(ctx context.Context, req *Request, status []Status) (Result, error) {
	clear(status)
	if n := len(req.Hashes); n == 0 || n > MaxBlocks || n != len(status) || len(req.Namespace) > MaxNamespace || req.MaxBytes <= 0 || req.BlockBytes < 0 || req.BlockBytes > MaxBlock {
		return Result{}, errRequest
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return Result{}, ErrClosed
	}
	c.work.Add(1)
	c.mu.Unlock()
	defer c.work.Done()
	c.stats.pulls.Add(1)
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(c.cfg.OpTimeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	case <-c.ctx.Done():
		return Result{}, ErrClosed
	}
	defer func() { <-c.slots }()
	for fresh := 0; ; {
		p, err := c.take(ctx)
		if err != nil {
			return Result{}, err
		}
		short := p.credit < uint64(req.MaxBytes)
		res, err := p.pull(ctx, deadline, req, status)
		if err == nil && short && res.Blocks == 0 && res.Stop == StopCredit {
			res, err = p.pull(ctx, deadline, req, status) // with the credit that the answer brought
		}
		if err == nil {
			c.keep(p)
			return res, nil
		}
		if errors.Is(err, ErrProtocol) {
			c.stats.violations.Add(1)
		}
		p.close()
		if !p.kept {
			fresh++
		}
		if fresh < maxFresh && !p.answered && ctx.Err() == nil && !errors.Is(err, ErrProtocol) {
			c.stats.redials.Add(1) // the peer ended the link while nobody used it, or wants it anew
			continue
		}
		return res, c.cause(ctx, err)
	}
}

// maxFresh is on how many new links a pull is tried: a source that has begun to trust other
// certificates may end one before its first answer.
const maxFresh = 2

// cause is why a link broke, where that was this side's doing. The clocks of a context
// and of a connection fire in any order.
func (c *Client) cause(ctx context.Context, err error) error {
	var ne net.Error
	switch {
	case c.ctx.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &ne) && ne.Timeout():
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// take finds a link or makes one.
func (c *Client) take(ctx context.Context) (*puller, error) {
	c.dropIdle(func(p *puller) bool { return p.frames.link.stale() })
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		p := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		p.kept = true
		return p, nil
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.HandshakeTimeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	link, err := c.dial(ctx)
	if err != nil {
		c.stats.dialFailures.Add(1)
		return nil, c.cause(ctx, err)
	}
	p := &puller{client: c, frames: frames{link: link, self: c.cfg.Incarnation}, op: NewIncarnation() >> 1}
	if err := p.greet(ctx); err != nil {
		p.close()
		c.stats.dialFailures.Add(1)
		if errors.Is(err, ErrProtocol) {
			c.stats.violations.Add(1)
		}
		return nil, c.cause(ctx, err)
	}
	c.stats.dials.Add(1)
	if before := c.peer.Swap(p.frames.peer); before != 0 && before != p.frames.peer {
		c.stats.restarts.Add(1)
		c.dropIdle(func(q *puller) bool { return q.frames.peer != p.frames.peer })
	}
	return p, nil
}

// keep puts a link back for the next pull.
func (c *Client) keep(p *puller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= c.cfg.MaxLinks {
		p.close()
		return
	}
	p.since = time.Now()
	c.idle = append(c.idle, p)
	if c.reaper == nil {
		c.reaper = time.AfterFunc(c.cfg.IdleTimeout, c.reap)
	}
}

// reap closes what has been idle for too long and comes again while something is idle.
func (c *Client) reap() {
	before := time.Now().Add(-c.cfg.IdleTimeout)
	c.dropIdle(func(p *puller) bool { return p.since.Before(before) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaper = nil
	if !c.closed && len(c.idle) > 0 {
		c.reaper = time.AfterFunc(c.cfg.IdleTimeout, c.reap)
	}
}

func (c *Client) dropIdle(which func(*puller) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.idle[:0]
	for _, p := range c.idle {
		if which(p) {
			p.close()
		} else {
			kept = append(kept, p)
		}
	}
	clear(c.idle[len(kept):])
	c.idle = kept
}

// Close ends all links, and waits until no pull holds a slot of the sink any more.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	if c.reaper != nil {
		c.reaper.Stop()
	}
	c.mu.Unlock()
	c.cancel()
	c.dropIdle(func(*puller) bool { return true })
	c.work.Wait()
}
