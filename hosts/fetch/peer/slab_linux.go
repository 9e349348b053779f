package peer

import (
	"fmt"
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
