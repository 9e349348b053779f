package config

import (
	"math"
	"strconv"
	"strings"
)

// shape is what a node of the file is.
type shape uint8

const (
	bad shape = iota // reported already: passed over without a word
	null
	boolean
	integer
	float
	str
	ambiguous // a plain scalar which YAML 1.1 and 1.2 read differently
	mapping
	list
)

func (s shape) String() string {
	switch s {
	case null:
		return "no value"
	case boolean:
		return "a boolean"
	case integer:
		return "an integer"
	case float:
		return "a number"
	case str, ambiguous:
		return "a string"
	case mapping:
		return "a mapping"
	case list:
		return "a list"
	}
	return "an invalid value"
}

// classify gives a plain scalar its type by the core schema of YAML 1.2 and returns the
// text in canonical form: integers as decimal digits, booleans in lower case.
func classify(s string) (shape, string) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return null, s
	case "true", "True", "TRUE":
		return boolean, "true"
	case "false", "False", "FALSE":
		return boolean, "false"
	case ".nan", ".NaN", ".NAN":
		return float, s
	}
	switch strings.ToLower(s) {
	case "yes", "no", "on", "off":
		return ambiguous, s
	}
	body := strings.TrimLeft(s[:1], "+-") + s[1:]
	sign := s[:len(s)-len(body)]
	switch {
	case body == ".inf" || body == ".Inf" || body == ".INF":
		return float, s
	case digits(body, "0123456789"):
		if len(body) > 1 && body[0] == '0' {
			return ambiguous, s
		}
		if sign == "-" && body != "0" {
			return integer, "-" + body
		}
		return integer, body
	case len(body) > 2 && body[0] == '0' && strings.IndexByte("xXoObB", body[1]) >= 0:
		return prefixed(s, body, sign)
	case isFloat(body):
		return float, s
	case body != "" && body[0] >= '0' && body[0] <= '9' && strings.Contains(body, "_"):
		if sh, _ := classify(strings.ReplaceAll(s, "_", "")); sh != str {
			return ambiguous, s
		}
	}
	return str, s
}

// prefixed reads 0x1f and 0o17, of at most 64 bits and without a sign; what only some
// readers take for a number (0b11, 0X1F, -0x1f) is ambiguous.
func prefixed(s, body, sign string) (shape, string) {
	base, set := 16, "0123456789abcdefABCDEF"
	switch body[1] {
	case 'o', 'O':
		base, set = 8, "01234567"
	case 'b', 'B':
		base, set = 2, "01"
	}
	if !digits(strings.ReplaceAll(body[2:], "_", ""), set) {
		return str, s
	}
	v, err := strconv.ParseUint(body[2:], base, 64)
	if err != nil || sign != "" || body[1] != 'x' && body[1] != 'o' {
		return ambiguous, s
	}
	return integer, strconv.FormatUint(v, 10)
}

func digits(s, set string) bool {
	return s != "" && strings.Trim(s, set) == ""
}

// isFloat matches (\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? .
func isFloat(s string) bool {
	skip := func() int {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n
	}
	whole := skip()
	frac := 0
	if s != "" && s[0] == '.' {
		s = s[1:]
		frac = skip()
	}
	if whole == 0 && frac == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return skip() > 0 && s == ""
}

// jsonFloat writes a float of the file in the shortest form that reads back as the same
// double and still as a float: 1.0, not 1. It fails for what JSON or a double cannot hold.
func jsonFloat(s string) (string, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", false
	}
	// The limits between the two notations are those of JavaScript and encoding/json.
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	out := strconv.FormatFloat(f, format, -1, 64)
	if n := len(out); n > 4 && out[n-4] == 'e' && out[n-2] == '0' {
		out = out[:n-2] + out[n-1:] // 1e-9, not 1e-09
	}
	if !strings.ContainsAny(out, ".e") {
		out += ".0"
	}
	return out, true
}
