package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const envPrefix = "${env:"

// expand replaces ${env:NAME}, ${env:NAME:-text} and $$ in one scalar. used tells whether
// a variable was named. A $ before anything but { and $ stands for itself.
func expand(s string, lookup func(string) (string, bool)) (out string, used bool, err error) {
	if !strings.Contains(s, "$") {
		return s, false, nil
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			b.WriteString(s)
			return b.String(), used, nil
		}
		b.WriteString(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "$$"):
			b.WriteByte('$')
			s = s[2:]
		case strings.HasPrefix(s, "${"):
			if !strings.HasPrefix(s, envPrefix) {
				return "", used, errors.New("only ${env:NAME} and ${env:NAME:-text} can be expanded; write $${ for a plain ${")
			}
			end := strings.IndexByte(s, '}')
			if end < 0 {
				return "", used, errors.New("${env: without a closing }")
			}
			v, err := variable(s[len(envPrefix):end], lookup)
			if err != nil {
				return "", used, err
			}
			b.WriteString(v)
			used = true
			s = s[end+1:]
		default:
			b.WriteByte('$')
			s = s[1:]
		}
		if b.Len() > maxFile {
			return "", used, fmt.Errorf("longer than %s after expansion", Size(maxFile))
		}
	}
}

func variable(ref string, lookup func(string) (string, bool)) (string, error) {
	name, fallback, hasFallback := strings.Cut(ref, ":-")
	if !isEnvName(name) {
		return "", fmt.Errorf("%s is not the name of an environment variable", quote(name))
	}
	v, ok := lookup(name)
	switch {
	case v == "" && hasFallback:
		return fallback, nil
	case !ok:
		return "", fmt.Errorf("environment variable %s is not set; set it or write ${env:%s:-default}", name, name)
	case !utf8.ValidString(v):
		return "", fmt.Errorf("environment variable %s is not UTF-8", name)
	}
	return v, nil
}

func isEnvName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '_' || i == 0 && c <= '9' {
			return false
		}
	}
	return s != "" && len(s) <= maxQuoted
}
