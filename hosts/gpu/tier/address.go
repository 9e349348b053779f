package tier

import "unsafe"

// addressOf is where a block lies, as the device's regions count.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
