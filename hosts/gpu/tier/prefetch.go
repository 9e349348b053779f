package tier

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// prefetches are loads that nobody waits for, one after the other: a batch of one is long,
// and those of many would only share the same bus.
type prefetches struct {
	wait   chan *prefetch
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex
	spare []*prefetch    // the one that was used last is the next: its memory is warm
	of    map[string]int // blocks that wait, by namespace

	queued                       atomic.Int64
	asked, refused, late, broken atomic.Uint64
}

type prefetch struct {
	namespace string
	hashes    []uint64
	since     int64
	done      chan struct{} // closed when its turn has come, instead of loading
}

// keepHashes is how many hashes a waiting prefetch keeps room for.
const keepHashes = 1 << 12

func (t *Tier) startPrefetches() {
	p := &t.prefetch
	p.wait, p.of = make(chan *prefetch, t.cfg.Requests), make(map[string]int)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.work.Go(func() {
		for {
			select {
			case r := <-p.wait:
				t.carryOut(r)
			case <-p.ctx.Done():
				return
			}
		}
	})
}

func (t *Tier) endPrefetches() {
	t.prefetch.cancel()
	t.prefetch.work.Wait()
}

// Prefetch has blocks brought to the device and waits for nothing. It copies the list. The
// error is that of the device, ErrClosed, or ErrBusy when too much waits.
func (t *Tier) Prefetch(namespace string, hashes []uint64) error {
	if err := t.usable(); err != nil {
		return err
	}
	if len(hashes) == 0 {
		return nil
	}
	p := &t.prefetch
	p.asked.Add(1)
	r := p.take(namespace, len(hashes), t.cfg.Queued)
	if r == nil {
		p.refused.Add(1)
		return ErrBusy
	}
	r.hashes, r.since = append(slices.Grow(r.hashes[:0], len(hashes)), hashes...), t.cfg.Now()
	select {
	case p.wait <- r:
		return nil
	default:
		p.give(r)
		p.refused.Add(1)
		return ErrBusy
	}
}

// take gets room for so many blocks to wait; nil when there is none. One namespace has at
// most half of it, so that there is some for others.
func (p *prefetches) take(namespace string, blocks, room int) *prefetch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if int(p.queued.Load())+blocks > room || p.of[namespace]+blocks > (room+1)/2 {
		return nil
	}
	var r *prefetch
	if n := len(p.spare); n > 0 {
		r, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		r = new(prefetch)
	}
	if r.namespace != namespace {
		r.namespace = strings.Clone(namespace)
	}
	p.queued.Add(int64(blocks))
	p.of[r.namespace] += blocks
	return r
}

// give gives the room back, and keeps the request for the next one.
func (p *prefetches) give(r *prefetch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued.Add(-int64(len(r.hashes)))
	if p.of[r.namespace] -= len(r.hashes); p.of[r.namespace] == 0 {
		delete(p.of, r.namespace)
	}
	if cap(r.hashes) > keepHashes {
		r.hashes = nil
	}
	p.spare = append(p.spare, r)
}

// Wait waits until the prefetches that were asked for before have been carried out.
func (t *Tier) Wait(ctx context.Context) error {
	p := &t.prefetch
	done := make(chan struct{})
	select {
	case p.wait <- &prefetch{done: done}:
	case <-t.closing:
		return ErrClosed
	case <-ctx.Done():
		return cause(ctx)
	}
	select {
	case <-done:
		return nil
	case <-t.closing:
		return ErrClosed
	case <-ctx.Done():
		return cause(ctx)
	}
}

// carryOut loads what was asked for, if it is still of use.
func (t *Tier) carryOut(r *prefetch) {
	p := &t.prefetch
	if r.done != nil {
		close(r.done)
		return
	}
	left := t.cfg.Patience - time.Duration(t.cfg.Now()-r.since)
	if left > 0 {
		ctx, cancel := context.WithTimeout(p.ctx, left)
		if res, err := t.Load(ctx, r.namespace, r.hashes, nil); err != nil || res.Failed > 0 {
			p.broken.Add(1)
		}
		cancel()
	} else {
		p.late.Add(1)
	}
	p.give(r)
}
