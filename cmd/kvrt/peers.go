package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/fleet/peers"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/tcp"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
	"github.com/kvrt/kvrt/hosts/store"
)

// trust is whom the exchange of blocks shows what and believes: what a reload changes of
// it while it runs.
type trust struct {
	rules  peer.Rulebook
	socket *unixsock.Transport
	remote *tcp.Transport // nil without certificates
}

// credentials are what a configuration says of trust.
type credentials struct {
	rules       peer.Rules
	uids        []uint32
	certificate *tls.Certificate // nil without
	roots       *x509.CertPool
	sources     []string
}

// newExchange opens the exchange of blocks with other kvrts; nil without the section.
func newExchange(cfg *config.Config, hints *fetch.Store, blocks *store.Store) (*peers.Exchange, *trust, error) {
	p := cfg.Peers
	if p == nil {
		return nil, nil, nil
	}
	cr, err := readCredentials(cfg)
	if err != nil {
		return nil, nil, err
	}
	t := &trust{socket: &unixsock.Transport{UIDs: cr.uids}}
	t.rules.Set(cr.rules)
	c := peers.Config{Hints: hints, Blocks: blocks, Auth: &t.rules, Local: &unixsock.Transport{}, Sockets: map[string]string{}}
	c.Fetch.OpTimeout = p.FetchTimeout
	c.Fetch.BlockBytes = int(slices.Max(cfg.Store.BlockBytes)) // none that is larger could be kept
	for _, s := range p.Sockets {
		c.Sockets[s.Source] = s.Path
	}
	if cr.certificate != nil {
		t.remote = &tcp.Transport{Certificate: *cr.certificate, Roots: cr.roots, Sources: cr.sources, ClearData: p.ClearData}
		c.Remote = t.remote
	}
	if p.Socket != "" {
		c.Serve = append(c.Serve, peers.Endpoint{Transport: t.socket, Address: p.Socket})
	}
	if p.Listen != "" {
		c.Serve = append(c.Serve, peers.Endpoint{Transport: t.remote, Address: p.Listen})
	}
	x, err := peers.New(c)
	if err != nil {
		return nil, nil, &config.Error{Problems: []config.Problem{cfg.Problem("peers", err.Error())}}
	}
	return x, t, nil
}

// readCredentials reads the files that a configuration names; nil without the section.
func readCredentials(cfg *config.Config) (*credentials, error) {
	p := cfg.Peers
	if p == nil {
		return nil, nil
	}
	cr := &credentials{rules: peerRules(p), uids: peerUIDs(p), sources: p.SourceNames}
	if p.Certificate == "" {
		return cr, nil
	}
	wrong := func(key string, err error) (*credentials, error) {
		return nil, &config.Error{Problems: []config.Problem{cfg.Problem("peers."+key, err.Error())}}
	}
	cert, err := tls.LoadX509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return wrong("certificate", err)
	}
	if until := cert.Leaf.NotAfter; time.Now().After(until) {
		return wrong("certificate", fmt.Errorf("%s has expired, on %s", p.Certificate, until.UTC().Format(time.DateTime)))
	}
	pem, err := os.ReadFile(p.Roots)
	if err != nil {
		return wrong("roots", err)
	}
	cr.certificate, cr.roots = &cert, x509.NewCertPool()
	if !cr.roots.AppendCertsFromPEM(pem) {
		return wrong("roots", errors.New(p.Roots+" has no certificate in PEM form"))
	}
	return cr, nil
}

// renew changes whom a running exchange believes. Transfers under way end as they began.
func (t *trust) renew(cr *credentials) {
	if t == nil || cr == nil {
		return
	}
	t.rules.Set(cr.rules)
	t.socket.Renew(cr.uids)
	if t.remote != nil && cr.certificate != nil {
		t.remote.Renew(*cr.certificate, cr.roots, cr.sources)
	}
}

// peersNeedRestart tells whether two configurations differ in what a reload leaves alone.
func peersNeedRestart(old, cfg *config.Peers) bool {
	if (old == nil) != (cfg == nil) {
		return true
	}
	if old == nil {
		return false
	}
	a, b := *old, *cfg
	for _, p := range []*config.Peers{&a, &b} {
		p.Allow, p.SourceNames, p.Roots, p.Key = nil, nil, "", ""
		if p.Certificate != "" {
			p.Certificate = "some"
		}
	}
	return !reflect.DeepEqual(a, b)
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
