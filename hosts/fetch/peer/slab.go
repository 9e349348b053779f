package peer

import (
	"fmt"
	"hash/crc32"
	"os"

	"golang.org/x/sys/unix"
)

// mapSlab maps a source's slab, read-only. Without the seals its size could change
// under the mapping, and a read would be a fault of this process.
func mapSlab(f *os.File, size uint64) ([]byte, error) {
	const need = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&need != need {
		return nil, violation("the slab's size is not sealed")
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	if uint64(st.Size) != size {
		return nil, violation("a slab of %d bytes, announced as %d", st.Size, size)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the peer's slab: %w", err)
	}
	return m, nil
}

func unmapSlab(m []byte) {
	unix.Munmap(m) // m is a whole mapping, which cannot fail
}

// copyChunk is copied and then summed up while it is in the cache.
const copyChunk = 64 << 10

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
	table := castagnoli()
	for at := 0; at < len(dst); at += copyChunk {
		to := dst[at:min(len(dst), at+copyChunk)]
		copy(to, src[at:])
		crc = crc32.Update(crc, table, to)
	}
	return crc
}
