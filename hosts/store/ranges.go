package store

import "time"

// Directive claims a range of a request's tokens, as kv.retain has it.
type Directive struct {
	Start, End int64 // tokens [Start, End); End < 0: to the end
	Priority   int
	TTL        time.Duration
}

// Run claims blocks [From, To) of a list.
type Run struct {
	From, To int
	Priority int
	TTL      time.Duration
}

// Runs says what directives mean for the full blocks of a request, blocks of blockSize
// tokens each, and appends that to dst. A block belongs to a directive if any of its
// tokens does; of several it has the one with the highest priority, and of equals the one
// that holds longest. Priority and time come from one directive, never from two.
func Runs(dst []Run, directives []Directive, blockSize, blocks int) []Run {
	if blockSize <= 0 {
		return dst
	}
	begin := len(dst)
	for at := 0; at < blocks; {
		// The runs change only where a directive begins or ends.
		next, best := blocks, -1
		for i := range directives {
			from, to := directives[i].blocks(int64(blockSize), blocks)
			switch {
			case from > at:
				next = min(next, from)
			case to > at:
				next = min(next, to)
				if best < 0 || directives[i].over(&directives[best]) {
					best = i
				}
			}
		}
		if best >= 0 {
			r := Run{at, next, directives[best].Priority, directives[best].TTL}
			if last := len(dst) - 1; last >= begin && dst[last].To == at && dst[last].Priority == r.Priority && dst[last].TTL == r.TTL {
				dst[last].To = next
			} else {
				dst = append(dst, r)
			}
		}
		at = next
	}
	return dst
}

// blocks are the blocks [from, to) that have a token of d; from = to when none has.
func (d *Directive) blocks(size int64, blocks int) (from, to int) {
	if d.Start < 0 || d.End >= 0 && d.End <= d.Start || d.Start/size >= int64(blocks) {
		return 0, 0
	}
	from, to = int(d.Start/size), blocks
	if d.End >= 0 && (d.End-1)/size < int64(blocks) {
		to = int((d.End-1)/size) + 1
	}
	return from, to
}

// over tells whether d counts, and not e, for a block of both.
func (d *Directive) over(e *Directive) bool {
	if d.Priority != e.Priority {
		return d.Priority > e.Priority
	}
	return e.TTL != 0 && (d.TTL == 0 || d.TTL > e.TTL)
}
