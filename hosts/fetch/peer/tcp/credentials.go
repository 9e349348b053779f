package tcp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// credentials are what a transport shows and trusts at one time.
type credentials struct {
	certificate tls.Certificate
	roots       *x509.CertPool
	sources     []string
}

// Renew takes another certificate, other roots and other names of sources. Links that
// were dialled finish what they do and are not used again; of those that were accepted
// that is so for the ones whose peer would not be let in any more.
func (t *Transport) Renew(certificate tls.Certificate, roots *x509.CertPool, sources []string) {
	t.renewed.Store(&credentials{certificate, roots, slices.Clone(sources)})
}

func (t *Transport) credentials() *credentials {
	if c := t.renewed.Load(); c != nil {
		return c
	}
	t.renewed.CompareAndSwap(nil, &credentials{t.Certificate, t.Roots, t.Sources})
	return t.renewed.Load()
}

func (t *Transport) now() time.Time {
	if t.Now != nil {
		return t.Now()
	}
	return time.Now()
}

// server is how a source greets.
func (c *credentials) server(now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Time: now, Certificates: []tls.Certificate{c.certificate},
		ClientCAs: c.roots, ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true,
	}
}

// client is how a target dials a host.
func (c *credentials) client(host string, now func() time.Time) *tls.Config {
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS13, Time: now, Certificates: []tls.Certificate{c.certificate},
		RootCAs: c.roots, ServerName: host,
	}
	if len(c.sources) > 0 {
		cfg.InsecureSkipVerify = true // of the host's name: verify does the rest, and asks for another name
		cfg.VerifyConnection = func(state tls.ConnectionState) error { return c.verify(state.PeerCertificates, now(), host) }
	}
	return cfg
}

// verify is what TLS does by itself with the certificates of a peer: of a source at a host,
// with a name from the list in the host's place if there is a list, or without a host of a target.
func (c *credentials) verify(certs []*x509.Certificate, now time.Time, host string) error {
	if len(certs) == 0 {
		return errors.New("the peer has no certificate")
	}
	o := x509.VerifyOptions{Roots: c.roots, Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if host == "" {
		o.KeyUsages[0] = x509.ExtKeyUsageClientAuth
	} else if len(c.sources) == 0 {
		o.DNSName = host
	}
	for _, cert := range certs[1:] {
		o.Intermediates.AddCert(cert)
	}
	if _, err := certs[0].Verify(o); err != nil {
		return err
	}
	if name := NameOf(certs[0]); host != "" && len(c.sources) > 0 && !slices.Contains(c.sources, name) {
		return fmt.Errorf("the source's certificate is for %q, and that is no source here", name)
	}
	return nil
}

func identify(c *tls.Conn) (peer.Identity, error) {
	certs := c.ConnectionState().PeerCertificates
	if len(certs) == 0 {
		return peer.Identity{}, errors.New("the peer has no certificate")
	}
	name := NameOf(certs[0])
	if name == "" {
		return peer.Identity{}, errors.New("the peer's certificate has no name")
	}
	return peer.Identity{Name: name}, nil
}

// ages makes a link stale when its peer's certificate has expired, and when the
// credentials were replaced: a target dials again with new ones, but a source, whose peer
// would have to find out, only asks whether the peer satisfies them.
func (t *Transport) ages(l *peer.Link, c *tls.Conn, own *credentials, source bool) {
	certs := c.ConnectionState().PeerCertificates
	satisfied := own
	l.Stale = func() bool {
		now, of := t.now(), t.renewed.Load()
		if of != satisfied {
			if !source || of.verify(certs, now, "") != nil {
				return true
			}
			satisfied = of
		}
		return now.After(certs[0].NotAfter)
	}
}
