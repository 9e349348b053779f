package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
)

// ErrUnreachable is returned when no daemon answers: nobody listens, it refused the
// connection, or the connection broke.
var ErrUnreachable = errors.New("the daemon is unreachable")

// RemoteError is a refusal by the daemon.
type RemoteError struct {
	Code   Code
	Text   string
	Offset int // into the envelope or the frame, where there is one
}

func (e *RemoteError) Error() string { return e.Text }

// Submit is one envelope to send.
type Submit struct {
	Identity hint.Identity
	Format   abi.Format // FormatUnknown: told from the first byte
	Dialect  string     // empty: Body is an envelope
	Body     []byte
	Forward  bool // return the envelope to pass on
}

// Reply is what became of one envelope. It belongs to the caller.
type Reply struct {
	Results []hint.Result
	Forward []byte // when it was asked for
	// Err is set when the envelope is malformed; the rest is then empty. Its text
	// begins "malformed envelope: ".
	Err error
}

// Client is one connection to a daemon. Its methods may be called from many
// goroutines, and run one after the other. When one of them fails with anything but
// a [*RemoteError], the connection is gone: dial again.
type Client struct {
	mu     sync.Mutex
	conn   net.Conn
	in     frames
	out    []byte
	seq    uint64
	broken error
	hello  reply
}

// Dial connects to the daemon's data socket and says hello. The deadline of ctx bounds
// both.
func Dial(ctx context.Context, socket string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if done := ctx.Err(); err != nil && done != nil {
		return nil, fmt.Errorf("no answer from the daemon in time: %w", done)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	c := &Client{conn: conn, in: frames{limit: DefaultMaxFrame}}
	c.hello, err = c.roundTrip(ctx, &request{op: opHello, version: ProtocolVersion, client: "kvrt"})
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.in.limit = max(c.in.limit, c.hello.maxFrame)
	return c, nil
}

// ServerVersion is what the daemon called itself at the hello.
func (c *Client) ServerVersion() string { return c.hello.server }

// Ping returns the daemon's generation, and whether it is draining.
func (c *Client) Ping(ctx context.Context) (generation uint64, draining bool, err error) {
	p, err := c.roundTrip(ctx, &request{op: opPing})
	return p.generation, p.draining, err
}

// Submit sends an envelope and returns the results. A malformed envelope is no error
// but [Reply.Err]; a refusal of the request is a [*RemoteError].
func (c *Client) Submit(ctx context.Context, s Submit) (*Reply, error) {
	q := s.request()
	if s.Forward {
		q.flags |= flagForward
	}
	p, err := c.roundTrip(ctx, q)
	var refused *RemoteError
	if errors.As(err, &refused) && refused.Code == CodeMalformed {
		return &Reply{Err: refused}, nil
	}
	if err != nil {
		return nil, err
	}
	return &Reply{Results: p.results, Forward: p.forward}, nil
}

// SubmitOneWay sends an envelope and does not wait: no result and no error comes back.
func (c *Client) SubmitOneWay(ctx context.Context, s Submit) error {
	q := s.request()
	q.flags |= flagOneway
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.bound(ctx)()
	return c.send(ctx, q)
}

func (s *Submit) request() *request {
	return &request{op: opSubmit, identity: s.Identity, format: s.Format, dialect: s.Dialect, body: s.Body}
}

// Finish tells that a request has ended.
func (c *Client) Finish(ctx context.Context, id hint.Identity, aborted bool) error {
	_, err := c.roundTrip(ctx, &request{op: opFinish, identity: id, aborted: aborted})
	return err
}

// Discard drops a request's hint.
func (c *Client) Discard(ctx context.Context, id hint.Identity) error {
	_, err := c.roundTrip(ctx, &request{op: opDiscard, identity: id})
	return err
}

// Status tells what the daemon's hint store knows of a request.
func (c *Client) Status(ctx context.Context, id hint.Identity) (fetch.Status, error) {
	p, err := c.roundTrip(ctx, &request{op: opStatus, identity: id})
	return p.status, err
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// roundTrip sends a request and reads frames until its reply comes.
func (c *Client) roundTrip(ctx context.Context, q *request) (p reply, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.bound(ctx)()
	if err = c.send(ctx, q); err != nil {
		return p, err
	}
	for {
		frame, ok, err := c.in.next()
		if err == nil && !ok {
			_, err = c.in.fill(c.conn)
		}
		if err != nil {
			return p, c.fail(ctx, err)
		}
		if !ok {
			continue
		}
		if bad := p.decode(frame); bad != nil {
			return p, c.fail(ctx, fmt.Errorf("the daemon's answer cannot be read: %w", bad))
		}
		switch {
		case p.op == opError && p.err != nil:
			return p, c.fail(ctx, p.err)
		case p.op != q.op || p.seq != q.seq:
			return p, c.fail(ctx, fmt.Errorf("an answer to %s %d came in place of one to %s %d", p.op, p.seq, q.op, q.seq))
		case p.err != nil:
			return p, p.err
		}
		return p, nil
	}
}

func (c *Client) send(ctx context.Context, q *request) error {
	if c.broken != nil {
		return c.broken
	}
	c.seq++
	q.seq = c.seq
	c.out = appendRequest(c.out[:0], q)
	if limit := c.in.limit; len(c.out)-frameHead > limit {
		return &RemoteError{Code: CodeFrameTooLarge, Text: (&tooLarge{len(c.out) - frameHead, limit}).Error()}
	}
	_, err := c.conn.Write(c.out)
	if cap(c.out) > keepBuffer {
		c.out = nil
	}
	if err != nil {
		// A daemon that refuses says why before it closes.
		if why := c.lastWord(); why != nil {
			err = why
		}
		return c.fail(ctx, err)
	}
	return nil
}

// lastWord looks for an error about the connection in what has come.
func (c *Client) lastWord() error {
	c.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	for {
		frame, ok, err := c.in.next()
		if err != nil {
			return nil
		}
		var p reply
		if ok && p.decode(frame) == nil && p.op == opError && p.err != nil {
			return p.err
		}
		if !ok {
			if _, err := c.in.fill(c.conn); err != nil {
				return nil
			}
		}
	}
}

// fail makes the client unusable.
func (c *Client) fail(ctx context.Context, err error) error {
	c.conn.Close()
	done := ctx.Err()
	if done == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		done = context.DeadlineExceeded // the connection's clock was the first of the two
	}
	if done != nil {
		c.broken = fmt.Errorf("%w: an earlier call was cut off: %w", ErrUnreachable, done)
		return fmt.Errorf("no answer from the daemon in time: %w", done)
	}
	c.broken = fmt.Errorf("%w: %w", ErrUnreachable, err)
	return c.broken
}

// bound makes ctx end the reads and writes that follow; its result undoes that.
func (c *Client) bound(ctx context.Context) func() {
	deadline, _ := ctx.Deadline()
	c.conn.SetDeadline(deadline)
	if ctx.Done() == nil {
		return func() {}
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.conn.SetDeadline(time.Unix(1, 0))
		close(done)
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}
