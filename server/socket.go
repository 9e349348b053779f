package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is the listening side of the data socket.
type socket struct {
	server *Server
	ln     *net.UnixListener
	file   os.FileInfo // of the socket that was made, so that no other is removed
	budget budget

	accepted, refused atomic.Uint64

	mu       sync.Mutex // guards what follows
	conns    map[*conn]struct{}
	gone     counters // of connections that are closed
	running  sync.WaitGroup
	stopping atomic.Bool
	stopBy   atomic.Int64 // when stopping: until when a frame that has begun may take, Unix ns
}

func newSocket(s *Server) *socket {
	return &socket{server: s, conns: map[*conn]struct{}{}, budget: budget{limit: s.cfg.MaxBuffered}}
}

// listen makes the socket file. One that a dead daemon left behind is replaced, one
// that somebody listens on is not.
func (k *socket) listen(ctx context.Context) error {
	path := k.server.cfg.Socket
	if strings.HasPrefix(path, "@") {
		return fmt.Errorf("socket %s: an abstract socket has no permissions: give a path", path)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the folder of the socket: %w", err)
	}
	unlock, err := lockFolder(ctx, dir) // or two daemons that start at once replace each other's
	if err != nil {
		return err
	}
	defer unlock()
	if err := removeStale(ctx, path); err != nil {
		return err
	}
	mode := k.server.cfg.SocketMode.Perm()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// On Linux the file gets the mode that its descriptor has; elsewhere this does
		// nothing, and the chmod below closes a short gap.
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), uint32(mode)) })
	}}
	ln, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	k.ln = ln.(*net.UnixListener)
	k.ln.SetUnlinkOnClose(false)
	if err = os.Chmod(path, mode); err == nil {
		k.file, err = os.Lstat(path)
	}
	if err != nil {
		k.ln.Close()
		return fmt.Errorf("socket %s: %w", path, err)
	}
	return nil
}

// removeStale removes a socket file that nobody listens on.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket %s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %s: a file that is no socket is in the way: remove it, or choose another path", path)
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
	}
	// Whatever is not a plain "nobody listens" counts as somebody: a full backlog, say.
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("socket %s: another daemon is listening: stop it, or choose another path", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("socket %s: the one that a dead daemon left cannot be removed: %w", path, err)
	}
	return nil
}

// lockFolder keeps other daemons out while one looks for a stale socket.
func lockFolder(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("the folder of the socket: %w", err)
	}
	for range 50 {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	f.Close()
	return nil, fmt.Errorf("the folder of the socket, %s, cannot be locked: %w", dir, err)
}

// unlisten closes the listener and removes the socket file, unless it is another's by
// now.
func (k *socket) unlisten() {
	k.ln.Close()
	if info, err := os.Lstat(k.server.cfg.Socket); err == nil && os.SameFile(info, k.file) {
		os.Remove(k.server.cfg.Socket)
	}
}

// accept takes connections until the listener is closed.
func (k *socket) accept() {
	for pause := time.Millisecond; ; {
		nc, err := k.ln.AcceptUnix()
		if err == nil {
			pause = time.Millisecond
			k.admit(nc)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		k.server.log.Warn("a connection could not be accepted", "error", err) // out of descriptors, most likely
		time.Sleep(pause)
		pause = min(2*pause, time.Second)
	}
}

// admit starts a connection, or refuses it.
func (k *socket) admit(nc *net.UnixConn) {
	k.mu.Lock()
	code := CodeOK
	switch {
	case k.server.draining.Load():
		code = CodeDraining
	case len(k.conns) >= k.server.cfg.MaxConnections:
		code = CodeTooManyConnections
	default:
		c := newConn(k, nc)
		k.conns[c] = struct{}{}
		k.accepted.Add(1)
		k.running.Go(c.serve)
	}
	k.mu.Unlock()
	if code == CodeOK {
		return
	}
	k.refused.Add(1)
	k.gone.errors[code].Add(1)
	text := "the daemon is draining: it takes no new connections"
	if code == CodeTooManyConnections {
		text = fmt.Sprintf("%d connections are open, which is the most that are allowed", k.server.cfg.MaxConnections)
	}
	nc.SetWriteDeadline(time.Now().Add(time.Second)) // a new socket has room: this does not wait
	nc.Write(appendErrorReply(nil, opError, 0, code, text, 0))
	nc.Close()
}

// remove forgets a connection that has ended.
func (k *socket) remove(c *conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.conns, c)
	k.gone.merge(&c.counters)
}

// errCutOff is returned by a close that did not wait for everybody.
var errCutOff = errors.New("some connections were cut off: they were still busy when the drain timeout ended")

// close ends all connections: idle ones now, busy ones after the frames that they have
// received, and all of them when ctx is done.
func (k *socket) close(ctx context.Context) error {
	if k.ln == nil {
		return nil
	}
	k.unlisten()
	until, limited := ctx.Deadline()
	if !limited {
		until = time.Now().Add(k.server.cfg.FrameTimeout)
	}
	k.stopBy.Store(until.UnixNano())
	k.stopping.Store(true)
	k.each(func(c *conn) { c.nc.SetReadDeadline(time.Unix(1, 0)) })
	done := make(chan struct{})
	go func() {
		k.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	k.each(func(c *conn) { c.nc.Close() })
	<-done
	return errCutOff
}

func (k *socket) each(f func(*conn)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.conns {
		f(c)
	}
}
