package config

import (
	"encoding/hex"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// text is a non-empty string of printable characters.
type text struct {
	empty   bool                                   // the empty string is allowed too
	pattern string                                 // for editors
	not     string                                 // pattern of what is refused, for editors
	check   func(r *reader, s string) (msg string) // empty: fine
	adapt   func(r *reader, s string) (v string)   // canonical form
}

// isText reports whether a scalar counts as a string where one is wanted. What a variable
// expanded to does, whatever it looks like.
func (n *node) isText() bool {
	return n.shape == str || n.expanded && n.shape != bad
}

func (k text) decode(r *reader, n *node, at *path, out *string) {
	if !n.isText() {
		if n.shape == boolean || n.shape == integer || n.shape == float {
			r.reject(n, at, "must be a string, not %s: quote %s if it is meant as text", n.shape, clip(n.text))
		} else {
			r.wrong(n, at, "a string")
		}
		return
	}
	s := n.text
	if s == "" && !k.empty {
		r.reject(n, at, "must not be empty")
		return
	}
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.reject(n, at, "must not hold control characters")
		return
	}
	if k.check != nil && s != "" {
		if msg := k.check(r, s); msg != "" {
			r.reject(n, at, "%s", msg)
			return
		}
	}
	if k.adapt != nil && s != "" {
		s = k.adapt(r, s)
	}
	*out = s
}

func (k text) encode(v *string) (*node, error) { return scalarNode(str, *v), nil }

func (k text) schema(def *string) schema {
	s := schema{"type": "string"}
	if !k.empty {
		s["minLength"] = 1
	}
	if k.not != "" {
		s["not"] = schema{"pattern": k.not}
	}
	if k.pattern != "" {
		s["pattern"] = k.pattern
		s = orVariable(s)
	}
	if def != nil && *def != "" {
		s["default"] = *def
	}
	return s
}

func scalarNode(sh shape, text string) *node { return &node{shape: sh, text: text} }

const namePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`

// name is what may stand in a metric label, a log field and a URL as it is.
func name() text {
	return text{pattern: namePattern, check: func(_ *reader, s string) string {
		if !isName(s) {
			return "must be 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or digit"
		}
		return ""
	}}
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func module() text {
	return text{
		not: `^embedded:([^A-Za-z0-9]|$)|^[A-Za-z0-9+.-]*://`,
		check: func(_ *reader, s string) string {
			if n, ok := strings.CutPrefix(s, embeddedPrefix); ok {
				if !isName(n) {
					return "embedded: needs the name of a built-in guest, as in embedded:kv-fetch"
				}
			} else if scheme, _, ok := strings.Cut(s, "://"); ok && !strings.Contains(scheme, "/") {
				return "modules are not fetched from " + quote(scheme+"://") + " in this version: give a path or embedded:NAME"
			}
			return ""
		},
		adapt: func(r *reader, s string) string {
			if strings.HasPrefix(s, embeddedPrefix) {
				return s
			}
			return r.resolve(s)
		},
	}
}

func (r *reader) resolve(p string) string {
	if r.base == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(r.base, p)
}

func digest() text {
	return text{
		empty:   true,
		pattern: `^([0-9a-fA-F]{64})?$`,
		check: func(_ *reader, s string) string {
			if _, err := hex.DecodeString(s); err != nil || len(s) != 64 {
				return "must be the 64 hex digits of a SHA-256, or empty"
			}
			return ""
		},
		adapt: func(_ *reader, s string) string { return strings.ToLower(s) },
	}
}

func endpoint() text {
	return text{pattern: `^[a-z][a-z0-9+.-]*://.+`, check: func(_ *reader, s string) string {
		scheme, rest, ok := strings.Cut(s, "://")
		if !ok || rest == "" || scheme == "" {
			return "must be an endpoint such as tcp://127.0.0.1:5557"
		}
		return ""
	}}
}

// socketPath bounds the path by what the kernel takes (sun_path, 108 bytes with its end).
func socketPath() text {
	return text{
		check: func(r *reader, s string) string {
			if s[0] == '@' {
				return "abstract sockets have no permissions: give a path"
			}
			if len(r.resolve(s)) > maxSocketPath {
				return "longer than the " + strconv.Itoa(maxSocketPath) + " bytes that a socket path may have"
			}
			return ""
		},
		adapt: (*reader).resolve,
	}
}

const maxSocketPath = 107

// cacheFolder is a folder, or off.
func cacheFolder() text {
	return text{adapt: func(r *reader, s string) string {
		if s == CacheOff {
			return s
		}
		return r.resolve(s)
	}}
}

func hostPort() text {
	return text{pattern: `^.+:[0-9]{1,5}$`, check: func(_ *reader, s string) string {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			return "must be host:port, as in 127.0.0.1:9640"
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
			return "the port must be a number from 0 to 65535"
		}
		if host == "" {
			return "the host is missing: write 127.0.0.1:" + port + " for this machine alone, or 0.0.0.0:" + port + " for every address"
		}
		return ""
	}}
}

// isLoopback reports whether only this machine can reach a host:port.
func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
