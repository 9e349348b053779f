package gpu

import (
	"cmp"
	"math/bits"
	"slices"
)

// place is where a rec is to go, by its destination.
type place struct {
	key uint64
	at  uint32
}

const (
	digit = 11 // bits that one pass sorts by
	few   = 64 // recs below which comparing is quicker
)

// sort sorts the recs by destination. Blocks lie on a grid, so that a few bits of their
// addresses differ: sorting by those takes two or three passes, where comparing 4,096 blocks
// takes ten times as long.
func (p *planner) sort() {
	recs := p.recs
	var differ uint64
	sorted := true
	for i := 1; i < len(recs); i++ {
		sorted = sorted && recs[i-1].dst <= recs[i].dst
		differ |= recs[i].dst ^ recs[0].dst
	}
	if sorted {
		return
	}
	if len(recs) < few {
		slices.SortFunc(recs, func(a, b rec) int { return cmp.Compare(a.dst, b.dst) })
		return
	}
	p.from, p.to = slices.Grow(p.from[:0], len(recs))[:len(recs)], slices.Grow(p.to[:0], len(recs))[:len(recs)]
	p.spare = slices.Grow(p.spare[:0], len(recs))[:len(recs)]
	low := bits.TrailingZeros64(differ)
	mask := ^uint64(0) >> bits.LeadingZeros64(differ)
	for i := range recs {
		p.from[i] = place{recs[i].dst & mask >> low, uint32(i)}
	}
	for width := bits.Len64(differ) - low; width > 0; width -= digit {
		var count [1 << digit]uint32
		for i := range p.from {
			count[p.from[i].key&(1<<digit-1)]++
		}
		sum := uint32(0)
		for i := range count {
			count[i], sum = sum, sum+count[i]
		}
		for i := range p.from {
			d := p.from[i].key & (1<<digit - 1)
			p.to[count[d]] = place{p.from[i].key >> digit, p.from[i].at}
			count[d]++
		}
		p.from, p.to = p.to, p.from
	}
	for i := range p.from {
		p.spare[i] = recs[p.from[i].at]
	}
	p.recs, p.spare = p.spare, p.recs
}
