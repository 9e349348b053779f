package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is the shape of one value of the file: how it is read into a V, written back and
// described to editors. encode returns nil for what is left out; schema may be given the
// default.
type kind[V any] interface {
	decode(r *reader, n *node, at *path, out *V)
	encode(v *V) (*node, error)
	schema(def *V) schema
}

// reader decodes a tree.
type reader struct {
	*report
	base string // folder that relative paths are relative to; empty: leave them
}

func (r *report) count() int { return len(r.problems) + r.more }

// reject reports what is wrong with a value and marks it, so that nothing else is said
// about it.
func (r *reader) reject(n *node, at *path, format string, args ...any) {
	r.add(n.line, n.col, at, format, args...)
	n.shape = bad
}

// wrong reports that n is not what is wanted; want is like "an integer".
func (r *reader) wrong(n *node, at *path, want string) {
	switch n.shape {
	case bad:
	case ambiguous:
		r.reject(n, at, "%s is read differently by different YAML readers: quote it if it is text, else write true, false or plain digits", quote(n.text))
	case null:
		r.reject(n, at, "must be %s, but has no value: write one or remove the key", want)
	case mapping, list:
		r.reject(n, at, "must be %s, not %s", want, n.shape)
	case str:
		r.reject(n, at, "must be %s, not the string %s", want, quote(n.text))
	default:
		r.reject(n, at, "must be %s, not %s (%s)", want, n.shape, clip(n.text))
	}
}

func clip(s string) string {
	if len(s) > maxQuoted {
		return s[:maxQuoted] + "..."
	}
	return s
}

// word is one of a few words. what names the set in messages.
type word[S ~string] struct {
	what  string
	words []string
}

func oneOf[S ~string](what string, words ...S) word[S] {
	k := word[S]{what: what}
	for _, w := range words {
		k.words = append(k.words, string(w))
	}
	return k
}

func (k word[S]) decode(r *reader, n *node, at *path, out *S) {
	switch {
	case !n.isText():
		r.wrong(n, at, "one of "+strings.Join(k.words, ", "))
	case !slices.Contains(k.words, n.text):
		r.reject(n, at, "unknown %s %s%s", k.what, quote(n.text), didYouMean(n.text, k.words, "must be one of "))
	default:
		*out = S(n.text)
	}
}

func (k word[S]) encode(v *S) (*node, error) { return scalarNode(str, string(*v)), nil }

func (k word[S]) schema(def *S) schema {
	s := orVariable(schema{"enum": k.words})
	if def != nil && *def != "" {
		s["default"] = string(*def)
	}
	return s
}

// whole is an integer from min to max.
type whole[I ~int | ~uint32 | ~uint64] struct{ min, max uint64 }

func (k whole[I]) decode(r *reader, n *node, at *path, out *I) {
	if n.shape != integer {
		r.wrong(n, at, "an integer")
		return
	}
	v, err := strconv.ParseUint(n.text, 10, 64)
	if err != nil || v < k.min || v > k.max {
		r.reject(n, at, "must be from %d to %d, not %s", k.min, k.max, clip(n.text))
		return
	}
	*out = I(v)
}

func (k whole[I]) encode(v *I) (*node, error) {
	return scalarNode(integer, strconv.FormatUint(uint64(*v), 10)), nil
}

func (k whole[I]) schema(def *I) schema {
	s := orVariable(schema{"type": "integer", "minimum": k.min, "maximum": k.max})
	if def != nil && *def != 0 {
		s["default"] = *def
	}
	return s
}

// yesNo is true or false.
type yesNo struct{}

func (yesNo) decode(r *reader, n *node, at *path, out *bool) {
	if n.shape != boolean {
		r.wrong(n, at, "true or false")
		return
	}
	*out = n.text == "true"
}

func (yesNo) encode(v *bool) (*node, error) {
	return scalarNode(boolean, strconv.FormatBool(*v)), nil
}

func (yesNo) schema(def *bool) schema {
	s := orVariable(schema{"type": "boolean"})
	if def != nil {
		s["default"] = *def
	}
	return s
}

// workerID is an integer or a string.
type workerID struct{}

func (workerID) decode(r *reader, n *node, at *path, out *WorkerID) {
	switch {
	case n.shape == integer:
		v, err := strconv.ParseUint(n.text, 10, 64)
		if err != nil {
			r.reject(n, at, "must be from 0 to %d, or a string", uint64(math.MaxUint64))
			return
		}
		out.Number = v
	case n.shape == str || n.expanded:
		text{}.decode(r, n, at, &out.Text)
	default:
		r.wrong(n, at, "an integer or a string")
	}
}

func (workerID) encode(v *WorkerID) (*node, error) {
	if v.Text != "" {
		return scalarNode(str, v.Text), nil
	}
	return scalarNode(integer, strconv.FormatUint(v.Number, 10)), nil
}

func (workerID) schema(*WorkerID) schema {
	return schema{"anyOf": []schema{
		{"type": "integer", "minimum": 0, "maximum": uint64(math.MaxUint64)},
		{"type": "string", "minLength": 1},
	}}
}

// duration is a length of time with a unit.
type duration struct{ min time.Duration }

func (k duration) decode(r *reader, n *node, at *path, out *time.Duration) {
	const want = `a duration with a unit, such as 250ms, 30s or 10m`
	s := n.text
	if n.shape != str && (n.shape != integer || s != "0") {
		r.wrong(n, at, want)
		return
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		r.wrong(n, at, want)
	case d < k.min:
		r.reject(n, at, "must be at least %s, not %s", shortDuration(k.min), clip(s))
	default:
		*out = d
	}
}

func (k duration) encode(v *time.Duration) (*node, error) {
	return scalarNode(str, shortDuration(*v)), nil
}

func (k duration) schema(def *time.Duration) schema {
	s := orVariable(schema{"anyOf": []schema{
		{"type": "string", "pattern": `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`},
		{"const": 0},
	}})
	if def != nil && *def != 0 {
		s["default"] = shortDuration(*def)
	}
	return s
}

// shortDuration is d.String() without the zeros at its end: 10m, not 10m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
