package kvrt

import "unsafe"

// The compiler makes eight loads of bytes out of encoding/binary's Uint64 here, though
// this machine is little-endian and loads at any alignment. The slice expressions check
// the bounds.

func u32(b []byte, off uint32) uint32 {
	return *(*uint32)(unsafe.Pointer(unsafe.SliceData(b[off : uint64(off)+4])))
}

func u64(b []byte, off uint32) uint64 {
	return *(*uint64)(unsafe.Pointer(unsafe.SliceData(b[off : uint64(off)+8])))
}
