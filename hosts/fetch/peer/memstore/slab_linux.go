package memstore

import "golang.org/x/sys/unix"

func newSlab() (fd int, err error) {
	return unix.MemfdCreate("kvrt-blocks", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
}

func seal(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SEAL)
	return err
}
