package store

// queue is a binary heap of slots by key, the least first. A slot is in it at most once,
// and where[slot] is its place, plus 1.
type queue struct {
	items []item
	where []uint32
}

type item struct {
	key  uint64
	slot uint32
}

func (q *queue) has(slot uint32) bool { return q.where[slot] != 0 }

// least is the first key; the largest there is when the queue is empty.
func (q *queue) least() uint64 {
	if len(q.items) == 0 {
		return ^uint64(0)
	}
	return q.items[0].key
}

// set puts a slot in, or moves it to another key.
func (q *queue) set(slot uint32, key uint64) {
	at := int(q.where[slot]) - 1
	if at < 0 {
		at = len(q.items)
		q.items = append(q.items, item{})
	}
	q.place(at, item{key, slot})
}

// remove takes a slot out, if it is in.
func (q *queue) remove(slot uint32) {
	at := int(q.where[slot]) - 1
	if at < 0 {
		return
	}
	q.where[slot] = 0
	last := len(q.items) - 1
	moved := q.items[last]
	q.items = q.items[:last]
	if at < last {
		q.place(at, moved)
	}
}

// place puts an item where the hole at is, or as far up or down as its key belongs.
func (q *queue) place(at int, it item) {
	for at > 0 {
		up := (at - 1) / 2
		if q.items[up].key <= it.key {
			break
		}
		q.put(at, q.items[up])
		at = up
	}
	for {
		down := 2*at + 1
		if down >= len(q.items) {
			break
		}
		if down+1 < len(q.items) && q.items[down+1].key < q.items[down].key {
			down++
		}
		if it.key <= q.items[down].key {
			break
		}
		q.put(at, q.items[down])
		at = down
	}
	q.put(at, it)
}

func (q *queue) put(at int, it item) {
	q.items[at] = it
	q.where[it.slot] = uint32(at) + 1
}
