#include "textflag.h"

// sevenOrder turns 64 bytes, of which seven are the lead bytes of elements, into seven
// little-endian integers: byte j of integer i is byte 9i+8-j.
DATA sevenOrder<>+0(SB)/8, $0x0102030405060708
DATA sevenOrder<>+8(SB)/8, $0x0a0b0c0d0e0f1011
DATA sevenOrder<>+16(SB)/8, $0x131415161718191a
DATA sevenOrder<>+24(SB)/8, $0x1c1d1e1f20212223
DATA sevenOrder<>+32(SB)/8, $0x25262728292a2b2c
DATA sevenOrder<>+40(SB)/8, $0x2e2f303132333435
DATA sevenOrder<>+48(SB)/8, $0x3738393a3b3c3d3e
DATA sevenOrder<>+56(SB)/8, $0
GLOBL sevenOrder<>(SB), RODATA|NOPTR, $64

// func mpSevens(dst, src *byte, n int) (done int)
TEXT ·mpSevens(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VMOVDQU64    sevenOrder<>(SB), Z1
	MOVL         $0xcf, DX
	VPBROADCASTB DX, Z2
	MOVQ         $0x0040201008040201, R8 // the places of the lead bytes
	XORL         AX, AX

next:
	CMPQ      AX, CX
	JGE       done
	VMOVDQU64 (SI), Z0
	VPCMPEQB  Z2, Z0, K1
	VPERMB    Z0, Z1, Z3
	KMOVQ     K1, DX
	ANDNQ     R8, DX, DX
	JNE       done
	VMOVDQU64 Z3, (DI)
	ADDQ      $63, SI
	ADDQ      $56, DI
	INCQ      AX
	JMP       next

done:
	MOVQ AX, done+24(FP)
	VZEROUPPER
	RET
