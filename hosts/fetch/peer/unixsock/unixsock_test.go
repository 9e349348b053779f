package unixsock_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(slab bool) func(t *testing.T) peertest.Env {
	return func(t *testing.T) peertest.Env {
		dir, err := os.MkdirTemp("", "kvrt") // short enough for a socket's path
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		var n atomic.Int64
		other := uint32(os.Geteuid()) + 1
		return peertest.Env{
			Source: &unixsock.Transport{}, Target: &unixsock.Transport{}, Stranger: &unixsock.Transport{UIDs: []uint32{other}},
			Identity: peer.Identity{UID: uint32(os.Geteuid())},
			Address:  func(*testing.T) string { return filepath.Join(dir, fmt.Sprint(n.Add(1))) },
			Slab:     slab,
		}
	}
}

func TestStream(t *testing.T) { peertest.Run(t, env(false)) }
func TestSlab(t *testing.T)   { peertest.Run(t, env(true)) }

// TestRenew: users can be let in and shut out while the socket is open.
func TestRenew(t *testing.T) {
	own := uint32(os.Geteuid())
	tr := &unixsock.Transport{UIDs: []uint32{own}}
	path := env(false)(t).Address(t)
	l, err := tr.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		uids []uint32
		ok   bool
	}{{nil, true}, {[]uint32{own + 1}, false}, {[]uint32{}, false}, {[]uint32{own + 1, own}, true}} {
		if c.uids != nil {
			tr.Renew(c.uids)
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		link, err := in.Handshake(time.Time{})
		if (err == nil) != c.ok {
			t.Errorf("%v: %v", c.uids, err)
		}
		if err == nil {
			link.Close()
		}
		conn.Close()
	}
}
