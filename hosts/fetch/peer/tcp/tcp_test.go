package tcp_test

import (
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
	"github.com/kvrt/kvrt/hosts/fetch/peer/tcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func transport(t testing.TB, a *peertest.Authority, name string, clear bool) *tcp.Transport {
	return &tcp.Transport{Certificate: a.Issue(t, name), Roots: a.Roots(), ClearData: clear}
}

func env(clear bool) func(t *testing.T) peertest.Env {
	return func(t *testing.T) peertest.Env {
		a, foreign := peertest.NewAuthority(t), peertest.NewAuthority(t)
		return peertest.Env{
			Source: transport(t, a, "source", clear), Target: transport(t, a, "target", clear),
			// Trusts us, but nobody whom we trust has signed it.
			Stranger: &tcp.Transport{Certificate: foreign.Issue(t, "target"), Roots: a.Roots(), ClearData: clear},
			Identity: peer.Identity{Name: "target"},
			Address: func(t *testing.T) string {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				return l.Addr().String()
			},
		}
	}
}

func TestTLS(t *testing.T)   { peertest.Run(t, env(false)) }
func TestClear(t *testing.T) { peertest.Run(t, env(true)) }
