package admit

import "math"

// constExpr reads a constant expression of the wanted type: one instruction
// and an end. Longer ones need the extended-const feature.
func (r *reader) constExpr(c *cursor, want ValType) {
	offset := c.pos
	var got ValType
	switch op := c.byte(); op {
	case opI32Const:
		c.signed(32)
		got = I32
	case opI64Const:
		c.signed(64)
		got = I64
	case opF32Const:
		c.take(4)
		got = F32
	case opF64Const:
		c.take(8)
		got = F64
	case opVector:
		if sub := c.u32(); c.ok() && sub != vecV128Const {
			c.fail(RuleConstExpr, offset, "vector instruction %d is not constant; the file is damaged or its encoder broken", sub)
		}
		c.take(16)
		got = V128
	case opRefNull:
		got = referenceType(c)
	case opRefFunc:
		r.declare(r.functionIndex(c))
		got = FuncRef
	case opGlobalGet:
		g := index(c, "global", len(r.mod.Globals))
		if !c.ok() {
			return
		}
		got = r.mod.Globals[g].Type
		switch {
		case !r.mod.Globals[g].Imported:
			c.note(RuleExtendedConst, offset, "an initial value from the module's own global %d does not run here; build without extended constant expressions", g)
		case r.mod.Globals[g].Mutable:
			c.note(RuleConstExpr, offset, "global %d is mutable and so not constant; the file is damaged or its encoder broken", g)
		}
	case opGC:
		c.fail(RuleGC, offset, "instructions of the GC feature do not run here; build without it")
	default:
		c.fail(RuleConstExpr, offset, "0x%02x does not begin a constant expression; the file is damaged or its encoder broken", op)
	}

	at := c.pos
	switch next := c.byte(); {
	case !c.ok():
		return
	case next == opEnd:
	case next == opGlobalGet, next == opI32Const, next == opI64Const,
		opI32Add <= next && next <= opI32Mul, opI64Add <= next && next <= opI64Mul:
		c.fail(RuleExtendedConst, at, "arithmetic in a constant expression does not run here; build without extended constant expressions")
		return
	default:
		c.fail(RuleConstExpr, at, "0x%02x where the constant expression should end; the file is damaged or its encoder broken", next)
		return
	}
	if got != want {
		c.note(RuleConstExpr, offset, "the constant is of type %s, and %s is needed; the file is damaged or its encoder broken", got, want)
	}
}

// declare notes that a function is named outside of function bodies, which is
// what lets ref.func name it within.
func (r *reader) declare(function int) {
	if r.mod.declared == nil {
		r.mod.declared = make([]bool, r.mod.functionCount())
	}
	if function < len(r.mod.declared) {
		r.mod.declared[function] = true
	}
}

// elements reads the element section. Of a segment, its type is kept.
func (r *reader) elements(c *cursor) {
	n := c.countWithin("element segments", 3, uint64(r.lim.ElementSegments), RuleElementSegments)
	r.mod.ElementSegments = n
	for i := 0; i < n && c.ok(); i++ {
		c.at("element segment", i)
		r.element(c)
	}
}

// element reads one segment. Of its three flag bits the first means passive or
// declarative, the second an explicit table (where active) or declarative, the
// third expressions in place of function indices.
func (r *reader) element(c *cursor) {
	const (
		notActive = 1 << 0
		explicit  = 1 << 1
		byExpr    = 1 << 2
	)
	offset := c.pos
	flags := c.u32()
	if flags > notActive|explicit|byExpr {
		c.fail(RuleFlags, offset, "the segment flags 0x%x are not known; the file is damaged or uses an unknown feature", flags)
		return
	}
	table := -1
	if flags&notActive == 0 {
		table = 0
		if flags&explicit != 0 {
			table = index(c, "table", len(r.mod.Tables))
		} else if len(r.mod.Tables) == 0 {
			c.fail(RuleIndex, offset, "the segment fills table 0, and there is none; the file is damaged or its encoder broken")
		}
		r.constExpr(c, I32)
	}
	kind := FuncRef
	if flags&(notActive|explicit) != 0 {
		at := c.pos
		if flags&byExpr != 0 {
			kind = referenceType(c)
		} else if b := c.byte(); b != 0 {
			c.fail(RuleKind, at, "0x%02x is no kind of element; the file is damaged or uses an unknown feature", b)
		}
	}

	if c.ok() && table >= 0 && r.mod.Tables[table].Element != kind {
		c.note(RuleValueType, offset, "the segment is of type %s and table %d of type %s; the file is damaged or its encoder broken", kind, table, r.mod.Tables[table].Element)
	}
	r.mod.segmentTypes = append(r.mod.segmentTypes, kind)

	size := 1 // bytes of the shortest entry
	if flags&byExpr != 0 {
		size = 3
	}
	offset = c.pos
	m := c.count("elements", size)
	r.mod.Elements += m
	if r.mod.Elements > r.lim.Elements {
		c.fail(RuleElements, offset, "segments reach %d elements with it, at most %d are allowed; use fewer or raise the limit", r.mod.Elements, r.lim.Elements)
	}
	for i := 0; i < m && c.ok(); i++ {
		if flags&byExpr != 0 {
			r.constExpr(c, kind)
		} else {
			r.declare(r.functionIndex(c))
		}
	}
}

// code reads the code section: where each body is, and how many locals it
// declares.
func (r *reader) code(c *cursor) {
	offset := c.pos
	n := c.countWithin("function bodies", 3, uint64(r.lim.Functions), RuleFunctions)
	if c.ok() && n != len(r.mod.Functions) {
		c.fail(RuleCodeCount, offset, "%d functions are declared, but %d bodies follow; the file is damaged or its encoder broken", len(r.mod.Functions), n)
		return
	}
	r.bodies = n
	for i := 0; i < n && c.ok(); i++ {
		c.at("function", r.mod.ImportedFunctions+i)
		offset := c.pos
		size := c.u32()
		if uint64(size) > uint64(c.left()) {
			c.fail(RuleTruncated, offset, "a body of %d bytes is declared, but only %d remain; the file is cut short or damaged", size, c.left())
			return
		}
		if uint64(size) > uint64(r.lim.FunctionBytes) {
			c.note(RuleFunctionBytes, offset, "a body of %d bytes, at most %d are allowed; split the function or raise the limit", size, r.lim.FunctionBytes)
		}
		f := &r.mod.Functions[i]
		f.Offset, f.Size = c.pos, int(size)
		b := c.part(int(size))
		r.locals(&b, f)
	}
}

// locals reads the declarations at the head of a body. Each group is a count
// and a type, and some bytes can declare billions: the sum has 64 bits, which
// no body can overflow.
func (r *reader) locals(c *cursor, f *Function) {
	offset := c.pos
	groups := c.count("groups of locals", 2)
	var sum uint64
	for i := 0; i < groups && c.ok(); i++ {
		sum += uint64(c.u32())
		valueType(c)
	}
	if !c.ok() {
		return
	}
	if most := min(uint64(r.lim.Locals), math.MaxInt32); sum > most {
		c.note(RuleLocals, offset, "%d locals, at most %d are allowed; split the function or raise the limit", sum, most)
		return
	}
	f.Locals, f.Code = int(sum), c.pos
	if r.allLocals += sum; r.allLocals > uint64(r.lim.AllLocals) {
		c.fail(RuleAllLocals, offset, "functions reach %d locals with it, at most %d are allowed; optimise, make the module smaller, or raise the limit", r.allLocals, r.lim.AllLocals)
		return
	}
	if c.left() == 0 || c.buf[c.end-1] != opEnd {
		c.note(RuleBody, c.end, "the body does not close with an end instruction; the file is damaged or its encoder broken")
	}
}

// data reads the data section. Segments are counted, not kept.
func (r *reader) data(c *cursor) {
	const (
		passive  = 1
		explicit = 2 // active, with the index of a memory
	)
	offset := c.pos
	n := c.countWithin("data segments", 2, uint64(r.lim.DataSegments), RuleDataSegments)
	if c.ok() && r.mod.hasDataCount && int64(n) != r.dataCount {
		c.fail(RuleDataCount, offset, "%d segments are announced, but %d follow; the file is damaged or its encoder broken", r.dataCount, n)
		return
	}
	r.mod.DataSegments = n
	for i := 0; i < n && c.ok(); i++ {
		c.at("data segment", i)
		at := c.pos
		flags := c.u32()
		if flags > explicit {
			c.fail(RuleFlags, at, "the segment flags 0x%x are not known; the file is damaged or uses an unknown feature", flags)
			return
		}
		if flags != passive {
			at = c.pos
			if flags == explicit && c.u32() != 0 {
				c.fail(RuleMultiMemory, at, "data for a second memory does not run here; use one memory")
				return
			}
			if c.ok() && len(r.mod.Memories) == 0 {
				c.fail(RuleIndex, at, "the segment fills memory 0, and there is none; the file is damaged or its encoder broken")
				return
			}
			r.constExpr(c, I32)
		}
		c.take(c.u32())
	}
}
