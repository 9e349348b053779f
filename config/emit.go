package config

import (
	"fmt"
	"strings"
	"unicode"
)

// Marshal returns the effective configuration as YAML: defaults filled in, variables
// expanded, keys in a fixed order. Reading it back gives the same configuration. It fails
// only when parameters that were set by hand are not JSON.
func (c *Config) Marshal() ([]byte, error) {
	n, err := spec().encode(c)
	if err != nil {
		return nil, err
	}
	var e emitter
	e.block(n, 0)
	return []byte(e.String()), nil
}

type emitter struct{ strings.Builder }

// block writes a mapping or list, each entry on lines of its own, indented by depth.
func (e *emitter) block(n *node, depth int) {
	indent := strings.Repeat("  ", depth)
	for i, en := range n.entries {
		if i > 0 || depth == 0 {
			e.WriteString(indent)
		}
		e.WriteString(plainOrQuoted(en.key, false))
		e.WriteByte(':')
		switch v := en.value; {
		case len(v.entries) > 0:
			e.WriteByte('\n')
			e.WriteString(indent + "  ")
			e.block(v, depth+1)
		case len(v.items) > 0:
			e.WriteByte('\n')
			e.WriteString(indent + "  ")
			e.block(v, depth+1)
		default:
			e.WriteByte(' ')
			e.scalar(v)
		}
	}
	for i, item := range n.items {
		if i > 0 || depth == 0 {
			e.WriteString(indent)
		}
		e.WriteString("- ")
		if len(item.entries) > 0 || len(item.items) > 0 {
			e.block(item, depth+1)
		} else {
			e.scalar(item)
		}
	}
}

func (e *emitter) scalar(n *node) {
	switch n.shape {
	case mapping:
		e.WriteString("{}")
	case list:
		e.WriteString("[]")
	case str, ambiguous:
		e.WriteString(plainOrQuoted(strings.ReplaceAll(n.text, "$", "$$"), true))
	default:
		e.WriteString(n.text)
	}
	e.WriteByte('\n')
}

// plainOrQuoted writes a string without quotes where no reader can take it for anything
// else, and else in double quotes. A value, unlike a key, may hold colons.
func plainOrQuoted(s string, value bool) string {
	if isPlain(s, value) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == ' ' || unicode.IsGraphic(c) && !unicode.IsSpace(c) && c != 0xfeff:
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func isPlain(s string, value bool) bool {
	if s == "" || len(s) > 1000 {
		return false
	}
	letter := false
	for i := range len(s) {
		c := s[i]
		switch {
		case isAlnum(c):
			letter = letter || c > '9'
		case c == '_' || c == '/':
		case i > 0 && (c == '.' || c == '-'):
		case i > 0 && i+1 < len(s) && c == ':' && value:
		default:
			return false
		}
	}
	sh, _ := classify(s)
	// What begins with a digit may be a time or a number to some reader.
	digit := s[0] <= '9' && s[0] >= '0'
	return sh == str && letter && (!digit || !strings.ContainsAny(s, "_:.-/"))
}
