package store

import "github.com/kvrt/kvrt/abi"

// Outcome is what became of one block of a list.
type Outcome uint8

// Outcomes.
const (
	Missing  Outcome = iota // the store does not have it
	Evicted                 // it is gone
	InUse                   // it stays: it is leased, or being filled
	Pinned                  // it stays: it is pinned
	Applied                 // it has the claim; or, for priority 0, has it no more
	Deferred                // it has the claim once it is published
	Clipped                 // it has not: it has as many stronger ones as it can have
)

// String is the outcome's name.
func (o Outcome) String() string {
	names := [...]string{"missing", "evicted", "in_use", "pinned", "applied", "deferred", "clipped"}
	if int(o) < len(names) {
		return names[o]
	}
	return "unknown"
}

// batch is how many hashes are sorted by shard at a time.
const batch = 256

// each calls do for the hashes of a list with their shard locked. In a batch those of one
// shard follow each other, so that a long list locks each shard a few times and never
// for long.
func (s *Store) each(ns *namespace, count int, at func(i int) uint64, do func(sh *shard, i int, k key)) {
	var order, number [batch]uint8
	for from := 0; from < count; from += batch {
		n := min(batch, count-from)
		var begin [maxShards + 1]uint16
		for i := range n {
			number[i] = uint8(s.number(ns.id, at(from+i)))
			begin[number[i]+1]++
		}
		for i := range len(s.shards) {
			begin[i+1] += begin[i]
		}
		next := begin
		for i := range n {
			order[next[number[i]]] = uint8(i)
			next[number[i]]++
		}
		for i := range s.shards {
			some := order[begin[i]:begin[i+1]]
			if len(some) == 0 {
				continue
			}
			sh := &s.shards[i]
			sh.mu.Lock()
			for _, j := range some {
				i := from + int(j)
				do(sh, i, key{ns.id, at(i)})
			}
			sh.mu.Unlock()
		}
	}
}

// Residency writes for each hash where its block is. What it says may have changed by the
// time that it is read. It allocates nothing and returns how many are published.
func (s *Store) Residency(namespace string, hashes []uint64, out []abi.Residency) (published int) {
	return s.residency(namespace, len(hashes), func(i int) uint64 { return hashes[i] }, func(i int, r abi.Residency) { out[i] = r })
}

// Lengths writes for each hash how many bytes its block has, 0 if none is published. It
// allocates nothing.
func (s *Store) Lengths(namespace string, hashes []uint64, out []int) {
	clear(out[:len(hashes)])
	if ns := s.names.find(namespace); ns != nil {
		s.each(ns, len(hashes), func(i int) uint64 { return hashes[i] }, func(sh *shard, i int, k key) {
			if n, known := sh.byKey[k]; known && s.slots[n].state == ready {
				out[i] = int(s.slots[n].length)
			}
		})
	}
}

func (s *Store) residency(namespace string, count int, at func(int) uint64, put func(int, abi.Residency)) (published int) {
	ns := s.names.find(namespace)
	if ns == nil {
		for i := range count {
			put(i, abi.ResidencyAbsent)
		}
		return 0
	}
	s.each(ns, count, at, func(sh *shard, i int, k key) {
		r := abi.ResidencyAbsent
		if n, known := sh.byKey[k]; known {
			if r = abi.ResidencyFilling; s.slots[n].state == ready {
				r = abi.ResidencyDRAM
				published++
			}
		}
		put(i, r)
	})
	return published
}

// Evict takes blocks out of the store, whatever they are claimed for, and returns how
// many it did. Blocks that are leased, being filled, or pinned stay. out may be nil.
func (s *Store) Evict(namespace string, hashes []uint64, out []Outcome) (evicted int) {
	ns := s.names.find(namespace)
	if ns == nil {
		for i := range out {
			out[i] = Missing
		}
		return 0
	}
	s.each(ns, len(hashes), func(i int) uint64 { return hashes[i] }, func(sh *shard, i int, k key) {
		o := s.evict(sh, k)
		if o == Evicted {
			evicted++
		}
		if out != nil {
			out[i] = o
		}
	})
	return evicted
}

func (s *Store) evict(sh *shard, k key) Outcome {
	n, known := sh.byKey[k]
	if !known || sh.closed {
		return Missing
	}
	switch sl := &s.slots[n]; {
	case sl.pins > 0:
		return Pinned
	case sl.state != ready || sl.refs > 0:
		return InUse
	}
	s.unpublish(sh, n)
	s.rest(sh, n, false)
	sh.count.evicted++
	return Evicted
}

// Retain makes one claim to each of the blocks that the store has, or is about to have,
// and returns to how many. out may be nil. The only error is ErrClaim.
func (s *Store) Retain(namespace string, hashes []uint64, c Claim, out []Outcome) (applied int, err error) {
	if !c.valid() {
		return 0, ErrClaim
	}
	ns := s.names.find(namespace)
	if ns == nil {
		for i := range out {
			out[i] = Missing
		}
		return 0, nil
	}
	now := s.clock.read()
	s.each(ns, len(hashes), func(i int) uint64 { return hashes[i] }, func(sh *shard, i int, k key) {
		o := Missing
		if n, known := sh.byKey[k]; known && !sh.closed {
			if o = s.claim(sh, n, c, now); o != Clipped {
				applied++
			}
		}
		if out != nil {
			out[i] = o
		}
	})
	return applied, nil
}
