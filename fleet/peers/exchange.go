package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/store"
)

// Endpoint is where to serve, and over what.
type Endpoint struct {
	Transport peer.Transport
	Address   string
}

// Remote reaches a source at an address that was looked up before, and makes sure that
// it is the host that was meant; *tcp.Transport is one.
type Remote interface {
	DialHost(ctx context.Context, address, host string) (*peer.Link, error)
}

// Config wires an [Exchange]. Hints and Blocks are required; what is missing is not done.
// The configuration of Hints wants [Exchange.Ended], so that hints of requests that have
// ended do not stay open.
type Config struct {
	Hints  *fetch.Store
	Blocks *store.Store

	// Serve are the endpoints for peers, who may have what Auth lets them.
	Serve []Endpoint
	Auth  peer.Authorizer
	// Server, Fetch and Outcomes bound what is done; their wiring is filled in.
	Server   peer.ServerConfig
	Fetch    fetcher.Config
	Outcomes outcome.Config
	// Ahead bounds what is brought ahead of need.
	Ahead AheadConfig

	// Remote reaches sources on other machines. Nil: none.
	Remote Remote
	// Local reaches sources on this machine, at the Unix sockets that Sockets gives by
	// the text of the source.
	Local   peer.Transport
	Sockets map[string]string
}

// Exchange serves blocks and fetches them.
type Exchange struct {
	Fetcher  *fetcher.Fetcher
	Outcomes *outcome.Ledger

	cfg       Config
	ahead     *ahead
	server    *peer.Server
	addresses []string
	serving   sync.WaitGroup
}

// New opens the endpoints and serves.
func New(cfg Config) (*Exchange, error) {
	blocks := NewBlocks(cfg.Blocks)
	x := &Exchange{Outcomes: outcome.NewLedger(cfg.Outcomes), cfg: cfg}
	incarnation := peer.NewIncarnation()
	var open []peer.Listener
	for _, e := range cfg.Serve {
		l, err := e.Transport.Listen(e.Address)
		if err != nil {
			for _, l := range open {
				l.Close()
			}
			return nil, fmt.Errorf("serve peers at %s: %w", e.Address, err)
		}
		open = append(open, l)
		x.addresses = append(x.addresses, l.Address())
	}
	if cfg.Auth == nil {
		cfg.Auth = peer.Rules(nil)
	}
	server := cfg.Server
	server.Source, server.Auth, server.Incarnation = blocks, cfg.Auth, incarnation
	x.server = peer.NewServer(server)
	for _, l := range open {
		x.serving.Go(func() { x.server.Serve(l) }) // its error is that of Close
	}
	f := cfg.Fetch
	f.Hints, f.Local, f.Outcomes, f.Dial, f.Client.Incarnation = cfg.Hints, blocks, x.Outcomes, x.dial, incarnation
	x.Fetcher = fetcher.New(f)
	x.ahead = newAhead(x, cfg.Ahead)
	return x, nil
}

// Addresses are the endpoints that are served, as they are dialled.
func (x *Exchange) Addresses() []string { return x.addresses }

// Stats reads the counters of both sides.
func (x *Exchange) Stats() (peer.ServerStats, fetcher.Stats, outcome.Stats) {
	return x.server.Stats(), x.Fetcher.Stats(), x.Outcomes.Stats()
}

// Readers tells which peers have asked for blocks, and those that are not counted apart last.
func (x *Exchange) Readers() []peer.Reader { return x.server.Readers() }

// Close ends what is under way, in both directions, and waits for its end: then the
// block store has no lease and no reservation of this exchange.
func (x *Exchange) Close() {
	x.ahead.close()
	x.Fetcher.Close()
	x.server.Close()
	x.serving.Wait()
}

// ErrUnreachable: the allow list let the source pass, but nothing here reaches it.
var ErrUnreachable = errors.New("no transport is configured for this source")

// dial connects to a source.
func (x *Exchange) dial(ctx context.Context, src fetch.Source) (*peer.Link, error) {
	if path, ok := x.cfg.Sockets[src.String()]; ok && x.cfg.Local != nil {
		return x.cfg.Local.Dial(ctx, path)
	}
	if x.cfg.Remote == nil || src.Scheme() != "tcp" {
		return nil, fmt.Errorf("%s: %w", src, ErrUnreachable)
	}
	err := error(fmt.Errorf("%s: %w", src, ErrUnreachable))
	for _, addr := range src.Addrs() {
		var l *peer.Link
		if l, err = x.cfg.Remote.DialHost(ctx, addr.String(), src.Host()); err == nil {
			return l, nil
		}
	}
	return nil, err
}
