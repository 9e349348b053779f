package fetch

import (
	"encoding/binary"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Order is blocks to bring from a source ahead of need. Nothing of it is kept.
type Order struct {
	Identity          hint.Identity // of the request whose action asks; it need not have an id
	MessageID         []byte        // of the action's envelope
	Index             int           // of the action there; -1: none asks, as with a policy
	Tenant, Namespace string        // whose blocks these are; Namespace is the block store's
	Source            Source        // that an allow list accepted
	Hashes            []uint64      // in order; duplicates are allowed
}

// Prefetcher brings blocks into the block store here, in its own time and within bounds
// of its own. What became of an order that it took is an outcome.
type Prefetcher interface {
	Prefetch(o *Order) (abi.Reason, string)
}

// Space tells whose blocks a call is about: the tenant, and the block store's namespace,
// which a guest has no say in.
type Space func(c *runtime.Call) (tenant, namespace string)

// ahead is who brings blocks, and whose.
type ahead struct {
	to    Prefetcher
	space Space
}

// SetPrefetcher lets guests have blocks brought. Before that kvrt_fetch.prefetch is
// unavailable.
func (h *Host) SetPrefetcher(to Prefetcher, space Space) { h.ahead.Store(&ahead{to, space}) }

func (h *Host) prefetch(c *runtime.Call, mem []byte, stack []uint64) {
	stack[0] = i32(h.order(c, mem, uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3]), uint32(stack[4])))
}

// order does the work of prefetch. The hashes may lie at any alignment.
func (h *Host) order(c *runtime.Call, mem []byte, source, sourceLen, hashes, count, flags uint32) int32 {
	text, ok := window(mem, source, uint64(sourceLen))
	if !ok {
		return c.Refuse(abi.ReasonInvalidPayload, "the source lies outside the guest's memory")
	}
	blocks, ok := window(mem, hashes, 8*uint64(count))
	to := h.ahead.Load()
	switch {
	case !ok:
		return c.Refuse(abi.ReasonInvalidPayload, "the block hashes lie outside the guest's memory")
	case flags != 0:
		return c.Refuse(abi.ReasonInvalidPayload, "unknown flags of kvrt_fetch.prefetch")
	case sourceLen == 0:
		return c.Refuse(abi.ReasonInvalidPayload, "kvrt_fetch.prefetch needs a source")
	case count == 0:
		return c.Refuse(abi.ReasonInvalidPayload, "kvrt_fetch.prefetch needs at least one block hash")
	case count > abi.PrefetchHashes:
		return c.Refuse(abi.ReasonLimitExceeded, "too many blocks for one call of kvrt_fetch.prefetch")
	case to == nil:
		return c.Refuse(abi.ReasonUnavailable, "this host exchanges no blocks")
	case !c.ChargeCopy(uint64(sourceLen) + 8*uint64(count)):
		return c.Refuse(abi.ReasonLimitExceeded, "no fuel is left to copy the block hashes")
	}
	src, err := h.allow.Load().Check(text)
	if err != nil {
		h.refused.Add(1)
		return c.Refuse(abi.ReasonSourceNotAllowed, err.Error())
	}
	message, index := c.Action()
	o := &wanted{to: to.to, Order: Order{Identity: c.Identity(), MessageID: message, Index: index, Source: src, Hashes: make([]uint64, count)}}
	o.Tenant, o.Namespace = to.space(c)
	o.Tenant, o.Namespace = strings.Clone(o.Tenant), strings.Clone(o.Namespace)
	for i := range o.Hashes {
		o.Hashes[i] = binary.LittleEndian.Uint64(blocks[8*i:])
	}
	if !c.Defer(o) {
		return c.Refuse(abi.ReasonLimitExceeded, "one call has one effect")
	}
	return 0
}

// wanted is an order that waits for the verdict on its action. Identity and MessageID are
// views that hold that long.
type wanted struct {
	to Prefetcher
	Order
}

func (w *wanted) Commit() (abi.Reason, string) { return w.to.Prefetch(&w.Order) }

func (w *wanted) Drop() {}
