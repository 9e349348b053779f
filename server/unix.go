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
	"syscall"
	"time"
)

// unixSocket is a Unix socket that the daemon listens on.
type unixSocket struct {
	path string
	ln   *net.UnixListener
	file os.FileInfo // of the socket that was made, so that no other is removed
}

// listen makes the socket file. One that a dead daemon left behind is replaced, one
// that somebody listens on is not.
func (u *unixSocket) listen(ctx context.Context, mode os.FileMode) error {
	path := u.path
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
	mode = mode.Perm()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// On Linux the file gets the mode that its descriptor has; elsewhere this does
		// nothing, and the chmod below closes a short gap.
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), uint32(mode)) })
	}}
	ln, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	u.ln = ln.(*net.UnixListener)
	u.ln.SetUnlinkOnClose(false)
	if err = os.Chmod(path, mode); err == nil {
		u.file, err = os.Lstat(path)
	}
	if err != nil {
		u.ln.Close()
		return fmt.Errorf("socket %s: %w", path, err)
	}
	return nil
}

// unlisten closes the listener and removes the socket file, unless it is another's by
// now.
func (u *unixSocket) unlisten() {
	u.ln.Close()
	if info, err := os.Lstat(u.path); err == nil && os.SameFile(info, u.file) {
		os.Remove(u.path)
	}
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
