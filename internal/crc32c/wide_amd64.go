package crc32c

import "golang.org/x/sys/cpu"

// fold advances the register of a CRC32C by n times 256 bytes, n > 0.
//
//go:noescape
func fold(register uint32, p *byte, n int) uint32

// most bounds one call of fold, in which no goroutine can be interrupted: 1 MiB.
const most = 4096

// wide takes the front of b into crc, where the processor can, and returns what is left.
func wide(crc uint32, b []byte) (uint32, []byte) {
	if !cpu.X86.HasAVX512F || !cpu.X86.HasAVX512VPCLMULQDQ || !cpu.X86.HasSSE42 {
		return crc, b
	}
	register := ^crc
	for len(b) >= 256 {
		n := min(len(b)/256, most)
		register = fold(register, &b[0], n)
		b = b[256*n:]
	}
	return ^register, b
}
