package worker

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Host is the capability kvrt_worker: it lets a guest read the catalogue. It has no
// effects, and a read is one copy.
type Host struct{ catalogue *Catalogue }

// NewHost makes the capability.
func NewHost(c *Catalogue) *Host { return &Host{c} }

// Name is the import module.
func (h *Host) Name() string { return "kvrt_worker" }

// Functions are the functions of the module, with the signatures of the table.
func (h *Host) Functions() []runtime.HostFunction {
	return runtime.Functions(h.Name(), map[string]func(*runtime.Call, []byte, []uint64){"get": h.get, "list": h.list})
}

func refuse(c *runtime.Call, reason abi.Reason, detail string) uint64 {
	return uint64(int64(c.Refuse(reason, detail)))
}

func (h *Host) get(c *runtime.Call, mem []byte, stack []uint64) {
	id, ok := hint.WorkerAt(mem, uint32(stack[0]))
	rank := uint32(stack[1])
	switch {
	case !ok:
		stack[0] = refuse(c, abi.ReasonInvalidPayload, "the worker lies outside the guest's memory")
		return
	case id.IsZero():
		stack[0] = refuse(c, abi.ReasonInvalidPayload, "a worker's id is an integer or a string that is not empty")
		return
	}
	found := h.catalogue.snap.Load().find(id, rank)
	if found == nil {
		stack[0] = refuse(c, abi.ReasonNotFound, "the catalogue has no such worker, or it has no such rank")
		return
	}
	stack[0] = write(c, mem, uint32(stack[2]), uint32(stack[3]), found)
}

// find is the record of a worker's rank, of which -1 stands for all.
func (s *snapshot) find(id hint.WorkerID, rank uint32) []byte {
	if len(id.Text()) > hint.MaxIdentity {
		return nil // there is none, and a guest pays for no length of it
	}
	e := s.byID[id]
	switch {
	case e == nil:
		return nil
	case rank == ^uint32(0):
		return e.common
	}
	for i := range e.ranks {
		if key := &e.ranks[i].key; key.HasRank && key.Rank == rank {
			return e.ranks[i].record
		}
	}
	return nil
}

func (h *Host) list(c *runtime.Call, mem []byte, stack []uint64) {
	stack[0] = write(c, mem, uint32(stack[0]), uint32(stack[1]), h.catalogue.snap.Load().list())
}

// write copies an answer to the guest's buffer if it fits, and returns its length.
func write(c *runtime.Call, mem []byte, off, size uint32, answer []byte) uint64 {
	if uint64(off)+uint64(size) > uint64(len(mem)) {
		return refuse(c, abi.ReasonInvalidPayload, "the buffer lies outside the guest's memory")
	}
	if uint64(size) >= uint64(len(answer)) {
		if !c.ChargeCopy(uint64(len(answer))) {
			return refuse(c, abi.ReasonLimitExceeded, "no fuel is left to copy the answer")
		}
		copy(mem[off:], answer)
	}
	return uint64(len(answer))
}
