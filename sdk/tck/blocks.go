package tck

import (
	"encoding/binary"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// Answers are what the host of a Recorder says. The zero value takes everything, and
// knows nothing of the request.
type Answers struct {
	// Submit, Prefetch, Store and Device, unless none, are why kvrt_fetch.submit,
	// kvrt_fetch.prefetch, kvrt_store and kvrt_gpu refuse.
	Submit, Prefetch, Store, Device abi.Reason
	// Request are the blocks of the request; nil: nobody described it.
	Request []uint64
}

// Blocks are blocks that something is to be done with: the arguments of
// kvrt_fetch.prefetch, kvrt_gpu.prefetch, and the effects of kvrt_store. What else
// kvrt_store.retain is told is not kept.
type Blocks struct {
	Source string   `json:"source,omitempty"`
	Hashes []uint64 `json:"hashes"`
}

// Done is an effect on blocks that took place.
type Done struct {
	Function string `json:"function"`
	Blocks
}

// Done are the effects on blocks that took place, in order.
func (r *Recorder) Done() []Done {
	out := []Done{}
	for _, e := range r.Effects {
		if b, ok := e.Arguments.(Blocks); ok && e.Taken {
			out = append(out, Done{e.Function, b})
		}
	}
	return out
}

func (r *Recorder) prefetch(c *runtime.Call, mem []byte, stack []uint64) {
	stack[0] = uint64(uint32(r.order(c, mem, uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3]), uint32(stack[4]))))
}

func (r *Recorder) order(c *runtime.Call, mem []byte, source, sourceLen, hashes, count, flags uint32) int32 {
	text, inside := window(mem, source, uint64(sourceLen))
	blocks, also := window(mem, hashes, 8*uint64(count))
	switch {
	case !inside:
		return c.Refuse(abi.ReasonInvalidPayload, "the source lies outside the guest's memory")
	case !also:
		return c.Refuse(abi.ReasonInvalidPayload, "the block hashes lie outside the guest's memory")
	case flags != 0:
		return c.Refuse(abi.ReasonInvalidPayload, "unknown flags of kvrt_fetch.prefetch")
	case sourceLen == 0:
		return c.Refuse(abi.ReasonInvalidPayload, "kvrt_fetch.prefetch needs a source")
	case count == 0:
		return c.Refuse(abi.ReasonInvalidPayload, "kvrt_fetch.prefetch needs at least one block hash")
	case count > abi.PrefetchHashes:
		return c.Refuse(abi.ReasonLimitExceeded, "too many blocks for one call of kvrt_fetch.prefetch")
	case r.Answers.Prefetch != abi.ReasonNone:
		return c.Refuse(r.Answers.Prefetch, "says the test")
	case !c.ChargeCopy(uint64(sourceLen) + 8*uint64(count)):
		return c.Refuse(abi.ReasonLimitExceeded, "no fuel is left to copy the block hashes")
	}
	return r.handOver(c, Effect{Function: abi.ModuleFetch + ".prefetch", Arguments: Blocks{string(text), u64s(blocks)}})
}

func u64s(b []byte) []uint64 {
	out := make([]uint64, len(b)/8)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out
}

// keeper is kvrt_store or kvrt_gpu of a Recorder, without a single block.
type keeper struct {
	r    *Recorder
	name string
}

func (k keeper) Name() string { return k.name }

func (k keeper) Functions() []runtime.HostFunction {
	if k.name == abi.ModuleGPU {
		return runtime.Functions(k.name, map[string]func(*runtime.Call, []byte, []uint64){
			"info": k.info, "residency": k.residency, "prefetch": k.effect("prefetch"),
		})
	}
	return runtime.Functions(k.name, map[string]func(*runtime.Call, []byte, []uint64){
		"residency": k.residency, "request": k.request,
		"evict": k.effect("evict"), "evict_after": k.effect("evict_after"), "retain": k.retain,
	})
}

func (k keeper) refuses() abi.Reason {
	if k.name == abi.ModuleGPU {
		return k.r.Answers.Device
	}
	return k.r.Answers.Store
}

const outside = "the hashes, claims, scope or buffer lie outside the guest's memory"

// list reads which blocks a call is about; false: refused is the answer.
func (k keeper) list(c *runtime.Call, mem []byte, off, count uint64) (hashes []uint64, refused uint64, ok bool) {
	no := func(r abi.Reason, detail string) ([]uint64, uint64, bool) {
		return nil, uint64(int64(c.Refuse(r, detail))), false
	}
	raw, inside := window(mem, uint32(off), 8*uint64(uint32(count)))
	switch n := uint32(count); {
	case !inside:
		return no(abi.ReasonInvalidPayload, outside)
	case k.refuses() != abi.ReasonNone:
		return no(k.refuses(), "says the test")
	case n > abi.StoreHashes:
		return no(abi.ReasonLimitExceeded, "too many blocks for one call of "+k.name)
	case n > 0:
		hashes = u64s(raw)
	case k.r.Answers.Request == nil:
		return no(abi.ReasonNotFound, "the engine has not described this request's blocks")
	default:
		hashes = k.r.Answers.Request
	}
	if !c.ChargeCopy(8 * uint64(len(hashes))) {
		return no(abi.ReasonLimitExceeded, "no fuel is left to look at the blocks")
	}
	return hashes, 0, true
}

func (k keeper) effect(name string) func(*runtime.Call, []byte, []uint64) {
	return func(c *runtime.Call, mem []byte, stack []uint64) {
		hashes, refused, ok := k.list(c, mem, stack[0], stack[1])
		switch {
		case !ok:
			stack[0] = refused
		case name == "evict_after" && c.Identity().RequestID == "":
			stack[0] = uint64(int64(c.Refuse(abi.ReasonNotFound, "the request has no id, so nobody can tell that it has ended")))
		default:
			stack[0] = uint64(int64(k.r.handOver(c, Effect{Function: k.name + "." + name, Arguments: Blocks{Hashes: hashes}})))
		}
	}
}

func (k keeper) retain(c *runtime.Call, mem []byte, stack []uint64) {
	_, claims := window(mem, uint32(stack[2]), uint64(uint32(stack[3])))
	_, scope := window(mem, uint32(stack[4]), uint64(uint32(stack[5])))
	if !claims || !scope {
		stack[0] = uint64(int64(c.Refuse(abi.ReasonInvalidPayload, outside)))
		return
	}
	k.effect("retain")(c, mem, stack)
}

func (k keeper) residency(c *runtime.Call, mem []byte, stack []uint64) {
	buf, inside := window(mem, uint32(stack[2]), uint64(uint32(stack[3])))
	if !inside {
		stack[0] = uint64(int64(c.Refuse(abi.ReasonInvalidPayload, outside)))
		return
	}
	hashes, refused, ok := k.list(c, mem, stack[0], stack[1])
	if stack[0] = refused; ok {
		if stack[0] = uint64(len(hashes)); len(buf) >= len(hashes) {
			clear(buf[:len(hashes)])
		}
	}
}

func (k keeper) request(c *runtime.Call, mem []byte, stack []uint64) {
	buf, inside := window(mem, uint32(stack[0]), uint64(uint32(stack[1])))
	if !inside {
		stack[0] = uint64(int64(c.Refuse(abi.ReasonInvalidPayload, outside)))
		return
	}
	hashes, refused, ok := k.list(c, mem, 0, 0)
	if stack[0] = refused; !ok {
		return
	}
	if stack[0] = uint64(8 * len(hashes)); len(buf) < 8*len(hashes) {
		return
	}
	for i, h := range hashes {
		binary.LittleEndian.PutUint64(buf[8*i:], h)
	}
}

// info says that there is no device with memory for blocks.
func (k keeper) info(c *runtime.Call, _ []byte, stack []uint64) {
	stack[0] = uint64(int64(c.Refuse(abi.ReasonUnavailable, "this host keeps no blocks on a device")))
}
