// Package tcp carries peer links over TCP. Both sides authenticate by certificates
// under TLS 1.3, always. Payload goes over TLS too, unless both sides are set to send
// it in clear: then it goes over a second connection, which shows a token of 128 bits
// that was issued for it under TLS and holds once. In clear there is no secrecy, and
// nothing but TCP itself between the payload and whoever owns the network.
package tcp

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// Transport dials and listens on host:port. Certificate and Roots are required.
// [Transport.Renew] changes them while it is in use.
type Transport struct {
	Certificate tls.Certificate
	// Roots sign the certificates of peers.
	Roots *x509.CertPool
	// Sources are the names, as [NameOf] finds them, that certificates of sources may be
	// for. Empty: a source's certificate must be for the host that is dialled.
	Sources []string
	// ClearData allows payload in clear.
	ClearData bool
	// Now is the clock that certificates are held against. Nil: time.Now.
	Now func() time.Time

	renewed atomic.Pointer[credentials]
}

// The first bytes of a data connection; a TLS record never begins so.
var dataMagic = [4]byte{'K', 'V', 'T', 'D'}

const (
	tokenBytes = 16
	modeTLS    = 0
	modeClear  = 1
)

type token [tokenBytes]byte

// NameOf is the name that a certificate gives its holder: the first URI, else the
// first DNS name, else the common name.
func NameOf(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

// Dial connects to host:port.
func (t *Transport) Dial(ctx context.Context, address string) (*peer.Link, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return t.DialHost(ctx, address, host)
}

// DialHost connects to host:port, where a host is expected that was resolved before.
func (t *Transport) DialHost(ctx context.Context, address, host string) (*peer.Link, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	own := t.credentials()
	defer context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })()
	c := tls.Client(raw, own.client(host, t.now))
	l, err := t.dialled(ctx, c, raw.RemoteAddr().String())
	if err != nil {
		raw.Close()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	t.ages(l, c, own, false)
	return l, nil
}

func (t *Transport) dialled(ctx context.Context, c *tls.Conn, address string) (*peer.Link, error) {
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	id, err := identify(c)
	if err != nil {
		return nil, err
	}
	want := [1]byte{modeTLS}
	if t.ClearData {
		want[0] = modeClear
	}
	if _, err := c.Write(want[:]); err != nil {
		return nil, err
	}
	var answer [1 + tokenBytes]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return nil, err
	}
	l := &peer.Link{Peer: id, Control: c, Data: c}
	switch {
	case answer[0] == modeTLS:
		return l, nil
	case answer[0] != want[0]:
		return nil, fmt.Errorf("%w: payload in clear, which this side does not allow", peer.ErrProtocol)
	}
	var d net.Dialer
	data, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if _, err := data.Write(append(dataMagic[:], answer[1:]...)); err != nil {
		data.Close()
		return nil, err
	}
	l.Data = data
	return l, nil
}

// Listen opens host:port.
func (t *Transport) Listen(address string) (peer.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &listener{t: t, l: l, waiting: make(map[token]*waiter)}, nil
}

type listener struct {
	t *Transport
	l net.Listener

	mu      sync.Mutex
	waiting map[token]*waiter
}

// A waiter is a control connection whose data connection has not come yet.
type waiter struct {
	host string
	data chan net.Conn // of one place; its one sender removed the waiter before
}

func (l *listener) Address() string { return l.l.Addr().String() }
func (l *listener) Close() error    { return l.l.Close() }

func (l *listener) Accept() (peer.Incoming, error) {
	c, err := l.l.Accept()
	if err != nil {
		return nil, err
	}
	return &incoming{l: l, c: c, closed: make(chan struct{})}, nil
}

type incoming struct {
	l      *listener
	c      net.Conn
	once   sync.Once
	closed chan struct{}
}

func (in *incoming) Close() {
	in.once.Do(func() { close(in.closed) })
	in.c.Close()
}

// Handshake tells the two kinds of connection apart by their first byte.
func (in *incoming) Handshake(deadline time.Time) (*peer.Link, error) {
	in.c.SetDeadline(deadline) // fails on a closed connection only, as will the read
	r := bufio.NewReaderSize(in.c, len(dataMagic)+tokenBytes)
	first, err := r.Peek(1)
	var link *peer.Link
	if err == nil && first[0] == dataMagic[0] {
		err = in.data(r)
	} else if err == nil {
		link, err = in.control(&peeked{in.c, r}, deadline)
	}
	if err != nil {
		in.c.Close()
	}
	return link, err
}

// data hands the connection to the link that it belongs to.
func (in *incoming) data(r io.Reader) error {
	var b [len(dataMagic) + tokenBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return err
	}
	in.c.SetDeadline(time.Time{})
	in.l.mu.Lock()
	defer in.l.mu.Unlock()
	key := token(b[len(dataMagic):])
	w := in.l.waiting[key]
	if w == nil || [4]byte(b[:4]) != dataMagic || w.host != hostOf(in.c) {
		return errors.New("a data connection that nobody waits for")
	}
	delete(in.l.waiting, key)
	w.data <- in.c
	return nil
}

func (in *incoming) control(raw net.Conn, deadline time.Time) (*peer.Link, error) {
	own := in.l.t.credentials()
	c := tls.Server(raw, own.server(in.l.t.now))
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	id, err := identify(c)
	if err != nil {
		return nil, err
	}
	var want [1]byte
	if _, err := io.ReadFull(c, want[:]); err != nil {
		return nil, err
	}
	link := &peer.Link{Peer: id, Control: c, Data: c}
	in.l.t.ages(link, c, own, true)
	var answer [1 + tokenBytes]byte
	if want[0] != modeClear || !in.l.t.ClearData {
		if _, err := c.Write(answer[:]); err != nil {
			return nil, err
		}
		return link, nil
	}
	answer[0] = modeClear
	rand.Read(answer[1:])
	key := token(answer[1:])
	w := &waiter{host: hostOf(in.c), data: make(chan net.Conn, 1)}
	in.l.mu.Lock()
	in.l.waiting[key] = w
	in.l.mu.Unlock()
	link.Data, err = in.await(c, answer[:], w, deadline)
	in.l.mu.Lock()
	delete(in.l.waiting, key)
	in.l.mu.Unlock()
	if err != nil {
		select {
		case late := <-w.data: // handed over before the waiter was removed
			late.Close()
		default:
		}
		return nil, err
	}
	return link, nil
}

func (in *incoming) await(c net.Conn, answer []byte, w *waiter, deadline time.Time) (net.Conn, error) {
	if _, err := c.Write(answer); err != nil {
		return nil, err
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case data := <-w.data:
		return data, nil
	case <-timer.C:
		return nil, errors.New("the data connection did not come in time")
	case <-in.closed:
		return nil, net.ErrClosed
	}
}

func hostOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return ""
	}
	return host
}

// peeked reads what was peeked at first.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) {
	if p.r.Buffered() > 0 {
		return p.r.Read(b)
	}
	return p.Conn.Read(b)
}
