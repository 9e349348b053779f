package hint

import "golang.org/x/sys/cpu"

// mpSevens reads n times seven elements with lead byte 0xcf, as far as they are that,
// and returns how many times it did. It reads a byte more than those have, and writes
// eight more.
//
//go:noescape
func mpSevens(dst, src *byte, n int) (done int)

// mpWide is mpHashes with permutations of 64 bytes, where the processor has them. What
// it leaves is for the loop.
func mpWide(dst, src []byte) (_, _ []byte) {
	n := min((len(src)-1)/63, (len(dst)-8)/56)
	if n <= 0 || !cpu.X86.HasAVX512BW || !cpu.X86.HasAVX512VBMI {
		return dst, src
	}
	n = mpSevens(&dst[0], &src[0], n)
	return dst[56*n:], src[63*n:]
}
