package session

import (
	"errors"
	"sync/atomic"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Apply carries out one event, and tells whether it moved a frontier. An event that is
// refused changes nothing. What is passed over (another tier, another group, a stored
// chain of no session) is counted and no error.
func (x *Index) Apply(e *Event) (moved bool, err error) {
	if x == nil {
		return false, ErrOff
	}
	c := &x.counts
	c.events.Add(1)
	switch {
	case e.Worker.ID.IsZero() || len(e.Session) > hint.MaxIdentity || len(e.Tenant) > hint.MaxIdentity:
		c.invalid.Add(1)
		return false, ErrInvalid
	case e.Op == OpCleared:
		return x.Clear(e.Worker), nil
	case e.Kind != abi.HashKindAbsent && e.Kind != x.cfg.Kind:
		c.wrongKind.Add(1)
		return false, ErrHashKind
	case e.Tier > TierGPU:
		c.otherTier.Add(1)
		return false, nil
	case e.Group > GroupFull:
		c.otherGroup.Add(1)
		return false, nil
	case len(e.Hashes) == 0 && e.Op == OpMatched:
		return false, x.bind(e)
	case len(e.Hashes) == 0:
		return false, nil
	case e.Op == OpRemoved:
		return x.remove(e.Worker, e.Hashes), nil
	case e.Op == OpStored && e.Session == "":
		c.noSession.Add(1)
		return false, nil
	case len(e.chain()) > x.cfg.MaxNodes:
		c.full.Add(1)
		return false, ErrFull
	case e.Op != OpStored && (e.Op != OpMatched || e.Session == ""):
		c.invalid.Add(1)
		return false, ErrInvalid
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	moved, err = x.store(e)
	x.finish(moved, len(e.chain()))
	return moved, err
}

// finish ends an update about n blocks. It takes away more than came, so that pruning
// keeps up.
func (x *Index) finish(moved bool, n int) {
	if moved {
		x.counts.moved.Add(1)
	}
	x.prune(pruneSteps + 2*n)
	x.publish()
}

// store adds a chain, or of a match its last block, and advances the session's frontier
// to its end.
func (x *Index) store(e *Event) (bool, error) {
	if err := x.validate(e); err != nil {
		x.countChain(err)
		return false, err
	}
	s := x.sessions.get(e.Session)
	if s != nil && !s.admits(e.Tenant) {
		x.counts.otherTenant.Add(1)
		return false, ErrOtherTenant
	}
	if n := x.fresh(e); x.over(n, x.soft()) {
		if s != nil {
			x.touch(s) // so that room is not made of itself
		}
		x.room(n, s)
		// Blocks that nobody referred to may be gone, the parent among them.
		if err := x.validate(e); err != nil {
			x.countChain(err)
			return false, err
		}
		if x.over(x.fresh(e), x.cfg.MaxNodes) {
			x.counts.full.Add(1)
			return false, ErrFull
		}
	}
	fresh := s == nil
	if fresh {
		s = begin(e)
	}
	s.own(e.Tenant)
	moved := x.advance(s, e.Worker, x.place(e))
	if fresh {
		x.sessions.put(s)
		x.counts.sessions.Add(1)
	}
	x.touch(s)
	for x.counts.sessions.Load() > uint64(x.cfg.MaxSessions) {
		x.evict()
	}
	return moved, nil
}

// bind is a match of nothing: it says whose a session is, if it is known, and that it is
// used.
func (x *Index) bind(e *Event) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.sessions.get(e.Session)
	switch {
	case s == nil:
		return nil
	case !s.admits(e.Tenant):
		x.counts.otherTenant.Add(1)
		return ErrOtherTenant
	}
	s.own(e.Tenant)
	x.touch(s)
	return nil
}

// fresh is how many blocks the chain that was validated brings.
func (x *Index) fresh(e *Event) int {
	n := 0
	for i, r := range x.scratch.refs {
		if r == noRef && (i > 0 || e.chained()) {
			n++
		}
	}
	return n
}

// chained tells whether the event's blocks follow a parent.
func (e *Event) chained() bool { return e.HasParent && e.Op == OpStored }

// chain is the blocks that are to be in the tree: of a match, the deepest.
func (e *Event) chain() []uint64 {
	if e.Op == OpMatched {
		return e.Hashes[len(e.Hashes)-1:]
	}
	return e.Hashes
}

// place puts the chain into the tree, and returns where its last block stands.
func (x *Index) place(e *Event) position {
	refs, hashes := x.scratch.refs, e.chain()
	var at position
	if e.chained() {
		if refs[0] == noRef {
			at = x.extend(position{}, []uint64{e.Parent})
		} else {
			at = x.at(refs[0])
		}
	}
	refs = refs[1:]
	for i := 0; i < len(hashes); {
		if refs[i] != noRef {
			p := x.at(refs[i])
			if at.seg != nil && p.off == 0 && p.seg.parent.Load() == nil {
				p.seg.attach(at)
			}
			at = p
			i++
			continue
		}
		end := i + 1
		for end < len(hashes) && refs[end] == noRef {
			end++
		}
		at = x.extend(at, hashes[i:end])
		i = end
	}
	return at
}

// at is the position of a ref that the writer found; of noRef it is none.
func (x *Index) at(r ref) position {
	if r == noRef {
		return position{}
	}
	return position{x.dir.at(r.seg()), r.off()}
}

// validate holds a chain against the tree before anything is changed, and leaves in
// x.scratch.refs where its blocks stand, the parent's place first.
func (x *Index) validate(e *Event) error {
	refs, chain := append(x.scratch.refs[:0], noRef), e.chain()
	x.scratch.sum += x.table.warm(chain)
	for _, h := range chain {
		refs = append(refs, x.table.find(h))
	}
	x.scratch.refs = refs
	if e.Op == OpMatched {
		return nil
	}
	var parent position
	if e.HasParent {
		if refs[0] = x.table.find(e.Parent); refs[0] != noRef {
			parent = x.at(refs[0])
		}
	}
	x.seen(e)
	graft := false
	for i, h := range e.Hashes {
		if x.again(h) {
			return &ChainError{ErrCyclicParent, h}
		}
		if refs[i+1] == noRef {
			continue
		}
		p := x.at(refs[i+1])
		switch up := p.parent(); {
		case up.seg != nil && up == x.at(refs[i]):
			// Known already, below the block that the chain says.
		case parent.seg != nil && p.holds(parent):
			return &ChainError{ErrCyclicParent, h}
		case up.seg != nil:
			return &ChainError{ErrConflictingParent, h}
		default:
			graft = true // a root
		}
	}
	if e.HasParent && refs[0] == noRef && !graft {
		return &ChainError{ErrUnknownParent, e.Parent}
	}
	return nil
}

// seen readies the set of a chain's hashes.
func (x *Index) seen(e *Event) {
	size := 16
	for size < 2*(len(e.Hashes)+1) {
		size *= 2
	}
	if cap(x.scratch.seen) < size {
		x.scratch.seen = make([]uint64, size)
	}
	x.scratch.seen = x.scratch.seen[:size]
	clear(x.scratch.seen)
	x.scratch.zero = false
	if e.HasParent {
		x.again(e.Parent)
	}
}

// again tells whether a hash is in the set, and adds it. A free place holds 0, and the
// one hash that comes out as 0 is looked for by itself.
func (x *Index) again(h uint64) bool {
	set := x.scratch.seen
	mask := uint64(len(set) - 1)
	v := h ^ x.table.seed
	if v == 0 {
		was := x.scratch.zero
		x.scratch.zero = true
		return was
	}
	for i := (v * 0x9e3779b97f4a7c15) >> 32 & mask; ; i = (i + 1) & mask {
		switch set[i] {
		case v:
			return true
		case 0:
			set[i] = v
			return false
		}
	}
}

func (x *Index) countChain(err error) {
	for _, c := range [...]struct {
		rule error
		n    *atomic.Uint64
	}{
		{ErrUnknownParent, &x.counts.unknown}, {ErrConflictingParent, &x.counts.conflicting}, {ErrCyclicParent, &x.counts.cyclic},
	} {
		if errors.Is(err, c.rule) {
			c.n.Add(1)
		}
	}
}
