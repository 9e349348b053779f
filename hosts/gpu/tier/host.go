package tier

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// About tells what a call is about: the namespace of its request's blocks, and the hashes
// that its engine described, if it did.
type About func(c *runtime.Call) (namespace string, request []uint64, described bool)

// Host is the capability kvrt_gpu: it lets a guest ask for blocks of its request's
// namespace on the device, and have them brought there. What it brings is queued when the
// call's action is accepted.
type Host struct {
	tier  *Tier // nil: no blocks are kept on a device
	about About
	pool  sync.Pool // of *effect
}

// NewHost makes the capability. Without a tier every function is unavailable.
func NewHost(t *Tier, about About) *Host {
	h := &Host{tier: t, about: about}
	h.pool.New = func() any { return &effect{host: h} }
	return h
}

// Tier is the tier behind the capability; nil without one.
func (h *Host) Tier() *Tier { return h.tier }

// Name is the import module.
func (h *Host) Name() string { return abi.ModuleGPU }

// Functions are the functions of the module, with the signatures of the table.
func (h *Host) Functions() []runtime.HostFunction {
	return runtime.Functions(h.Name(), map[string]func(*runtime.Call, []byte, []uint64){
		"info": h.info, "residency": h.residency, "prefetch": h.fetch,
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

const (
	outside = "the hashes or the buffer lie outside the guest's memory"
	without = "this host keeps no blocks on a device"
	gone    = "the device is lost"
)

func (h *Host) info(c *runtime.Call, mem []byte, stack []uint64) {
	buf, ok := window(mem, uint32(stack[0]), uint64(uint32(stack[1])))
	switch {
	case !ok:
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
		return
	case h.tier == nil:
		stack[0] = refuse(c, abi.ReasonUnavailable, without)
		return
	case h.tier.dev.Lost() != nil:
		stack[0] = refuse(c, abi.ReasonUnavailable, gone)
		return
	}
	stack[0] = abi.SizeDeviceInfo
	if len(buf) < abi.SizeDeviceInfo || !c.ChargeCopy(abi.SizeDeviceInfo) {
		return
	}
	kind := abi.DeviceHostMemory
	if h.tier.dev.Info().Driver == abi.DeviceCUDA.String() {
		kind = abi.DeviceCUDA
	}
	abi.PutU32(buf, abi.OffDeviceInfoDevice, uint32(kind))
	abi.PutU32(buf, abi.OffDeviceInfoZero, 0)
	abi.PutU64(buf, abi.OffDeviceInfoBlockBytes, h.tier.cfg.BlockBytes)
	abi.PutU64(buf, abi.OffDeviceInfoBlocks, uint64(len(h.tier.table.slots)))
	abi.PutU64(buf, abi.OffDeviceInfoUsed, h.tier.used())
}

// used is how many slots have a block, or one on its way.
func (t *Tier) used() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return uint64(len(t.table.slots) - len(t.table.free))
}

// list reads which blocks a call is about.
func (h *Host) list(c *runtime.Call, mem []byte, off, count uint32) (e *effect, refused uint64) {
	raw, ok := window(mem, off, 8*uint64(count))
	switch {
	case !ok:
		return nil, refuse(c, abi.ReasonInvalidPayload, outside)
	case h.tier == nil:
		return nil, refuse(c, abi.ReasonUnavailable, without)
	case h.tier.dev.Lost() != nil:
		return nil, refuse(c, abi.ReasonUnavailable, gone)
	case count > abi.StoreHashes:
		return nil, refuse(c, abi.ReasonLimitExceeded, "too many blocks for one call of kvrt_gpu")
	}
	namespace, request, described := h.about(c)
	n := count
	switch {
	case count > 0:
	case !described:
		return nil, refuse(c, abi.ReasonNotFound, "the engine has not described this request's blocks")
	case len(request) > abi.StoreHashes:
		return nil, refuse(c, abi.ReasonLimitExceeded, "the request has too many blocks for one call of kvrt_gpu")
	default:
		n = uint32(len(request))
	}
	if !c.ChargeCopy(8 * uint64(n)) {
		return nil, refuse(c, abi.ReasonLimitExceeded, "no fuel is left to look at the blocks")
	}
	e = h.pool.Get().(*effect)
	e.namespace = namespace
	e.where = grow(e.where, int(n))
	if count == 0 {
		e.hashes = request // which nobody changes
		return e, 0
	}
	e.own = grow(e.own, int(n))
	for i := range e.own {
		e.own[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	e.hashes = e.own
	return e, 0
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (h *Host) residency(c *runtime.Call, mem []byte, stack []uint64) {
	buf, ok := window(mem, uint32(stack[2]), uint64(uint32(stack[3])))
	if !ok {
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
		return
	}
	e, refused := h.list(c, mem, uint32(stack[0]), uint32(stack[1]))
	if refused != 0 {
		stack[0] = refused
		return
	}
	stack[0] = uint64(len(e.hashes))
	if len(buf) >= len(e.hashes) {
		h.tier.Residency(e.namespace, e.hashes, e.where)
		for i, r := range e.where {
			buf[i] = byte(r)
		}
	}
	e.Drop()
}

// fetch is prefetch.
func (h *Host) fetch(c *runtime.Call, mem []byte, stack []uint64) {
	e, refused := h.list(c, mem, uint32(stack[0]), uint32(stack[1]))
	if refused != 0 {
		stack[0] = refused
		return
	}
	n := h.tier.toBring(e.namespace, e.hashes, e.where)
	if !c.Defer(e) {
		e.Drop()
		stack[0] = refuse(c, abi.ReasonLimitExceeded, "one call has one effect")
		return
	}
	stack[0] = uint64(n)
}

// toBring counts the blocks that the store has and the device has not. where is room for
// as many as there are hashes.
func (t *Tier) toBring(namespace string, hashes []uint64, where []abi.Residency) (n int) {
	t.cfg.Blocks.Residency(namespace, hashes, where)
	for from := 0; from < len(hashes); from += lookAtOnce {
		t.mu.Lock()
		sp := t.table.spaces[namespace]
		for i := from; i < min(from+lookAtOnce, len(hashes)); i++ {
			if where[i] == abi.ResidencyDRAM && t.table.residency(sp, hashes[i]) == abi.ResidencyAbsent {
				n++
			}
		}
		t.mu.Unlock()
	}
	return n
}

// effect is a prefetch that waits for the verdict on its action.
type effect struct {
	host      *Host
	namespace string
	hashes    []uint64
	own       []uint64 // what hashes is, where it is not the request's
	where     []abi.Residency
}

// Commit queues it.
func (e *effect) Commit() (abi.Reason, string) {
	err := e.host.tier.Prefetch(e.namespace, e.hashes)
	e.Drop()
	switch {
	case err == nil:
		return abi.ReasonNone, ""
	case errors.Is(err, ErrBusy):
		return abi.ReasonLimitExceeded, "too many blocks wait to be brought to the device"
	}
	return abi.ReasonUnavailable, err.Error()
}

// keep is how many hashes an effect keeps room for.
const keep = 1 << 14

// Drop gives it up.
func (e *effect) Drop() {
	e.namespace, e.hashes = "", nil
	if cap(e.own) > keep {
		e.own = nil
	}
	if cap(e.where) > 8*keep {
		e.where = nil
	}
	e.host.pool.Put(e)
}
