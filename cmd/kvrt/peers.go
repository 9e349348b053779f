package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/tcp"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
	"github.com/kvrt/kvrt/hosts/store"
)

// newExchange opens the exchange of blocks with other kvrts; nil without the section.
func newExchange(cfg *config.Config, hints *fetch.Store, blocks *store.Store) (*peers.Exchange, error) {
	p := cfg.Peers
	if p == nil {
		return nil, nil
	}
	remote, problem := tlsTransport(cfg)
	if problem != nil {
		return nil, &config.Error{Problems: []config.Problem{*problem}}
	}
	c := peers.Config{Hints: hints, Blocks: blocks, Auth: peerRules(p), Local: &unixsock.Transport{}, Sockets: map[string]string{}}
	for _, s := range p.Sockets {
		c.Sockets[s.Source] = s.Path
	}
	if remote != nil {
		c.Remote = remote
	}
	if p.Socket != "" {
		c.Serve = append(c.Serve, peers.Endpoint{Transport: &unixsock.Transport{UIDs: peerUIDs(p)}, Address: p.Socket})
	}
	if p.Listen != "" {
		c.Serve = append(c.Serve, peers.Endpoint{Transport: remote, Address: p.Listen})
	}
	x, err := peers.New(c)
	if err != nil {
		return nil, &config.Error{Problems: []config.Problem{cfg.Problem("peers", err.Error())}}
	}
	return x, nil
}

// tlsTransport reads the certificates; nil when there are none.
func tlsTransport(cfg *config.Config) (*tcp.Transport, *config.Problem) {
	p := cfg.Peers
	if p.Certificate == "" {
		return nil, nil
	}
	wrong := func(key string, err error) (*tcp.Transport, *config.Problem) {
		problem := cfg.Problem("peers."+key, err.Error())
		return nil, &problem
	}
	cert, err := tls.LoadX509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return wrong("certificate", err)
	}
	pem, err := os.ReadFile(p.Roots)
	if err != nil {
		return wrong("roots", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return wrong("roots", errors.New(p.Roots+" has no certificate in PEM form"))
	}
	return &tcp.Transport{Certificate: cert, Roots: roots, ClearData: p.ClearData}, nil
}

// peerRules is the allow list.
func peerRules(p *config.Peers) (rules peer.Rules) {
	for _, a := range p.Allow {
		r := peer.Rule{Peer: peer.Identity{Name: a.Name}, All: a.All}
		if a.UID != nil {
			r.Peer.UID = *a.UID
		}
		for _, n := range a.Namespaces {
			r.Namespaces = append(r.Namespaces, store.Namespace(n.Tenant, n.Namespace))
		}
		rules = append(rules, r)
	}
	return rules
}

// peerUIDs are the users that may open the socket: this one, and those of the list.
func peerUIDs(p *config.Peers) []uint32 {
	uids := []uint32{uint32(os.Geteuid())}
	for _, a := range p.Allow {
		if a.UID != nil && *a.UID != uids[0] {
			uids = append(uids, *a.UID)
		}
	}
	return uids
}

// closePeers ends the exchange, once nothing asks for blocks any more. It may be called
// again.
func (s *stack) closePeers() {
	if s.peers != nil && !s.peersClosed {
		s.peers.Close()
	}
	s.peersClosed = true
}
