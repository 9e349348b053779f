package session

import "github.com/kvrt/kvrt/hint"

// remove makes the frontiers of a worker recede whose path has a block that is gone, to
// the parent of the shallowest such block.
func (x *Index) remove(w hint.Worker, hashes []uint64) (moved bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, h := range hashes {
		r := x.table.find(h)
		if r == noRef || x.workers[w] == nil {
			continue
		}
		// One block after the other comes to the same as all at once.
		at := x.at(r)
		to := at.parent()
		below := x.below(at, x.workers[w])
		for _, f := range below {
			x.recede(f, to)
			moved = true
		}
		clear(below)
	}
	x.finish(moved, len(hashes))
	return moved
}

// below lists the frontiers of a worker that stand on a block or deeper. It looks at the
// smaller of two sets: the worker's frontiers, or all that hangs below the block.
func (x *Index) below(at position, b *binding) []*frontier {
	list := x.scratch.moved[:0]
	if b.count <= 16 {
		for f := b.first; f != nil; f = f.wNext {
			if at.holds(f.at) {
				list = append(list, f)
			}
		}
		x.scratch.moved = list
		return list
	}
	stack := append(x.scratch.stack[:0], at.seg)
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		from := uint32(0)
		if s == at.seg {
			from = at.off
		}
		for f := s.first.Load(); f != nil; f = f.next.Load() {
			if f.worker == b && f.at.off >= from {
				list = append(list, f)
			}
		}
		for k := s.kids.Load(); k != nil; k = k.next.Load() {
			if k.above >= from {
				stack = append(stack, k)
			}
		}
	}
	x.scratch.moved, x.scratch.stack = list, stack
	return list
}

// Clear drops the frontiers of one worker rank and tells whether there were any. Other
// ranks of the worker keep theirs.
func (x *Index) Clear(w hint.Worker) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	moved := x.clear(x.workers[w])
	x.finish(moved, 0)
	return moved
}

func (x *Index) clear(b *binding) bool {
	if b == nil {
		return false
	}
	for b.first != nil {
		x.recede(b.first, position{})
	}
	return true
}

// RemoveWorker drops the frontiers of all ranks of a worker.
func (x *Index) RemoveWorker(id hint.WorkerID) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	moved := false
	for w, b := range x.workers {
		if w.ID == id {
			moved = x.clear(b) || moved
		}
	}
	x.finish(moved, 0)
	return moved
}

// RemoveSession drops a session.
func (x *Index) RemoveSession(id string) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.sessions.get(id)
	if s != nil {
		x.forget(s)
	}
	x.finish(s != nil, 0)
	return s != nil
}
