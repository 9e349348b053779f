package admit

// vectorTable describes the instructions after opVector, from 0 to 255. Those
// with further operands in the code (a constant, a shuffle) are described too;
// the validator reads these operands.
func vectorTable() *[256]instruction {
	var t [256]instruction
	set := func(first, last int, in instruction) {
		in.known = true
		for op := first; op <= last; op++ {
			t[op] = in
		}
	}
	unary := func(first, last int) { set(first, last, instruction{in: [3]ValType{V128}, out: V128}) }
	binary := func(first, last int) { set(first, last, instruction{in: [3]ValType{V128, V128}, out: V128}) }
	shift := func(first, last int) { set(first, last, instruction{in: [3]ValType{V128, I32}, out: V128}) }
	test := func(first, last int) { set(first, last, instruction{in: [3]ValType{V128}, out: I32}) }
	load := func(first, last int, width uint8) {
		set(first, last, instruction{in: [3]ValType{I32}, out: V128, width: width})
	}
	splat := func(op int, from ValType) { set(op, op, instruction{in: [3]ValType{from}, out: V128}) }
	extract := func(first, last int, to ValType, lane uint8) {
		set(first, last, instruction{in: [3]ValType{V128}, out: to, lane: lane})
	}
	replace := func(op int, from ValType, lane uint8) {
		set(op, op, instruction{in: [3]ValType{V128, from}, out: V128, lane: lane})
	}

	load(0, 0, 16)
	load(1, 6, 8)
	load(7, 7, 1)
	load(8, 8, 2)
	load(9, 9, 4)
	load(10, 10, 8)
	set(11, 11, instruction{in: [3]ValType{I32, V128}, width: 16})
	set(vecV128Const, vecV128Const, instruction{out: V128})
	binary(vecShuffle, 14) // and swizzle
	splat(15, I32)
	splat(16, I32)
	splat(17, I32)
	splat(18, I64)
	splat(19, F32)
	splat(20, F64)
	extract(21, 22, I32, 16)
	replace(23, I32, 16)
	extract(24, 25, I32, 8)
	replace(26, I32, 8)
	extract(27, 27, I32, 4)
	replace(28, I32, 4)
	extract(29, 29, I64, 2)
	replace(30, I64, 2)
	extract(31, 31, F32, 4)
	replace(32, F32, 4)
	extract(33, 33, F64, 2)
	replace(34, F64, 2)
	binary(35, 64) // comparisons of integers
	set(vecF32x4Eq, 70, instruction{in: [3]ValType{V128, V128}, out: V128, numbers: lanesF32x4})
	set(vecF64x2Eq, 76, instruction{in: [3]ValType{V128, V128}, out: V128, numbers: lanesF64x2})
	unary(77, 77)
	binary(78, 81)
	set(vecBitselect, vecBitselect, instruction{in: [3]ValType{V128, V128, V128}, out: V128})
	test(83, 83)
	for i, width := range [4]uint8{1, 2, 4, 8} {
		set(84+i, 84+i, instruction{in: [3]ValType{I32, V128}, out: V128, width: width, lane: 16 / width})
		set(88+i, 88+i, instruction{in: [3]ValType{I32, V128}, width: width, lane: 16 / width})
	}
	load(92, 92, 4)
	load(93, 93, 8)
	set(94, 94, instruction{in: [3]ValType{V128}, out: V128, numbers: lanesF64x2, nan: lanesF32x4}) // demote
	set(95, 95, instruction{in: [3]ValType{V128}, out: V128, numbers: lanesF32x4, nan: lanesF64x2}) // promote

	// The integer shapes: abs, neg and the like, tests, shifts, arithmetic.
	unary(96, 98)
	test(99, 100)
	binary(101, 102)
	shift(107, 109)
	binary(110, 115)
	binary(118, 121)
	binary(123, 123)
	unary(124, 127)

	unary(128, 129)
	binary(130, 130)
	test(131, 132)
	binary(133, 134)
	unary(135, 138)
	shift(139, 141)
	binary(142, 147)
	binary(149, 153)
	binary(155, 159)

	unary(160, 161)
	test(163, 164)
	unary(167, 170)
	shift(171, 173)
	binary(174, 174)
	binary(177, 177)
	binary(181, 186)
	binary(188, 191)

	unary(192, 193)
	test(195, 196)
	unary(199, 202)
	shift(203, 205)
	binary(206, 206)
	binary(209, 209)
	binary(213, 223)

	// The floating-point shapes. abs and neg work on the sign bit, pmin and
	// pmax choose one of their operands as it is.
	round := func(first, last int, l lanes) {
		set(first, last, instruction{in: [3]ValType{V128}, out: V128, numbers: l, nan: l})
	}
	round(103, 106, lanesF32x4)
	round(116, 117, lanesF64x2)
	round(122, 122, lanesF64x2)
	round(148, 148, lanesF64x2)
	for first, l := range map[int]lanes{224: lanesF32x4, 236: lanesF64x2} {
		unary(first, first+1)
		round(first+3, first+3, l) // sqrt
		set(first+4, first+9, instruction{in: [3]ValType{V128, V128}, out: V128, numbers: l, nan: l})
		for _, op := range []int{first + 3, first + 6, first + 7} { // sqrt, mul, div
			t[op].hard = true
		}
		binary(first+10, first+11)
	}
	set(248, 249, instruction{in: [3]ValType{V128}, out: V128, numbers: lanesF32x4}) // truncation
	unary(250, 251)
	set(252, 253, instruction{in: [3]ValType{V128}, out: V128, numbers: lanesF64x2})
	unary(254, 255)
	return &t
}
