package peer

import (
	"context"
	"net"
	"os"
	"time"
)

// Identity is who is at the other end of a [Link], as the transport found out; nothing
// of it is what the peer says about itself.
type Identity struct {
	Name string // of its certificate; "" on a Unix socket
	UID  uint32 // of its process, when Name is ""
}

// Authorizer decides what an authenticated peer may have. Its methods are called for
// every request, so that a change takes effect at once.
type Authorizer interface {
	// MayRead tells whether the peer may fetch blocks of the namespace.
	MayRead(id Identity, namespace []byte) bool
	// MayMap tells whether the peer may map the slab, and so read every block of every namespace.
	MayMap(id Identity) bool
}

// Link is one connection between two peers, authenticated on both sides.
type Link struct {
	Peer    Identity
	Control net.Conn
	Data    net.Conn // where payload goes: Control, unless the transport keeps them apart

	// SendFile passes a descriptor behind what was written, and ReceiveFile takes it;
	// both nil where that cannot be.
	SendFile    func(fd uintptr) error
	ReceiveFile func() (*os.File, error)

	// Stale tells that no operation begins on the link any more, since a certificate has
	// expired or others are shown or trusted now. It is called by one goroutine at a time.
	// Nil: never.
	Stale func() bool
}

func (l *Link) stale() bool { return l.Stale != nil && l.Stale() }

// Close ends the link. Reads and writes that block return.
func (l *Link) Close() {
	l.Control.Close()
	if l.Data != l.Control {
		l.Data.Close()
	}
}

// setDeadline bounds everything that is read and written until it is set again.
func (l *Link) setDeadline(t time.Time) {
	l.Control.SetDeadline(t) // fails on a closed connection only, as will the read that follows
	if l.Data != l.Control {
		l.Data.SetDeadline(t)
	}
}

// Transport makes links. Its conformance suite is peertest.
type Transport interface {
	// Dial connects and authenticates. When it returns an error, nothing is left open.
	Dial(ctx context.Context, address string) (*Link, error)
	// Listen opens an endpoint for links.
	Listen(address string) (Listener, error)
}

// Listener is an endpoint of a source.
type Listener interface {
	// Accept waits for a connection and returns it before anything is read from it, so
	// that no peer can hold up another. After Close it fails with [net.ErrClosed].
	Accept() (Incoming, error)
	// Address is what to dial.
	Address() string
	Close() error
}

// Incoming is a connection whose peer is not known yet. One of its methods is called, once.
type Incoming interface {
	// Handshake authenticates the peer until the deadline. A nil link without an error
	// is a connection that belongs to another link.
	Handshake(deadline time.Time) (*Link, error)
	Close()
}
