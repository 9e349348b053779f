package admit

// The opcodes that the validator or the rewriter names. The numeric and vector
// ones in between are known by their tables.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opLoadFirst    = 0x28
	opStoreFirst   = 0x36
	opStoreLast    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opNumericFirst = 0x45
	opI32LtS       = 0x48
	opI64LtS       = 0x53
	opI64LeU       = 0x58
	opF32Ne        = 0x5c
	opF64Ne        = 0x62
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Mul       = 0x6c
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad
	opNumericLast  = 0xc4
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	opGC           = 0xfb // prefix
	opMisc         = 0xfc // prefix
	opVector       = 0xfd // prefix
	opAtomic       = 0xfe // prefix
)

// The opcodes after opMisc.
const (
	miscTruncSatLast = 7
	miscMemoryInit   = 8
	miscDataDrop     = 9
	miscMemoryCopy   = 10
	miscMemoryFill   = 11
	miscTableInit    = 12
	miscElemDrop     = 13
	miscTableCopy    = 14
	miscTableGrow    = 15
	miscTableSize    = 16
	miscTableFill    = 17
)

// The opcodes after opVector that are not known by the table alone.
const (
	vecV128Const    = 12
	vecShuffle      = 13
	vecF32x4Eq      = 65
	vecF64x2Eq      = 71
	vecBitselect    = 82
	vecRelaxedFirst = 256
	vecRelaxedLast  = 275
)

// lanes says how the bits of a value are read as floating-point numbers.
type lanes uint8

const (
	noLanes lanes = iota
	lanesF32
	lanesF64
	lanesF32x4
	lanesF64x2
)

// instruction describes an instruction that has no more than fixed operand
// types, and perhaps an address or a lane index.
type instruction struct {
	in  [3]ValType // in the order in which they were pushed, 0 past the last
	out ValType    // 0: none
	// numbers: floating-point operands count by their value alone, so that
	// the bits of a NaN among them do not reach the result.
	numbers lanes
	// nan: the result may be a NaN whose bits the specification leaves open.
	nan lanes
	// width is the size of a memory access in bytes, 0 for none.
	width uint8
	// lane is one past the highest lane index that follows, 0 for none.
	lane  uint8
	known bool
	// hard: a subnormal operand or result takes processors a detour.
	hard bool
}

// numeric describes the opcodes from opNumericFirst to opNumericLast, after
// them the saturating conversions.
type numeric [opNumericLast - opNumericFirst + 1 + miscTruncSatLast + 1]instruction

// numericTable builds the table of numeric instructions.
func numericTable() *numeric {
	var t numeric
	next := 0
	add := func(n int, in instruction) {
		in.known = true
		for range n {
			t[next] = in
			next++
		}
	}
	unary := func(n int, from, to ValType) { add(n, instruction{in: [3]ValType{from}, out: to}) }
	binary := func(n int, from, to ValType) { add(n, instruction{in: [3]ValType{from, from}, out: to}) }

	unary(1, I32, I32) // eqz
	binary(10, I32, I32)
	unary(1, I64, I32)
	binary(10, I64, I32)
	add(6, instruction{in: [3]ValType{F32, F32}, out: I32, numbers: lanesF32})
	add(6, instruction{in: [3]ValType{F64, F64}, out: I32, numbers: lanesF64})
	unary(3, I32, I32)
	binary(15, I32, I32)
	unary(3, I64, I64)
	binary(15, I64, I64)
	float := func(v ValType, l lanes) {
		unary(2, v, v) // abs and neg work on the sign bit
		one := instruction{in: [3]ValType{v}, out: v, numbers: l, nan: l}
		two := instruction{in: [3]ValType{v, v}, out: v, numbers: l, nan: l}
		add(4, one) // rounding
		one.hard = true
		add(1, one) // sqrt
		add(2, two)
		two.hard = true
		add(2, two) // mul and div
		two.hard = false
		add(2, two)
		binary(1, v, v) // copysign
	}
	float(F32, lanesF32)
	float(F64, lanesF64)

	trunc := func(to ValType) {
		add(2, instruction{in: [3]ValType{F32}, out: to, numbers: lanesF32})
		add(2, instruction{in: [3]ValType{F64}, out: to, numbers: lanesF64})
	}
	unary(1, I64, I32) // wrap
	trunc(I32)
	unary(2, I32, I64) // extend
	trunc(I64)
	unary(2, I32, F32)
	unary(2, I64, F32)
	add(1, instruction{in: [3]ValType{F64}, out: F32, numbers: lanesF64, nan: lanesF32}) // demote
	unary(2, I32, F64)
	unary(2, I64, F64)
	add(1, instruction{in: [3]ValType{F32}, out: F64, numbers: lanesF32, nan: lanesF64}) // promote
	unary(1, F32, I32)                                                                   // reinterpret
	unary(1, F64, I64)
	unary(1, I32, F32)
	unary(1, I64, F64)
	unary(2, I32, I32) // sign extension
	unary(3, I64, I64)

	trunc(I32) // saturating
	trunc(I64)
	return &t
}

// memoryTable describes the loads and stores from opLoadFirst to opStoreLast.
func memoryTable() *[opStoreLast - opLoadFirst + 1]instruction {
	var t [opStoreLast - opLoadFirst + 1]instruction
	next := 0
	load := func(v ValType, widths ...uint8) {
		for _, w := range widths {
			t[next] = instruction{in: [3]ValType{I32}, out: v, width: w, known: true}
			next++
		}
	}
	store := func(v ValType, widths ...uint8) {
		for _, w := range widths {
			t[next] = instruction{in: [3]ValType{I32, v}, width: w, known: true}
			next++
		}
	}
	load(I32, 4)
	load(I64, 8)
	load(F32, 4)
	load(F64, 8)
	load(I32, 1, 1, 2, 2)
	load(I64, 1, 1, 2, 2, 4, 4)
	store(I32, 4)
	store(I64, 8)
	store(F32, 4)
	store(F64, 8)
	store(I32, 1, 2)
	store(I64, 1, 2, 4)
	return &t
}
