package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// socket is the listening side of the data socket.
type socket struct {
	server *Server
	unixSocket
	budget *budget

	accepted, refused atomic.Uint64
	followers         atomic.Int32

	mu       sync.Mutex // guards what follows
	conns    map[*conn]struct{}
	gone     counters // of connections that are closed
	running  sync.WaitGroup
	stopping atomic.Bool
	stop     chan struct{} // closed when stopping
	stopBy   atomic.Int64  // when stopping: until when a frame that has begun may take, Unix ns
}

func newSocket(s *Server) *socket {
	return &socket{server: s, conns: map[*conn]struct{}{}, stop: make(chan struct{}), unixSocket: unixSocket{path: s.cfg.Socket}, budget: &s.budget}
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
	close(k.stop)
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
