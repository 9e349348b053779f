package hint

import "golang.org/x/sys/cpu"

// wide tells whether the processor has what the functions in assembly use.
func wide() bool {
	return cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VBMI && cpu.X86.HasBMI1 && cpu.X86.HasBMI2
}

// mpSevens reads n times seven elements with lead byte 0xcf, as far as they are that,
// and returns how many times it did. It reads a byte more than those have, and writes
// eight more.
//
//go:noescape
func mpSevens(dst, src *byte, n int) (done int)

// mpWide is mpHashes with permutations of 64 bytes, where the processor has them. What
// it leaves is for the loop in Go.
func mpWide(dst, src []byte) (_, _ []byte) {
	n := min((len(src)-1)/63, (len(dst)-8)/56)
	if n <= 0 || !wide() {
		return dst, src
	}
	n = mpSevens(&dst[0], &src[0], n)
	return dst[56*n:], src[63*n:]
}

// jsonCommas reads elements of 1 to 20 digits, each followed by a comma and any white
// space, and returns how many those were and their bytes. It stops at any other, within
// the last 65 of size bytes, and when there is no room for 32.
//
//go:noescape
func jsonCommas(dst, src *byte, room, size int) (done, used int)

// jsonWide is jsonRun with vectors, where the processor has them. It finds the commas of
// 64 bytes at once, so that no element waits for the end of the one before it.
func jsonWide(dst, src []byte) (left, rest []byte) {
	if len(src) <= 65 || len(dst) < 8*32 || !wide() {
		return dst, src
	}
	done, used := jsonCommas(&dst[0], &src[0], len(dst)/8, len(src))
	return dst[8*done:], src[used:]
}
