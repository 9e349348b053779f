package session

// How much of what nobody needs an update takes away beside its own work: blocks, looks
// at the queue, or frontiers of a session that is evicted.
const pruneSteps = 64

// queue holds the segments whose last block nobody refers to, the oldest first.
type queue struct {
	list []queued
	head int
}

type queued struct {
	seg   *segment
	since int64
}

func (q *queue) push(e queued) {
	if q.head > len(q.list)/2 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, e)
}

func (q *queue) peek() *queued {
	if q.head == len(q.list) {
		return nil
	}
	return &q.list[q.head]
}

func (q *queue) pop() {
	q.list[q.head] = queued{}
	q.head++
}

// loosen queues a segment if its last block, which is at p, is needed no more.
func (x *Index) loosen(p position, since int64) {
	pin := p.pin()
	if p.off+1 == p.seg.n.Load() && pin.fronts.Load() == 0 && pin.kids.Load() == 0 && !p.seg.queued {
		p.seg.queued = true
		x.queue.push(queued{p.seg, since})
	}
}

// prune takes away blocks that nobody has referred to for the time of grace. It makes a
// bounded number of steps, so a large session is taken away over many updates.
func (x *Index) prune(steps int) {
	e := x.queue.peek()
	if e == nil {
		return
	}
	grace := int64(x.cfg.Grace)
	for now := x.cfg.Now(); e != nil && steps > 0 && now-e.since >= grace; e = x.queue.peek() {
		steps -= x.pruneHead(steps)
	}
}

// pruneHead cuts blocks off the segment at the head of the queue, and takes it from the
// queue when nothing is left to cut. It returns its steps.
func (x *Index) pruneHead(steps int) int {
	s, since := x.queue.peek().seg, x.queue.peek().since
	r := s.run.Load()
	n := s.n.Load()
	used := 0
	x.scratch.sum += x.table.warm(r.hash[max(int(n)-steps, 0):n])
	for n > 0 && used < steps {
		if pin := &r.pins[n-1]; pin.fronts.Load() > 0 || pin.kids.Load() > 0 {
			break
		}
		n--
		x.table.remove(r.hash[n])
		x.nodes--
		used++
	}
	if used > 0 {
		s.cut = true
		s.n.Store(n)
	}
	if used == steps && n > 0 {
		return used // more of it another time
	}
	x.queue.pop()
	s.queued = false
	switch {
	case n == 0:
		x.bytes -= segmentBytes + len(r.hash)*blockBytes
		x.dir.drop(s)
		if up := (position{s, 0}).up(); up.seg != nil {
			s.detach(up.seg)
			up.pin().kids.Add(^uint32(0))
			x.loosen(up, since)
		}
	case int(n) < len(r.hash)/2:
		x.resize(s, int(n))
	}
	return used + 1
}

// room makes room for n more blocks, by pruning without grace and by evicting the
// sessions that were used longest ago, but not keep. It does at most a few steps for
// each block that comes. When that is not enough the event is refused, and the next one
// goes on from there.
func (x *Index) room(n int, keep *session) {
	for steps := pruneSteps + 4*n; x.over(n, x.soft()) && steps > 0; {
		switch {
		case x.queue.peek() != nil:
			steps -= x.pruneHead(steps)
		case x.lru.prev != &x.lru && x.lru.prev != keep:
			steps -= x.evict()
		default:
			return
		}
	}
}

// soft is the number of nodes from which room is made: a little below the cap, so that
// few events have to wait for it.
func (x *Index) soft() int { return x.cfg.MaxNodes - x.cfg.MaxNodes/16 }

// over tells whether the index would be past a number of nodes with n more blocks, or
// past the memory for them.
func (x *Index) over(n, nodes int) bool {
	return x.nodes+n > nodes || x.memory()+n*blockBytes > nodes*BytesPerNode+emptyBytes
}

// emptyBytes is what the hash table takes for the first blocks, one in each shard.
const emptyBytes = tableShards*minSlots*slotBytes + 1<<10

// evict drops the session that was used longest ago, and returns its steps.
func (x *Index) evict() int {
	s := x.lru.prev
	steps := 1 + len(*s.fronts.Load())
	x.forget(s)
	x.counts.evicted.Add(1)
	return steps
}
