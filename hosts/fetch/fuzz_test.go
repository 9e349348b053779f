package fetch

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// FuzzCheckSource: a source that gets through means to Go's own parsers what it means
// here, every address that it is pinned to is on the list, and its canonical text is
// the same source again.
func FuzzCheckSource(f *testing.F) {
	r := testList(f).rules.Load() // without the cache, so that an input always runs the same code
	for _, c := range refused() {
		f.Add(c.source)
	}
	for _, s := range []string{
		"tcp://10.0.0.9:23280", "tcp://[fd00::1]:80", "tcp://[::ffff:10.0.0.1]:80", "tcp://LOCALHOST.:5", "tcp://worker-3.example:1",
		"ucx://10.0.0.9:1", "tcp://198.51.100.1:9000", "tcp://[2001:db8::7]:65535",
	} {
		f.Add(s)
	}
	listed := func(scheme string, ap netip.AddrPort) bool {
		for _, p := range []string{"10.0.0.0/8", "fd00::/16", "2001:db8::7/128", "127.0.0.0/8", "::1/128"} {
			if scheme == "tcp" && netip.MustParsePrefix(p).Contains(ap.Addr()) {
				return true
			}
		}
		return scheme == "tcp" && ap == netip.MustParseAddrPort("192.0.2.7:23280") ||
			scheme == "tcp" && ap.Port() == 9000 && netip.MustParsePrefix("198.51.100.0/24").Contains(ap.Addr()) ||
			scheme == "ucx" && ap.Addr() == netip.MustParseAddr("10.0.0.9")
	}
	f.Fuzz(func(t *testing.T, text string) {
		src, err := r.check(text)
		if err != nil {
			if !src.IsNull() || src.Addrs() != nil || err.Error() == "" {
				t.Fatalf("%q: %v with %v", text, err, src)
			}
			return
		}
		if len(src.Addrs()) == 0 {
			t.Fatalf("%q is pinned to nothing", text)
		}
		for _, ap := range src.Addrs() {
			if !listed(src.Scheme(), ap) {
				t.Fatalf("%q is pinned to %s, which no entry covers", text, ap)
			}
		}

		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q: net/url refuses it: %v", text, err)
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil || port != int(src.Addrs()[0].Port()) || u.Scheme != src.Scheme() || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" {
			t.Fatalf("%q: net/url reads %#v, we %v", text, u, src)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
			if len(src.Addrs()) != 1 || src.Addrs()[0].Addr() != addr.Unmap() || addr.Zone() != "" {
				t.Fatalf("%q: netip reads %s, we %v", text, addr, src.Addrs())
			}
		} else if name := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")); name != "localhost" && name != "worker-3.example" && name != "ported" {
			t.Fatalf("%q: the host %q is not listed", text, name)
		}

		again, err := r.check(src.String())
		if err != nil || !again.Same(src) || again.String() != src.String() {
			t.Fatalf("%q is %s, which is %v, %v", text, src, again, err)
		}
	})
}

// FuzzAllowList: no entry makes the reader panic, and one that is taken allows nothing
// that is not written in it.
func FuzzAllowList(f *testing.F) {
	for _, s := range []string{
		"tcp://10.0.0.0/8", "tcp://[fd00::]/8", "tcp://[fd00::/8]:5", "tcp://10.0.0.9:1", "tcp://h", "tcp://h:1", "tcp://[::]/0", "x", "tcp://[/",
		"tcp://[::ffff:1.2.3.4]/104", "tcp://localhost",
	} {
		f.Add(s)
	}
	probe := []byte("tcp://192.0.2.1:77")
	f.Fuzz(func(t *testing.T, entry string) {
		r := &rules{}
		err := r.add(entry)
		if err != nil {
			if err.Error() == "" || len(r.nets)+len(r.names)+len(r.schemes) != 0 {
				t.Fatalf("%q: refused as %q and kept", entry, err)
			}
			return
		}
		if len(r.nets)+len(r.names) == 0 {
			t.Fatalf("%q was taken for nothing", entry)
		}
		src, err := r.check(string(probe))
		if err == nil && !strings.Contains(entry, "/0") && !strings.Contains(entry, "192.0.2.") && !coversProbe(entry) {
			t.Fatalf("%q allows %s", entry, src)
		}
	})
}

// coversProbe reads an IPv4 network entry in the plainest way.
func coversProbe(entry string) bool {
	text := strings.TrimPrefix(entry, "tcp://")
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		text = text[:i]
	}
	text = strings.Trim(text, "[]")
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Contains(netip.MustParseAddr("192.0.2.1"))
	}
	a, err := netip.ParseAddr(text)
	return err == nil && a.Unmap() == netip.MustParseAddr("192.0.2.1")
}
