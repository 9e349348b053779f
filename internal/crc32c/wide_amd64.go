package crc32c

import "golang.org/x/sys/cpu"

// fold advances the register of a CRC32C by n times 256 bytes, n > 0.
//
//go:noescape
func fold(register uint32, p *byte, n int) uint32

// wide takes the front of b into crc, where the processor can, and returns what is left.
func wide(crc uint32, b []byte) (uint32, []byte) {
	n := len(b) / 256
	if n == 0 || !cpu.X86.HasAVX512F || !cpu.X86.HasAVX512VPCLMULQDQ || !cpu.X86.HasSSE42 {
		return crc, b
	}
	return ^fold(^crc, &b[0], n), b[256*n:]
}
