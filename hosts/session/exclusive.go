package session

// exclusiveSteps bounds how many segments and frontiers one Exclusive looks at. What is
// past it counts as held by another session.
const exclusiveSteps = 1 << 13

// Exclusive finds the blocks that, on a worker, only this session holds: they are on a
// path of the session and on no other session's path there. What other workers hold does
// not matter. Each block is in one path only, parents first; q.Anchor is not looked at.
//
// The answer is of a moment: of a session whose frontier moves up while it is looked
// for, blocks may be missed. When there is too much to look at, blocks are left out.
func (x *Index) Exclusive(out *Paths, q Query) error {
	out.n, out.blocks, out.looked = 0, 0, 0
	s, err := x.find(q.Session, q.Tenant)
	if err != nil {
		return err
	}
	look := look{session: s, query: &q, steps: exclusiveSteps}
	for _, f := range *s.fronts.Load() {
		if f.worker.key == q.Worker {
			if n := look.suffix(f.at); n > 0 {
				out.add(f.at, n)
			}
		}
	}
	out.looked = exclusiveSteps - look.steps + look.passed
	return nil
}

// look is one search for other sessions' frontiers.
type look struct {
	session *session
	query   *Query
	steps   int
	passed  int // branches that needed no look into them
	// Where the paths that were walked already came into each segment.
	seen [256]position
	n    int
}

// suffix is how many blocks up from a frontier nobody else holds, without those that an
// earlier call had.
func (l *look) suffix(at position) int {
	n := 0
	var from *segment // the child that was looked through
	for at.seg != nil {
		low, shared := l.lowest(at, from)
		if shared || l.n == len(l.seen) {
			return n
		}
		for _, p := range l.seen[:l.n] {
			if p.seg == at.seg {
				low = max(low, int(min(p.off, at.off)))
			}
		}
		l.seen[l.n] = at
		l.n++
		n += int(at.off) - low
		if low >= 0 {
			return n
		}
		from = at.seg
		at = at.up()
	}
	return n
}

// lowest finds the deepest block of a segment, up to at, that another session holds: -1
// when there is none. shared tells that this one is held, so all above it are, too.
func (l *look) lowest(at position, except *segment) (low int, shared bool) {
	low = -1
	// Frontiers first: one that moves down is then seen here or there.
	for f := at.seg.first.Load(); f != nil; f = f.next.Load() {
		if l.foreign(f) {
			if f.at.off >= at.off {
				return 0, true
			}
			low = max(low, int(f.at.off))
		}
	}
	for k := at.seg.kids.Load(); k != nil; k = k.next.Load() {
		if k == except || int(k.above) <= low {
			l.passed++
			continue
		}
		if !l.below(k) {
			continue
		}
		if k.above >= at.off {
			return 0, true
		}
		low = int(k.above)
	}
	return low, false
}

func (l *look) foreign(f *frontier) bool {
	l.steps--
	return f.session != l.session && f.worker.key == l.query.Worker || l.steps < 0
}

// below tells whether another session has a frontier in a segment or under it.
func (l *look) below(s *segment) bool {
	// Down to the first child, along, and up again: no stack is needed.
	for top := s; ; {
		for f := s.first.Load(); f != nil; f = f.next.Load() {
			if l.foreign(f) {
				return true
			}
		}
		if l.steps--; l.steps < 0 {
			return true
		}
		if k := s.kids.Load(); k != nil {
			s = k
			continue
		}
		for s != top && s.next.Load() == nil {
			s = s.parent.Load()
		}
		if s == top {
			return false
		}
		s = s.next.Load()
	}
}
