package session

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// pathSteps bounds how many segments a query walks through. An index whose blocks came in
// order has a few in each path.
const pathSteps = 1 << 14

// Query names a session on a worker. Tenant is who asks: a session of another tenant is
// unknown, and so is one that is not bound to a tenant yet, unless nobody is named.
type Query struct {
	Session, Tenant string
	Worker          hint.Worker
	Anchor          uint64
	HasAnchor       bool // paths begin at Anchor, and those without it are left out
}

// Frontier is the deepest known block of a session's chain on a worker.
type Frontier struct {
	Worker hint.Worker
	Hash   uint64
	Depth  int // blocks from the root, this one included
}

// Node is what the index knows of a block.
type Node struct {
	Hash, Parent uint64
	HasParent    bool
	Frontiers    int // that stand on it, over all sessions and workers
	Children     int
}

// find looks a session up for a tenant.
func (x *Index) find(id, tenant string) (*session, error) {
	if x == nil {
		return nil, ErrOff
	}
	if s := x.sessions.get(id); s != nil && s.owned(tenant) && len(*s.fronts.Load()) > 0 {
		return s, nil
	}
	return nil, ErrUnknownSession
}

// Frontiers appends the frontiers of a session on all workers to dst, in no order.
func (x *Index) Frontiers(dst []Frontier, session, tenant string) ([]Frontier, error) {
	s, err := x.find(session, tenant)
	if err != nil {
		return dst, err
	}
	steps, from := x.steps, len(dst)
	for _, f := range *s.fronts.Load() {
		depth, ok := f.at.depth(&steps)
		if !ok {
			return dst[:from], ErrTooDeep
		}
		dst = append(dst, Frontier{f.worker.key, f.hash, depth})
	}
	return dst, nil
}

// look finds a block without a lock.
func (x *Index) look(hash uint64) (position, bool) {
	for range 8 {
		r := x.table.find(hash)
		if r == noRef {
			return position{}, false
		}
		if s := x.dir.at(r.seg()); s != nil {
			run := s.run.Load()
			if int(r.off()) < len(run.hash) && r.off() < s.n.Load() && run.hash[r.off()] == hash {
				return position{s, r.off()}, true
			}
		}
	}
	return position{}, false // it comes and goes
}

// Node tells about a block. It is false when the block is unknown.
func (x *Index) Node(hash uint64) (Node, bool, error) {
	if x == nil {
		return Node{}, false, ErrOff
	}
	p, ok := x.look(hash)
	if !ok {
		return Node{}, false, nil
	}
	run := p.seg.run.Load()
	if int(p.off) >= len(run.pins) {
		return Node{}, false, nil // cut off meanwhile
	}
	n := Node{Hash: hash, Frontiers: int(run.pins[p.off].fronts.Load()), Children: int(run.pins[p.off].kids.Load())}
	if p.off+1 < p.seg.n.Load() {
		n.Children++
	}
	if p.off > 0 {
		n.Parent, n.HasParent = run.hash[p.off-1], true
	} else if up := p.up(); up.seg != nil {
		if above := up.seg.run.Load(); int(up.off) < len(above.hash) {
			n.Parent, n.HasParent = above.hash[up.off], true
		}
	}
	return n, true, nil
}

// Paths is an answer of the index: runs of blocks, each from a parent on. It is large:
// keep one where it is used. It refers to the index's memory and is not for keeping.
type Paths struct {
	list   [MaxFrontiers]path
	n      int
	blocks int
	looked int // of Exclusive: frontiers, segments and branches that it came by
}

type path struct {
	end position
	len int
}

// Len is the number of paths.
func (p *Paths) Len() int { return p.n }

// Blocks is the number of blocks of all paths together.
func (p *Paths) Blocks() int { return p.blocks }

// Path is the number of blocks of a path.
func (p *Paths) Path(i int) int { return p.list[i].len }

func (p *Paths) add(end position, n int) {
	p.list[p.n] = path{end, n}
	p.n++
	p.blocks += n
}

// Lineage finds a session's paths on a worker, from the root or the anchor to each
// frontier. A session that has none there is no error: there are no paths. What the
// request at hand will store may not be in yet.
func (x *Index) Lineage(out *Paths, q Query) error {
	out.n, out.blocks = 0, 0
	if x == nil {
		return ErrOff
	}
	var anchor position
	if q.HasAnchor {
		var ok bool
		if anchor, ok = x.look(q.Anchor); !ok {
			return ErrUnknownAnchor
		}
	}
	s, err := x.find(q.Session, q.Tenant)
	if err != nil {
		return err
	}
	steps := x.steps
	for _, f := range *s.fronts.Load() {
		if f.worker.key != q.Worker {
			continue
		}
		n, ok := f.at.depth(&steps)
		if !ok {
			out.n, out.blocks = 0, 0
			return ErrTooDeep
		}
		if q.HasAnchor {
			if n, ok = f.at.since(anchor); !ok {
				continue
			}
		}
		out.add(f.at, n)
	}
	return nil
}

// Append appends the hashes of a path to dst. It is false when the path was pruned
// meanwhile: ask again.
func (p *Paths) Append(dst []uint64, i int) ([]uint64, bool) {
	from := len(dst)
	dst = slices.Grow(dst, p.list[i].len)[:from+p.list[i].len]
	ok := p.list[i].walk(func(at int, hashes []uint64) { copy(dst[from+at:], hashes) })
	return dst, ok
}

// Put writes the hashes of a path to b, little-endian; b has 8 bytes for each. It is
// false as Append is.
func (p *Paths) Put(b []byte, i int) bool {
	return p.list[i].walk(func(at int, hashes []uint64) { put(b[8*at:8*(at+len(hashes))], hashes) })
}

// put writes hashes as the ABI has them. Where that is how they lie in memory, it is one
// copy.
func put(b []byte, hashes []uint64) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(b, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(hashes))), 8*len(hashes)))
		return
	}
	for j, h := range hashes {
		binary.LittleEndian.PutUint64(b[8*j:], h)
	}
}

// walk shows the blocks of a path in pieces, the last first, each with its place.
func (p path) walk(show func(at int, hashes []uint64)) bool {
	at, left := p.end, p.len
	for left > 0 {
		run := at.seg.run.Load()
		if int(at.off) >= len(run.hash) {
			return false
		}
		n := min(int(at.off)+1, left)
		left -= n
		show(left, run.hash[int(at.off)+1-n:int(at.off)+1])
		at = at.up()
	}
	return true
}

// kind of an index for an answer; of one that is off, none.
func (x *Index) kind() abi.HashKind {
	if x == nil {
		return abi.HashKindAbsent
	}
	return x.cfg.Kind
}
