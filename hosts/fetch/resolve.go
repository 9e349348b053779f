package fetch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Resolver looks host names up; [net.Resolver] is one.
type Resolver interface {
	// LookupNetIP returns the addresses of host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// resolveTimeout bounds a load or refresh, however many names there are.
const resolveTimeout = 5 * time.Second

// ParseAllowList reads fetch.allowed_sources and resolves the host names in it. An
// entry is scheme://, then one of
//
//	10.0.0.0/8 [fd00::]/8      a network ([fd00::/8] will do as well)
//	10.0.0.9   [fd00::1]       an address
//	worker-3.example           a host name
//
// and a port if only that one is meant. The scheme of a source must be the same. A nil
// list is [DefaultAllowedSources]; an empty one allows nothing. A nil resolver is the
// system's. The error is an [*AllowListError]; a name that does not resolve is no error
// but a warning, and is refused until a refresh resolves it.
func ParseAllowList(ctx context.Context, entries []string, resolver Resolver) (*AllowList, error) {
	if entries == nil {
		entries = DefaultAllowedSources()
	}
	if resolver == nil {
		resolver = &net.Resolver{}
	}
	var bad []BadEntry
	r := &rules{}
	for i, entry := range entries {
		if err := r.add(entry); err != nil {
			bad = append(bad, BadEntry{i, entry, err.Error()})
		}
	}
	if bad != nil {
		return nil, &AllowListError{bad}
	}
	a := &AllowList{resolver: resolver}
	a.rules.Store(r)
	a.Refresh(ctx)
	return a, nil
}

// add reads one entry.
func (r *rules) add(entry string) error {
	switch {
	case entry == "":
		return errRule("empty; write tcp://HOST, or remove the entry")
	case !strings.Contains(entry, "://"):
		return broken("no scheme; write tcp://%s", entry)
	}
	if strings.Contains(entry, "*") {
		return errRule("names are resolved when the list is loaded, so wildcards cannot be; list each host, or a network")
	}
	scheme, rest, _ := strings.Cut(entry, "://")
	if strings.Contains(rest, "/") {
		return r.addNet(scheme, rest)
	}
	t, err := parseTarget(entry)
	switch {
	case err != nil:
		return err
	case t.name == "localhost":
		for _, a := range loopback() {
			r.nets = append(r.nets, netRule{t.scheme, netip.PrefixFrom(a, a.BitLen()), t.port})
		}
	case t.name != "":
		r.names = append(r.names, nameRule{scheme: t.scheme, name: t.name, port: t.port})
	default:
		r.nets = append(r.nets, netRule{t.scheme, netip.PrefixFrom(t.addr, t.addr.BitLen()), t.port})
	}
	r.addScheme(t.scheme)
	return nil
}

func (r *rules) addScheme(scheme string) {
	if !slices.Contains(r.schemes, scheme) {
		r.schemes = append(r.schemes, scheme)
	}
}

// addNet reads ADDRESS/BITS, [ADDRESS]/BITS or [ADDRESS/BITS], and a port if any.
func (r *rules) addNet(scheme, rest string) error {
	host, tail, _ := strings.Cut(rest, "/")
	if strings.HasPrefix(host, "[") && !strings.HasSuffix(host, "]") { // [ADDRESS/BITS]
		bits, port, ok := strings.Cut(tail, "]")
		if !ok || port != "" && port[0] != ':' {
			return broken("an IPv6 network is written %s://[ADDRESS]/BITS", scheme)
		}
		host, tail = host+"]", bits+port
	}
	t, err := parseTarget(scheme + "://" + host)
	switch {
	case strings.Count(host, ":") > 1 && !strings.HasPrefix(host, "["):
		return broken("an IPv6 network is written %s://[%s]/%s", scheme, host, tail)
	case err != nil:
		return err
	case t.name != "" || t.port != 0:
		return broken("a network is written %s://ADDRESS/BITS or %s://ADDRESS/BITS:PORT; for a host write %s://HOST or %s://HOST:PORT", scheme, scheme, scheme, scheme)
	}
	bits, port, hasPort := strings.Cut(tail, ":")
	if hasPort {
		if t.port, err = parsePort(port); err != nil {
			return err
		}
	}
	n, err := strconv.Atoi(bits)
	if err != nil || n < 0 || strconv.Itoa(n) != bits || n > 128 {
		return broken("%q is not a number of bits; write %s/8, say", bits, bare(scheme, t.addr))
	}
	if t.addr.Is4() && strings.HasPrefix(host, "[") {
		return broken("an IPv4 network is written as such; write %s://%s/%d", scheme, t.addr, max(0, n-96))
	}
	if n > t.addr.BitLen() {
		return broken("%s has %d bits, not %d", t.addr, t.addr.BitLen(), n)
	}
	prefix := netip.PrefixFrom(t.addr, n)
	if m := prefix.Masked(); m != prefix {
		return broken("bits are set behind the first %d; for the network write %s/%d, for the address %s", n, bare(scheme, m.Addr()), n, bare(scheme, t.addr))
	}
	r.nets = append(r.nets, netRule{scheme, prefix, t.port})
	r.addScheme(scheme)
	return nil
}

// bare is the entry for one address.
func bare(scheme string, a netip.Addr) target { return target{scheme: scheme, addr: a} }

// Refresh resolves the host names again and renews the warnings, which it returns.
// Sources that were accepted before keep the addresses that they were pinned to. A
// name whose lookup fails keeps its addresses; one that does not exist any more loses
// them.
func (a *AllowList) Refresh(ctx context.Context) []string {
	a.refresh.Lock()
	defer a.refresh.Unlock()
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()

	old := a.rules.Load()
	r := &rules{nets: old.nets, names: slices.Clone(old.names), schemes: old.schemes, seed: maphash.MakeSeed()}
	for _, n := range r.nets {
		if n.prefix.Bits() == 0 {
			r.warn("%s://%s allows every address of its family", n.scheme, n.prefix)
		}
	}
	for i, found := range a.lookup(ctx, r.names) {
		r.pin(&r.names[i], found)
	}
	a.rules.Store(r)
	return slices.Clone(r.warnings)
}

type found struct {
	addrs []netip.Addr
	err   error
}

// lookup resolves all names, a few at a time.
func (a *AllowList) lookup(ctx context.Context, names []nameRule) []found {
	out := make([]found, len(names))
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i].addrs, out[i].err = a.resolver.LookupNetIP(ctx, "ip", names[i].name)
		})
	}
	wg.Wait()
	return out
}

// pin gives a name the addresses that were found and may be used.
func (r *rules) pin(n *nameRule, f found) {
	var dns *net.DNSError
	gone := errors.As(f.err, &dns) && dns.IsNotFound
	switch {
	case f.err != nil && !gone && len(n.addrs) > 0:
		r.warn("%s did not resolve and keeps its addresses: %v", n.name, f.err)
		return
	case f.err != nil:
		n.addrs, n.why = nil, fmt.Sprintf("%s is in fetch.allowed_sources but did not resolve when the list was loaded (reload to try again)", n.name)
		r.warn("%s did not resolve and is refused until a reload resolves it: %v", n.name, f.err)
		return
	}
	n.addrs = nil
	for _, addr := range f.addrs {
		addr = addr.Unmap().WithZone("")
		kind := special(addr)
		switch {
		case kind != "" && !r.covers(n.scheme, addr, n.port):
			r.warn("%s resolves to %s, which is %s and left out (add %s to allow it)", n.name, addr, kind, bare(n.scheme, addr))
		case !slices.Contains(n.addrs, addr):
			n.addrs = append(n.addrs, addr)
		}
	}
	if len(n.addrs) == 0 {
		n.why = fmt.Sprintf("%s is in fetch.allowed_sources but has no address that may be used", n.name)
		r.warn("%s has no address that may be used and is refused until a reload finds one", n.name)
	}
}

func (r *rules) warn(format string, args ...any) {
	r.warnings = append(r.warnings, "fetch.allowed_sources: "+fmt.Sprintf(format, args...))
}

// special names the ranges that a host name does not get to by being on the list: who
// runs its DNS must not reach them through it.
func special(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "unspecified"
	case a.IsMulticast():
		return "multicast"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "broadcast"
	case a.Is6() && !a.IsLoopback() && embedsIPv4(a):
		return "an IPv4 address in disguise"
	}
	return ""
}

// embedsIPv4 tells IPv4-compatible, NAT64, 6to4 and Teredo addresses.
func embedsIPv4(a netip.Addr) bool {
	b := a.As16()
	switch {
	case [12]byte(b[:12]) == [12]byte{}:
		return true
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return true
	case b[0] == 0x20 && b[1] == 0x02:
		return true
	}
	return [4]byte(b[:4]) == [4]byte{0x20, 0x01, 0, 0}
}
