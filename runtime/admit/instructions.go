package admit

// instruction checks the next instruction.
func (v *validator) instruction() {
	offset := v.pos
	op := v.byte()
	switch {
	case opNumericFirst <= op && op <= opNumericLast:
		v.weigh(1)
		v.plain(offset, &v.numeric[op-opNumericFirst])
	case opLoadFirst <= op && op <= opStoreLast:
		v.weigh(1)
		v.plain(offset, &v.memory[op-opLoadFirst])
	case op <= opCallIndirect:
		v.controlFlow(offset, op)
	default:
		v.weigh(1)
		v.other(offset, op)
	}
}

// plain checks an instruction by its entry in a table.
func (v *validator) plain(offset int, in *instruction) {
	if in.width > 0 {
		v.address(offset, in.width)
	}
	if in.hard {
		v.weigh(costSubnormal)
	}
	if in.lane > 0 {
		if lane := v.byte(); lane >= in.lane {
			v.broken(RuleLane, offset, "there is no lane %d, only %d", lane, in.lane)
		}
	}
	for i := len(in.in) - 1; i >= 0 && v.ok(); i-- {
		t := in.in[i]
		switch {
		case t == 0:
		case in.numbers != noLanes:
			v.popNumber(t, in.numbers)
		default:
			v.pop(t)
		}
	}
	if in.out == 0 || !v.ok() {
		return
	}
	v.pushOperand(in.out)
	if in.nan != noLanes && v.live && v.plan != nil {
		v.operands[len(v.operands)-1].nan = v.plan.note(noteNaN, v.pos, uint8(in.nan), 0) + 1
	}
}

// address reads alignment and offset of a memory access of so many bytes.
func (v *validator) address(offset int, width uint8) {
	align := v.u32()
	if align&(1<<6) != 0 {
		v.fail(RuleMultiMemory, offset, "an access to a numbered memory does not run here; use one memory")
		return
	}
	if align > 7 || 1<<align > uint32(width) {
		v.broken(RuleAlignment, offset, "an alignment of 2 to the power of %d bytes is more than the %d that are accessed", align, width)
		return
	}
	v.u32()
	v.needMemory(offset)
}

func (v *validator) needMemory(offset int) {
	if v.ok() && len(v.mod.Memories) == 0 {
		v.broken(RuleIndex, offset, "memory 0 is used, and there is none")
	}
}

// zero reads the byte that stands where a second memory would be named.
func (v *validator) zero(offset int) {
	if v.byte() != 0 {
		v.fail(RuleMultiMemory, offset, "an access to a numbered memory does not run here; use one memory")
	}
	v.needMemory(offset)
}

// local reads the index of a local and gives its type.
func (v *validator) local(use func(*validator, int)) ValType {
	i := index(&v.cursor, "local", len(v.locals))
	if !v.ok() {
		return 0
	}
	use(v, i)
	return v.locals[i]
}

func (v *validator) table() int { return index(&v.cursor, "table", len(v.mod.Tables)) }

// other checks the instructions that follow neither a table nor a block.
func (v *validator) other(offset int, op byte) {
	switch op {
	case opDrop:
		v.takeOperand()
	case opSelect:
		v.pop(I32)
		a, b := v.popAny(), v.popAny()
		if a == 0 {
			a = b
		}
		switch {
		case !v.ok():
		case a == FuncRef || a == ExternRef || b == FuncRef || b == ExternRef:
			v.broken(RuleOperandType, offset, "select without a type cannot choose between references")
		case a != b && b != 0:
			v.broken(RuleOperandType, offset, "select between %s and %s", b, a)
		}
		v.pushOperand(a)
	case opSelectTyped:
		if n := v.u32(); v.ok() && n != 1 {
			v.broken(RuleOperandType, offset, "select of %d types, and it has one", n)
			return
		}
		t := valueType(&v.cursor)
		v.pop(I32)
		v.pop(t)
		v.pop(t)
		v.pushOperand(t)

	case opLocalGet:
		v.pushOperand(v.local((*validator).readLocal))
	case opLocalSet:
		v.pop(v.local((*validator).writeLocal))
	case opLocalTee:
		t := v.local((*validator).writeLocal)
		v.pop(t)
		v.pushOperand(t)
	case opGlobalGet:
		if i := index(&v.cursor, "global", len(v.mod.Globals)); v.ok() {
			v.pushOperand(v.mod.Globals[i].Type)
		}
	case opGlobalSet:
		i := index(&v.cursor, "global", len(v.mod.Globals))
		if !v.ok() {
			return
		}
		if !v.mod.Globals[i].Mutable {
			v.broken(RuleImmutable, offset, "global %d is set and not mutable", i)
			return
		}
		v.pop(v.mod.Globals[i].Type)
	case opTableGet:
		if i := v.table(); v.ok() {
			v.pop(I32)
			v.pushOperand(v.mod.Tables[i].Element)
		}
	case opTableSet:
		if i := v.table(); v.ok() {
			v.pop(v.mod.Tables[i].Element)
			v.pop(I32)
		}
	case opMemorySize:
		v.zero(offset)
		v.pushOperand(I32)
	case opMemoryGrow:
		v.zero(offset)
		v.pop(I32)
		v.pushOperand(I32)
		v.bulk(offset, bulkMemoryGrow, 0)

	case opI32Const:
		v.signed(32)
		v.pushOperand(I32)
	case opI64Const:
		v.signed(64)
		v.pushOperand(I64)
	case opF32Const:
		v.take(4)
		v.pushOperand(F32)
	case opF64Const:
		v.take(8)
		v.pushOperand(F64)

	case opRefNull:
		v.pushOperand(referenceType(&v.cursor))
	case opRefIsNull:
		if t := v.popAny(); v.ok() && t != 0 && t != FuncRef && t != ExternRef {
			v.broken(RuleOperandType, offset, "ref.is_null of an %s", t)
		}
		v.pushOperand(I32)
	case opRefFunc:
		v.weigh(costLeave)
		i := index(&v.cursor, "function", len(v.types))
		if v.ok() && (i >= len(v.mod.declared) || !v.mod.declared[i]) {
			v.broken(RuleUndeclared, offset, "ref.func names function %d, which no export, global or element segment does", i)
		}
		v.pushOperand(FuncRef)

	case opMisc:
		v.misc(offset)
	case opVector:
		v.simd(offset)
	default:
		v.unknown(offset, op)
	}
}

// misc checks an instruction after opMisc.
func (v *validator) misc(offset int) {
	op := v.u32()
	three := func(a, b, c ValType) {
		v.pop(c)
		v.pop(b)
		v.pop(a)
	}
	switch {
	case !v.ok():
	case op <= miscTruncSatLast:
		v.plain(offset, &v.numeric[opNumericLast-opNumericFirst+1+op])
	case op == miscMemoryInit:
		v.dataSegment(offset)
		v.zero(offset)
		three(I32, I32, I32)
		v.bulk(offset, bulkMemory, 0)
	case op == miscDataDrop:
		v.dataSegment(offset)
	case op == miscMemoryCopy:
		v.zero(offset)
		v.zero(offset)
		three(I32, I32, I32)
		v.bulk(offset, bulkMemory, 0)
	case op == miscMemoryFill:
		v.zero(offset)
		three(I32, I32, I32)
		v.bulk(offset, bulkMemory, 0)
	case op == miscTableInit:
		segment := index(&v.cursor, "element segment", len(v.mod.segmentTypes))
		table := v.table()
		if !v.ok() {
			return
		}
		if have, want := v.mod.segmentTypes[segment], v.mod.Tables[table].Element; have != want {
			v.broken(RuleOperandType, offset, "element segment %d of type %s for table %d of type %s", segment, have, table, want)
			return
		}
		three(I32, I32, I32)
		v.bulk(offset, bulkTable, 0)
	case op == miscElemDrop:
		index(&v.cursor, "element segment", len(v.mod.segmentTypes))
	case op == miscTableCopy:
		to, from := v.table(), v.table()
		if !v.ok() {
			return
		}
		if have, want := v.mod.Tables[from].Element, v.mod.Tables[to].Element; have != want {
			v.broken(RuleOperandType, offset, "a copy from table %d of type %s to table %d of type %s", from, have, to, want)
			return
		}
		three(I32, I32, I32)
		v.bulk(offset, bulkTable, 0)
	case op == miscTableGrow:
		table := v.table()
		if !v.ok() {
			return
		}
		v.pop(I32)
		v.pop(v.mod.Tables[table].Element)
		v.pushOperand(I32)
		v.bulk(offset, bulkTableGrow, table)
	case op == miscTableSize:
		v.table()
		v.pushOperand(I32)
	case op == miscTableFill:
		table := v.table()
		if !v.ok() {
			return
		}
		three(I32, v.mod.Tables[table].Element, I32)
		v.bulk(offset, bulkTable, 0)
	case op <= 22 && op >= 19:
		v.fail(RuleWideArithmetic, offset, "128-bit arithmetic does not run here; build without the wide-arithmetic feature")
	default:
		v.fail(RuleOpcode, offset, "there is no instruction 0xfc %d; the file is damaged or uses an unknown feature", op)
	}
}

// dataSegment reads the index of a data segment. The data come after the code,
// so the data count section must have announced them.
func (v *validator) dataSegment(offset int) {
	if !v.mod.hasDataCount {
		v.broken(RuleDataCount, offset, "an instruction names a data segment, and no data count section announces any")
		return
	}
	index(&v.cursor, "data segment", v.mod.DataSegments)
}

// simd checks an instruction after opVector.
func (v *validator) simd(offset int) {
	op := v.u32()
	switch {
	case !v.ok():
		return
	case op >= vecRelaxedFirst && op <= vecRelaxedLast:
		v.fail(RuleRelaxedSIMD, offset, "vector instruction %d may give different results on different machines and does not run here; build without relaxed SIMD", op)
		return
	case op >= uint32(len(v.vector)) || !v.vector[op].known:
		v.fail(RuleOpcode, offset, "there is no vector instruction %d; the file is damaged or uses an unknown feature", op)
		return
	case op == vecV128Const:
		v.take(16)
	case op == vecShuffle:
		for _, lane := range v.take(16) {
			if lane >= 32 {
				v.broken(RuleLane, offset, "a shuffle takes lane %d of 32", lane)
				break
			}
		}
	}
	v.plain(offset, &v.vector[op])
}

// unknown names the feature that an instruction belongs to.
func (v *validator) unknown(offset int, op byte) {
	switch {
	case op == opAtomic:
		v.fail(RuleThreads, offset, "atomic instructions do not run here; build without threads and atomics")
	case op == opGC, op == 0xd3:
		v.fail(RuleGC, offset, "instructions of the GC feature do not run here; build without it")
	case 0xd4 <= op && op <= 0xd6:
		v.fail(RuleFunctionReferences, offset, "typed references do not run here; build without function references and GC")
	case 0x06 <= op && op <= 0x0a, op == 0x18, op == 0x19, op == 0x1f:
		v.fail(RuleExceptions, offset, "exception handling does not run here; build without exceptions, for example with -fno-exceptions or panic=abort")
	case op == 0x12, op == 0x13:
		v.fail(RuleTailCalls, offset, "tail calls do not run here; build without them")
	case op == 0x14, op == 0x15:
		v.fail(RuleFunctionReferences, offset, "calls of typed references do not run here; build without function references and GC")
	case 0xe0 <= op && op <= 0xe6:
		v.fail(RuleStackSwitching, offset, "stack switching does not run here; build without it")
	default:
		v.fail(RuleOpcode, offset, "there is no instruction 0x%02x; the file is damaged or uses an unknown feature", op)
	}
}
