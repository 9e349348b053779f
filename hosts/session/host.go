package session

import (
	"errors"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Scope is whose sessions a call may ask about.
type Scope struct{ Namespace, Tenant string }

// Host is the capability kvrt_session: it lets a guest ask the index of its request's
// namespace about sessions of its request's tenant. It has no effects.
type Host struct {
	set   *Set
	scope func(*runtime.Call) Scope
}

// NewHost makes the capability. scope tells whose request a call serves; nil is for a
// program without tenants and with one namespace, "".
func NewHost(set *Set, scope func(*runtime.Call) Scope) *Host {
	if scope == nil {
		scope = func(*runtime.Call) Scope { return Scope{} }
	}
	return &Host{set, scope}
}

// Name is the import module.
func (h *Host) Name() string { return "kvrt_session" }

// Functions are the functions of the module, with the signatures of the table.
func (h *Host) Functions() []runtime.HostFunction {
	return runtime.Functions(h.Name(), map[string]func(*runtime.Call, []byte, []uint64){
		"frontiers": h.frontiers, "lineage": h.lineage, "exclusive": h.exclusive, "node": h.node,
	})
}

// window is the run of memory at off, if it lies inside. The sum cannot overflow.
func window(mem []byte, off, n uint32) ([]byte, bool) {
	if uint64(off)+uint64(n) > uint64(len(mem)) {
		return nil, false
	}
	return mem[off : uint64(off)+uint64(n)], true
}

// text is a view of b, for the length of the call.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// refusal is what a guest sees of an error of a query.
func refusal(c *runtime.Call, err error) uint64 {
	reason := abi.ReasonUnavailable
	switch {
	case errors.Is(err, ErrOff):
		reason = abi.ReasonIndexOff
	case errors.Is(err, ErrUnknownSession):
		reason = abi.ReasonUnknownSession
	case errors.Is(err, ErrUnknownAnchor):
		reason = abi.ReasonUnknownAnchor
	}
	return refuse(c, reason, err.Error())
}

func refuse(c *runtime.Call, reason abi.Reason, detail string) uint64 {
	return uint64(int64(c.Refuse(reason, detail)))
}

const (
	outside = "the session, the worker or the buffer lies outside the guest's memory"
	noFuel  = "no fuel is left to copy the answer"
)

// room tells whether an answer of n bytes is to be written to buf; otherwise result is
// what the function returns.
func room(c *runtime.Call, buf []byte, n int) (write bool, result uint64) {
	if len(buf) < n {
		return false, uint64(n)
	}
	if !c.ChargeCopy(uint64(n)) {
		return false, refuse(c, abi.ReasonLimitExceeded, noFuel)
	}
	return true, uint64(n)
}

// worker reads a worker: the Node at off, and a rank of which -1 is none. ok is false
// when it does not lie inside, valid when it names nobody.
func worker(mem []byte, off, rank uint32) (w hint.Worker, ok, valid bool) {
	if w.ID, ok = hint.WorkerAt(mem, off); !ok {
		return w, false, false
	}
	if rank != ^uint32(0) {
		w.Rank, w.HasRank = rank, true
	}
	return w, true, !w.ID.IsZero()
}

// query reads what lineage and exclusive have in common. The texts are views.
func (h *Host) query(c *runtime.Call, mem []byte, stack []uint64) (x *Index, q Query, refused uint64) {
	session, inside := window(mem, uint32(stack[0]), uint32(stack[1]))
	w, known, valid := worker(mem, uint32(stack[2]), uint32(stack[3]))
	switch {
	case !inside || !known:
		return nil, q, refuse(c, abi.ReasonInvalidPayload, outside)
	case !valid:
		return nil, q, refuse(c, abi.ReasonInvalidPayload, "a worker's id is an integer or a string that is not empty")
	}
	scope := h.scope(c)
	return h.set.Index(scope.Namespace), Query{Session: text(session), Tenant: scope.Tenant, Worker: w}, 0
}

func (h *Host) lineage(c *runtime.Call, mem []byte, stack []uint64) {
	flags := abi.LineageFlag(uint32(stack[5]))
	anchor := stack[4]
	buf, ok := window(mem, uint32(stack[6]), uint32(stack[7]))
	x, q, refused := h.query(c, mem, stack)
	switch {
	case refused != 0:
		stack[0] = refused
	case !ok:
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
	case flags&^abi.LineageFlagAnchor != 0:
		stack[0] = refuse(c, abi.ReasonInvalidPayload, "unknown flags of kvrt_session.lineage")
	default:
		if flags&abi.LineageFlagAnchor != 0 {
			q.Anchor, q.HasAnchor = anchor, true
		}
		stack[0] = answer(c, x, buf, q, false)
	}
}

func (h *Host) exclusive(c *runtime.Call, mem []byte, stack []uint64) {
	buf, ok := window(mem, uint32(stack[4]), uint32(stack[5]))
	x, q, refused := h.query(c, mem, stack)
	switch {
	case refused != 0:
		stack[0] = refused
	case !ok:
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
	default:
		stack[0] = answer(c, x, buf, q, true)
	}
}

// What exclusive comes by is not copied, and is charged like 32 bytes: a fleet whose
// sessions share a prefix has as many branches there as sessions. Its price covers some.
const (
	freeLooks = 256
	lookBytes = 32
)

// answer asks the index and writes a Lineage. What was found may be pruned before it is
// written, since nothing is locked; then it is asked again.
func answer(c *runtime.Call, x *Index, buf []byte, q Query, exclusive bool) uint64 {
	var paths Paths
	charged := false
	for range 8 {
		var err error
		if exclusive {
			err = x.Exclusive(&paths, q)
		} else {
			err = x.Lineage(&paths, q)
		}
		if err != nil {
			return refusal(c, err)
		}
		if exclusive && paths.looked > freeLooks && !c.ChargeCopy(lookBytes*uint64(paths.looked-freeLooks)) {
			return refuse(c, abi.ReasonLimitExceeded, "no fuel is left to look through the branches of the session's paths")
		}
		n := abi.SizeLineage + paths.n*abi.SizePath + 8*paths.blocks
		if len(buf) < n {
			return uint64(n)
		}
		if !charged {
			if write, result := room(c, buf, n); !write {
				return result
			}
			charged = true
		}
		if paths.write(buf, x.kind()) {
			return uint64(n)
		}
	}
	return refuse(c, abi.ReasonUnavailable, "the session is pruned faster than it can be read")
}

// write lays out a Lineage.
func (p *Paths) write(b []byte, kind abi.HashKind) bool {
	abi.PutU32(b, abi.OffLineageHashKind, uint32(kind))
	abi.PutU32(b, abi.OffLineagePathsCount, uint32(p.n))
	abi.PutU32(b, abi.OffLineagePaths, abi.SizeLineage)
	abi.PutU32(b, abi.OffLineageBlocks, uint32(p.blocks))
	at := abi.SizeLineage + p.n*abi.SizePath
	for i := range p.n {
		off := uint32(abi.SizeLineage + i*abi.SizePath)
		abi.PutU32(b, off+abi.OffPathHashes, uint32(at))
		abi.PutU32(b, off+abi.OffPathHashesCount, uint32(p.list[i].len))
		if !p.Put(b[at:], i) {
			return false
		}
		at += 8 * p.list[i].len
	}
	return true
}

func (h *Host) frontiers(c *runtime.Call, mem []byte, stack []uint64) {
	session, inside := window(mem, uint32(stack[0]), uint32(stack[1]))
	buf, ok := window(mem, uint32(stack[2]), uint32(stack[3]))
	if !inside || !ok {
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
		return
	}
	scope := h.scope(c)
	x := h.set.Index(scope.Namespace)
	var room64 [MaxFrontiers]Frontier
	list, err := x.Frontiers(room64[:0], text(session), scope.Tenant)
	if err != nil {
		stack[0] = refusal(c, err)
		return
	}
	n := abi.SizeFrontiers + len(list)*abi.SizeFrontier
	for _, f := range list {
		n += len(f.Worker.ID.Text())
	}
	n = (n + 7) &^ 7
	write, result := room(c, buf, n)
	if write {
		putFrontiers(buf[:n], list, x.kind())
	}
	stack[0] = result
}

func putFrontiers(b []byte, list []Frontier, kind abi.HashKind) {
	clear(b)
	abi.PutU32(b, abi.OffFrontiersHashKind, uint32(kind))
	abi.PutU32(b, abi.OffFrontiersFrontiersCount, uint32(len(list)))
	abi.PutU32(b, abi.OffFrontiersFrontiers, abi.SizeFrontiers)
	end := abi.SizeFrontiers + len(list)*abi.SizeFrontier
	for i, f := range list {
		r := b[abi.SizeFrontiers+i*abi.SizeFrontier:]
		id := f.Worker.ID.Node()
		if t := f.Worker.ID.Text(); t != "" {
			id.Val, id.Len = uint64(end), uint32(len(t))
			end += copy(b[end:], t)
		}
		abi.PutNode(r, abi.OffFrontierWorker, id)
		if f.Worker.HasRank {
			abi.PutU32(r, abi.OffFrontierDPRank, f.Worker.Rank)
			abi.PutU32(r, abi.OffFrontierPresent, uint32(abi.WorkerHasDPRank))
		}
		abi.PutU64(r, abi.OffFrontierHash, f.Hash)
		abi.PutU32(r, abi.OffFrontierDepth, uint32(f.Depth))
	}
}

func (h *Host) node(c *runtime.Call, mem []byte, stack []uint64) {
	buf, ok := window(mem, uint32(stack[1]), uint32(stack[2]))
	if !ok {
		stack[0] = refuse(c, abi.ReasonInvalidPayload, outside)
		return
	}
	x := h.set.Index(h.scope(c).Namespace)
	n, known, err := x.Node(stack[0])
	switch {
	case err != nil:
		stack[0] = refusal(c, err)
		return
	case !known:
		stack[0] = refuse(c, abi.ReasonNotFound, "the lineage index does not know the block")
		return
	}
	write, result := room(c, buf, abi.SizeBlockNode)
	if write {
		hasParent := uint32(0)
		if n.HasParent {
			hasParent = 1
		}
		abi.PutU64(buf, abi.OffBlockNodeHash, n.Hash)
		abi.PutU64(buf, abi.OffBlockNodeParent, n.Parent)
		abi.PutU32(buf, abi.OffBlockNodeHasParent, hasParent)
		abi.PutU32(buf, abi.OffBlockNodeHashKind, uint32(x.kind()))
		abi.PutU32(buf, abi.OffBlockNodeFrontiers, uint32(n.Frontiers))
		abi.PutU32(buf, abi.OffBlockNodeChildren, uint32(n.Children))
	}
	stack[0] = result
}
