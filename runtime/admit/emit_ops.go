package admit

import "encoding/binary"

// The bits of the NaNs that stand for all others: positive, quiet, without a
// payload.
const (
	canonicalF32 = 0x7fc00000
	canonicalF64 = 0x7ff8000000000000
)

// canonicalise replaces the value on the stack, where it is a NaN or has lanes
// that are, by a NaN of the canonical bits.
func (e *emitter) canonicalise(l lanes) {
	var bits []byte
	switch l {
	case lanesF32, lanesF32x4:
		bits = binary.LittleEndian.AppendUint32(bits, canonicalF32)
	case lanesF64, lanesF64x2:
		bits = binary.LittleEndian.AppendUint64(bits, canonicalF64)
	}
	// Only a NaN differs from itself. The constant is the first choice:
	// wazero's compiler makes a branch of this that is never taken, where the
	// other order waits for the comparison.
	scalar := func(local uint32, constant, ne byte) {
		e.opIndex(opLocalSet, local)
		e.op(constant)
		e.op(bits...)
		for range 3 {
			e.opIndex(opLocalGet, local)
		}
		e.op(ne, opSelect)
	}
	vector := func(eq uint64) {
		e.opIndex(opLocalTee, e.local.v128)
		e.op(opVector, vecV128Const)
		for n := 0; n < 16; n += len(bits) {
			e.op(bits...)
		}
		e.opIndex(opLocalGet, e.local.v128)
		e.opIndex(opLocalGet, e.local.v128)
		e.op(opVector)
		e.out = binary.AppendUvarint(e.out, eq)
		e.op(opVector, vecBitselect)
	}
	switch l {
	case lanesF32:
		scalar(e.local.f32, opF32Const, opF32Ne)
	case lanesF64:
		scalar(e.local.f64, opF64Const, opF64Ne)
	case lanesF32x4:
		vector(vecF32x4Eq)
	case lanesF64x2:
		vector(vecF64x2Eq)
	}
}

// bulk charges an instruction for the length on top of the stack.
func (e *emitter) bulk(n *note) {
	length := func() {
		e.opIndex(opLocalGet, e.local.length)
		e.op(opI64ExtendU)
	}
	// A growth that is going to fail costs nothing.
	grow := func(shift int64, most uint64, size ...byte) {
		length()
		if shift > 0 {
			e.opConst(opI64Const, shift)
			e.op(opI64Shl)
		}
		e.opConst(opI64Const, 0)
		length()
		e.op(size...)
		e.op(opI64ExtendU)
		e.op(opI64Add)
		e.opConst(opI64Const, int64(most))
		e.op(opI64LeU, opSelect)
	}
	e.opIndex(opLocalTee, e.local.length)
	e.takeFuel()
	switch n.extra {
	case bulkMemory:
		length()
		e.opConst(opI64Const, bulkBytesLog2)
		e.op(opI64ShrU)
	case bulkTable:
		length()
	case bulkMemoryGrow:
		grow(growPageLog2, e.pages, opMemorySize, 0)
	case bulkTableGrow:
		size := binary.AppendUvarint([]byte{opMisc, miscTableSize}, uint64(n.arg))
		grow(0, e.entries[n.arg], size...)
	}
	e.op(opI64Sub)
	e.keepFuel(true)
}
