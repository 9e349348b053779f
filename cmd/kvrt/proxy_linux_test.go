package main

import (
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// proxy stands between a target and its source, and decides what passes. It carries
// descriptors over Unix sockets.
type proxy struct {
	addr  string
	dial  func() (net.Conn, error)
	mu    sync.Mutex
	rule  rule
	down  int // bytes from the source since the rule was set
	conns map[net.Conn]struct{}
	held  chan struct{} // closed when something is held back, or cut
	free  chan struct{} // closed to let it go
	work  sync.WaitGroup
}

// rule decides on a piece on its way: how much of it passes before the fault. down is
// what came from the source before. All of it: no fault yet.
type rule struct {
	pass func(fromSource bool, down int, piece []byte) int
	flip bool          // the fault is a bit of the next byte; all else passes
	cut  bool          // the fault is the end of all connections; else it is silence
	slow time.Duration // after each byte from the source
}

// after lets so many bytes of the source pass.
func after(n int) func(bool, int, []byte) int {
	return func(fromSource bool, down int, piece []byte) int {
		if !fromSource {
			return len(piece)
		}
		return min(len(piece), max(0, n-down))
	}
}

// beforeDone holds back the target's word that it has copied out of the slab.
func beforeDone(fromSource bool, _ int, piece []byte) int {
	if !fromSource && len(piece) >= 5 && piece[4] == 7 {
		return 0
	}
	return len(piece)
}

func newProxy(t *testing.T, l net.Listener, dial func() (net.Conn, error)) *proxy {
	p := &proxy{addr: l.Addr().String(), dial: dial, conns: make(map[net.Conn]struct{})}
	p.set(rule{})
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.join(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.release()
		p.sever()
		p.work.Wait()
	})
	return p
}

// set makes a rule for what passes from now on.
func (p *proxy) set(r rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule, p.down = r, 0
	p.held, p.free = make(chan struct{}), make(chan struct{})
}

// release lets go what is held, and everything after it.
func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule{}
	closeOnce(p.free)
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// sever ends all connections.
func (p *proxy) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) join(near net.Conn) {
	far, err := p.dial()
	if err != nil {
		near.Close()
		return
	}
	p.mu.Lock()
	p.conns[near], p.conns[far] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.carry(near, far, true) })
	both.Go(func() { p.carry(far, near, false) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, near)
	delete(p.conns, far)
	p.mu.Unlock()
}

func (p *proxy) carry(to, from net.Conn, fromSource bool) {
	defer to.Close()
	defer from.Close()
	buf, oob := make([]byte, 32<<10), make([]byte, 128)
	for {
		n, files, err := receive(from, buf, oob)
		if err != nil {
			return
		}
		piece := buf[:n]
		p.mu.Lock()
		r, held, free := p.rule, p.held, p.free
		k := n
		if r.pass != nil {
			k = r.pass(fromSource, p.down, piece)
		}
		if k < n && r.flip {
			piece[k] ^= 1 << (p.down % 8)
			p.rule, k = rule{}, n
			closeOnce(held)
		}
		if fromSource {
			p.down += k
		}
		p.mu.Unlock()
		if k < n {
			closeAll(files) // what passes ends before them
			files = nil
		}
		ok := forward(to, piece[:k], files, r.slow, fromSource)
		if ok && k < n {
			p.mu.Lock()
			closeOnce(held)
			p.mu.Unlock()
			if r.cut {
				p.sever()
				return
			}
			<-free
			ok = forward(to, piece[k:], nil, 0, fromSource)
		}
		if !ok {
			return
		}
	}
}

// receive reads, and takes descriptors along.
func receive(from net.Conn, buf, oob []byte) (n int, files []int, err error) {
	u, ok := from.(*net.UnixConn)
	if !ok {
		n, err = from.Read(buf)
		return n, nil, err
	}
	n, size, _, _, err := u.ReadMsgUnix(buf, oob)
	if err != nil || n == 0 {
		return 0, nil, net.ErrClosed
	}
	if msgs, err := unix.ParseSocketControlMessage(oob[:size]); err == nil {
		for i := range msgs {
			if got, err := unix.ParseUnixRights(&msgs[i]); err == nil {
				files = append(files, got...)
			}
		}
	}
	return n, files, nil
}

func forward(to net.Conn, piece []byte, files []int, slow time.Duration, fromSource bool) bool {
	if len(files) > 0 {
		// They came with the last byte, and a read that does not ask for them loses them.
		last := len(piece) - 1
		if last > 0 {
			to.Write(piece[:last])
		}
		_, _, err := to.(*net.UnixConn).WriteMsgUnix(piece[last:], unix.UnixRights(files...), nil)
		closeAll(files)
		return err == nil
	}
	for slow > 0 && fromSource && len(piece) > 0 {
		if _, err := to.Write(piece[:1]); err != nil {
			return false
		}
		piece = piece[1:]
		time.Sleep(slow) // the fault itself
	}
	_, err := to.Write(piece)
	return err == nil
}

func closeAll(files []int) {
	for _, f := range files {
		unix.Close(f)
	}
}
