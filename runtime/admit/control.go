package admit

// Types of blocks without a type of the module.
var (
	noValues = &FuncType{}
	oneValue = map[ValType]*FuncType{
		I32: {Results: []ValType{I32}}, I64: {Results: []ValType{I64}},
		F32: {Results: []ValType{F32}}, F64: {Results: []ValType{F64}}, V128: {Results: []ValType{V128}},
		FuncRef: {Results: []ValType{FuncRef}}, ExternRef: {Results: []ValType{ExternRef}},
	}
)

// blockType reads the type of a block: none, that of its one result, or the
// index of a signature.
func (v *validator) blockType() *FuncType {
	if v.left() > 0 {
		switch b := v.buf[v.pos]; {
		case b == 0x40:
			v.pos++
			return noValues
		case b&0xc0 == 0x40: // a negative number: no index
			if t := oneValue[valueType(&v.cursor)]; t != nil {
				return t
			}
			return noValues
		}
	}
	offset := v.pos
	i := v.signed(33)
	if v.ok() && (i < 0 || i >= int64(len(v.mod.Types))) {
		v.fail(RuleIndex, offset, "there is no type %d, only %d are defined; the file is damaged or its encoder broken", i, len(v.mod.Types))
	}
	if !v.ok() {
		return noValues
	}
	return &v.mod.Types[i]
}

// target reads how many blocks out a branch goes, and gives that frame.
func (v *validator) target() *frame {
	if d := index(&v.cursor, "label", len(v.frames)); v.ok() {
		return &v.frames[len(v.frames)-1-d]
	}
	return nil
}

// controlFlow checks the instructions up to opCallIndirect.
func (v *validator) controlFlow(offset int, op byte) {
	switch op {
	case opUnreachable:
		v.weigh(1)
		v.leave()
	case opNop:
	case opBlock, opLoop, opIf:
		v.branching(offset)
		v.open(offset, op)
	case opElse:
		v.branching(offset)
		v.otherwise(offset)
	case opEnd:
		v.basic++
		if f := v.top; f.op == opIf && !equalTypes(f.typ.Params, f.typ.Results) {
			v.broken(RuleOperandType, offset, "an if without an else must take what it gives, and is of type %s", f.typ)
			return
		}
		closed := v.ending(offset)
		if v.popFrame(); v.ok() {
			v.ended(closed)
		}

	case opBr:
		v.branching(offset)
		v.weigh(1)
		to := v.target()
		if to == nil {
			return
		}
		v.passing(offset, len(to.label()))
		v.carry(len(to.label()))
		v.popOperands(to.label())
		v.branch(offset, to, always)
		v.leave()
	case opBrIf:
		v.branching(offset)
		v.weigh(1)
		to := v.target()
		v.pop(I32)
		if to == nil {
			return
		}
		v.passing(offset, len(to.label()))
		v.carry(len(to.label()))
		v.popOperands(to.label())
		if v.ok() {
			v.pushOperands(to.label())
		}
		v.branch(offset, to, sometimes)
	case opBrTable:
		v.branching(offset)
		v.weigh(1)
		v.brTable(offset)
	case opReturn:
		v.branching(offset)
		v.weigh(1)
		v.popOperands(v.frames[0].typ.Results)
		v.branch(offset, &v.frames[0], always)
		v.leave()

	case opCall:
		v.weigh(1)
		if i := index(&v.cursor, "function", len(v.types)); v.ok() {
			v.call(offset, v.types[i], i < v.mod.ImportedFunctions)
		}
	case opCallIndirect:
		v.weigh(1)
		i := index(&v.cursor, "type", len(v.mod.Types))
		t := v.table()
		if !v.ok() {
			return
		}
		if v.mod.Tables[t].Element != FuncRef {
			v.broken(RuleOperandType, offset, "an indirect call through table %d, which holds %s", t, v.mod.Tables[t].Element)
			return
		}
		v.pop(I32)
		v.call(offset, &v.mod.Types[i], v.tabled)
	default:
		v.unknown(offset, op)
	}
}

// open checks block, loop and if.
func (v *validator) open(offset int, op byte) {
	typ := v.blockType()
	if op == opIf {
		v.weigh(1)
		v.pop(I32)
	}
	v.passing(offset, len(typ.Params)+len(typ.Results))
	v.carry(max(len(typ.Params), len(typ.Results)))
	v.popOperands(typ.Params)
	if !v.ok() {
		return
	}
	v.opening(offset, op)
	v.push(op, typ)
	v.opened()
}

// otherwise checks else.
func (v *validator) otherwise(offset int) {
	f := v.top
	if f.op != opIf {
		v.broken(RuleControl, offset, "an else outside of an if")
		return
	}
	v.elsing(offset)
	v.popOperands(f.typ.Results)
	if v.ok() && len(v.operands) != f.height {
		v.broken(RuleOperandType, offset, "%d values too many are left before an else", len(v.operands)-f.height)
		return
	}
	f.op, f.dead = opElse, false
	v.live = f.born
	v.pushOperands(f.typ.Params)
	v.elsed()
}

// brTable checks br_table. What a label takes is compared once for each frame,
// however often it is named.
func (v *validator) brTable(offset int) {
	n := v.count("branch targets", 1)
	if !v.ok() {
		return
	}
	v.targets += n + 1
	v.allTargets += n + 1
	if v.targets > v.lim.BranchTargets {
		v.fail(RuleBranchTargets, offset, "%d targets of branches by table, at most %d are allowed; split the function or raise the limit", v.targets, v.lim.BranchTargets)
		return
	}
	if v.allTargets > v.lim.AllBranchTargets {
		v.exhausted = true
		v.fail(RuleAllTargets, offset, "functions reach %d targets of branches by table with it, at most %d are allowed; make the module smaller or raise the limit", v.allTargets, v.lim.AllBranchTargets)
		return
	}
	v.pop(I32)
	v.tables++
	arity := -1
	var types []ValType
	for range n + 1 {
		at := v.pos
		to := v.target()
		if to == nil {
			return
		}
		types = to.label()
		if to.mark == v.tables {
			continue
		}
		to.mark = v.tables
		if arity >= 0 && arity != len(types) {
			v.broken(RuleOperandType, at, "a branch by table to labels that take %d and %d values", arity, len(types))
			return
		}
		if arity < 0 {
			v.carry(len(types))
		}
		arity = len(types)
		if !v.carries(types) {
			v.broken(RuleOperandType, at, "a branch by table to a label whose values are of other types than those on the stack")
			return
		}
		v.branch(offset, to, byTable)
	}
	v.popOperands(types)
	v.leave()
}

// carries reports whether the values on top suit a label, without taking them.
func (v *validator) carries(types []ValType) bool {
	n := len(v.operands)
	for i := len(types) - 1; i >= 0; i-- {
		if n == v.top.height {
			return v.top.dead
		}
		n--
		if t := v.operands[n].typ; t != types[i] && t != 0 {
			return false
		}
	}
	return true
}

// call checks the operands of a call, which may leave the module.
func (v *validator) call(offset int, typ *FuncType, leaves bool) {
	v.passing(offset, len(typ.Params)+len(typ.Results))
	v.popOperands(typ.Params)
	v.calling(offset, leaves)
	if v.ok() {
		v.pushOperands(typ.Results)
	}
}
