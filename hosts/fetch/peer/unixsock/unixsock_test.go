package unixsock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

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
