package peer

import "github.com/kvrt/kvrt/internal/crc32c"

// copyChunk is copied and then summed up while it is in the nearest cache; the memory
// behind it is on its way meanwhile. Larger ones are slower: 64 KiB by a tenth.
const copyChunk = 16 << 10

// copyAll takes the blocks out of the source's slab. They are under lease there until
// the source answers Done with End: only then is it certain that nothing changed under
// the copy, so nothing is committed before.
func (p *puller) copyAll(req *Request, status []Status, res *Result) error {
	records := p.begin.records
	defer p.abort(0)
	full := p.reserve(req, records) // with what there is room for
	good := 0
	var bad error
	for ; good < len(p.slots); good++ {
		r := &records[good]
		if dst := p.slots[good].Data; dst != nil && copySum(dst, p.slab[r.offset:]) != r.crc {
			bad = violation("block %d has the wrong checksum", good)
			break
		}
	}
	if err := p.frames.send(frameDone, p.op, p.frames.body()); err != nil {
		return err
	}
	if err := p.finish(len(records)); err != nil {
		return err
	}
	p.client.stats.mapped.Add(uint64(good))
	p.commit(0, good, status, res)
	if bad != nil {
		return bad
	}
	return full
}

func copySum(dst, src []byte) (crc uint32) {
	for at := 0; at < len(dst); at += copyChunk {
		to := dst[at:min(len(dst), at+copyChunk)]
		copy(to, src[at:])
		crc = crc32c.Update(crc, to)
	}
	return crc
}
