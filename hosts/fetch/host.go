package fetch

import (
	"sync/atomic"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// Host is the capability kvrt_fetch: it offers a [Store] to guests, under an
// [AllowList]. Submits, discards and finishes are prepared at once and take place when
// the call's action is accepted; status shows what has taken place. With
// [Host.SetPrefetcher] it also has blocks brought ahead of need.
type Host struct {
	store   *Store
	allow   atomic.Pointer[AllowList]
	refused atomic.Uint64
	ahead   atomic.Pointer[ahead]
}

// NewHost makes the capability.
func NewHost(store *Store, allow *AllowList) *Host {
	h := &Host{store: store}
	h.SetAllowed(allow)
	return h
}

// SetAllowed replaces the list for the calls that follow. Hints in the store stay.
func (h *Host) SetAllowed(allow *AllowList) { h.allow.Store(allow) }

// RefusedSources is how many submits were refused for their source.
func (h *Host) RefusedSources() uint64 { return h.refused.Load() }

// Name is the import module.
func (h *Host) Name() string { return "kvrt_fetch" }

// Functions are the functions of the module, with the signatures of the table.
func (h *Host) Functions() []runtime.HostFunction {
	return runtime.Functions(h.Name(), map[string]func(*runtime.Call, []byte, []uint64){
		"submit": guarded(h.submit), "discard": guarded(h.discard), "finish": guarded(h.finish), "status": guarded(h.status),
		"prefetch": h.prefetch,
	})
}

// guarded hands a broken store on to whoever called the runtime. Other panics are the
// runtime's to judge.
func guarded(do func(*runtime.Call, []byte, []uint64)) func(*runtime.Call, []byte, []uint64) {
	return func(c *runtime.Call, mem []byte, stack []uint64) {
		defer func() {
			if r := recover(); r != nil {
				fault, ok := r.(*Fault)
				if !ok {
					panic(r)
				}
				c.Fail(fault)
			}
		}()
		do(c, mem, stack)
	}
}

// i32 is v as a 32-bit result. Arguments are truncated to 32 bits where they are read.
func i32(v int32) uint64 { return uint64(uint32(v)) }

// window is the run of memory at off, if it lies inside. The sum cannot overflow.
func window(mem []byte, off uint32, n uint64) ([]byte, bool) {
	if uint64(off)+n > uint64(len(mem)) {
		return nil, false
	}
	return mem[off : uint64(off)+n], true
}

func (h *Host) submit(c *runtime.Call, mem []byte, stack []uint64) {
	stack[0] = i32(h.prepare(c, mem, uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3]), abi.FetchFlag(uint32(stack[4]))))
}

// prepare does the work of submit. The hashes may lie at any alignment.
func (h *Host) prepare(c *runtime.Call, mem []byte, source, sourceLen, hashes, count uint32, flags abi.FetchFlag) int32 {
	text, ok := window(mem, source, uint64(sourceLen))
	if !ok {
		return c.Refuse(abi.ReasonInvalidPayload, "the source lies outside the guest's memory")
	}
	blocks, ok := window(mem, hashes, 8*uint64(count))
	if !ok {
		return c.Refuse(abi.ReasonInvalidPayload, "the block hashes lie outside the guest's memory")
	}
	if !c.ChargeCopy(uint64(sourceLen) + 8*uint64(count)) {
		return c.Refuse(abi.ReasonLimitExceeded, "no fuel is left to copy the block hashes")
	}
	if flags&^abi.FetchFlagNoRetain != 0 {
		return c.Refuse(abi.ReasonInvalidPayload, "unknown flags of kvrt_fetch.submit")
	}
	var src Source
	if source != 0 || sourceLen != 0 {
		if sourceLen == 0 {
			return c.Refuse(abi.ReasonInvalidPayload, "the source is empty; leave it out for local storage")
		}
		var err error
		if src, err = h.allow.Load().Check(text); err != nil {
			h.refused.Add(1)
			return c.Refuse(abi.ReasonSourceNotAllowed, err.Error())
		}
	}
	id := c.Identity()
	p, reason, detail := h.store.prepareSubmit(h.own(c), &id, src, blocks, flags&abi.FetchFlagNoRetain != 0)
	return handOver(c, p, reason, detail)
}

// own is the Pending that belongs to the guest's instance; nil while it waits for the
// verdict on the call, and where another module has the place.
func (h *Host) own(c *runtime.Call) *Pending {
	if c.Kept() == nil {
		c.Keep(h.store.newOwn())
	}
	p, _ := c.Kept().(*Pending)
	if p == nil || p.store != h.store || p.ready {
		return nil
	}
	return p
}

// handOver leaves an effect to the call, or the refusal of one. What takes place does so
// at the time when the call began, which costs no reading of a clock.
func handOver(c *runtime.Call, p *Pending, reason abi.Reason, detail string) int32 {
	if p == nil {
		return c.Refuse(reason, detail)
	}
	p.now = p.store.at(c.Began())
	if !c.Defer(p) {
		p.Drop()
		return c.Refuse(abi.ReasonLimitExceeded, "one call has one effect")
	}
	return 0
}

func (h *Host) discard(c *runtime.Call, _ []byte, stack []uint64) {
	id := c.Identity()
	p, reason, detail := h.store.prepareEnd(h.own(c), &id, discarded)
	stack[0] = i32(handOver(c, p, reason, detail))
}

func (h *Host) finish(c *runtime.Call, _ []byte, stack []uint64) {
	how := uint32(stack[0])
	if how > 1 {
		stack[0] = i32(c.Refuse(abi.ReasonInvalidPayload, "kvrt_fetch.finish takes 0 (ok) or 1 (aborted)"))
		return
	}
	id := c.Identity()
	p, reason, detail := h.store.prepareEnd(h.own(c), &id, finishState(how == 1))
	stack[0] = i32(handOver(c, p, reason, detail))
}

func (h *Host) status(c *runtime.Call, mem []byte, stack []uint64) {
	off, size := uint32(stack[0]), uint32(stack[1])
	buf, ok := window(mem, off, uint64(size))
	switch {
	case !ok:
		stack[0] = uint64(int64(c.Refuse(abi.ReasonInvalidPayload, "the buffer lies outside the guest's memory")))
		return
	case len(buf) >= abi.SizeFetchStatus && c.ChargeCopy(abi.SizeFetchStatus):
		putStatus(buf, h.store.Status(c.Identity()))
	}
	stack[0] = abi.SizeFetchStatus
}

func putStatus(b []byte, st Status) {
	hasSource := uint32(0)
	if st.HasSource {
		hasSource = 1
	}
	abi.PutU32(b, abi.OffFetchStatusState, uint32(st.State))
	abi.PutU32(b, abi.OffFetchStatusHashes, st.Hashes)
	abi.PutU64(b, abi.OffFetchStatusSubmittedNS, uint64(st.Submitted))
	abi.PutU64(b, abi.OffFetchStatusExpiresNS, uint64(st.Expires))
	abi.PutU32(b, abi.OffFetchStatusHasSource, hasSource)
	abi.PutU32(b, abi.OffFetchStatusZero, 0)
}
