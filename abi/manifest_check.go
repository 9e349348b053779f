package abi

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// ValidName tells whether s may name a guest: 1 to 64 lower-case letters, digits,
// dots, dashes and underscores, with a letter or digit at both ends.
func ValidName(s string) bool {
	alnum := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	return len(s) >= 1 && len(s) <= 64 && alnum(s[0]) && alnum(s[len(s)-1]) &&
		all(s, func(c byte) bool { return alnum(c) || strings.IndexByte("._-", c) >= 0 })
}

func all(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

// token tells whether s is 1 to max printable ASCII characters without spaces.
func token(s string, max int) bool {
	return len(s) >= 1 && len(s) <= max && all(s, func(c byte) bool { return c > ' ' && c < 0x7f })
}

// word tells whether s is lower-case letters, digits and underscores, at most 64, and
// begins with a letter.
func word(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && s[0] >= 'a' && s[0] <= 'z' &&
		all(s, func(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' })
}

// problems collects what is wrong with a manifest.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf("manifest: "+format, args...))
}

// distinct reports the second of two equal names of a kind.
func distinct[T any](p *problems, kind string, list []T, name func(T) string) {
	seen := map[string]bool{}
	for _, x := range list {
		if s := name(x); seen[s] {
			p.add("%s %q is named twice", kind, s)
		} else {
			seen[s] = true
		}
	}
}

func self(s string) string { return s }

func (m *Manifest) check() error {
	var p problems
	if !ValidName(m.Name) {
		p.add("name %q: want lower-case letters, digits, dot, dash, underscore, at most 64, a letter or digit at both ends", m.Name)
	}
	if m.Version != "" && !token(m.Version, 64) {
		p.add("version %q: want at most 64 printable ASCII characters", m.Version)
	}
	for _, f := range [...]struct{ name, text string }{
		{"description", m.Description}, {"license", m.License}, {"source", m.Source},
	} {
		p.text(f.name, f.text)
	}
	if m.ABI != Major {
		p.add("abi %d: this host runs abi %d", m.ABI, Major)
	}
	m.checkRoles(&p)
	for _, c := range m.Capabilities {
		if !strings.HasPrefix(c, "kvrt_") || !word(c) || c == "kvrt_" {
			p.add("capability %q: want an import module, such as kvrt_log", c)
		}
	}
	distinct(&p, "capability", m.Capabilities, self)
	for _, x := range m.Metrics {
		if !word(x.Name) {
			p.add("metric %q: want lower-case letters, digits and underscores, at most 64, a letter first", x.Name)
		}
		if x.Kind != "counter" && x.Kind != "gauge" && x.Kind != "histogram" {
			p.add("metric %q: kind %q: want counter, gauge or histogram", x.Name, x.Kind)
		}
		p.text("help of metric "+x.Name, x.Help)
	}
	distinct(&p, "metric", m.Metrics, func(x Metric) string { return x.Name })
	if len(m.Parameters) > 0 && m.Parameters[0] != '{' {
		p.add("parameters: want a JSON Schema object")
	}
	if m.Limits.Memory > 4<<30 {
		p.add("limits.memory %d: a memory has at most 4 GiB", m.Limits.Memory)
	}
	return errors.Join(p...)
}

func (m *Manifest) checkRoles(p *problems) {
	if len(m.Roles) == 0 {
		p.add("roles: name at least one of parser, handler, policy")
	}
	for _, r := range m.Roles {
		if r.Export() == "" {
			p.add("role %q: want parser, handler or policy", r)
		}
	}
	distinct(p, "role", m.Roles, func(r Role) string { return string(r) })
	for _, a := range m.ActionTypes {
		if !token(a.Type, 128) {
			p.add("action type %q: want 1 to 128 printable ASCII characters", a.Type)
		}
		for _, v := range a.Versions {
			if !token(v, 64) {
				p.add("version %q of action type %q: want 1 to 64 printable ASCII characters", v, a.Type)
			}
		}
		distinct(p, "version of "+a.Type, a.Versions, self)
	}
	distinct(p, "action type", m.ActionTypes, func(a ActionType) string { return a.Type })
	if m.Has(RoleHandler) && len(m.ActionTypes) == 0 {
		p.add("action_types: a handler names the action types it takes")
	}
	for _, d := range m.Dialects {
		if !token(d, 128) {
			p.add("dialect %q: want 1 to 128 printable ASCII characters", d)
		}
	}
	distinct(p, "dialect", m.Dialects, self)
	if m.Has(RoleParser) && len(m.Dialects) == 0 {
		p.add("dialects: a parser names the dialects it reads")
	}
	for _, f := range m.Requires {
		if !contextField(f) {
			p.add("requires %q: this host knows no such context field", f)
		}
	}
	distinct(p, "required field", m.Requires, self)
}

// text refuses what would upset a terminal that prints the manifest.
func (p *problems) text(name, s string) {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		p.add("%s: want no control characters", name)
	}
}

// contextField tells whether a policy can require a field of the context.
func contextField(name string) bool {
	switch {
	case name == "kind" || name == "size" || name == "present" || name == "zero" || strings.HasSuffix(name, "_count"):
		return false
	}
	for _, r := range records() {
		for _, f := range r.Fields {
			if r.Name == "ContextFrame" && f.Name == name {
				return true
			}
		}
	}
	return false
}
