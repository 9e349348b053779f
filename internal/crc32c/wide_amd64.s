#include "textflag.h"

// What 16 bytes are worth D bits further on: their first half times x^(D+32), their
// second times x^(D-32), modulo the polynomial, bits reversed, times x.
DATA by2048<>+0(SB)/8, $0xdcb17aa4
DATA by2048<>+8(SB)/8, $0xb9e02b86
GLOBL by2048<>(SB), RODATA|NOPTR, $16
DATA by512<>+0(SB)/8, $0x740eef02
DATA by512<>+8(SB)/8, $0x9e4addf8
GLOBL by512<>(SB), RODATA|NOPTR, $16

// FOLD moves the 64 bytes of z on by the distance of Z8 and adds what is there.
#define FOLD(z, there) \
	VPCLMULQDQ $0x00, Z8, z, Z5    \
	VPCLMULQDQ $0x11, Z8, z, z     \
	VPTERNLOGQ $0x96, there, Z5, z

// func fold(register uint32, p *byte, n int) uint32
TEXT ·fold(SB), NOSPLIT, $64-28
	MOVL      register+0(FP), AX
	MOVQ      p+8(FP), SI
	MOVQ      n+16(FP), CX
	VMOVD     AX, X0
	VPXORQ    (SI), Z0, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VBROADCASTI32X4 by2048<>(SB), Z8
	JMP       next

loop:
	FOLD(Z0, (SI))
	FOLD(Z1, 64(SI))
	FOLD(Z2, 128(SI))
	FOLD(Z3, 192(SI))

next:
	ADDQ $256, SI
	DECQ CX
	JNE  loop

	// The four become one, and its 64 bytes are summed up as any others.
	VBROADCASTI32X4 by512<>(SB), Z8
	FOLD(Z0, Z1)
	FOLD(Z0, Z2)
	FOLD(Z0, Z3)
	VMOVDQU64 Z0, sum-64(SP)
	VZEROUPPER
	XORL AX, AX
	CRC32Q sum-64(SP), AX
	CRC32Q sum-56(SP), AX
	CRC32Q sum-48(SP), AX
	CRC32Q sum-40(SP), AX
	CRC32Q sum-32(SP), AX
	CRC32Q sum-24(SP), AX
	CRC32Q sum-16(SP), AX
	CRC32Q sum-8(SP), AX
	MOVL AX, ret+24(FP)
	RET
