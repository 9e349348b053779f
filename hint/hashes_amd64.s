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

DATA tens<>+0(SB)/8, $0x010a010a010a010a // bytes 10, 1
DATA tens<>+8(SB)/8, $0x0001006400010064 // words 100, 1
DATA tens<>+16(SB)/8, $0x0001271000012710 // words 10000, 1
DATA tens<>+24(SB)/8, $100000000
GLOBL tens<>(SB), RODATA|NOPTR, $32

// func jsonCommas(dst, src *byte, room, size int) (done, used int)
TEXT ·jsonCommas(SB), NOSPLIT, $0-48
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         room+16(FP), R11
	LEAQ         -256(DI)(R11*8), R11 // 32 elements are the most in 64 bytes
	MOVQ         size+24(FP), R9
	LEAQ         -65(SI)(R9*1), R9
	MOVL         $0x2c, AX
	VPBROADCASTB AX, Z9
	MOVL         $0x30, AX
	VPBROADCASTB AX, Y10
	MOVL         $9, AX
	VPBROADCASTB AX, Y11
	VPBROADCASTQ tens<>+0(SB), Y12
	VPBROADCASTQ tens<>+8(SB), Y13
	VPBROADCASTQ tens<>+16(SB), Y14
	VPBROADCASTQ tens<>+24(SB), Y15
	MOVQ         $10000000000000000, R10
	MOVQ         $0x100002600, BX // white space, as bits
	MOVL         $-1, R8

	// SI is where an element begins; R12 the commas of the 64 bytes from there on.
window:
	XORL     R13, R13
	CMPQ     SI, R9
	JHI      done
	CMPQ     DI, R11
	JHI      done
	VPCMPEQB (SI), Z9, K1
	KMOVQ    K1, R12
	TESTQ    R12, R12
	JEQ      done

	// The element from R13 to the next comma, CX, with its last digit in the last byte of
	// Y2 and zeros before its first one, which DX bytes are.
element:
	TZCNTQ     R12, CX
	LEAQ       32(R13), DX
	SUBQ       CX, DX
	LEAQ       -12(DX), AX
	CMPQ       AX, $19
	JHI        done
	CMPB       (SI)(R13*1), $0x30
	JEQ        done
	SHLXL      DX, R8, DX
	KMOVD      DX, K2
	VMOVDQU8.Z -32(SI)(CX*1), K2, Y2
	VPSUBB.Z   Y10, Y2, K2, Y2
	VPCMPUB    $6, Y11, Y2, K3
	KTESTD     K3, K3
	JNE        done

	// Digits to numbers of two, of four and of eight digits; then of the last sixteen.
	VPMADDUBSW   Y12, Y2, Y2
	VPMADDWD     Y13, Y2, Y2
	VPACKUSDW    Y2, Y2, Y2
	VPMADDWD     Y14, Y2, Y2
	VPMULUDQ     Y15, Y2, Y3
	VPSRLQ       $32, Y2, Y2
	VPADDQ       Y3, Y2, Y2
	VEXTRACTI128 $1, Y2, X3
	VMOVQ        X2, AX
	VMOVQ        X3, DX
	CMPQ         AX, $1844 // the first four of 20 digits: above is more than 64 bits
	JHI          done
	IMULQ        R10, AX
	ADDQ         DX, AX
	JCS          done
	MOVQ         AX, (DI)
	ADDQ         $8, DI
	LEAQ         1(CX), R13

space:
	MOVBLZX (SI)(R13*1), DX
	CMPL    DX, $0x20
	JHI     behind
	BTQ     DX, BX
	JCC     done
	INCQ    R13
	CMPQ    R13, $64
	JLT     space

behind:
	BLSRQ R12, R12
	JNE   element
	ADDQ  R13, SI
	JMP   window

done:
	ADDQ R13, SI
	SUBQ dst+0(FP), DI
	SHRQ $3, DI
	MOVQ DI, done+32(FP)
	SUBQ src+8(FP), SI
	MOVQ SI, used+40(FP)
	VZEROUPPER
	RET
