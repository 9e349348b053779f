package peer

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// pipes is a listener whose connections are made by the test.
type pipes struct {
	ch   chan net.Conn
	once sync.Once
	end  chan struct{}
}

func newPipes() *pipes { return &pipes{ch: make(chan net.Conn), end: make(chan struct{})} }

func (p *pipes) Address() string { return "pipe" }
func (p *pipes) Close() error    { p.once.Do(func() { close(p.end) }); return nil }

func (p *pipes) Accept() (Incoming, error) {
	select {
	case c := <-p.ch:
		return pipeIncoming{c}, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) dial(context.Context) (*Link, error) {
	near, far := net.Pipe()
	select {
	case p.ch <- far:
		return &Link{Control: near, Data: near}, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

type pipeIncoming struct{ c net.Conn }

func (in pipeIncoming) Close() { in.c.Close() }
func (in pipeIncoming) Handshake(time.Time) (*Link, error) {
	return &Link{Peer: Identity{Name: "pipe"}, Control: in.c, Data: in.c}, nil
}

type anybody struct{}

func (anybody) MayRead(Identity, []byte) bool { return true }
func (anybody) MayMap(Identity) bool          { return true }

func startServer(t testing.TB, cfg ServerConfig, v *vault) (*Server, *pipes, func()) {
	cfg.Source, cfg.Auth = v, anybody{}
	s, p := NewServer(cfg), newPipes()
	done := make(chan error, 1)
	go func() { done <- s.Serve(p) }()
	return s, p, func() {
		s.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestBadTargets: whatever a target says, the source ends the link and every lease.
func TestBadTargets(t *testing.T) {
	ask := func(f *frames, op uint64, m fetch) { f.send(frameFetch, op, m.append(f.body())) }
	good := fetch{timeoutMS: 1000, maxBytes: 1 << 20, namespace: []byte("n"), hashes: []uint64{1, 2}}
	for name, do := range map[string]func(f *frames){
		"a Fetch before Hello":        func(f *frames) { f.peer = 1; ask(f, 1, good) },
		"Hello of another magic":      func(f *frames) { f.send(frameHello, 0, append(f.body(), make([]byte, helloBytes)...)) },
		"Hello twice":                 func(f *frames) { f.hi(); f.send(frameHello, 0, new(hello).append(f.body())) },
		"Done without a slab":         func(f *frames) { f.hi(); f.send(frameDone, 1, f.body()) },
		"another incarnation":         func(f *frames) { f.hi(); f.self++; ask(f, 1, good) },
		"for another incarnation":     func(f *frames) { f.hi(); f.peer++; ask(f, 1, good) },
		"a Fetch without blocks":      func(f *frames) { f.hi(); m := good; m.hashes = nil; ask(f, 1, m) },
		"garbage":                     func(f *frames) { f.link.Control.Write(make([]byte, 64)) },
		"gone after the question":     func(f *frames) { f.hi(); ask(f, 1, good) },
		"gone in mid-frame":           func(f *frames) { f.hi(); f.link.Control.Write([]byte{1, 2, 3}) },
		"an answer that nobody reads": func(f *frames) { f.hi(); ask(f, 1, good); f.receive(1, frameBegin, frameBegin) },
	} {
		v := newVault(1, 2)
		s, p, stop := startServer(t, ServerConfig{}, v)
		l, err := p.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.setDeadline(time.Now().Add(20 * time.Second))
		do(&frames{link: l, self: 5})
		l.Close()
		for s.Stats().Open+s.Stats().Handshake > 0 || s.Stats().Links+s.Stats().Failed == 0 {
			time.Sleep(time.Millisecond)
		}
		v.check(t, name)
		if st := s.Stats(); st.Leased != 0 || st.Blocks != 0 {
			t.Errorf("%s: %+v", name, st)
		}
		stop()
	}
}

// hi shakes hands.
func (f *frames) hi() {
	f.send(frameHello, 0, new(hello).append(f.body()))
	h, _, err := f.receive(0, frameWelcome, frameWelcome)
	if err != nil {
		panic(err)
	}
	f.peer = h.from
}

// TestPipelined: questions may be sent ahead of the answers, which come in order.
func TestPipelined(t *testing.T) {
	v := newVault(1, 2)
	_, p, stop := startServer(t, ServerConfig{}, v)
	defer stop()
	l, err := p.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := &frames{link: l, self: 5}
	f.hi()
	go func() {
		w := &frames{link: l, self: f.self, peer: f.peer}
		for op := uint64(1); op <= 3; op++ {
			w.send(frameFetch, op, (&fetch{timeoutMS: 1000, maxBytes: 1 << 20, hashes: []uint64{1}}).append(w.body()))
		}
	}()
	for op := uint64(1); op <= 3; op++ {
		if _, _, err := f.receive(op, frameBegin, frameBegin); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(l.Data, make([]byte, len(payload(1))+trailerBytes)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.receive(op, frameEnd, frameEnd); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCapsOnLinks(t *testing.T) {
	v := newVault(1)
	s, p, stop := startServer(t, ServerConfig{MaxLinks: 3, MaxLinksPerPeer: 2}, v)
	defer stop()
	var open []*Link
	for range 2 {
		l, err := p.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		(&frames{link: l, self: 5}).hi()
		open = append(open, l)
	}
	c := NewClient(ClientConfig{}, p.dial, newVault())
	defer c.Close()
	var refused *RefusedError
	if _, err := c.Pull(t.Context(), &Request{Hashes: []uint64{1}, MaxBytes: 1 << 20}, make([]Status, 1)); !errors.As(err, &refused) || refused.Text == "" {
		t.Errorf("a third link of a peer: %v", err)
	}
	if n := s.Stats().Refused; n != 1 {
		t.Errorf("%d links were refused", n)
	}
	for _, l := range open {
		l.Close()
	}
	for s.Stats().Open > 0 {
		time.Sleep(time.Millisecond)
	}
	if len(s.byPeer) != 0 {
		t.Errorf("%d peers are remembered without a link", len(s.byPeer))
	}
	if _, err := c.Pull(t.Context(), &Request{Hashes: []uint64{1}, MaxBytes: 1 << 20}, make([]Status, 1)); err != nil {
		t.Errorf("when the others have gone: %v", err)
	}
}

// TestPullAllocatesNothingPerBlock: 200 blocks cost what one does, once buffers have
// found their sizes.
func TestPullAllocatesNothingPerBlock(t *testing.T) {
	var hashes []uint64
	for h := range uint64(200) {
		hashes = append(hashes, h+1)
	}
	v := newVault(hashes...)
	_, p, stop := startServer(t, ServerConfig{}, v)
	defer stop()
	c := NewClient(ClientConfig{}, p.dial, reuse{make([]byte, 300)})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	status := make([]Status, 200)
	allocs := func(n int) float64 {
		req := &Request{Hashes: hashes[:n], MaxBytes: 1 << 20}
		return testing.AllocsPerRun(20, func() {
			if res, err := c.Pull(ctx, req, status[:n]); err != nil || res.Blocks != n {
				t.Fatal(res, err)
			}
		})
	}
	allocs(200)
	// net.Pipe makes a timer for each deadline, so a request has some of its own.
	if one, many := allocs(1), allocs(200); many > one+4 {
		t.Errorf("%v allocations for a block, %v for 200", one, many)
	}
}

// reuse is a sink that keeps nothing.
type reuse struct{ slot []byte }

func (r reuse) Reserve([]byte, uint64, int) (Slot, error) { return Slot{Data: r.slot}, nil }
func (r reuse) Commit(Slot, uint32) bool                  { return true }
func (r reuse) Abort(Slot)                                {}

// TestCreditIsShared: links of one peer share its bytes, and what a link holds is
// credit again when its answer has been sent.
func TestCreditIsShared(t *testing.T) {
	v := newVault(1, 2, 3, 4)
	s, p, stop := startServer(t, ServerConfig{MaxBytesPerPeer: 700}, v)
	defer stop()
	a, err := p.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	f := &frames{link: a, self: 5}
	f.hi()
	f.send(frameFetch, 1, (&fetch{timeoutMS: 20000, maxBytes: 600, hashes: []uint64{1, 2}}).append(f.body()))
	if _, _, err := f.receive(1, frameBegin, frameBegin); err != nil {
		t.Fatal(err)
	}
	c := NewClient(ClientConfig{}, p.dial, newVault()) // the first link's blocks are under lease
	defer c.Close()
	req := &Request{Hashes: []uint64{3, 4}, MaxBytes: 600}
	res, err := c.Pull(t.Context(), req, make([]Status, 2))
	if err != nil || res.Blocks != 0 || res.Stop != StopCredit {
		t.Errorf("without credit: %+v, %v", res, err)
	}
	a.Close()
	for s.Stats().Leased > 0 {
		time.Sleep(time.Millisecond)
	}
	// The link still has the old credit; the answer to its question brings the new one.
	res, err = c.Pull(t.Context(), req, make([]Status, 2))
	if err != nil || res.Blocks != 2 {
		t.Errorf("with credit again: %+v, %v", res, err)
	}
}

// FuzzTarget feeds a source whatever a target might say.
func FuzzTarget(f *testing.F) {
	const self = 9
	seed := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	frame := func(kind frameType, to uint64, body []byte) []byte {
		b := make([]byte, headerBytes)
		(&header{length: uint32(len(body)), kind: kind, op: 1, from: 5, to: to}).put(b)
		return append(b, body...)
	}
	hi := frame(frameHello, 0, new(hello).append(nil))
	ask := frame(frameFetch, self, (&fetch{timeoutMS: 10, maxBytes: 1 << 20, hashes: []uint64{1, 2, 3}}).append(nil))
	f.Add(hi)
	f.Add(seed(hi, ask, ask))
	f.Add(seed(hi, ask, frame(frameDone, self, nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := newVault(1, 2)
		_, p, stop := startServer(t, ServerConfig{Incarnation: self, HandshakeTimeout: 50 * time.Millisecond, OpTimeout: 50 * time.Millisecond}, v)
		l, err := p.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		drained := make(chan struct{})
		go func() { defer close(drained); io.Copy(io.Discard, l.Data) }()
		l.Control.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		l.Control.Write(b)
		l.Close()
		<-drained
		stop()
		v.check(t, "whatever")
	})
}
