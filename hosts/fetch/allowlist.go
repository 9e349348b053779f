package fetch

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// AllowList is the operator's list of sources that hints may name. It is safe for
// concurrent use. Make one with [ParseAllowList].
//
// An address is allowed when an entry covers it. A host name is allowed when an entry
// names it, and stands for the addresses that it had when the list was last loaded or
// refreshed; localhost stands for 127.0.0.1 and ::1, as far as entries cover them.
type AllowList struct {
	resolver Resolver
	refresh  sync.Mutex // one at a time
	rules    atomic.Pointer[rules]
}

// rules are what a list says between two refreshes. Only the cache changes.
type rules struct {
	nets     []netRule
	names    []nameRule
	schemes  []string
	warnings []string
	seed     maphash.Seed
	cache    [cacheSize]atomic.Pointer[cached]
}

type netRule struct {
	scheme string
	prefix netip.Prefix
	port   uint16 // 0: any
}

type nameRule struct {
	scheme string
	name   string
	port   uint16 // 0: any
	addrs  []netip.Addr
	why    string // why addrs is empty
}

func (r *rules) covers(scheme string, a netip.Addr, port uint16) bool {
	return slices.ContainsFunc(r.nets, func(n netRule) bool {
		return n.scheme == scheme && (n.port == 0 || n.port == port) && n.prefix.Contains(a)
	})
}

// Sources that were accepted are remembered, so that a source that comes again costs
// one look and no memory. Two places are tried for a text.
const cacheSize = 2048

type cached struct {
	text   string // as it was sent
	source Source
}

// Check judges the source of a hint: scheme://host:port. A refusal is a
// [*SourceError]. Nothing is resolved, and a source that was accepted a short while
// ago costs no memory.
func (a *AllowList) Check(source []byte) (Source, error) {
	r := a.rules.Load()
	at := maphash.Bytes(r.seed, source) % cacheSize
	for _, i := range [...]uint64{at, at ^ 1} {
		if c := r.cache[i].Load(); c != nil && c.text == string(source) {
			return c.source, nil
		}
	}
	if len(source) > maxSource {
		source = source[:maxSource+1] // refused for its length; no need for all of it
	}
	text := string(source)
	src, err := r.check(text)
	if err != nil {
		return Source{}, &SourceError{text, err.Error()}
	}
	if r.cache[at].Load() != nil {
		at ^= 1
	}
	r.cache[at].Store(&cached{text, src})
	return src, nil
}

func (r *rules) check(text string) (Source, error) {
	t, err := parseTarget(text)
	if err != nil {
		return Source{}, err
	}
	if t.port == 0 {
		return Source{}, broken("no port; write %s:PORT", t)
	}
	if !slices.Contains(r.schemes, t.scheme) {
		return Source{}, broken("no entry of fetch.allowed_sources has the scheme %s (add %s://%s to allow it)", t.scheme, t.scheme, t.host())
	}
	var addrs []netip.AddrPort
	switch t.name {
	case "":
		if !r.covers(t.scheme, t.addr, t.port) {
			return Source{}, broken("%s is not in fetch.allowed_sources (add %s://%s to allow it)", r.shown(t), t.scheme, t.host())
		}
		addrs = []netip.AddrPort{netip.AddrPortFrom(t.addr, t.port)}
	case "localhost":
		for _, a := range loopback() {
			if r.covers(t.scheme, a, t.port) {
				addrs = append(addrs, netip.AddrPortFrom(a, t.port))
			}
		}
		if addrs == nil {
			return Source{}, broken("%s is not in fetch.allowed_sources (add %s://127.0.0.1 or %s://[::1] to allow it)", r.shown(t), t.scheme, t.scheme)
		}
	default:
		if addrs, err = r.pinned(t); err != nil {
			return Source{}, err
		}
	}
	return Source{&endpoint{t.String(), addrs}}, nil
}

// pinned finds the addresses of a host name.
func (r *rules) pinned(t target) (addrs []netip.AddrPort, err error) {
	err = broken("%s is not in fetch.allowed_sources (add %s://%s to allow it)", r.shown(t), t.scheme, t.host())
	for i := range r.names {
		n := &r.names[i]
		if n.scheme != t.scheme || n.name != t.name || n.port != 0 && n.port != t.port {
			continue
		}
		for _, a := range n.addrs {
			addrs = append(addrs, netip.AddrPortFrom(a, t.port))
		}
		if addrs != nil {
			return addrs, nil
		}
		err = errRule(n.why)
	}
	return nil, err
}

// shown is the host of a refused source, with the port where the host would do with
// another one.
func (r *rules) shown(t target) string {
	sameHost := slices.ContainsFunc(r.nets, func(n netRule) bool { return n.scheme == t.scheme && t.name == "" && n.prefix.Contains(t.addr) }) ||
		slices.ContainsFunc(r.names, func(n nameRule) bool { return n.scheme == t.scheme && t.name != "" && n.name == t.name })
	if sameHost {
		return "this port of " + t.host()
	}
	return t.host()
}

// Warnings says what is odd about the list: names that do not resolve, addresses that
// were left out. Refresh renews them.
func (a *AllowList) Warnings() []string { return slices.Clone(a.rules.Load().warnings) }

// DefaultAllowedSources is the list where the operator gives none: loopback only.
func DefaultAllowedSources() []string { return []string{"tcp://127.0.0.0/8", "tcp://[::1]/128"} }

func loopback() [2]netip.Addr {
	return [2]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// AllowListError lists every entry that cannot be used.
type AllowListError struct{ Bad []BadEntry }

// BadEntry is one of them.
type BadEntry struct {
	Index   int // in the list
	Entry   string
	Problem string // and what to write instead
}

func (b BadEntry) Error() string { return quote(b.Entry) + ": " + b.Problem }

func (e *AllowListError) Error() string {
	lines := make([]string, len(e.Bad))
	for i, b := range e.Bad {
		lines[i] = b.Error()
	}
	return "fetch.allowed_sources: " + strings.Join(lines, "; ")
}
