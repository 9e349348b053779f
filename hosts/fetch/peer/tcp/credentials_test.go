package tcp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/memstore"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
	"github.com/kvrt/kvrt/hosts/fetch/peer/tcp"
)

const space = "tenant/model"

// ends are a source with blocks 1 to 9 and a client of it.
type ends struct {
	source, target *tcp.Transport
	server         *peer.Server
	client         *peer.Client
	address        string
	next           uint64
}

func connect(t *testing.T, source, target *tcp.Transport) *ends {
	t.Helper()
	e := &ends{source: source, target: target}
	from, err := memstore.New(9, 4096, false)
	if err != nil {
		t.Fatal(err)
	}
	for h := range uint64(9) {
		if err := from.Put(space, h+1, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	to, err := memstore.New(9, 4096, false)
	if err != nil {
		t.Fatal(err)
	}
	l, err := source.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.address = l.Address()
	e.server = peer.NewServer(peer.ServerConfig{Source: from, Auth: peertest.Open{Identity: peer.Identity{Name: "target"}, Namespace: space}})
	done := make(chan error, 1)
	go func() { done <- e.server.Serve(l) }()
	e.client = peer.NewClient(peer.ClientConfig{}, func(ctx context.Context) (*peer.Link, error) { return target.Dial(ctx, l.Address()) }, to)
	t.Cleanup(func() {
		e.client.Close()
		e.server.Close()
		<-done
		from.Close()
		to.Close()
	})
	return e
}

// pull fetches one more block.
func (e *ends) pull(t *testing.T) error {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e.next = e.next%9 + 1
	res, err := e.client.Pull(ctx, &peer.Request{Namespace: []byte(space), Hashes: []uint64{e.next}, MaxBytes: 1 << 20}, make([]peer.Status, 1))
	if err == nil && res.Blocks != 1 {
		err = errors.New(res.Stop.String())
	}
	return err
}

// TestRenew: new certificates on either side cost no pull, and a link whose peer would not
// be let in any more is not used again.
func TestRenew(t *testing.T) {
	a, b := peertest.NewAuthority(t), peertest.NewAuthority(t)
	both := x509.NewCertPool()
	both.AddCert(a.Certificate())
	both.AddCert(b.Certificate())
	e := connect(t, transport(t, a, "source", false), transport(t, a, "target", false))
	steps := []struct {
		name  string
		renew func()
		links uint64
		fails bool
	}{
		{"first", func() {}, 1, false},
		{"kept", func() {}, 1, false},
		{"both trust two authorities", func() {
			e.source.Renew(a.Issue(t, "source"), both, nil)
			e.target.Renew(a.Issue(t, "target"), both, nil)
		}, 2, false},
		{"the source is of the second", func() { e.source.Renew(b.Issue(t, "source"), both, nil) }, 2, false},
		{"the source trusts the second only", func() { e.source.Renew(b.Issue(t, "source"), b.Roots(), nil) }, 2, true},
		{"the target is of the second", func() { e.target.Renew(b.Issue(t, "target"), both, nil) }, 3, false},
		{"the target trusts the second only", func() { e.target.Renew(b.Issue(t, "target"), b.Roots(), nil) }, 4, false},
		{"the target knows another name", func() { e.target.Renew(b.Issue(t, "target"), b.Roots(), []string{"other"}) }, 4, true},
		{"and this one", func() { e.target.Renew(b.Issue(t, "target"), b.Roots(), []string{"source"}) }, 5, false},
		{"the target trusts the first only", func() { e.target.Renew(b.Issue(t, "target"), a.Roots(), nil) }, 5, true},
	}
	for _, s := range steps {
		s.renew()
		if err := e.pull(t); (err != nil) != s.fails {
			t.Errorf("%s: %v", s.name, err)
		}
		if n := e.server.Stats().Links; n != s.links {
			t.Errorf("%s: %d links, want %d", s.name, n, s.links)
		}
	}
	if n := e.client.Stats().Redials; n != 1 { // what the source did; its own doings a target knows of
		t.Errorf("%d redials", n)
	}
}

// TestExpiry: a link does not outlive the certificate that opened it, and one that has
// expired opens none.
func TestExpiry(t *testing.T) {
	a := peertest.NewAuthority(t)
	for _, who := range []string{"source", "target"} {
		e := connect(t, transport(t, a, "source", false), transport(t, a, "target", false))
		var later atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
		e.source.Now, e.target.Now = now, now
		side := map[string]*tcp.Transport{"source": e.source, "target": e.target}[who]
		side.Renew(a.IssueUntil(t, time.Now().Add(10*time.Minute), who), a.Roots(), nil)
		if err := e.pull(t); err != nil {
			t.Errorf("%s: before it expires: %v", who, err)
		}
		later.Store(int64(11 * time.Minute))
		if err := e.pull(t); err == nil {
			t.Errorf("%s: an expired certificate still opens, or keeps open, a link", who)
		}
		side.Renew(a.Issue(t, who), a.Roots(), nil)
		if err := e.pull(t); err != nil {
			t.Errorf("%s: after it was replaced: %v", who, err)
		}
	}
}

// TestSources: whose certificates are a source's.
func TestSources(t *testing.T) {
	a, foreign := peertest.NewAuthority(t), peertest.NewAuthority(t)
	for _, c := range []struct {
		name   string
		cert   tls.Certificate
		listed []string
		ok     bool
	}{
		{"by host", a.Issue(t, "source"), nil, true},
		{"by name", a.Issue(t, "source"), []string{"other", "source"}, true},
		{"another name", a.Issue(t, "source"), []string{"other"}, false},
		{"a name, of another authority", foreign.Issue(t, "source"), []string{"source"}, false},
		{"a name, expired", a.IssueUntil(t, time.Now().Add(-time.Minute), "source"), []string{"source"}, false},
		{"expired", a.IssueUntil(t, time.Now().Add(-time.Minute), "source"), nil, false},
	} {
		e := connect(t, &tcp.Transport{Certificate: c.cert, Roots: a.Roots()}, &tcp.Transport{Certificate: a.Issue(t, "target"), Roots: a.Roots(), Sources: c.listed})
		if err := e.pull(t); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestDialHost: the certificate must be for the host that a name was resolved from, not
// for the address.
func TestDialHost(t *testing.T) {
	a := peertest.NewAuthority(t)
	source, target := transport(t, a, "source.example", false), transport(t, a, "target", false)
	l, err := source.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if link, err := in.Handshake(time.Now().Add(20 * time.Second)); err == nil && link != nil {
				io.Copy(io.Discard, link.Control)
				link.Close()
			}
		}
	}()
	for host, ok := range map[string]bool{"source.example": true, "127.0.0.1": true, "other.example": false, "127.0.0.2": false} {
		link, err := target.DialHost(t.Context(), l.Address(), host)
		if (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
		if err == nil {
			link.Close()
		}
	}
	l.Close()
	<-done
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestAskedAnew: a source that trusts others before a new link has had its first answer ends
// it, and is asked again.
func TestAskedAnew(t *testing.T) {
	a, b := peertest.NewAuthority(t), peertest.NewAuthority(t)
	e := connect(t, transport(t, a, "source", false), transport(t, a, "target", false))
	to, err := memstore.New(9, 4096, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.Close)
	dials := 0
	c := peer.NewClient(peer.ClientConfig{}, func(ctx context.Context) (*peer.Link, error) {
		l, err := e.target.Dial(ctx, e.address)
		if dials++; dials == 1 {
			e.source.Renew(a.Issue(t, "source"), b.Roots(), nil)
			e.target.Renew(b.Issue(t, "target"), a.Roots(), nil)
		}
		return l, err
	}, to)
	t.Cleanup(c.Close)
	e.client, c = c, e.client
	c.Close()
	if err := e.pull(t); err != nil || dials != 2 {
		t.Errorf("%d links, %v", dials, err)
	}
}
