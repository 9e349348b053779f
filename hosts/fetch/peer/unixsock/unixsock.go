// Package unixsock carries peer links over Unix sockets, between processes of one
// machine. The kernel says which user is at the other end; both sides ask. A source
// can pass its slab over it.
package unixsock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// Transport dials and listens on paths. The zero value talks to processes of its own user only.
type Transport struct {
	// UIDs are the users that may be at the other end. Nil: the user of this process.
	UIDs []uint32

	renewed atomic.Pointer[[]uint32]
}

// Renew takes other users, for the links from now on. A socket that was opened for this
// user only stays so.
func (t *Transport) Renew(uids []uint32) {
	uids = slices.Clone(uids)
	t.renewed.Store(&uids)
}

func (t *Transport) allowed(uid uint32) bool {
	uids := t.UIDs
	if r := t.renewed.Load(); r != nil {
		uids = *r
	}
	if uids == nil {
		return uid == uint32(os.Geteuid())
	}
	return slices.Contains(uids, uid)
}

// Dial connects to the socket at a path.
func (t *Transport) Dial(ctx context.Context, path string) (*peer.Link, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return t.link(c.(*net.UnixConn))
}

// link authenticates the other end. It closes c on failure.
func (t *Transport) link(c *net.UnixConn) (*peer.Link, error) {
	uid, err := userOf(c)
	if err == nil && !t.allowed(uid) {
		err = fmt.Errorf("user %d is at the other end of %s, and is not allowed", uid, c.LocalAddr())
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &peer.Link{
		Peer: peer.Identity{UID: uid}, Control: c, Data: c,
		SendFile:    func(fd uintptr) error { return send(c, fd) },
		ReceiveFile: func() (*os.File, error) { return receive(c) },
	}, nil
}

// userOf is the user that opened the other end.
func userOf(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid uint32
	var inner error
	if err := raw.Control(func(fd uintptr) {
		uid, inner = peerUID(int(fd))
	}); err != nil {
		return 0, err
	}
	if inner != nil {
		return 0, os.NewSyscallError("getsockopt", inner)
	}
	return uid, nil
}

// The byte that carries a descriptor.
const fileByte = 'F'

func send(c *net.UnixConn, fd uintptr) error {
	n, oob, err := c.WriteMsgUnix([]byte{fileByte}, syscall.UnixRights(int(fd)), nil)
	if err == nil && (n != 1 || oob != unix.CmsgSpace(4)) {
		err = errors.New("the descriptor was sent in part")
	}
	return err
}

// receive takes one descriptor. Whatever else came with it is closed.
func receive(c *net.UnixConn) (*os.File, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4*8))
	n, size, _, _, err := c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	if msgs, err := syscall.ParseSocketControlMessage(oob[:size]); err == nil {
		for i := range msgs {
			if got, err := syscall.ParseUnixRights(&msgs[i]); err == nil {
				fds = append(fds, got...)
			}
		}
	}
	if n != 1 || b[0] != fileByte || len(fds) != 1 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, fmt.Errorf("%w: %d descriptors where one was due", peer.ErrProtocol, len(fds))
	}
	return os.NewFile(uintptr(fds[0]), "slab"), nil
}

// Listen opens a socket that only this user can open, unless more are allowed. A
// socket that nobody listens on any more is replaced.
func (t *Transport) Listen(path string) (peer.Listener, error) {
	if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() == os.ModeSocket {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("listen on %s: somebody else does", path)
		} else if errors.Is(err, unix.ECONNREFUSED) {
			os.Remove(path)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	mode := os.FileMode(0o600)
	if t.UIDs != nil {
		mode = 0o666 // SO_PEERCRED decides
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, err
	}
	return &listener{t, l.(*net.UnixListener)}, nil
}

type listener struct {
	t *Transport
	l *net.UnixListener
}

func (l *listener) Address() string { return l.l.Addr().String() }
func (l *listener) Close() error    { return l.l.Close() }

func (l *listener) Accept() (peer.Incoming, error) {
	c, err := l.l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return &incoming{l.t, c}, nil
}

type incoming struct {
	t *Transport
	c *net.UnixConn
}

func (in *incoming) Handshake(time.Time) (*peer.Link, error) { return in.t.link(in.c) }
func (in *incoming) Close()                                  { in.c.Close() }
