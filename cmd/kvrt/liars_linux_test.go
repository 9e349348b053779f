package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
	"github.com/kvrt/kvrt/hosts/fetch/peer/tcp"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
)

// liar is a source that speaks the protocol well and lies about its blocks, unless it has
// no lie to tell. It allows everybody everything.
type liar struct {
	mu      sync.Mutex
	lie     func(i int, b *peer.Block)
	current uint64 // what is added to a generation after the blocks were sent
	leased  int
}

func (l *liar) tell(lie func(i int, b *peer.Block), current uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie, l.current = lie, current
}

func (l *liar) Lease(_ []byte, hashes []uint64, maxBytes int64, out *peer.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out.Blocks = out.Blocks[:0]
	for i, h := range hashes {
		data := bytes.Clone(payload(h, 1))
		b := peer.Block{Hash: h, Generation: 100 + h, CRC: peer.Checksum(data), Data: data}
		if l.lie != nil {
			l.lie(i, &b)
		}
		out.Blocks = append(out.Blocks, b)
	}
	l.leased++
}

func (l *liar) Release(*peer.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leased--
}

func (l *liar) Current(out *peer.Lease, i int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return out.Blocks[i].Generation + l.current
}

func (l *liar) Slab() (peer.Slab, bool)            { return peer.Slab{}, false }
func (l *liar) MayRead(peer.Identity, []byte) bool { return true }
func (l *liar) MayMap(peer.Identity) bool          { return true }
func (l *liar) held() int                          { l.mu.Lock(); defer l.mu.Unlock(); return l.leased }

// TestLiars: a daemon meets sources that lie about length, checksum, generation and key, and
// ones whose certificate has expired or that hang; it takes nothing wrong from them, and
// fetches from the same address when the truth is told there.
func TestLiars(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"unix", "tls", "clear"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			ca := peertest.NewAuthority(t)
			transport := &tcp.Transport{Certificate: ca.Issue(t, "from"), Roots: ca.Roots(), ClearData: kind == "clear"}
			var listener peer.Listener
			var err error
			source, peers := "tcp://127.0.0.1:23280", fmt.Sprintf("{sockets: [{source: 'tcp://127.0.0.1:23280', path: %s/liar}], fetch_timeout: 2s}", dir)
			if kind == "unix" {
				listener, err = (&unixsock.Transport{}).Listen(filepath.Join(dir, "liar"))
			} else if listener, err = transport.Listen("127.0.0.1:0"); err == nil {
				source = "tcp://" + listener.Address()
				peers = fmt.Sprintf("{%s, clear_data: %v, fetch_timeout: 2s}", issue(t, dir, "ct", ca.Issue(t, "to"), ca), kind == "clear")
			}
			if err != nil {
				t.Fatal(err)
			}
			l := &liar{}
			server := peer.NewServer(peer.ServerConfig{Source: l, Auth: l})
			done := make(chan error, 1)
			go func() { done <- server.Serve(listener) }()
			t.Cleanup(func() {
				server.Close()
				<-done
				if n := l.held(); n != 0 {
					t.Errorf("%d leases are left at the source", n)
				}
			})
			to := newNode(t, dir, "to", newNetwork(t, false), peers)
			h := uint64(0)
			ask := func(what string, want int, reason abi.Reason) {
				t.Helper()
				h += 4
				to.expect(what, source, want, reason, h, h+1, h+2, h+3)
			}
			ask("the truth", 4, 0)
			before := to.use()
			for _, c := range []struct {
				what    string
				lie     func(i int, b *peer.Block)
				current uint64
				want    int
			}{
				{"a longer block", func(i int, b *peer.Block) { b.Data = append(b.Data, 1) }, 0, 0},
				{"a shorter block, from the third on", func(i int, b *peer.Block) {
					if i >= 2 {
						b.Data = b.Data[:nodeBlock-1]
						b.CRC = peer.Checksum(b.Data)
					}
				}, 0, 2},
				{"another checksum, from the fourth on", func(i int, b *peer.Block) {
					if i >= 3 {
						b.CRC++
					}
				}, 0, 3},
				{"other bytes", func(i int, b *peer.Block) { b.Data[nodeBlock-1]++ }, 0, 0},
				{"another generation in the end", nil, 1, 0},
				{"another key", func(i int, b *peer.Block) { b.Hash++ }, 0, 0},
				{"the key of another block", func(i int, b *peer.Block) { b.Hash ^= 1 }, 0, 0},
			} {
				l.tell(c.lie, c.current)
				h += 4
				got := to.fetch(source, []uint64{h, h + 1, h + 2, h + 3})
				if there := to.have(1, h, h+1, h+2, h+3); there != c.want || got.err != nil || int(got.Outcome.Fetched) != c.want || got.Why == "" || got.Reason == 0 {
					t.Errorf("%s: %d blocks came, %+v", c.what, there, got)
				}
				l.tell(nil, 0)
				ask("the truth, after: "+c.what, 4, 0)
			}
			if kind == "tls" {
				old := ca.IssueUntil(t, time.Now().Add(-time.Minute), "from")
				transport.Renew(old, ca.Roots(), nil)
				to.reload() // which ends its links
				ask("an expired certificate", 0, abi.ReasonUnavailable)
				transport.Renew(ca.Issue(t, "from"), ca.Roots(), nil)
				ask("one that holds", 4, 0)
			}
			to.released(before, links)
			to.outcomes()
		})
	}
}

// strangers asks a source whatever a target must not: with a certificate that has expired,
// or is of nobody whom it trusts, or none at all.
func strangers(t *testing.T, address string, dial func(func()), ca, foreign *peertest.Authority) {
	t.Helper()
	for what, cert := range map[string]tls.Certificate{
		"expired": ca.IssueUntil(t, time.Now().Add(-time.Minute), "to"), "of another authority": foreign.Issue(t, "to"), "none": {},
	} {
		var l *peer.Link
		var err error
		ctx, cancel := context.WithTimeout(t.Context(), nodePatience)
		dial(func() { l, err = (&tcp.Transport{Certificate: cert, Roots: ca.Roots()}).Dial(ctx, address) })
		cancel()
		if err == nil {
			l.Close()
			t.Errorf("a link for a certificate that is: %s", what)
		}
	}
}
