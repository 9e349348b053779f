package store

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Host is the capability kvrt_store: it lets a guest ask for blocks of its request's
// namespace, and evict and claim them. What evicts and claims takes place when the call's
// action is accepted.
type Host struct {
	store     *Store // nil: there is none
	requests  *Requests
	after     *Requests // whose hashes are to be evicted when they have ended
	namespace func(*runtime.Call) (string, bool)
	seed      maphash.Seed
	effects   sync.Pool
	copies    Copies
}

// Copies are copies of blocks that this host keeps elsewhere, on a device for example.
type Copies interface {
	// Evict lets go of those that nobody uses.
	Evict(namespace string, hashes []uint64) (evicted int)
}

// NewHost makes the capability. Without a store every function is unavailable. requests
// may be nil: no request is described. namespace tells whose blocks a call is about where
// the request was not described; nil, or false, is for the namespace of nobody, "0:".
func NewHost(store *Store, requests *Requests, namespace func(*runtime.Call) (string, bool)) *Host {
	if requests == nil {
		requests = NewRequests(RequestsConfig{MaxRequests: 1})
	}
	h := &Host{store: store, requests: requests, after: NewRequests(RequestsConfig{TTL: requests.cfg.TTL, Now: requests.cfg.Now}), namespace: namespace, seed: maphash.MakeSeed()}
	h.effects.New = func() any { return &effect{host: h} }
	return h
}

// Store is the store behind the capability; nil without one.
func (h *Host) Store() *Store { return h.store }

// SetCopies makes what hints evict go from there too. It is to be called before any call
// of a guest.
func (h *Host) SetCopies(c Copies) { h.copies = c }

// letGo evicts blocks here, and their copies.
func (h *Host) letGo(namespace string, hashes []uint64) {
	h.store.Evict(namespace, hashes, nil)
	if h.copies != nil {
		h.copies.Evict(namespace, hashes)
	}
}

// Requests are the requests that hints may speak of.
func (h *Host) Requests() *Requests { return h.requests }

// Ended says that a request has ended, however: what is known of it is dropped, and what
// hints wanted evicted after it is evicted.
func (h *Host) Ended(id hint.Identity) {
	h.requests.Forget(id)
	if req, ok := h.after.Of(id); ok {
		h.after.Forget(id)
		h.letGo(req.Namespace, req.Hashes)
	}
}

// Name is the import module.
func (h *Host) Name() string { return "kvrt_store" }

// Functions are the functions of the module, with the signatures of the table.
func (h *Host) Functions() []runtime.HostFunction {
	return runtime.Functions(h.Name(), map[string]func(*runtime.Call, []byte, []uint64){
		"residency": h.residency, "evict": h.evict, "evict_after": h.evictAfter, "request": h.request, "retain": h.retain,
	})
}

// window is the run of memory at off, if it lies inside. The sum cannot overflow.
func window(mem []byte, off uint32, n uint64) ([]byte, bool) {
	if uint64(off)+n > uint64(len(mem)) {
		return nil, false
	}
	return mem[off : uint64(off)+n], true
}

func refuse(c *runtime.Call, reason abi.Reason, detail string) uint64 {
	return uint64(int64(c.Refuse(reason, detail)))
}

// blocks is a list that a guest names: hashes in its memory, or those of its request.
type blocks struct {
	namespace string
	raw       []byte // little-endian; nil: the request's
	hashes    []uint64
	size      int // tokens of a block; 0: the list is the guest's
}

func (b *blocks) len() int {
	if b.raw != nil {
		return len(b.raw) / 8
	}
	return len(b.hashes)
}

func (b *blocks) at(i int) uint64 {
	if b.raw != nil {
		return binary.LittleEndian.Uint64(b.raw[8*i:])
	}
	return b.hashes[i]
}

const outside = "the hashes, claims, scope or buffer lie outside the guest's memory"

// list reads which blocks a call is about. more are the bytes that the call copies beside.
func (h *Host) list(c *runtime.Call, mem []byte, off, count uint32, more uint64) (b blocks, refused uint64) {
	raw, ok := window(mem, off, 8*uint64(count))
	switch {
	case !ok:
		return b, refuse(c, abi.ReasonInvalidPayload, outside)
	case h.store == nil:
		return b, refuse(c, abi.ReasonUnavailable, "this host has no block store")
	case count > abi.StoreHashes:
		return b, refuse(c, abi.ReasonLimitExceeded, "too many blocks for one call of kvrt_store")
	}
	req, described := h.requests.Of(c.Identity())
	switch {
	case described && c.Context() == nil:
		b.namespace = req.Namespace
	case h.namespace != nil:
		if b.namespace, ok = h.namespace(c); !ok {
			b.namespace = nobody
		}
	default:
		b.namespace = nobody
	}
	switch {
	case count > 0:
		b.raw = raw
	case !described || b.namespace != req.Namespace:
		return b, refuse(c, abi.ReasonNotFound, "the engine has not described this request's blocks")
	case len(req.Hashes) > abi.StoreHashes:
		return b, refuse(c, abi.ReasonLimitExceeded, "the request has too many blocks for one call of kvrt_store")
	default:
		b.hashes, b.size = req.Hashes, req.BlockSize
	}
	if !c.ChargeCopy(8*uint64(b.len()) + more) {
		return b, refuse(c, abi.ReasonLimitExceeded, "no fuel is left to look at the blocks")
	}
	return b, 0
}

// nobody is Namespace("", "").
const nobody = "0:"

func (h *Host) request(c *runtime.Call, mem []byte, stack []uint64) {
	buf, ok := window(mem, uint32(stack[0]), uint64(uint32(stack[1])))
	if !ok {
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
		return
	}
	b, refused := h.list(c, mem, 0, 0, 0)
	if refused != 0 {
		stack[0] = refused
		return
	}
	n := 8 * len(b.hashes)
	if stack[0] = uint64(n); len(buf) < n {
		return
	}
	for i, hash := range b.hashes {
		binary.LittleEndian.PutUint64(buf[8*i:], hash)
	}
}

func (h *Host) residency(c *runtime.Call, mem []byte, stack []uint64) {
	buf, ok := window(mem, uint32(stack[2]), uint64(uint32(stack[3])))
	if !ok {
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
		return
	}
	b, refused := h.list(c, mem, uint32(stack[0]), uint32(stack[1]), 0)
	if refused != 0 {
		stack[0] = refused
		return
	}
	n := b.len()
	if stack[0] = uint64(n); len(buf) < n {
		return
	}
	// The list may lie where the answer goes, so the answer is made apart.
	e := h.effects.Get().(*effect)
	e.bytes = grow(e.bytes, n)
	h.store.residency(b.namespace, n, b.at, func(i int, r abi.Residency) { e.bytes[i] = byte(r) })
	copy(buf, e.bytes)
	h.effects.Put(e)
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (h *Host) evict(c *runtime.Call, mem []byte, stack []uint64) {
	b, refused := h.list(c, mem, uint32(stack[0]), uint32(stack[1]), 0)
	if refused != 0 {
		stack[0] = refused
		return
	}
	stack[0] = h.prepare(c, &b, effect{op: evicts})
}

func (h *Host) evictAfter(c *runtime.Call, mem []byte, stack []uint64) {
	b, refused := h.list(c, mem, uint32(stack[0]), uint32(stack[1]), 0)
	switch id := c.Identity(); {
	case refused != 0:
		stack[0] = refused
	case id.RequestID == "":
		stack[0] = refuse(c, abi.ReasonNotFound, "the request has no id, so nobody can tell that it has ended")
	default:
		stack[0] = h.prepare(c, &b, effect{op: evictsAfter, id: id})
	}
}

func (h *Host) retain(c *runtime.Call, mem []byte, stack []uint64) {
	raw, ok := window(mem, uint32(stack[2]), uint64(uint32(stack[3])))
	count := len(raw) / abi.SizeStoreClaim
	scope, inside := window(mem, uint32(stack[4]), uint64(uint32(stack[5])))
	switch {
	case !ok || !inside:
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
		return
	case len(raw)%abi.SizeStoreClaim != 0:
		stack[0] = refuse(c, abi.ReasonInvalidPayload, "claims_len is no multiple of a StoreClaim's length")
		return
	case count > abi.StoreClaims:
		stack[0] = refuse(c, abi.ReasonLimitExceeded, "too many claims for one call of kvrt_store.retain")
		return
	}
	b, refused := h.list(c, mem, uint32(stack[0]), uint32(stack[1]), uint64(len(raw)+len(scope)))
	if refused != 0 {
		stack[0] = refused
		return
	}
	var directives [abi.StoreClaims]Directive
	for i := range count {
		if directives[i], ok = directiveAt(raw[i*abi.SizeStoreClaim:]); !ok {
			stack[0] = refuse(c, abi.ReasonInvalidPayload, "a claim has a run that is not empty, a priority of at most 100 and a ttl of at most 30 days")
			return
		}
	}
	owner := h.owner(c, scope, uint32(stack[4]) != 0 || len(scope) > 0)
	stack[0] = h.prepare(c, &b, effect{op: claimsBlocks, owner: owner}, directives[:count]...)
}

// directiveAt reads a StoreClaim.
func directiveAt(b []byte) (Directive, bool) {
	from, to := u32(b, abi.OffStoreClaimFrom), u32(b, abi.OffStoreClaimTo)
	priority, ttl := u32(b, abi.OffStoreClaimPriority), binary.LittleEndian.Uint64(b[abi.OffStoreClaimTTLMs:])
	d := Directive{Start: int64(from), End: int64(to), Priority: int(priority)}
	if to == math.MaxUint32 {
		d.End = -1
	}
	if from >= to || priority > MaxPriority || ttl > uint64(MaxTTL/time.Millisecond) {
		return d, false
	}
	d.TTL = time.Duration(ttl) * time.Millisecond
	return d, true
}

func u32(b []byte, off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }

// owner is whose claims a call makes: a scope's, or the request's, whatever leg and
// attempt it is in.
func (h *Host) owner(c *runtime.Call, scope []byte, scoped bool) uint64 {
	var m maphash.Hash
	m.SetSeed(h.seed)
	if scoped {
		_ = m.WriteByte(1)
		_, _ = m.Write(scope)
	} else {
		id := c.Identity()
		_ = m.WriteByte(2)
		_, _ = m.WriteString(id.Engine)
		_ = m.WriteByte(0)
		_, _ = m.WriteString(id.RequestID)
	}
	return m.Sum64()
}

// prepare leaves an effect to the call. It returns how many of the blocks the store has
// now.
func (h *Host) prepare(c *runtime.Call, b *blocks, what effect, directives ...Directive) uint64 {
	e := h.effects.Get().(*effect)
	e.op, e.namespace, e.owner, e.id = what.op, b.namespace, what.owner, what.id
	if b.raw == nil {
		e.hashes = b.hashes // the request's, which nobody changes
	} else {
		e.own = grow(e.own, b.len())
		for i := range e.own {
			e.own[i] = b.at(i)
		}
		e.hashes = e.own
	}
	e.runs = Runs(e.runs[:0], directives, max(b.size, 1), len(e.hashes))
	has := h.store.residency(e.namespace, len(e.hashes), func(i int) uint64 { return e.hashes[i] }, func(int, abi.Residency) {})
	if !c.Defer(e) {
		e.Drop()
		return refuse(c, abi.ReasonLimitExceeded, "one call has one effect")
	}
	return uint64(has)
}

// effect is an eviction, now or later, or claims, that wait for the verdict on their
// action.
type effect struct {
	host      *Host
	namespace string
	hashes    []uint64
	own       []uint64 // what hashes is, where it is not the request's
	runs      []Run
	owner     uint64
	id        hint.Identity // its strings are views
	op        uint8
	bytes     []byte // of a residency
}

// what an effect does
const (
	evicts uint8 = iota
	evictsAfter
	claimsBlocks
)

// Commit carries it out. What the store no longer has does not reject the action: a hint
// is advice.
func (e *effect) Commit() (abi.Reason, string) {
	s := e.host.store
	switch e.op {
	case evicts:
		e.host.letGo(e.namespace, e.hashes)
	case evictsAfter:
		if !e.host.after.extend(e.id, Request{Namespace: e.namespace, Hashes: e.hashes}, abi.StoreHashes) {
			e.Drop()
			return abi.ReasonLimitExceeded, "too many blocks are to be evicted after this request"
		}
	}
	for _, r := range e.runs {
		if _, err := s.Retain(e.namespace, e.hashes[r.From:r.To], Claim{Owner: e.owner, Priority: r.Priority, TTL: r.TTL}, nil); err != nil {
			e.Drop()
			return abi.ReasonInvalidPayload, err.Error()
		}
	}
	e.Drop()
	return abi.ReasonNone, ""
}

// keep is how many hashes an effect keeps room for.
const keep = 1 << 14

// Drop gives it up.
func (e *effect) Drop() {
	e.namespace, e.id, e.hashes, e.runs = "", hint.Identity{}, nil, e.runs[:0]
	if cap(e.own) > keep {
		e.own = nil
	}
	if cap(e.bytes) > 8*keep {
		e.bytes = nil
	}
	e.host.effects.Put(e)
}
