package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// memfd makes an anonymous file; tests give one that fails.
type memfd func(name string, flags int) (fd int, err error)

func newSlab(size int, huge bool) (*slab, error) { return memfd(unix.MemfdCreate).slab(size, huge) }

// slab takes size bytes. A memfd that the machine does not give is replaced by anonymous
// memory; memory that is not there is an error.
func (create memfd) slab(size int, huge bool) (*slab, error) {
	// An eighth is left to everybody else: a machine that is full kills.
	if have := available("/"); uint64(size) > have-have/8 {
		return nil, &MemoryError{Want: uint64(size), Available: have}
	}
	if huge {
		s, err := create.file((size+hugePage-1)&^(hugePage-1), unix.MFD_HUGETLB|unix.MFD_HUGE_2MB, "memfd, 2 MiB pages")
		if err == nil {
			return s, nil
		}
	}
	s, err := create.file(size, 0, "memfd")
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		s, err = anonymousSlab(size)
	}
	if err != nil {
		return nil, err
	}
	if huge {
		_ = unix.Madvise(s.mem, unix.MADV_HUGEPAGE) // what the kernel does of its own accord, if it is told to
	}
	return s, nil
}

// file makes a file of memory, with all of its pages: a page that is missing later
// would be a SIGBUS for whoever touches it.
func (create memfd) file(size, flags int, backing string) (_ *slab, err error) {
	fd, err := create("kvrt-blocks", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|flags)
	if err != nil {
		return nil, fmt.Errorf("memory for blocks: memfd: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err = unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("memory for blocks: %w", err)
	}
	if err = fallocate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("memory for blocks: %d bytes are not to be had: %w", size, err)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("memory for blocks: %w", err)
	}
	dontFork(mem)
	// Whoever is given the file can neither change its size under our feet nor write to
	// it. Older kernels do not know the last seal.
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	if _, e := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SEAL); e != nil {
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_SEAL); err != nil {
			_ = unix.Munmap(mem)
			return nil, fmt.Errorf("memory for blocks: seal: %w", err)
		}
	}
	file := os.NewFile(uintptr(fd), "kvrt-blocks")
	return &slab{mem: mem, file: file, backing: backing, free: func() error {
		return errors.Join(unix.Munmap(mem), file.Close())
	}}, nil
}

func fallocate(fd int, size int64) error {
	for {
		if err := unix.Fallocate(fd, 0, 0, size); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func anonymousSlab(size int) (*slab, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("memory for blocks: %d bytes are not to be had: %w", size, err)
	}
	dontFork(mem)
	return &slab{mem: mem, backing: "anonymous memory", free: func() error { return unix.Munmap(mem) }}, nil
}

// dontFork keeps the memory out of children: copy-on-write after a fork would move pages
// away from under a device that has them pinned.
func dontFork(mem []byte) { _ = unix.Madvise(mem, unix.MADV_DONTFORK) }
