package peertest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// faults is what happens to the bytes that a source sends, control and payload counted
// together over one link. The zero value does nothing.
type faults struct {
	cutAt   int // the link is closed before this byte; 0: never
	flipAt  int // a bit of this byte is flipped; 0: never
	stallAt int // nothing is sent from this byte on, until release; 0: never
	trickle time.Duration

	mu       sync.Mutex
	released chan struct{}
}

func (f *faults) gate() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.released == nil {
		f.released = make(chan struct{})
	}
	return f.released
}

func (f *faults) release() {
	g := f.gate()
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-g:
	default:
		close(g)
	}
}

// faulty is a transport whose links, on the listening side, suffer faults.
type faulty struct {
	peer.Transport
	faults *faults
}

func (f *faulty) Listen(addr string) (peer.Listener, error) {
	l, err := f.Transport.Listen(addr)
	if err != nil {
		return nil, err
	}
	return &faultyListener{l, f.faults}, nil
}

type faultyListener struct {
	peer.Listener
	faults *faults
}

func (l *faultyListener) Accept() (peer.Incoming, error) {
	in, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &faultyIncoming{in, l.faults}, nil
}

type faultyIncoming struct {
	peer.Incoming
	faults *faults
}

func (in *faultyIncoming) Handshake(deadline time.Time) (*peer.Link, error) {
	l, err := in.Incoming.Handshake(deadline)
	if l == nil || err != nil {
		return l, err
	}
	sent := &count{}
	same := l.Control == l.Data
	l.Control = &faultyConn{Conn: l.Control, faults: in.faults, sent: sent, closed: make(chan struct{}), end: l.Close}
	if same {
		l.Data = l.Control
	} else {
		l.Data = &faultyConn{Conn: l.Data, faults: in.faults, sent: sent, closed: make(chan struct{}), end: l.Close}
	}
	return l, nil
}

type count struct {
	mu sync.Mutex
	n  int
}

type faultyConn struct {
	net.Conn
	faults *faults
	sent   *count
	once   sync.Once
	closed chan struct{}
	end    func()
}

var errCut = errors.New("the link was cut by the test")

func (c *faultyConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Write sends up to the next fault and then lets it happen.
func (c *faultyConn) Write(b []byte) (n int, err error) {
	f := c.faults
	c.sent.mu.Lock()
	defer c.sent.mu.Unlock()
	at := c.sent.n
	if f.flipAt > at && f.flipAt <= at+len(b) {
		b = append([]byte{}, b...)
		b[f.flipAt-at-1] ^= 1 << (f.flipAt % 8)
	}
	rest := b
	stop := len(b)
	if f.cutAt > at && f.cutAt <= at+len(b) {
		stop = f.cutAt - at - 1
	}
	if f.stallAt > at && f.stallAt <= at+len(b) {
		stop = f.stallAt - at - 1
	}
	for rest = b[:stop]; len(rest) > 0; {
		k := len(rest)
		if f.trickle > 0 {
			k = 1
			select {
			case <-time.After(f.trickle):
			case <-c.closed:
				return n, net.ErrClosed
			}
		}
		k, err = c.Conn.Write(rest[:k])
		n, rest = n+k, rest[k:]
		c.sent.n += k
		if err != nil {
			return n, err
		}
	}
	if stop == len(b) {
		return n, nil
	}
	if f.cutAt > 0 {
		c.end()
		return n, errCut
	}
	select {
	case <-f.gate():
	case <-c.closed:
	}
	return n, errCut
}

// dialRaw connects and says nothing.
func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func testSilent(t *testing.T, e Env) {
	from, to := store(t, e, 1, large), store(t, e, 1, large)
	hashes := fill(t, from, large)
	// In the greeting, in the answer, and, where payload is sent, in mid-block.
	for _, at := range []int{1, 70, 5000} {
		if at == 5000 && e.Slab {
			continue
		}
		f := &faults{stallAt: at}
		s := serve(t, e, &faulty{e.Source, f}, e.Address(t), from, peer.ServerConfig{})
		c := target(t, e, s.addr, to, peer.ClientConfig{})
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		res, err := c.Pull(ctx, request(hashes), make([]peer.Status, 1))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || res.Blocks != 0 {
			t.Errorf("silent from byte %d: %+v, %v", at, res, err)
		}
		if u := to.Use(); u.Filling != 0 || u.Ready != 0 {
			t.Errorf("silent from byte %d: the target has %+v", at, u)
		}
		f.release()
		s.close(t)
	}
}

func testCancel(t *testing.T, e Env) {
	from, to := store(t, e, 1, large), store(t, e, 1, large)
	hashes := fill(t, from, large)
	f := &faults{stallAt: 70}
	s := serve(t, e, &faulty{e.Source, f}, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{OpTimeout: patience})
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error, 1)
	go func() {
		_, err := c.Pull(ctx, request(hashes), make([]peer.Status, 1))
		errs <- err
	}()
	eventually(t, "the source has the request", func() bool { return s.server.Stats().Requests == 1 })
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if u := to.Use(); u.Filling != 0 || u.Ready != 0 {
		t.Errorf("the target has %+v", u)
	}
	f.release()
}

// places are bytes of a link's life to break: all of the small frames, and some of the
// payload.
func places(e Env, sizes []int) (at []int) {
	total := 32 + 32 + 32 + 8 + 40*len(sizes) + 32 + 16
	if !e.Slab {
		for _, n := range sizes {
			total += n + 24
		}
	}
	step := 1
	for i := 1; i <= total; i += step {
		at = append(at, i)
		if step = 1 + total/150; i < 150 {
			step = 3
		}
	}
	return at
}

func testCut(t *testing.T, e Env) {
	sizes := append(repeat(700, 3), 1<<20, 300_000, 900_000)
	from := store(t, e, 8, large)
	hashes := fill(t, from, sizes...)
	partial := false
	for i, at := range places(e, sizes) {
		if i%4 != 0 {
			continue
		}
		to := store(t, e, 8, large)
		s := serve(t, e, &faulty{e.Source, &faults{cutAt: at}}, e.Address(t), from, peer.ServerConfig{})
		c := target(t, e, s.addr, to, peer.ClientConfig{})
		res, status, err := pull(t, c, request(hashes))
		if err == nil {
			t.Errorf("cut at byte %d: %+v", at, res)
		}
		right(t, to, hashes, sizes, status)
		partial = partial || res.Blocks > 0
		c.Close()
		s.close(t)
		to.Close()
	}
	if !partial && !e.Slab {
		t.Error("no cut left whole blocks")
	}
}

func testFlip(t *testing.T, e Env) {
	sizes := append(repeat(700, 3), 50_000, 30_000)
	from := store(t, e, 8, 1<<16)
	hashes := fill(t, from, sizes...)
	failed := 0
	for _, at := range places(e, sizes) {
		to := store(t, e, 8, 1<<16)
		s := serve(t, e, &faulty{e.Source, &faults{flipAt: at}}, e.Address(t), from, peer.ServerConfig{})
		c := target(t, e, s.addr, to, peer.ClientConfig{})
		// A length that is flipped up makes the target wait for bytes that never come.
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		status := make([]peer.Status, len(hashes))
		_, err := c.Pull(ctx, request(hashes), status)
		cancel()
		right(t, to, hashes, sizes, status)
		if err != nil {
			failed++
		}
		c.Close()
		s.close(t)
		to.Close()
	}
	if failed == 0 {
		t.Error("no flipped bit was noticed")
	}
}

func testTrickle(t *testing.T, e Env) {
	from, to := store(t, e, 1, large), store(t, e, 1, large)
	hashes := fill(t, from, large)
	s := serve(t, e, &faulty{e.Source, &faults{trickle: 5 * time.Millisecond}}, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if res, err := c.Pull(ctx, request(hashes), make([]peer.Status, 1)); !errors.Is(err, context.DeadlineExceeded) || res.Blocks != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if u := to.Use(); u.Filling != 0 {
		t.Errorf("the target has %+v", u)
	}
}

func testRestart(t *testing.T, e Env) {
	sizes := repeat(1000, 4)
	from, to := store(t, e, 4, 4096), store(t, e, 4, 4096)
	hashes := fill(t, from, sizes...)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{})
	first, _, err := pull(t, c, request(hashes[:1]))
	if err != nil {
		t.Fatal(err)
	}
	addr := s.addr
	s.close(t)
	serve(t, e, e.Source, addr, from, peer.ServerConfig{})
	second, status, err := pull(t, c, request(hashes))
	if err != nil || second.Blocks != 4 || second.Source == first.Source {
		t.Errorf("%+v after %+v, %v", second, first, err)
	}
	right(t, to, hashes, sizes, status)
	if st := c.Stats(); st.Restarts != 1 || st.Redials != 1 {
		t.Errorf("%+v", st)
	}
}

func testCloseSource(t *testing.T, e Env) {
	from, to := store(t, e, 1, large), store(t, e, 1, large)
	hashes := fill(t, from, large)
	f := &faults{stallAt: 140}
	s := serve(t, e, &faulty{e.Source, f}, e.Address(t), from, peer.ServerConfig{})
	c := target(t, e, s.addr, to, peer.ClientConfig{OpTimeout: patience})
	errs := make(chan error, 1)
	go func() {
		_, err := c.Pull(context.Background(), request(hashes), make([]peer.Status, 1))
		errs <- err
	}()
	eventually(t, "the source has the request", func() bool { return s.server.Stats().Requests == 1 })
	s.close(t) // checks leases and links
	if err := <-errs; err == nil {
		t.Error("a pull from a closed source succeeded")
	}
}

func testVanish(t *testing.T, e Env) {
	from := store(t, e, 4, large)
	fill(t, from, repeat(large, 4)...)
	s := serve(t, e, e.Source, e.Address(t), from, peer.ServerConfig{OpTimeout: patience})
	// A target that asks, reads no more than the answer's first bytes, and is gone.
	to := store(t, e, 4, large)
	gone, vanish := context.WithCancel(context.Background())
	c := peer.NewClient(peer.ClientConfig{OpTimeout: patience}, func(ctx context.Context) (*peer.Link, error) {
		l, err := e.Target.Dial(ctx, s.addr)
		if err != nil {
			return nil, err
		}
		same := l.Control == l.Data
		l.Control = &forgetful{l.Control, l, 130, vanish}
		if same {
			l.Data = l.Control
		}
		return l, nil
	}, to)
	defer c.Close()
	if _, _, err := pull(t, c, request([]uint64{1, 2, 3, 4})); err == nil {
		t.Error("a target that vanished got its blocks")
	}
	<-gone.Done()
	eventually(t, "the leases end", func() bool { return from.Use().Leased == 0 && s.server.Stats().Leased == 0 })
}

// forgetful closes its link when it has read so many bytes.
type forgetful struct {
	net.Conn
	link *peer.Link
	left int
	gone func()
}

func (f *forgetful) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b[:min(len(b), f.left)])
	if f.left -= n; f.left == 0 {
		f.left = 1
		f.link.Close()
		f.gone()
		return n, net.ErrClosed
	}
	return n, err
}
