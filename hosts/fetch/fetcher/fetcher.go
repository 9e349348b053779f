package fetcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

// Fetcher carries hints out. It is safe for concurrent use.
type Fetcher struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	peers   *budgets
	tenants *budgets

	mu      sync.Mutex
	closed  bool
	flights map[key]flight
	lands   uint64 // operations that have ended
	routes  map[string]*route
	brought map[string]*Brought
	others  Brought
	work    sync.WaitGroup

	queries, operations, coalesced, busy, incomplete atomic.Uint64
}

// key is a block.
type key struct {
	namespace string
	hash      uint64
}

// flight is a block under way.
type flight struct {
	op *operation
	i  int
}

// Stats counts what a fetcher has under way and has done.
type Stats struct {
	Flights int // blocks under way
	Peers   int // that links may be kept to

	Queries    uint64
	Operations uint64 // rounds in which a source was turned to
	Coalesced  uint64 // blocks that another operation was bringing already
	Busy       uint64 // requests refused for a cap on bytes
	Incomplete uint64 // operations that did not bring every block
}

// New makes a fetcher.
func New(cfg Config) *Fetcher {
	cfg.setDefaults()
	f := &Fetcher{
		cfg: cfg, peers: newBudgets(cfg.MaxPeerBytes), tenants: newBudgets(cfg.MaxTenantBytes),
		flights: make(map[key]flight), routes: make(map[string]*route), brought: make(map[string]*Brought),
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Stats reads the counters.
func (f *Fetcher) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Stats{
		Flights: len(f.flights), Peers: len(f.routes),
		Queries: f.queries.Load(), Operations: f.operations.Load(), Coalesced: f.coalesced.Load(), Busy: f.busy.Load(), Incomplete: f.incomplete.Load(),
	}
}

// Close ends what is under way, and waits until no slot is held any more.
func (f *Fetcher) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.work.Wait()
	for _, r := range f.routes {
		r.client.Close()
	}
}

// Request names blocks for a request of a serving engine.
type Request struct {
	Identity   hint.Identity
	Tenant     string
	Namespace  []byte
	Hashes     []uint64 // in order
	BlockBytes int      // length of every block; 0: any
}

// Result tells what a fetch brought.
type Result struct {
	Here    int // blocks that were here already
	Fetched int
	Bytes   int64 // of those fetched by operations of this call
}

// Query tells where the blocks of a request are. It promises nothing.
func (f *Fetcher) Query(r *Request, out []Place) {
	f.queries.Add(1)
	f.cfg.Local.Where(r.Namespace, r.Hashes, r.BlockBytes, out)
	named := make([]bool, len(r.Hashes))
	src, ok := f.cfg.Hints.Cover(r.Identity, r.Hashes, named)
	if !ok || src.IsNull() {
		return
	}
	for i := range out {
		if out[i] == Missing && (named[i] || f.cfg.Opportunistic) {
			out[i] = Fetchable
		}
	}
}

// Fetch brings the blocks of a request that are not here and that its hint names, and
// reports on each in status, which is as long as the hashes. The error says why not
// every block is here; what came stays.
func (f *Fetcher) Fetch(ctx context.Context, r *Request, status []peer.Status) (Result, error) {
	res, err := f.fetch(ctx, r, status, f.cfg.Opportunistic)
	if err == nil {
		f.complete(r)
	}
	return res, err
}

// complete ends the hint of a request when all that it names is here, whoever brought it.
// It looks from the end on, since blocks are fetched in their order.
func (f *Fetcher) complete(r *Request) {
	all := f.cfg.Hints.AppendHashes(nil, r.Identity)
	if len(all) == 0 {
		return
	}
	var places [64]Place
	for to := len(all); to > 0; {
		from := max(0, to-len(places))
		part := places[:to-from]
		f.cfg.Local.Where(r.Namespace, all[from:to], r.BlockBytes, part)
		if slices.ContainsFunc(part, func(p Place) bool { return p != Ready }) {
			return
		}
		to = from
	}
	f.cfg.Outcomes.Complete(r.Identity)
}

// FetchHint brings all blocks that the hint of r's request names, in its order. r.Hashes
// is not used.
func (f *Fetcher) FetchHint(ctx context.Context, r *Request) (Result, error) {
	all := *r
	all.Hashes = distinct(f.cfg.Hints.AppendHashes(nil, r.Identity))
	if len(all.Hashes) == 0 {
		return Result{}, ErrNoHint
	}
	res, err := f.fetch(ctx, &all, make([]peer.Status, len(all.Hashes)), false)
	switch {
	case err == nil:
		f.cfg.Outcomes.Complete(r.Identity)
	case errors.Is(err, ErrLength): // and another time would bring no other end
		hinted{f, r.Identity}.Fail(ReasonOf(err))
	}
	return res, err
}

func distinct(hashes []uint64) []uint64 {
	seen := make(map[uint64]struct{}, len(hashes))
	kept := hashes[:0]
	for _, h := range hashes {
		if _, ok := seen[h]; !ok {
			seen[h] = struct{}{}
			kept = append(kept, h)
		}
	}
	return kept
}

// Destination takes blocks that are here, for a device for example.
type Destination interface {
	// Deliver returns when it does not read from the blocks any more.
	Deliver(ctx context.Context, blocks []peer.Block) error
}

// Deliver fetches as Fetch does, though every block that is not here and not only those
// that the hint names, and hands the longest prefix that is here to dst, under a lease.
// A block counts as delivered when its status is not Failed.
func (f *Fetcher) Deliver(ctx context.Context, r *Request, dst Destination, status []peer.Status) (Result, error) {
	if len(r.Hashes) == 0 {
		return Result{}, nil
	}
	res, err := f.fetch(ctx, r, status, true)
	if err == nil {
		f.complete(r)
	}
	var l peer.Lease
	f.cfg.Local.Lease(r.Namespace, r.Hashes, 1<<62, &l)
	n := len(l.Blocks)
	if n > 0 {
		defer f.cfg.Local.Release(&l)
	}
	if i := slices.IndexFunc(l.Blocks, func(b peer.Block) bool { return r.BlockBytes > 0 && len(b.Data) != r.BlockBytes }); i >= 0 {
		n = i
	}
	if n > 0 {
		if derr := dst.Deliver(ctx, l.Blocks[:n]); derr != nil {
			n, err = 0, fmt.Errorf("deliver: %w", derr)
		}
	}
	clear(status[n:])
	if err == nil && n < len(status) {
		err = ErrIncomplete // evicted between the two
	}
	return res, err
}

// ReasonOf is how an error of a fetch looks in an outcome.
func ReasonOf(err error) abi.Reason {
	var part *IncompleteError
	switch {
	case errors.As(err, &part) && part.Stop == peer.StopCredit:
		return abi.ReasonLimitExceeded
	case errors.As(err, &part) && part.Stop == peer.StopDenied:
		return abi.ReasonSourceNotAllowed
	case errors.Is(err, ErrLength):
		return abi.ReasonStateConflict
	case errors.Is(err, ErrIncomplete):
		return abi.ReasonNotFound
	case errors.Is(err, ErrBusy), errors.Is(err, peer.ErrNoRoom):
		return abi.ReasonLimitExceeded
	}
	return abi.ReasonUnavailable
}

// route is the client of one peer.
type route struct {
	client *peer.Client
	users  int    // operations
	used   uint64 // by number of operations, to find the one that was used longest ago
	history
}

// reach finds the client of a source and counts its use.
func (f *Fetcher) reach(src fetch.Source) (*route, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	name := src.String()
	r := f.routes[name]
	if r == nil {
		var idle *peer.Client
		if len(f.routes) >= f.cfg.MaxPeers {
			if idle = f.evict(); idle == nil {
				return nil, ErrBusy
			}
		}
		if idle != nil {
			f.work.Go(idle.Close)
		}
		r = &route{client: peer.NewClient(f.cfg.Client, func(ctx context.Context) (*peer.Link, error) { return f.cfg.Dial(ctx, src) }, f.cfg.Local)}
		f.routes[strings.Clone(name)] = r
	}
	r.users++
	r.used = f.operations.Add(1)
	return r, nil
}

// evict takes the peer away that was used longest ago and is not in use.
func (f *Fetcher) evict() *peer.Client {
	var oldest string
	var least *route
	for name, r := range f.routes {
		if r.users == 0 && (least == nil || r.used < least.used) {
			oldest, least = name, r
		}
	}
	if least == nil {
		return nil
	}
	delete(f.routes, oldest)
	return least.client
}

func (f *Fetcher) leave(r *route) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.users--
}
