package store

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kvrt/kvrt/hint"
)

const (
	defaultRequests      = 1 << 14
	defaultRequestHashes = 1 << 22
	defaultRequestTTL    = 10 * time.Minute
)

// Namespace is the store's namespace of a tenant's blocks: no two tenants share one, and
// neither do two names of one tenant. A name stands for what makes blocks alike: model,
// data type, layout, salt.
func Namespace(tenant, name string) string {
	return strconv.Itoa(len(tenant)) + ":" + tenant + name
}

// Tenant is the tenant of a namespace that [Namespace] made; "" for any other text.
func Tenant(namespace string) string {
	digits, rest, _ := strings.Cut(namespace, ":")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > len(rest) {
		return ""
	}
	return rest[:n]
}

// Request is what the store has to know of a request, so that a hint can speak of its
// tokens.
type Request struct {
	Namespace string   // of the store, see [Namespace]
	BlockSize int      // tokens of a block
	Hashes    []uint64 // its full blocks, from the first token on
}

// RequestsConfig bounds Requests. Zero fields have defaults.
type RequestsConfig struct {
	MaxRequests int           // 16,384
	MaxHashes   int           // of all requests together: 4,194,304
	TTL         time.Duration // 10 minutes
	Now         func() int64  // monotonic, in ns
}

// Requests are the requests that engines have described. When there are too many the
// oldest are forgotten: a hint about them finds no blocks, and nothing else happens.
type Requests struct {
	cfg   RequestsConfig
	clock clock

	mu     sync.Mutex
	byID   map[hint.Identity]*described
	queue  []*described // by age; those that were forgotten otherwise are marked gone
	hashes int
}

type described struct {
	id    hint.Identity
	req   Request
	until int64
	gone  bool
}

// NewRequests makes an empty one.
func NewRequests(cfg RequestsConfig) *Requests {
	if cfg.MaxRequests == 0 {
		cfg.MaxRequests = defaultRequests
	}
	if cfg.MaxHashes == 0 {
		cfg.MaxHashes = defaultRequestHashes
	}
	if cfg.TTL == 0 {
		cfg.TTL = defaultRequestTTL
	}
	if cfg.Now == nil {
		start := time.Now()
		cfg.Now = func() int64 { return int64(time.Since(start)) }
	}
	return &Requests{cfg: cfg, clock: clock{now: cfg.Now}, byID: map[hint.Identity]*described{}}
}

// Describe keeps what an engine says of a request, in place of what it said before. It
// copies what it keeps. A request without an id, or with more hashes than all may have, is
// not kept.
func (r *Requests) Describe(id hint.Identity, req Request) bool {
	if id.RequestID == "" || len(req.Hashes) > r.cfg.MaxHashes {
		return false
	}
	req.Hashes = slices.Clone(req.Hashes)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(id, req)
	return true
}

// extend is Describe with the hashes after those of the same namespace that are kept, up
// to most of them; it is false past that. What it costs does not depend on how many there
// are already.
func (r *Requests) extend(id hint.Identity, req Request, most int) bool {
	if id.RequestID == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var before []uint64
	if d := r.byID[id]; d != nil && d.until > r.clock.read() && d.req.Namespace == req.Namespace {
		before = d.req.Hashes
	}
	if len(before)+len(req.Hashes) > min(most, r.cfg.MaxHashes) {
		return false
	}
	req.Hashes = append(before, req.Hashes...) // whoever has before does not see what is after it
	r.put(id, req)
	return true
}

// put keeps a request, whose hashes are nobody else's. The lock is held.
func (r *Requests) put(id hint.Identity, req Request) {
	id.RequestID, id.Engine, req.Namespace = strings.Clone(id.RequestID), strings.Clone(id.Engine), strings.Clone(req.Namespace)
	r.forget(id)
	d := &described{id: id, req: req, until: later(r.clock.read(), r.cfg.TTL)}
	r.byID[id] = d
	r.queue = append(r.queue, d)
	r.hashes += len(req.Hashes)
	r.trim()
}

// Forget drops a request, which has ended.
func (r *Requests) Forget(id hint.Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[id] != nil { // most requests are not described, and their end costs no reading of a clock
		r.forget(id)
		r.trim()
	}
}

func (r *Requests) forget(id hint.Identity) {
	if d := r.byID[id]; d != nil {
		delete(r.byID, id)
		r.hashes -= len(d.req.Hashes)
		d.gone, d.req = true, Request{}
	}
}

// trim drops the oldest requests: those whose time is over, and those that are too many.
func (r *Requests) trim() {
	now := r.clock.read()
	for len(r.queue) > 0 {
		d := r.queue[0]
		if !d.gone && d.until > now && len(r.byID) <= r.cfg.MaxRequests && r.hashes <= r.cfg.MaxHashes {
			break
		}
		if !d.gone {
			r.forget(d.id)
		}
		r.queue[0], r.queue = nil, r.queue[1:]
	}
	if len(r.queue) > 2*len(r.byID)+64 {
		r.queue = slices.DeleteFunc(r.queue, func(d *described) bool { return d.gone })
	}
}

// Of is what is known of a request. Its hashes are not to be changed.
func (r *Requests) Of(id hint.Identity) (Request, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.byID[id]
	if d == nil || d.until <= r.clock.read() {
		return Request{}, false
	}
	return d.req, true
}

// Len is how many requests are kept.
func (r *Requests) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}
