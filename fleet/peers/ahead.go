package peers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
)

// AheadConfig bounds what is brought ahead of need. A field that is zero or negative
// takes its default.
type AheadConfig struct {
	// Running and TenantRunning are how many orders are carried out at once: of all, and of
	// one tenant, so that one whose orders find no room holds up nobody else's. Default 4
	// and 2.
	Running, TenantRunning int
	// Orders and TenantOrders cap the orders that wait or run: all, and those of one
	// tenant. Default 256 and 32.
	Orders, TenantOrders int
	// Blocks caps the blocks of all orders that wait or run. Default 1,048,576, which is
	// 8 MiB of hashes.
	Blocks int
	// Timeout is how long an order may take once it runs. Default 30 s.
	Timeout time.Duration
	// Pause is how long an order that finds no room for a block waits for it. Default
	// 20 ms.
	Pause time.Duration
}

func (c *AheadConfig) setDefaults() {
	for _, f := range []struct {
		field *int
		value int
	}{{&c.Running, 4}, {&c.TenantRunning, 2}, {&c.Orders, 256}, {&c.TenantOrders, 32}, {&c.Blocks, 1 << 20}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Pause <= 0 {
		c.Pause = 20 * time.Millisecond
	}
}

// ahead carries orders out, those of a tenant in the sequence in which they came.
type ahead struct {
	cfg    AheadConfig
	x      *Exchange
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	waiting []*order
	running int
	orders  int
	blocks  int
	tenants map[string]int // orders
	active  map[string]int // those of them that run
}

// order is blocks to bring, with the outcome that it has.
type order struct {
	tenant string
	req    fetcher.Request
	source fetch.Source
	ticket *outcome.Ticket
}

func newAhead(x *Exchange, cfg AheadConfig) *ahead {
	cfg.setDefaults()
	a := &ahead{cfg: cfg, x: x, tenants: map[string]int{}, active: map[string]int{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// AheadStats are the orders for blocks ahead of need that have not ended.
type AheadStats struct {
	Waiting, Running int
	Blocks           int // of both
}

// Ahead tells which orders wait or run.
func (x *Exchange) Ahead() AheadStats {
	a := x.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	return AheadStats{Waiting: len(a.waiting), Running: a.orders - len(a.waiting), Blocks: a.blocks}
}

// Prefetch takes an order: it is carried out when its turn comes, and its outcome is in
// the ledger from here on. It goes on when its request ends.
func (x *Exchange) Prefetch(o *fetch.Order) (abi.Reason, string) { return x.ahead.take(o) }

func (a *ahead) take(o *fetch.Order) (abi.Reason, string) {
	tenant := strings.Clone(o.Tenant)
	hashes := distinct(o.Hashes)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return abi.ReasonUnavailable, "this host is about to end"
	case a.tenants[tenant] >= a.cfg.TenantOrders:
		return abi.ReasonLimitExceeded, "too many prefetches of this tenant wait already"
	case a.orders >= a.cfg.Orders || a.blocks+len(hashes) > a.cfg.Blocks:
		return abi.ReasonLimitExceeded, "too many prefetches wait already"
	}
	w := &order{
		tenant: tenant, source: o.Source,
		req:    fetcher.Request{Tenant: tenant, Namespace: []byte(o.Namespace), Hashes: hashes},
		ticket: a.x.Outcomes.Begin(o.Identity, o.MessageID, uint32(max(o.Index, 0)), uint32(len(hashes))),
	}
	a.orders++
	a.blocks += len(hashes)
	a.tenants[tenant]++
	a.waiting = append(a.waiting, w)
	if a.running < a.cfg.Running {
		a.running++
		a.work.Go(a.run)
	}
	return abi.ReasonNone, ""
}

// distinct copies a list without its duplicates.
func distinct(hashes []uint64) []uint64 {
	seen := make(map[uint64]struct{}, len(hashes))
	out := make([]uint64, 0, len(hashes))
	for _, h := range hashes {
		if _, ok := seen[h]; !ok {
			seen[h] = struct{}{}
			out = append(out, h)
		}
	}
	return out
}

// run carries orders out until none waits that may run.
func (a *ahead) run() {
	for {
		o := a.next()
		if o == nil {
			return
		}
		if err := a.bring(o); err != nil {
			o.ticket.Fail(fetcher.ReasonOf(err))
		} else {
			o.ticket.Complete()
		}

		a.mu.Lock()
		a.orders--
		a.blocks -= len(o.req.Hashes)
		less(a.tenants, o.tenant)
		less(a.active, o.tenant)
		a.mu.Unlock()
	}
}

// next takes the first order of a tenant of whom not too many run. Nil ends a run: what
// still waits goes on with a run that has an order of its tenant.
func (a *ahead) next() *order {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, o := range a.waiting {
		if a.active[o.tenant] < a.cfg.TenantRunning {
			a.active[o.tenant]++
			a.waiting = slices.Delete(a.waiting, i, i+1)
			return o
		}
	}
	a.running--
	return nil
}

func less(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}

// bring carries an order out. Where there is no room for a block, it waits.
func (a *ahead) bring(o *order) error {
	ctx, cancel := context.WithTimeout(a.ctx, a.cfg.Timeout)
	defer cancel()
	for err := context.Cause(ctx); ; {
		if err != nil {
			return err // closed while it waited
		}
		_, err = a.x.Fetcher.Ahead(ctx, &o.req, o.source, o.ticket.Fetched)
		if !errors.Is(err, fetcher.ErrBusy) {
			return err
		}
		select {
		case <-time.After(a.cfg.Pause):
			err = nil
		case <-ctx.Done():
		}
	}
}

// close ends all orders and waits for those that run. Those that waited have failed.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.work.Wait()
}
