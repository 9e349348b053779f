package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A network is a thread, and what is done on it: in a network namespace of its own, or in
// that of the test. Nothing of a namespace has a name outside it. When the thread ends,
// at the latest with this process and however that ends, the daemons that were started
// on it are killed, and the namespace goes with its links.
type network struct {
	calls chan func()
	path  string // of the namespace, for ip
}

// newNetwork skips the test where no namespace can be made, if one is wanted.
func newNetwork(t *testing.T, own bool) *network {
	t.Helper()
	if _, err := exec.LookPath("ip"); own && err != nil {
		t.Skip("there is no ip, of iproute2, to make links with: scripts/toolchain.sh installs it")
	}
	n := &network{calls: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread must not run anything else afterwards
		var err error
		if own {
			err = unix.Unshare(unix.CLONE_NEWNET)
		}
		n.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		ready <- err
		for f := range n.calls {
			f()
		}
	}()
	t.Cleanup(func() { close(n.calls) })
	err := <-ready
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		t.Skipf("no network namespaces: run the tests as root where unshare is allowed (%v)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if own {
		n.ip(t, "link", "set", "lo", "up")
	}
	return n
}

// do runs f on the network's thread.
func (n *network) do(f func()) {
	done := make(chan struct{})
	n.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

func (n *network) ip(t *testing.T, args ...string) {
	t.Helper()
	var out []byte
	var err error
	n.do(func() { out, err = exec.Command("ip", args...).CombinedOutput() })
	if err != nil {
		t.Fatalf("ip %q: %v: %s", args, err, out)
	}
}

// link lays a cable between two namespaces; each end has the name of the other's letter.
func link(t *testing.T, a, b *network, nameA, nameB, addrA, addrB string) {
	t.Helper()
	a.ip(t, "link", "add", "to-"+nameB, "type", "veth", "peer", "name", "to-"+nameA, "netns", b.path)
	for _, end := range []struct {
		n          *network
		name, addr string
	}{{a, "to-" + nameB, addrA}, {b, "to-" + nameA, addrB}} {
		end.n.ip(t, "addr", "add", end.addr+"/24", "dev", end.name)
		end.n.ip(t, "link", "set", end.name, "up")
	}
}

// dial connects from inside.
func (n *network) dial(ctx context.Context, kind, addr string) (c net.Conn, err error) {
	n.do(func() { c, err = new(net.Dialer).DialContext(ctx, kind, addr) })
	return c, err
}

// listen listens inside.
func (n *network) listen(t *testing.T, kind, addr string) (l net.Listener) {
	t.Helper()
	var err error
	n.do(func() { l, err = net.Listen(kind, addr) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
