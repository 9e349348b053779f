package fetch

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Source is the endpoint that a hint's blocks come from, as an [AllowList] accepted
// it; the zero value is no source, local storage. Two sources are the same when their
// canonical texts are equal: host names in lower case and without the trailing dot, IP
// addresses as netip writes them and IPv4-mapped ones as IPv4. So tcp://LOCALHOST:1
// and tcp://localhost:1 are one source, where KVCR, which compares what was sent, sees
// two; tcp://localhost:1 and tcp://127.0.0.1:1 are two for both.
type Source struct{ p *endpoint }

type endpoint struct {
	text  string // canonical
	addrs []netip.AddrPort
}

// IsNull tells whether this is no source.
func (s Source) IsNull() bool { return s.p == nil }

// Same tells whether both are the same source.
func (s Source) Same(other Source) bool {
	return s.p == other.p || s.p != nil && other.p != nil && s.p.text == other.p.text
}

// String is the canonical text, "" for no source.
func (s Source) String() string {
	if s.p == nil {
		return ""
	}
	return s.p.text
}

// Scheme is the scheme of the canonical text.
func (s Source) Scheme() string {
	scheme, _, _ := strings.Cut(s.String(), "://")
	return scheme
}

// Host is the name or the address in the canonical text, without brackets.
func (s Source) Host() string {
	_, rest, _ := strings.Cut(s.String(), "://")
	if host, ok := strings.CutPrefix(rest, "["); ok {
		host, _, _ = strings.Cut(host, "]")
		return host
	}
	host, _, _ := strings.Cut(rest, ":")
	return host
}

// Addrs are the addresses to connect to, pinned when the source was checked: nothing
// is resolved later. The caller must not change them.
func (s Source) Addrs() []netip.AddrPort {
	if s.p == nil {
		return nil
	}
	return s.p.addrs
}

// SourceError says why a source is refused.
type SourceError struct {
	Source string // as it was sent
	Rule   string
}

func (e *SourceError) Error() string { return "source " + quote(e.Source) + ": " + e.Rule }

// quote shows at most 128 bytes of what somebody else wrote.
func quote(s string) string {
	const shown = 128
	if len(s) > shown {
		return strconv.Quote(s[:shown]) + "..."
	}
	return strconv.Quote(s)
}

// target is a parsed scheme://host:port. One of name and addr is set.
type target struct {
	scheme string
	name   string // canonical
	addr   netip.Addr
	port   uint16 // 0: none
}

func (t target) host() string {
	switch {
	case t.name != "":
		return t.name
	case t.addr.Is6():
		return "[" + t.addr.String() + "]"
	}
	return t.addr.String()
}

func (t target) String() string {
	text := t.scheme + "://" + t.host()
	if t.port != 0 {
		text += ":" + strconv.Itoa(int(t.port))
	}
	return text
}

// maxSource is more than the longest scheme, name and port take.
const maxSource = 320

// errRule is a broken rule, in words that go behind "source ...: ".
type errRule string

func (e errRule) Error() string { return string(e) }

func broken(format string, args ...any) error { return errRule(fmt.Sprintf(format, args...)) }

// parseTarget reads scheme://host:port, where the port may be missing. It is stricter
// than URL syntax: there is one spelling for a thing, up to the case of names and of
// hexadecimal digits.
func parseTarget(s string) (target, error) {
	if err := checkBytes(s); err != nil {
		return target{}, err
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return target{}, errRule("no scheme; write tcp://HOST:PORT")
	}
	t := target{scheme: scheme}
	if err := checkScheme(scheme); err != nil {
		return t, err
	}
	if strings.Contains(rest, "/") {
		return t, errRule("a path does not belong here; write " + scheme + "://HOST:PORT")
	}
	host, port := rest, ""
	bracketed := strings.HasPrefix(rest, "[")
	if bracketed {
		end := strings.IndexByte(rest, ']')
		if end < 0 {
			return t, errRule("a bracket is not closed")
		}
		if host, port = rest[1:end], rest[end+1:]; port != "" && port[0] != ':' {
			return t, errRule("only a port may follow the brackets")
		}
	} else if i := strings.IndexByte(rest, ':'); i >= 0 {
		if strings.IndexByte(rest[i+1:], ':') >= 0 {
			return t, errRule("an IPv6 address goes into brackets, as in tcp://[fd00::1]:23280")
		}
		host, port = rest[:i], rest[i:]
	}
	var err error
	if port != "" {
		if t.port, err = parsePort(port[1:]); err != nil {
			return t, err
		}
	}
	if bracketed {
		t.addr, err = parseIPv6(host)
	} else {
		t.name, t.addr, err = parseHost(host)
	}
	return t, err
}

// checkBytes refuses what no part of a source may hold, with a reason of its own for
// what people might try.
func checkBytes(s string) error {
	switch {
	case s == "":
		return errRule("empty; leave the source out for local storage")
	case len(s) > maxSource:
		return broken("%d bytes, and a source may have %d", len(s), maxSource)
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ' || c == 0x7f:
			return broken("byte %d is a space or a control character", i)
		case c >= 0x80:
			return broken("byte %d is not ASCII; write a host name in its xn-- form", i)
		case c == '@':
			return errRule("user information does not belong here")
		case c == '?' || c == '#':
			return errRule("a query or fragment does not belong here")
		case c == '%':
			return errRule("percent signs, so zones and encoded bytes, are not allowed")
		case c == '\\':
			return errRule("a backslash does not belong here")
		}
	}
	return nil
}

func checkScheme(s string) error {
	if s == "" || len(s) > 32 {
		return errRule("a scheme has 1 to 32 characters")
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return errRule("a scheme is written in lower-case letters, as in tcp://")
		}
	}
	return nil
}

func parsePort(s string) (uint16, error) {
	if s == "" || s[0] == '0' || len(s) > 5 {
		return 0, errRule("a port is a number from 1 to 65535, without leading zeros")
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, errRule("a port is a number from 1 to 65535, in digits only")
		}
		n = 10*n + int(s[i]-'0')
	}
	if n > 65535 {
		return 0, errRule("a port is at most 65535")
	}
	return uint16(n), nil
}

// parseIPv6 reads what stands in brackets. An IPv4-mapped address is the IPv4 address
// that it stands for; other embeddings (IPv4-compatible, NAT64, 6to4) stay IPv6.
func parseIPv6(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() {
		return netip.Addr{}, errRule("brackets hold an IPv6 address, as in tcp://[fd00::1]:23280")
	}
	return a.Unmap(), nil
}

// parseHost reads an IPv4 address or a host name. Resolvers take many spellings for
// IPv4 (octal, hexadecimal, one number, fewer parts): whatever ends like a number must
// be four decimal parts.
func parseHost(s string) (string, netip.Addr, error) {
	if s == "" {
		return "", netip.Addr{}, errRule("no host; write tcp://HOST:PORT")
	}
	if last := s[strings.LastIndexByte(strings.TrimSuffix(s, "."), '.')+1:]; isNumber(strings.TrimSuffix(last, ".")) {
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is4() {
			return "", netip.Addr{}, errRule("an IPv4 address is written as four decimal numbers without leading zeros")
		}
		return "", a, nil
	}
	name, err := canonicalName(s)
	return name, netip.Addr{}, err
}

func isNumber(label string) bool {
	if len(label) >= 2 && label[0] == '0' && label[1]|0x20 == 'x' {
		return strings.Trim(label[2:], "0123456789abcdefABCDEF") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// canonicalName checks a host name and returns it in lower case, without the dot that
// may end it.
func canonicalName(s string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	if len(name) > 253 {
		return "", broken("a host name has at most 253 characters, not %d", len(name))
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "", errRule("each label of a host name has 1 to 63 characters")
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return "", errRule("a label of a host name does not begin or end with a hyphen")
		}
		for i := range len(label) {
			switch c := label[i]; {
			case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_':
			default:
				return "", broken("%q does not belong into a host name", label[i])
			}
		}
	}
	return name, nil
}
