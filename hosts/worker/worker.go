package worker

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kvrt/kvrt/hint"
)

// Worker is a worker of the fleet, with its data-parallel ranks.
type Worker struct {
	ID        hint.WorkerID `json:"id"`
	Type      string        `json:"type"`      // aggregated, prefill, decode, ...; "" when not told
	Namespace string        `json:"namespace"` // isolates its block hashes: names its lineage index
	BlockSize uint32        `json:"block_size"`
	// Capabilities are the action types that it executes. Absent (nil, null in JSON),
	// empty and listed are three different things: absent keeps every action.
	Capabilities []string `json:"capabilities"`
	// Ranks is either one rank without a number, or numbered ranks.
	Ranks []Rank `json:"ranks"`
}

// Rank is one data-parallel rank of a worker. An endpoint that is "" is not there.
type Rank struct {
	Rank   *uint32 `json:"rank"`   // nil when the worker has no ranks
	Events string  `json:"events"` // publishes KV events: tcp://HOST:PORT or ipc://PATH
	Replay string  `json:"replay"` // sends events again: the same
	Source string  `json:"source"` // blocks can be fetched from it: tcp://HOST:PORT or unix://PATH
}

// Bounds of one worker.
const (
	MaxRanks        = 1024
	MaxCapabilities = 256
	MaxText         = 512 // bytes of each text
	MaxBlockSize    = 1 << 20
)

// FieldError says what is wrong with a worker, and with which field of it.
type FieldError struct {
	Worker hint.WorkerID
	Field  string // such as ranks[1].events
	Reason string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("worker %s: %s: %s", e.Worker, e.Field, e.Reason)
}

// normal checks a worker and returns a copy of it in the one form that is kept.
func (w *Worker) normal() (*Worker, error) {
	bad := func(field, format string, args ...any) (*Worker, error) {
		return nil, &FieldError{w.ID, field, fmt.Sprintf(format, args...)}
	}
	if err := w.ID.Check(); err != nil {
		return bad("id", "%v", err)
	}
	c := *w
	if c.Type == "agg" { // as some routers spell it
		c.Type = "aggregated"
	}
	switch {
	case !plain(c.Type):
		return bad("type", "want at most %d bytes of printable text", MaxText)
	case !plain(c.Namespace):
		return bad("namespace", "want at most %d bytes of printable text", MaxText)
	case c.BlockSize > MaxBlockSize:
		return bad("block_size", "%d tokens: want at most %d", c.BlockSize, MaxBlockSize)
	case len(c.Capabilities) > MaxCapabilities:
		return bad("capabilities", "%d entries: want at most %d", len(c.Capabilities), MaxCapabilities)
	case len(c.Ranks) > MaxRanks:
		return bad("ranks", "%d ranks: want at most %d", len(c.Ranks), MaxRanks)
	}
	c.Capabilities = slices.Clone(c.Capabilities)
	for i, name := range c.Capabilities {
		if name == "" || !plain(name) {
			return bad(fmt.Sprintf("capabilities[%d]", i), "want an action type, such as kv.fetch")
		}
		if slices.Contains(c.Capabilities[:i], name) {
			return bad(fmt.Sprintf("capabilities[%d]", i), "%s is listed twice", name)
		}
	}
	if len(c.Ranks) == 0 {
		c.Ranks = []Rank{{}}
	}
	c.Ranks = slices.Clone(c.Ranks)
	for i := range c.Ranks {
		r := &c.Ranks[i]
		field := func(name string) string { return fmt.Sprintf("ranks[%d].%s", i, name) }
		if r.Rank == nil && len(c.Ranks) > 1 {
			return bad(field("rank"), "missing: a worker has one rank without a number, or only numbered ones")
		}
		if r.Rank != nil {
			number := *r.Rank
			r.Rank = &number
			if number == ^uint32(0) {
				return bad(field("rank"), "too large")
			}
		}
		for _, e := range [...]struct{ name, endpoint, path string }{
			{"events", r.Events, "ipc://"}, {"replay", r.Replay, "ipc://"}, {"source", r.Source, "unix://"},
		} {
			if err := checkEndpoint(e.endpoint, e.path); err != nil {
				return bad(field(e.name), "%v", err)
			}
		}
		if r.Replay != "" && r.Events == "" {
			return bad(field("replay"), "there are no events to replay")
		}
	}
	slices.SortStableFunc(c.Ranks, func(a, b Rank) int { return compareRanks(a.Rank, b.Rank) })
	for i := 1; i < len(c.Ranks); i++ {
		if *c.Ranks[i].Rank == *c.Ranks[i-1].Rank {
			return bad("ranks", "rank %d is listed twice", *c.Ranks[i].Rank)
		}
	}
	return &c, nil
}

func compareRanks(a, b *uint32) int {
	switch {
	case a == nil || b == nil:
		return 0 // there is one
	case *a < *b:
		return -1
	case *a > *b:
		return 1
	}
	return 0
}

// plain tells whether a text can be shown, and stands in a frame.
func plain(s string) bool {
	return len(s) <= MaxText && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// checkEndpoint checks the form of an endpoint that others are to connect to. Whether it
// may be connected to is for whoever does to decide.
func checkEndpoint(endpoint, path string) error {
	if endpoint == "" {
		return nil
	}
	if rest, ok := strings.CutPrefix(endpoint, path); ok && rest != "" && plain(endpoint) {
		return nil
	}
	rest, ok := strings.CutPrefix(endpoint, "tcp://")
	if !ok || !plain(endpoint) {
		return fmt.Errorf("want tcp://HOST:PORT or %sPATH", path)
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" || strings.ContainsAny(host, "/ @") {
		return fmt.Errorf("want tcp://HOST:PORT, an IPv6 address in brackets")
	}
	if ip, err := netip.ParseAddr(host); host == "*" || err == nil && ip.IsUnspecified() {
		return fmt.Errorf("%s is no address that can be connected to", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q: want 1 to 65535", port)
	}
	return nil
}

// Workers lists the ranks by the names that events and policies use.
func (w *Worker) Workers() []hint.Worker {
	out := make([]hint.Worker, len(w.Ranks))
	for i, r := range w.Ranks {
		out[i] = w.rank(r)
	}
	return out
}

func (w *Worker) rank(r Rank) hint.Worker {
	if r.Rank == nil {
		return hint.Worker{ID: w.ID}
	}
	return hint.Worker{ID: w.ID, Rank: *r.Rank, HasRank: true}
}
