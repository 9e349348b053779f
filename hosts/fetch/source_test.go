package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// names is a resolver that knows these names only.
type names map[string][]string

func (n names) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip" {
		return nil, fmt.Errorf("network %q", network)
	}
	var out []netip.Addr
	for _, a := range n[host] {
		if a == "timeout" {
			return nil, errTimeout
		}
		out = append(out, netip.MustParseAddr(a))
	}
	if out == nil {
		return nil, notFound(host)
	}
	return out, nil
}

func mustParse(t testing.TB, r Resolver, entries ...string) *AllowList {
	t.Helper()
	a, err := ParseAllowList(context.Background(), entries, r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// testList has one entry of each form.
func testList(t testing.TB) *AllowList {
	return mustParse(t, names{"worker-3.example": {"10.3.0.1", "fd00:3::1"}, "ported": {"10.4.0.1"}},
		"tcp://10.0.0.0/8", "tcp://192.0.2.7:23280", "tcp://198.51.100.0/24:9000", "tcp://[fd00::]/16", "tcp://[2001:db8::7]",
		"tcp://127.0.0.0/8", "tcp://[::1]/128", "tcp://worker-3.example", "tcp://ported:7", "tcp://dark.example", "ucx://10.0.0.9")
}

func TestSourcesAllowed(t *testing.T) {
	a := testList(t)
	for _, c := range []struct{ source, text, addrs string }{
		{"tcp://10.0.0.9:23280", "tcp://10.0.0.9:23280", "10.0.0.9:23280"},
		{"tcp://10.255.255.255:1", "tcp://10.255.255.255:1", "10.255.255.255:1"},
		{"tcp://10.0.0.0:65535", "tcp://10.0.0.0:65535", "10.0.0.0:65535"},
		{"tcp://192.0.2.7:23280", "tcp://192.0.2.7:23280", "192.0.2.7:23280"},
		{"tcp://198.51.100.77:9000", "tcp://198.51.100.77:9000", "198.51.100.77:9000"},
		{"tcp://[fd00::1]:80", "tcp://[fd00::1]:80", "[fd00::1]:80"},
		{"tcp://[FD00:0:0:0::0001]:80", "tcp://[fd00::1]:80", "[fd00::1]:80"},
		{"tcp://[fd00::10.0.0.1]:80", "tcp://[fd00::a00:1]:80", "[fd00::a00:1]:80"},
		{"tcp://[2001:db8::7]:80", "tcp://[2001:db8::7]:80", "[2001:db8::7]:80"},
		{"tcp://[::ffff:10.0.0.1]:80", "tcp://10.0.0.1:80", "10.0.0.1:80"},
		{"tcp://[::ffff:a00:1]:80", "tcp://10.0.0.1:80", "10.0.0.1:80"},
		{"tcp://[0:0:0:0:0:FFFF:10.0.0.1]:80", "tcp://10.0.0.1:80", "10.0.0.1:80"},
		{"tcp://127.0.0.1:5", "tcp://127.0.0.1:5", "127.0.0.1:5"},
		{"tcp://127.9.9.9:5", "tcp://127.9.9.9:5", "127.9.9.9:5"},
		{"tcp://[::1]:5", "tcp://[::1]:5", "[::1]:5"},
		{"tcp://localhost:5", "tcp://localhost:5", "127.0.0.1:5 [::1]:5"},
		{"tcp://LocalHost:5", "tcp://localhost:5", "127.0.0.1:5 [::1]:5"},
		{"tcp://localhost.:5", "tcp://localhost:5", "127.0.0.1:5 [::1]:5"},
		{"tcp://worker-3.example:23280", "tcp://worker-3.example:23280", "10.3.0.1:23280 [fd00:3::1]:23280"},
		{"tcp://Worker-3.EXAMPLE.:1", "tcp://worker-3.example:1", "10.3.0.1:1 [fd00:3::1]:1"},
		{"tcp://ported:7", "tcp://ported:7", "10.4.0.1:7"},
		{"ucx://10.0.0.9:1", "ucx://10.0.0.9:1", "10.0.0.9:1"},
	} {
		for range 2 { // judged, then remembered
			src, err := a.Check([]byte(c.source))
			if err != nil {
				t.Errorf("%s: %v", c.source, err)
				break
			}
			if got := strings.Trim(fmt.Sprint(src.Addrs()), "[ "); src.IsNull() || src.String() != c.text || got != strings.Trim(fmt.Sprint(parseAddrs(c.addrs)), "[ ") {
				t.Errorf("%s is %s at %s, want %s at %s", c.source, src, got, c.text, c.addrs)
			}
		}
	}
}

func parseAddrs(s string) (out []netip.AddrPort) {
	for f := range strings.FieldsSeq(s) {
		out = append(out, netip.MustParseAddrPort(f))
	}
	return out
}

// refused are spellings that must not get through, with a part of the reason. Most of
// them reach 127.0.0.1, 10.0.0.1 or 169.254.169.254 in some resolver or URL library.
func refused() []struct{ source, rule string } {
	const (
		notListed = "is not in fetch.allowed_sources"
		ipv4      = "four decimal numbers"
		brackets  = "brackets hold an IPv6 address"
		port      = "a port is"
		percent   = "percent signs"
		control   = "is a space or a control character"
	)
	return []struct{ source, rule string }{
		{"", "empty"},
		{"tcp", "no scheme; write tcp://HOST:PORT"},
		{"tcp:", "no scheme"},
		{"tcp://", "no host"},
		{"tcp://:1", "no host"},
		{"://10.0.0.1:1", "a scheme has"},
		{"//10.0.0.1:1", "no scheme"},
		{"10.0.0.1:1", "no scheme"},
		{"tcp:10.0.0.1:1", "no scheme"},
		{"tcp:/10.0.0.1:1", "no scheme"},
		{"tcp:///10.0.0.1:1", "a path"},
		{"TCP://10.0.0.1:1", "lower-case"},
		{"Tcp://10.0.0.1:1", "lower-case"},
		{"1tcp://10.0.0.1:1", "lower-case"},
		{strings.Repeat("t", 33) + "://10.0.0.1:1", "a scheme has"},
		{"udp://10.0.0.1:1", "no entry of fetch.allowed_sources has the scheme udp (add udp://10.0.0.1 to allow it)"},
		{"http://127.0.0.1:1", "the scheme http"},
		{"tcp+tls://127.0.0.1:1", "the scheme tcp+tls"},
		{"ucx://10.0.0.8:1", "10.0.0.8 " + notListed},
		{"tcp://10.0.0.1", "no port; write tcp://10.0.0.1:PORT"},
		{"tcp://[fd00::1]", "no port; write tcp://[fd00::1]:PORT"},
		{"tcp://worker-3.example", "no port"},
		{"tcp://10.0.0.1:", port},
		{"tcp://10.0.0.1:0", port},
		{"tcp://10.0.0.1:65536", "at most 65535"},
		{"tcp://10.0.0.1:99999", "at most 65535"},
		{"tcp://10.0.0.1:100000", port},
		{"tcp://10.0.0.1:00080", port},
		{"tcp://10.0.0.1:+80", port},
		{"tcp://10.0.0.1:-80", port},
		{"tcp://10.0.0.1:0x50", port},
		{"tcp://10.0.0.1:8a", port},
		{"tcp://10.0.0.1:80:90", "an IPv6 address goes into brackets"},
		{"tcp://192.0.2.7:23281", "this port of 192.0.2.7 " + notListed + " (add tcp://192.0.2.7 to allow it)"},
		{"tcp://198.51.100.77:9001", "this port of 198.51.100.77"},
		{"tcp://ported:8", "this port of ported"},
		{"tcp://11.0.0.1:1", "11.0.0.1 " + notListed + " (add tcp://11.0.0.1 to allow it)"},
		{"tcp://169.254.169.254:80", "169.254.169.254 " + notListed},
		{"tcp://0.0.0.0:80", notListed},
		{"tcp://255.255.255.255:80", notListed},
		{"tcp://224.0.0.1:80", notListed},
		{"tcp://[::]:80", "add tcp://[::] to allow it"},
		{"tcp://[ff02::1]:80", notListed},
		{"tcp://[fe80::1]:80", notListed},
		{"tcp://[::ffff:169.254.169.254]:80", "169.254.169.254 " + notListed},
		{"tcp://[::ffff:0.0.0.0]:80", notListed},
		{"tcp://[::10.0.0.1]:80", notListed},
		{"tcp://[::127.0.0.1]:80", notListed},
		{"tcp://[64:ff9b::10.0.0.1]:80", notListed},
		{"tcp://[64:ff9b::a00:1]:80", notListed},
		{"tcp://[2002:a00:1::]:80", notListed},
		{"tcp://[2001:0:a00:1::]:80", notListed},
		{"tcp://[::ffff:0:10.0.0.1]:80", notListed},
		{"tcp://[::1%lo]:80", percent},
		{"tcp://[fd00::1%25eth0]:80", percent},
		{"tcp://[fe80::1%1]:80", percent},
		{"tcp://127.0.0.1%00:80", percent},
		{"tcp://%31%30.0.0.1:80", percent},
		{"tcp://0177.0.0.1:80", ipv4},
		{"tcp://010.0.0.1:80", ipv4},
		{"tcp://10.0.0.01:80", ipv4},
		{"tcp://2130706433:80", ipv4},
		{"tcp://0x7f000001:80", ipv4},
		{"tcp://0x7f.1:80", ipv4},
		{"tcp://0x7f.0x0.0x0.0x1:80", ipv4},
		{"tcp://10.0.0.0x1:80", ipv4},
		{"tcp://0X0A.0.0.1:80", ipv4},
		{"tcp://017700000001:80", ipv4},
		{"tcp://127.1:80", ipv4},
		{"tcp://10.1:80", ipv4},
		{"tcp://127.0.1:80", ipv4},
		{"tcp://10.0.0.1.:80", ipv4},
		{"tcp://10.0.0.256:80", ipv4},
		{"tcp://10.0.0.0.1:80", ipv4},
		{"tcp://10..0.1:80", ipv4},
		{"tcp://.10.0.0.1:80", ipv4},
		{"tcp://0:80", ipv4},
		{"tcp://0x:80", ipv4},
		{"tcp://a.0x7f:80", ipv4},
		{"tcp://localhost.1:80", ipv4},
		{"tcp://fd00::1:80", "an IPv6 address goes into brackets"},
		{"tcp://::1:80", "an IPv6 address goes into brackets"},
		{"tcp://[10.0.0.1]:80", brackets},
		{"tcp://[localhost]:80", brackets},
		{"tcp://[]:80", brackets},
		{"tcp://[fd00::1::]:80", brackets},
		{"tcp://[[fd00::1]]:80", "only a port may follow"},
		{"tcp://[fd00::g]:80", brackets},
		{"tcp://[::0377.0.0.1]:80", brackets},
		{"tcp://[::ffff:0177.0.0.1]:80", brackets},
		{"tcp://[fd00::1:80", "not closed"},
		{"tcp://[fd00::1]80", "only a port may follow"},
		{"tcp://[fd00::1].example:80", "only a port may follow"},
		{"tcp://fd00::1]:80", "goes into brackets"},
		{"tcp://10.0.0.1]:80", "does not belong into a host name"},
		{"tcp://user@10.0.0.1:80", "user information"},
		{"tcp://10.0.0.1:80@evil.example:80", "user information"},
		{"tcp://evil.example:80@10.0.0.1:80", "user information"},
		{"tcp://10.0.0.1:80/", "a path"},
		{"tcp://10.0.0.1/:80", "a path"},
		{"tcp://10.0.0.1/8:80", "a path"},
		{"tcp://10.0.0.1:80?", "a query"},
		{"tcp://evil.example?10.0.0.1:80", "a query"},
		{"tcp://evil.example#10.0.0.1:80", "a query or fragment"},
		{"tcp://10.0.0.1:80#", "a query or fragment"},
		{"tcp://evil.example\\10.0.0.1:80", "a backslash"},
		{"tcp:\\\\10.0.0.1:80", "a backslash"},
		{" tcp://10.0.0.1:80", control},
		{"tcp://10.0.0.1:80 ", control},
		{"tcp://10.0.0.1:80\n", control},
		{"tcp://10.0.0.1\x00.evil.example:80", control},
		{"tcp://10.0.0.1\t:80", control},
		{"tcp://10.0.0.1\r\n:80", control},
		{"tcp://10.0.0.1\x7f:80", control},
		{"tcp://①⓪.0.0.1:80", "not ASCII"},
		{"tcp://10。0。0。1:80", "not ASCII"},
		{"tcp://ｌocalhost:80", "not ASCII"},
		{"tcp://wörker.example:80", "xn--"},
		{"tcp://worker-3.example.evil:80", notListed},
		{"tcp://evil-worker-3.example:80", "evil-worker-3.example " + notListed + " (add tcp://evil-worker-3.example to allow it)"},
		{"tcp://x.localhost:80", notListed},
		{"tcp://localhost.localdomain:80", notListed},
		{"tcp://localtest.me:80", notListed},
		{"tcp://10.0.0.1.nip.io:80", notListed},
		{"tcp://dark.example:80", "dark.example is in fetch.allowed_sources but did not resolve"},
		{"tcp://worker-3..example:80", "each label"},
		{"tcp://worker-3.example..:80", "each label"},
		{"tcp://.:80", "each label"},
		{"tcp://-a.example:80", "hyphen"},
		{"tcp://a-.example:80", "hyphen"},
		{"tcp://a*.example:80", "does not belong into a host name"},
		{"tcp://$(id):80", "does not belong into a host name"},
		{"tcp://a,10.0.0.1:80", "four decimal"},
		{"tcp://" + strings.Repeat("a", 64) + ":80", "each label"},
		{"tcp://" + strings.Repeat("a.", 127) + "a:80", "at most 253"},
		{"tcp://" + strings.Repeat("a", 400) + ":80", "a source may have"},
	}
}

func TestSourcesRefused(t *testing.T) {
	a := testList(t)
	for _, c := range refused() {
		src, err := a.Check([]byte(c.source))
		var se *SourceError
		if !errors.As(err, &se) || !src.IsNull() {
			t.Errorf("%q: got %v, %v", c.source, src, err)
			continue
		}
		if !strings.Contains(se.Rule, c.rule) || !strings.HasPrefix(err.Error(), `source "`) || len(err.Error()) > 1000 {
			t.Errorf("%q: %v, want %q", c.source, err, c.rule)
		}
	}
	if n := len(refused()); n < 60 {
		t.Errorf("only %d spellings", n)
	}
	_, err := testList(t).Check([]byte("tcp://11.0.0.9:23280"))
	if got, want := err.Error(), `source "tcp://11.0.0.9:23280": 11.0.0.9 is not in fetch.allowed_sources (add tcp://11.0.0.9 to allow it)`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestNoRequestIsResolved: judging a source never asks the resolver.
func TestNoRequestIsResolved(t *testing.T) {
	asked := 0
	r := resolverFunc(func(host string) ([]netip.Addr, error) {
		asked++
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
	})
	a := mustParse(t, r, "tcp://known", "tcp://localhost")
	if asked != 1 {
		t.Fatalf("asked %d times at load", asked)
	}
	for _, s := range []string{"tcp://known:1", "tcp://unknown:1", "tcp://localhost:1", "tcp://10.0.0.1:1", "tcp://127.1:1"} {
		a.Check([]byte(s))
	}
	if asked != 1 {
		t.Fatalf("asked %d times", asked)
	}
}

func TestSourceIdentity(t *testing.T) {
	a := testList(t)
	check := func(s string) Source {
		src, err := a.Check([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"tcp://LOCALHOST:1", "tcp://localhost:1", true},
		{"tcp://[::ffff:10.0.0.1]:1", "tcp://10.0.0.1:1", true},
		{"tcp://[fd00::0:1]:1", "tcp://[FD00::1]:1", true},
		{"tcp://localhost:1", "tcp://127.0.0.1:1", false},
		{"tcp://10.0.0.1:1", "tcp://10.0.0.1:2", false},
		{"tcp://10.0.0.9:1", "ucx://10.0.0.9:1", false},
	} {
		if x, y := check(c.a), check(c.b); x.Same(y) != c.same || y.Same(x) != c.same || !x.Same(x) || x.Same(Source{}) || (Source{}).Same(x) {
			t.Errorf("%s and %s", c.a, c.b)
		}
	}
	if !(Source{}).Same(Source{}) || !(Source{}).IsNull() || (Source{}).String() != "" || (Source{}).Addrs() != nil {
		t.Error("no source is a source too")
	}
	// After a refresh the same source is another value, and still the same.
	before := check("tcp://10.0.0.1:1")
	a.Refresh(context.Background())
	if !before.Same(check("tcp://10.0.0.1:1")) {
		t.Error("a refresh changed a source")
	}
}

func TestKnownSourceAllocatesNothing(t *testing.T) {
	a := testList(t)
	for _, text := range []string{"tcp://10.0.0.9:23280", "tcp://worker-3.example:1", "tcp://[::ffff:10.0.0.1]:80"} {
		b := []byte(text)
		a.Check(b)
		if n := testing.AllocsPerRun(1000, func() { a.Check(b) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

func TestCacheIsNeverWrong(t *testing.T) {
	a := mustParse(t, nil, "tcp://10.0.0.0/8")
	for i := range 3 * cacheSize {
		text := fmt.Sprintf("tcp://10.0.%d.%d:%d", i>>8&255, i&255, 1+i%60000)
		if src, err := a.Check([]byte(text)); err != nil || src.String() != text || src.Addrs()[0].String() != text[6:] {
			t.Fatal(text, src, err)
		}
	}
	kept := 0
	r := a.rules.Load()
	for i := range r.cache {
		if r.cache[i].Load() != nil {
			kept++
		}
	}
	if kept > cacheSize || kept < cacheSize/2 {
		t.Errorf("%d sources are remembered", kept)
	}
}

type resolverFunc func(host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return f(host)
}

func hasWarning(warnings []string, parts ...string) bool {
	return slices.ContainsFunc(warnings, func(w string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(w, p) })
	})
}

// TestSourceHost: whose certificate a source must show.
func TestSourceHost(t *testing.T) {
	a := mustParse(t, names{"node.example": {"10.0.0.1"}}, "tcp://node.example", "tcp://10.0.0.0/8", "tcp://[fd00::]/8")
	for text, want := range map[string]string{
		"tcp://NODE.example.:1": "node.example", "tcp://10.1.2.3:4": "10.1.2.3", "tcp://[fd00::1]:4": "fd00::1", "tcp://[::ffff:10.1.2.3]:4": "10.1.2.3",
	} {
		src, err := a.Check([]byte(text))
		if err != nil || src.Host() != want {
			t.Errorf("%s: %q, %v", text, src.Host(), err)
		}
	}
	if h := (Source{}).Host(); h != "" {
		t.Errorf("no source has the host %q", h)
	}
}
