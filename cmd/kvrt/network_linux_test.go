package main

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
)

// machines are three, each linked to the two others. 10.77.N.0/24 is a link, and the lower
// letter has .1 on it.
func machines(t *testing.T) (nets map[string]*network, dir string) {
	t.Helper()
	nets = make(map[string]*network)
	for _, name := range []string{"a", "b", "c"} {
		nets[name] = newNetwork(t, true)
	}
	link(t, nets["a"], nets["b"], "a", "b", "10.77.1.1", "10.77.1.2")
	link(t, nets["a"], nets["c"], "a", "c", "10.77.2.1", "10.77.2.2")
	link(t, nets["b"], nets["c"], "b", "c", "10.77.3.1", "10.77.3.2")
	return nets, shortDir(t)
}

// addresses are those of a machine.
var addresses = map[string][]net.IP{
	"a": {net.IPv4(10, 77, 1, 1), net.IPv4(10, 77, 2, 1)},
	"b": {net.IPv4(10, 77, 1, 2), net.IPv4(10, 77, 3, 1)},
	"c": {net.IPv4(10, 77, 2, 2), net.IPv4(10, 77, 3, 2)},
}

// at is a machine as hints of another name it.
func at(addr string) string {
	return "tcp://" + netip.AddrPortFrom(netip.MustParseAddr(addr), 23280).String()
}

func allow(names ...string) string {
	var rules []string
	for _, n := range names {
		rules = append(rules, fmt.Sprintf("{name: %s, namespaces: [{tenant: %s, namespace: %s}]}", n, nodeTenant, nodeSpace))
	}
	return "allow: [" + strings.Join(rules, ", ") + "]"
}

// expect fetches, again while the deadline comes first on a busy machine, and wants so
// many blocks in the end.
func (n *node) expect(what, source string, want int, reason abi.Reason, hashes ...uint64) {
	n.t.Helper()
	var last carried
	defer func() {
		if n.t.Failed() {
			n.t.Logf("%s, %s: %+v", n.name, what, last)
		}
	}()
	n.eventually(what, func() bool {
		last = n.fetch(source, hashes)
		there := n.have(1, hashes...)
		if last.err != nil || there > want {
			n.t.Errorf("%s: %d blocks of %d came, %v", what, there, want, last.err)
			return true
		}
		if want == len(hashes) {
			return last.Outcome.State == outcome.Completed
		}
		return last.Outcome.State != outcome.Completed && there == want && last.Reason == reason
	})
}

// TestThreeDaemons: in network namespaces of their own, with mutual TLS and payload over it
// or in clear. A hint sent to one fetches blocks from another, and on to the third; a link
// that is cut stops what goes over it and nothing else.
func TestThreeDaemons(t *testing.T) {
	t.Parallel()
	for _, clear := range []bool{false, true} {
		t.Run(fmt.Sprintf("clear data %v", clear), func(t *testing.T) {
			t.Parallel()
			nets, dir := machines(t)
			ca := peertest.NewAuthority(t)
			start := func(name string, allowed ...string) *node {
				cert := issue(t, dir, "cert-"+name, ca.IssueUntil(t, time.Now().Add(time.Hour), name, addresses[name]...), ca)
				return newNode(t, dir, name, nets[name], fmt.Sprintf("{listen: '0.0.0.0:23280', %s, clear_data: %v, fetch_timeout: %s, %s}", cert, clear, fetchTimeout, allow(allowed...)))
			}
			a, b, c := start("a", "b"), start("b", "a", "c"), start("c", "b")
			a.put(1, 1, 2, 3, 4)
			b.expect("from a to b", at("10.77.1.1"), 4, 0, 1, 2, 3, 4)
			c.expect("from b to c, what came from a", at("10.77.3.1"), 4, 0, 1, 2, 3, 4)
			c.put(1, 5, 6)
			b.expect("from c to b", at("10.77.3.2"), 2, 0, 5, 6)
			b.expect("what there is", at("10.77.3.2"), 1, abi.ReasonNotFound, 6, 77)
			a.expect("c does not know a", at("10.77.2.2"), 0, abi.ReasonSourceNotAllowed, 5, 6)
			a.expect("nobody is there", "tcp://10.77.1.77:23280", 0, abi.ReasonUnavailable, 5, 6)
			a.expect("b knows a", at("10.77.1.2"), 2, 0, 5, 6)
			before := []use{a.use(), b.use(), c.use()}

			// The link between a and b goes in mid-block, and while nothing is under way.
			toA := newProxy(t, nets["b"].listen(t, "tcp", "127.0.0.1:0"), func() (net.Conn, error) { return nets["b"].dial(t.Context(), "tcp", "10.77.1.1:23280") })
			for i, where := range []int{100, 3*nodeBlock + 1, -1} {
				h := uint64(100 + 10*i)
				hashes := []uint64{h, h + 1, h + 2, h + 3}
				a.put(1, hashes...)
				var lost carried
				var wait sync.WaitGroup
				toA.set(rule{pass: after(max(where, 0))})
				if where >= 0 {
					wait.Go(func() { lost = b.fetch("tcp://"+toA.addr, hashes) })
					select {
					case <-toA.held:
					case <-time.After(nodePatience):
						t.Fatal("never: a block is on its way")
					}
				}
				nets["a"].ip(t, "link", "set", "to-b", "down")
				toA.release()
				c.put(1, h+5)
				b.expect("c is not affected", at("10.77.3.2"), 1, 0, h+5)
				wait.Wait()
				b.expect("over a link that is down", at("10.77.1.1"), b.have(1, hashes...), abi.ReasonUnavailable, append(hashes, h+6)...)
				if lost.err != nil || where >= 0 && lost.Outcome.State == outcome.Completed && b.have(1, hashes...) < 4 {
					t.Errorf("%+v", lost)
				}
				a.eventually("the leases of the lost link end", func() bool { return a.use().leased == 0 })
				nets["a"].ip(t, "link", "set", "to-b", "up")
				b.expect("the link is up", at("10.77.1.1"), 4, 0, hashes...)
				toA.sever()
			}
			for i, n := range []*node{a, b, c} {
				n.released(before[i], 2*links)
				n.outcomes()
			}
		})
	}
}

// TestCertificates: who is not signed by the right authority, has expired, or is not in the
// list, gets nothing, on either side; a reload takes new certificates and lists, and costs
// no transfer.
func TestCertificates(t *testing.T) {
	t.Parallel()
	a, b := newNetwork(t, true), newNetwork(t, true)
	link(t, a, b, "a", "b", "10.77.1.1", "10.77.1.2")
	dir := shortDir(t)
	ca, next, foreign := peertest.NewAuthority(t), peertest.NewAuthority(t), peertest.NewAuthority(t)
	ip := net.IPv4(10, 77, 1, 1)
	file := 0
	cert := func(by *peertest.Authority, name string, ip net.IP, until time.Duration, roots ...*peertest.Authority) string {
		file++
		return issue(t, dir, fmt.Sprint("cert-", file), by.IssueUntil(t, time.Now().Add(until), name, ip), roots...)
	}
	source := func(cert, more string) string {
		return fmt.Sprintf("{listen: '0.0.0.0:23280', %s, clear_data: true, fetch_timeout: 5s, %s}", cert, more)
	}
	target := func(cert, more string) string {
		return fmt.Sprintf("{%s, fetch_timeout: 5s%s}", cert, more)
	}
	good := map[string]string{
		"from": source(cert(ca, "from", ip, time.Hour, ca), allow("to")),
		"to":   target(cert(ca, "to", ip, time.Hour, ca), ""),
	}
	from := newNode(t, dir, "from", a, good["from"])
	to := newNode(t, dir, "to", b, good["to"])
	set := func(n *node, peers string) {
		t.Helper()
		if n.configure(peers); !n.reload() {
			t.Fatalf("%s does not take %s", n.name, peers)
		}
	}
	h := uint64(0)
	works := func(what string) {
		t.Helper()
		h++
		from.put(1, h)
		to.expect(what, at("10.77.1.1"), 1, 0, h)
	}
	refused := func(what string, reason abi.Reason) {
		t.Helper()
		h++
		from.put(1, h)
		to.expect(what, at("10.77.1.1"), 0, reason, h)
	}
	works("as it should be")

	for _, c := range []struct {
		what, from, to string
		reason         abi.Reason // 0: it works
	}{
		{"the target is of another authority", "", target(cert(foreign, "to", ip, time.Hour, ca), ""), abi.ReasonUnavailable},
		{"the target trusts another authority", "", target(cert(ca, "to", ip, time.Hour, foreign), ""), abi.ReasonUnavailable},
		{"the source is of another authority", source(cert(foreign, "from", ip, time.Hour, ca), allow("to")), "", abi.ReasonUnavailable},
		{"the source trusts another authority", source(cert(ca, "from", ip, time.Hour, foreign), allow("to")), "", abi.ReasonUnavailable},
		{"the target's name is in no list", "", target(cert(ca, "who", ip, time.Hour, ca), ""), abi.ReasonSourceNotAllowed},
		{"nobody is in the list", source(cert(ca, "from", ip, time.Hour, ca), "allow: []"), "", abi.ReasonSourceNotAllowed},
		{"the target may read other blocks", source(cert(ca, "from", ip, time.Hour, ca), "allow: [{name: to, namespaces: [{tenant: other, namespace: m}]}]"), "", abi.ReasonSourceNotAllowed},
		{"the source's certificate is for another host", source(cert(ca, "from", net.IPv4(10, 77, 1, 9), time.Hour, ca), allow("to")), "", abi.ReasonUnavailable},
		{"the same, and the target knows the name", source(cert(ca, "from", net.IPv4(10, 77, 1, 9), time.Hour, ca), allow("to")), target(cert(ca, "to", ip, time.Hour, ca), ", source_names: [other, from]"), 0},
		{"the target knows another name", "", target(cert(ca, "to", ip, time.Hour, ca), ", source_names: [other]"), abi.ReasonUnavailable},
		{"a certificate with all names and no end in sight", source(cert(ca, "from", ip, 1000*time.Hour, ca, next), allow("who", "to")), target(cert(ca, "to", ip, time.Hour, ca, next), ""), 0},
	} {
		set(from, cmp.Or(c.from, good["from"]))
		set(to, cmp.Or(c.to, good["to"])) // which ends its links
		if c.reason != 0 {
			refused(c.what, c.reason)
		} else {
			works(c.what)
		}
		set(from, good["from"])
		set(to, good["to"])
		works("back again, after: " + c.what)
	}

	// A configuration that is wrong changes nothing.
	for _, wrong := range []string{
		source(cert(ca, "from", ip, -time.Hour, ca), "allow: []"),
		source(strings.Replace(cert(ca, "from", ip, time.Hour, ca), ".key", ".pem", 1), "allow: []"),
		source("certificate: /nowhere, key: /nowhere, roots: /nowhere", "allow: []"),
	} {
		if from.configure(wrong); from.reload() {
			t.Errorf("taken: %s", wrong)
		}
		works("after a reload that was refused")
	}
	expired(t, dir, ca, ip)
	strangers(t, "10.77.1.1:23280", b.do, ca, foreign)

	// The authority is replaced under traffic: first both are trusted, then both sides show
	// certificates of the new one, then the old one is trusted no more. No fetch fails.
	set(from, good["from"])
	before := []use{from.use(), to.use()}
	stop, ended := make(chan struct{}), make(chan struct{})
	var fetches atomic.Int64
	go func() {
		defer close(ended)
		bad := 0
		for h := uint64(1000); ; h++ {
			select {
			case <-stop:
				return
			default:
			}
			from.put(1, h)
			got := to.fetch(at("10.77.1.1"), []uint64{h})
			if there := to.have(1, h); got.err != nil || got.Outcome.State != outcome.Completed || there != 1 {
				if bad++; bad < 5 {
					t.Errorf("under traffic: %+v", got)
				}
			}
			fetches.Add(1)
		}
	}()
	step := func(n *node, peers string) {
		t.Helper()
		set(n, peers)
		// Until no link is being opened any more that began before.
		now := fetches.Load()
		n.eventually("two more fetches", func() bool { return fetches.Load() >= now+2 })
	}
	for range 3 {
		step(from, source(cert(ca, "from", ip, time.Hour, ca, next), allow("to")))
		step(to, target(cert(ca, "to", ip, time.Hour, ca, next), ""))
		step(from, source(cert(next, "from", ip, time.Hour, ca, next), allow("to")))
		step(to, target(cert(next, "to", ip, time.Hour, ca, next), ""))
		step(from, source(cert(next, "from", ip, time.Hour, next), allow("to")))
		step(to, target(cert(next, "to", ip, time.Hour, next), ""))
		ca, next = next, ca
	}
	close(stop)
	<-ended
	from.released(before[0], links)
	to.released(before[1], links)
	to.outcomes()
}

// expired: a certificate that has expired is not taken at the start, and says so.
func expired(t *testing.T, dir string, ca *peertest.Authority, ip net.IP) {
	t.Helper()
	cert := issue(t, dir, "old", ca.IssueUntil(t, time.Now().Add(-time.Minute), "to", ip), ca)
	file := filepath.Join(dir, "old.yaml")
	text := fmt.Sprintf(nodeConfig, dir, "old", nodeSlots*nodeBlock, nodeBlock, "{"+cert+"}")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := invoke("serve", "-c", file); code == exitOK || !strings.Contains(errs, "has expired") {
		t.Errorf("code %d: %s", code, errs)
	}
}
