package peer

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ServerConfig bounds a [Server]. Source and Auth are required; a bound that is zero
// or negative takes its default.
type ServerConfig struct {
	Source Source
	Auth   Authorizer
	// Incarnation of this process. Default: a new one.
	Incarnation uint64
	// HandshakeTimeout bounds the time to authenticate and say Hello. Default 5 s.
	HandshakeTimeout time.Duration
	// IdleTimeout ends links that ask for nothing. Default 2 minutes.
	IdleTimeout time.Duration
	// OpTimeout caps the time that a target may give an operation, and so the time that
	// blocks are leased for it. Default 30 s.
	OpTimeout time.Duration
	// MaxLinks caps connections, those in the handshake included. Default 256.
	MaxLinks int
	// MaxLinksPerPeer caps connections of one identity. Default 16.
	MaxLinksPerPeer int
	// MaxBlocks caps the blocks of one request. Default 4,096, at most [MaxBlocks].
	MaxBlocks int
	// MaxBytesPerPeer caps the bytes under lease for one identity. Default 1 GiB.
	MaxBytesPerPeer int64
}

func orDefault[T int | int64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

func (c *ServerConfig) setDefaults() {
	orDefault(&c.HandshakeTimeout, 5*time.Second)
	orDefault(&c.IdleTimeout, 2*time.Minute)
	orDefault(&c.OpTimeout, 30*time.Second)
	orDefault(&c.MaxLinks, 256)
	orDefault(&c.MaxLinksPerPeer, 16)
	orDefault(&c.MaxBlocks, 4096)
	orDefault(&c.MaxBytesPerPeer, 1<<30)
	c.MaxBlocks = min(c.MaxBlocks, MaxBlocks)
	if c.Incarnation == 0 {
		c.Incarnation = NewIncarnation()
	}
}

// Server serves blocks to peers. It is safe for concurrent use.
type Server struct {
	cfg ServerConfig

	mu        sync.Mutex
	closed    bool
	listeners map[Listener]struct{}
	pending   map[Incoming]struct{} // in the handshake
	links     map[*Link]struct{}
	byPeer    map[Identity]*peerUse
	work      sync.WaitGroup

	stats   serverCounters
	readers readers
}

// peerUse is what one identity has in use. It is dropped with its last link.
type peerUse struct {
	links  int
	leased atomic.Int64 // bytes
}

type serverCounters struct {
	links, refused, failed, requests, denied, blocks, bytes, cut atomic.Uint64
}

// ServerStats counts what a server holds and has done.
type ServerStats struct {
	Open      int   // links
	Handshake int   // connections in the handshake
	Leased    int64 // bytes

	Links    uint64 // that were authenticated
	Refused  uint64 // connections over a cap
	Failed   uint64 // handshakes
	Requests uint64
	Denied   uint64 // requests for a namespace that the peer may not read
	Blocks   uint64 // served
	Bytes    uint64 // of them
	Cut      uint64 // requests whose link broke, or was broken, before their end
}

// NewServer makes a server.
func NewServer(cfg ServerConfig) *Server {
	cfg.setDefaults()
	return &Server{
		cfg: cfg, listeners: make(map[Listener]struct{}), pending: make(map[Incoming]struct{}),
		links: make(map[*Link]struct{}), byPeer: make(map[Identity]*peerUse),
	}
}

// Stats reads the counters.
func (s *Server) Stats() ServerStats {
	st := ServerStats{
		Links: s.stats.links.Load(), Refused: s.stats.refused.Load(), Failed: s.stats.failed.Load(), Requests: s.stats.requests.Load(),
		Denied: s.stats.denied.Load(), Blocks: s.stats.blocks.Load(), Bytes: s.stats.bytes.Load(), Cut: s.stats.cut.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Open, st.Handshake = len(s.links), len(s.pending)
	for _, u := range s.byPeer {
		st.Leased += u.leased.Load()
	}
	return st
}

// Serve accepts links until the listener or the server is closed, and then returns
// [net.ErrClosed]. It closes the listener.
func (s *Server) Serve(l Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		l.Close()
		return net.ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		l.Close()
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	for wait := time.Duration(0); ; {
		in, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return net.ErrClosed
			}
			wait = min(max(2*wait, time.Millisecond), time.Second) // out of descriptors, say
			time.Sleep(wait)
			continue
		}
		wait = 0
		if !s.admit(in) {
			in.Close()
			continue
		}
		go s.run(in)
	}
}

// admit counts a connection, if there is room for one more.
func (s *Server) admit(in Incoming) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.pending)+len(s.links) >= s.cfg.MaxLinks {
		s.stats.refused.Add(1)
		return false
	}
	s.pending[in] = struct{}{}
	s.work.Add(1)
	return true
}

func (s *Server) run(in Incoming) {
	defer s.work.Done()
	deadline := time.Now().Add(s.cfg.HandshakeTimeout)
	link, err := in.Handshake(deadline)
	if link == nil {
		s.mu.Lock()
		delete(s.pending, in)
		s.mu.Unlock()
		if err != nil {
			s.stats.failed.Add(1)
		}
		return
	}
	link.setDeadline(deadline)
	use, ok := s.enter(in, link)
	ss := &session{server: s, use: use, frames: frames{link: link, self: s.cfg.Incarnation}}
	defer s.leave(link, use)
	if !ok {
		s.stats.refused.Add(1)
		ss.refuse("this peer has too many links already")
		return
	}
	if err := ss.greet(); err != nil {
		s.stats.failed.Add(1)
		return
	}
	s.stats.links.Add(1)
	for ss.serve() == nil {
	}
}

// enter makes a link out of a connection. False: it is one too many for its peer.
func (s *Server) enter(in Incoming, link *Link) (*peerUse, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, in)
	use := s.byPeer[link.Peer]
	if use == nil {
		use = &peerUse{}
	}
	if s.closed {
		link.Close()
	}
	use.links++
	s.byPeer[link.Peer] = use
	s.links[link] = struct{}{}
	return use, use.links <= s.cfg.MaxLinksPerPeer
}

func (s *Server) leave(link *Link, use *peerUse) {
	link.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, link)
	if use.links--; use.links == 0 {
		delete(s.byPeer, link.Peer)
	}
}

// Close ends all links and waits until every lease has been released.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for l := range s.listeners {
		l.Close()
	}
	for in := range s.pending {
		in.Close()
	}
	for l := range s.links {
		l.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// credit is how many bytes a peer may have under lease at once.
func (s *Server) credit(use *peerUse) uint64 {
	return uint64(max(0, s.cfg.MaxBytesPerPeer-use.leased.Load()))
}

// DialFunc connects to one peer, as [Transport.Dial] does.
type DialFunc func(ctx context.Context) (*Link, error)
