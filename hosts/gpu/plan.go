package gpu

import (
	"fmt"
	"slices"
)

// Span is one copy: Len bytes from the source to the destination.
type Span struct {
	Dst    Region
	DstOff uint64
	Src    Region
	SrcOff uint64
	Len    uint64
}

// planner turns spans into copies. Its slices are used again and again; a plan of a
// size that it has seen allocates nothing.
type planner struct {
	recs    []rec
	regions []*region // that the plan touches, each once, held
	out     Copies
	bytes   uint64

	spare    []rec // for sorting
	from, to []place
}

// rec is a span in addresses. dr and sr are indexes into regions.
type rec struct {
	dst, src, size uint64
	dr, sr         uint32
}

// plan checks spans against a table and fills out. The regions are held afterwards, those
// that were found before an error too.
func (p *planner) plan(t *table, spans []Span, maxCopy uint64) error {
	if err := p.resolve(t, spans); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	p.merge(maxCopy)
	return nil
}

// resolve makes recs of the spans that have bytes.
func (p *planner) resolve(t *table, spans []Span) error {
	p.recs, p.regions, p.bytes = p.recs[:0], p.regions[:0], 0
	p.out.reset()
	var dst, src *region // the last ones: spans of a batch share theirs
	var dr, sr uint32
	for i := range spans {
		s := &spans[i]
		if dst == nil || dst.id != s.Dst {
			if dst, dr = p.hold(t, s.Dst); dst == nil {
				return &SpanError{i, Destination, ErrStale}
			}
		}
		if src == nil || src.id != s.Src {
			if src, sr = p.hold(t, s.Src); src == nil {
				return &SpanError{i, Source, ErrStale}
			}
		}
		if err := dst.check(s.DstOff, s.Len); err != nil {
			return &SpanError{i, Destination, err}
		}
		if err := src.check(s.SrcOff, s.Len); err != nil {
			return &SpanError{i, Source, err}
		}
		if s.Len == 0 {
			continue
		}
		p.bytes += s.Len
		p.recs = append(p.recs, rec{dst: dst.mem.Addr + s.DstOff, src: src.mem.Addr + s.SrcOff, size: s.Len, dr: dr, sr: sr})
	}
	return nil
}

// hold finds a region and holds it, once for the whole batch.
func (p *planner) hold(t *table, id Region) (*region, uint32) {
	for i, r := range p.regions {
		if r.id == id {
			return r, uint32(i)
		}
	}
	r := t.find(id)
	if r == nil || !r.hold() {
		return nil, 0
	}
	p.regions = append(p.regions, r)
	return r, uint32(len(p.regions) - 1)
}

// check holds a range against the region.
func (r *region) check(off, n uint64) error {
	if off > r.mem.Size || n > r.mem.Size-off {
		return fmt.Errorf("%d bytes at %d of %d: %w", n, off, r.mem.Size, ErrRange)
	}
	if (off|n)&(r.align-1) != 0 {
		return fmt.Errorf("%d bytes at %d, alignment %d: %w", n, off, r.align, ErrAlign)
	}
	return nil
}

// check sorts the recs by destination and looks for memory that is written and used
// otherwise in the same batch.
func (p *planner) check() error {
	recs := p.recs
	if len(recs) == 0 {
		return nil
	}
	p.sort()
	recs = p.recs
	low, high := recs[0].src, recs[0].src // of the sources
	for i := range recs {
		r := &recs[i]
		if i > 0 && r.dst-recs[i-1].dst < recs[i-1].size {
			return fmt.Errorf("two spans write %#x: %w", r.dst, ErrOverlap)
		}
		low, high = min(low, r.src), max(high, r.src+(r.size-1))
	}
	last := &recs[len(recs)-1]
	if high < recs[0].dst || low > last.dst+(last.size-1) {
		return nil // as always between host and device
	}
	for i := range recs {
		r := &recs[i]
		// The first destination that ends behind the start of the source.
		j, _ := slices.BinarySearchFunc(recs, r.src, func(x rec, a uint64) int {
			if x.dst+(x.size-1) < a {
				return -1
			}
			return 1
		})
		if j < len(recs) && recs[j].dst <= r.src+(r.size-1) {
			return fmt.Errorf("one span reads at %#x what one writes at %#x: %w", r.src, recs[j].dst, ErrOverlap)
		}
	}
	return nil
}

// merge makes copies of the recs: those that lie side by side at both ends, within their
// regions, become one, and none is longer than maxCopy or crosses a border of a chunk.
func (p *planner) merge(maxCopy uint64) {
	o := &p.out
	for i := 0; i < len(p.recs); {
		r := p.recs[i]
		for i++; i < len(p.recs); i++ {
			n := &p.recs[i]
			if n.dst != r.dst+r.size || n.src != r.src+r.size || n.dr != r.dr || n.sr != r.sr {
				break
			}
			r.size += n.size
		}
		dst, src := &p.regions[r.dr].mem, &p.regions[r.sr].mem
		if r.size <= maxCopy && dst.Chunk == 0 && src.Chunk == 0 {
			o.add(r.dst, r.src, r.size)
			continue
		}
		for r.size > 0 {
			n := min(r.size, maxCopy, dst.inChunk(r.dst), src.inChunk(r.src))
			o.add(r.dst, r.src, n)
			r.dst, r.src, r.size = r.dst+n, r.src+n, r.size-n
		}
	}
}

func (c *Copies) reset() { c.Dst, c.Src, c.Size = c.Dst[:0], c.Src[:0], c.Size[:0] }

func (c *Copies) add(dst, src, n uint64) {
	c.Dst, c.Src, c.Size = append(c.Dst, dst), append(c.Src, src), append(c.Size, n)
}

// inChunk returns how far it is from an address to the end of its chunk.
func (m *Memory) inChunk(addr uint64) uint64 {
	if m.Chunk == 0 {
		return ^uint64(0)
	}
	return m.Chunk - (addr-m.Addr)%m.Chunk
}
