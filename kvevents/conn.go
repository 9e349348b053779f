package kvevents

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// An endpoint is where a publisher listens, as the net package names it.
type endpoint struct{ network, addr string }

// parseEndpoint reads tcp://HOST:PORT or ipc://PATH, the latter also for an abstract
// name behind an @.
func parseEndpoint(s string) (endpoint, error) {
	scheme, rest, _ := strings.Cut(s, "://")
	switch scheme {
	case "ipc":
		if rest == "" {
			return endpoint{}, fmt.Errorf("endpoint %q: a path belongs behind ipc://", s)
		}
		return endpoint{"unix", rest}, nil
	case "tcp":
		host, port, err := net.SplitHostPort(rest)
		if err != nil || port == "" || port == "*" || port == "0" {
			return endpoint{}, fmt.Errorf("endpoint %q: HOST:PORT belongs behind tcp://, an IPv6 address in brackets", s)
		}
		ip, err := netip.ParseAddr(host)
		if host == "" || host == "*" || err == nil && ip.IsUnspecified() {
			return endpoint{}, fmt.Errorf("endpoint %q is where a publisher binds: name the host to connect to", s)
		}
		return endpoint{"tcp", rest}, nil
	}
	return endpoint{}, fmt.Errorf("endpoint %q: use tcp:// or ipc://", s)
}

// frames is how many frames a message has at most: of a replay four.
const frames = 8

// A conn is one ZMTP connection. The library makes the handshake, and reads and writes
// frames; dialling, deadlines and bounds are ours. See the package comment.
type conn struct {
	z    *zmq4.Conn
	raw  net.Conn
	stop func() bool
}

// dial connects and shakes hands within timeout. ctx ends the connection whenever it is
// done. limit bounds the bytes of a message.
func dial(ctx context.Context, ep endpoint, typ zmq4.SocketType, limit int, timeout time.Duration) (_ *conn, err error) {
	// A host that is gone without a word is found out in half a minute.
	d := net.Dialer{Timeout: timeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	raw, err := d.DialContext(ctx, ep.network, ep.addr)
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw, stop: context.AfterFunc(ctx, func() { raw.Close() })}
	defer func() {
		if p := recover(); p != nil { // the library slices what a peer sends unchecked
			err = fmt.Errorf("handshake: %v", p)
		}
		if err != nil {
			c.close()
		}
	}()
	if err := raw.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if c.z, err = zmq4.Open(newGuard(raw, limit), null.Security(), typ, nil, false, nil); err != nil {
		return nil, err
	}
	return c, raw.SetDeadline(time.Time{})
}

func (c *conn) close() {
	c.stop()
	c.raw.Close()
}

// recv returns the frames of the next message; commands are the library's business.
func (c *conn) recv() ([][]byte, error) {
	for {
		msg, err := c.z.RecvMsg()
		if err != nil {
			return nil, err
		}
		if msg.Type != zmq4.CmdMsg {
			return msg.Frames, nil
		}
	}
}

func (c *conn) send(frames ...[]byte) error {
	return c.z.SendMsg(zmq4.NewMsgFrom(frames...))
}

// errFrame is a peer that announces more than is allowed.
var errFrame = errors.New("the publisher announces a message over the limit")

// A guard reads ahead of the library, which reserves whatever a frame's length says,
// and holds each length to the limit before the library sees all of it.
type guard struct {
	net.Conn
	r        *bufio.Reader
	limit    uint64 // bytes of one message
	greeting int    // bytes of it still to come
	head     [9]byte
	have     int    // bytes of head
	body     uint64 // bytes of the frame still to come
	bytes    uint64 // of the message so far
	frames   int    // of the message so far
}

func newGuard(c net.Conn, limit int) *guard {
	return &guard{Conn: c, r: bufio.NewReaderSize(c, 64<<10), limit: uint64(limit), greeting: 64}
}

func (g *guard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if err := g.watch(p[:n]); err != nil {
		return 0, err
	}
	return n, err
}

// watch follows the frames through what was read.
func (g *guard) watch(p []byte) error {
	skip := min(g.greeting, len(p))
	g.greeting -= skip
	p = p[skip:]
	for len(p) > 0 {
		if g.body > 0 {
			n := min(g.body, uint64(len(p)))
			g.body -= n
			p = p[n:]
			continue
		}
		const more, long = 1, 2 // flags of a frame
		g.head[g.have] = p[0]
		g.have++
		p = p[1:]
		switch {
		case g.have == 2 && g.head[0]&long == 0:
			g.body = uint64(g.head[1])
		case g.have == 9:
			g.body = binary.BigEndian.Uint64(g.head[1:])
		default:
			continue
		}
		g.have = 0
		g.frames++
		if g.body > g.limit-g.bytes || g.frames > frames {
			return errFrame
		}
		g.bytes += g.body
		if g.head[0]&more == 0 {
			g.bytes, g.frames = 0, 0
		}
	}
	return nil
}
