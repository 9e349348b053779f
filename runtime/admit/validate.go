package admit

import "math"

// Validate checks the function bodies of a module that Read gave for wasm: that
// every instruction is known, that its operands have the right types, that
// control flow is well formed and that every index exists, by the rules of
// WebAssembly 2.0 with all its features. It applies the limits on bodies.
//
// It is independent of any engine's validator. An error is like one of Read; of
// each function it names the first violation.
//
// What it allocates is bounded by the longest body, not by their sum.
func (m *Module) Validate(wasm []byte, lim Limits) error {
	v := newValidator(m, wasm, lim)
	for i := range m.Functions {
		if v.function(i); v.all.halted {
			break
		}
	}
	return v.all.err()
}

// validator checks one body after the other, and keeps what they share.
type validator struct {
	mod     *Module
	lim     Limits
	all     findings
	types   []*FuncType // of every function, imported or not, by index
	tabled  bool        // a function that is not the module's own can be in a table
	numeric *numeric
	memory  *[opStoreLast - opLoadFirst + 1]instruction
	vector  *[256]instruction

	// The body at hand.
	cursor
	fn       findings // its first violation
	locals   []ValType
	operands []operand
	frames   []frame
	top      *frame
	// live is false in code that cannot run, since it follows a jump within
	// the same block. Such code is checked, not counted.
	live bool

	deepest    int   // most operands at once
	branches   int   // blocks, elses, branches and bulk instructions
	moves      int   // values that calls, blocks and branches pass on
	spread     int   // the same, each weighed by the loops around it
	targets    int   // entries of its br_tables
	used       []int // for each local, the basic block that used it last; -1: it is among
	carried    int   // the locals that carry a value from one basic block to another
	basic      int   // the basic block at hand
	allTargets int   // of all bodies so far
	allEffort  int   // of all bodies so far
	exhausted  bool  // a limit on all bodies together is exceeded
	allBytes   int   // of all bodies so far
	tables     int32 // br_tables so far, to tell their marks apart

	plan *plan // where the rewriter's notes go; nil: only validate
}

func newValidator(m *Module, wasm []byte, lim Limits) *validator {
	v := &validator{
		mod: m, lim: lim.WithDefaults(),
		types:   make([]*FuncType, 0, m.functionCount()),
		numeric: numericTable(), memory: memoryTable(), vector: vectorTable(),
	}
	v.buf = wasm
	for i := range m.Tables {
		v.tabled = v.tabled || m.Tables[i].Imported
	}
	for i := range min(m.ImportedFunctions, len(m.declared)) {
		v.tabled = v.tabled || m.declared[i]
	}
	for i := range m.Imports {
		if imp := &m.Imports[i]; imp.Kind == KindFunction {
			v.types = append(v.types, imp.Type)
		}
	}
	for i := range m.Functions {
		v.types = append(v.types, &m.Types[m.Functions[i].Type])
	}
	return v
}

// function checks one body.
func (v *validator) function(i int) {
	v.enter(i)
	for v.ok() && v.top != nil {
		if v.left() == 0 {
			v.fail(RuleControl, v.pos, "the body ends inside of a block; the file is damaged or its encoder broken")
			break
		}
		v.instruction()
	}
	if v.ok() && v.left() > 0 {
		v.fail(RuleControl, v.pos, "%d bytes follow the end of the body; the file is damaged or its encoder broken", v.left())
	}
	v.compiling(v.mod.Functions[i].Offset)
	if e := v.fn.first(); e != nil {
		v.all.add(e)
		// More of the same is no news.
		v.all.halted = v.all.halted || v.exhausted
	}
}

// enter makes ready for the first instruction of a body.
func (v *validator) enter(i int) {
	f := &v.mod.Functions[i]
	v.fn = findings{most: 1}
	v.found = &v.fn
	v.pos, v.end = f.Offset, f.Offset+f.Size
	v.at("function", v.mod.ImportedFunctions+i)
	typ := &v.mod.Types[f.Type]

	v.allBytes += f.Size
	if v.allBytes > v.lim.CodeBytes && v.allBytes-f.Size <= v.lim.CodeBytes {
		v.exhausted = true
		v.fail(RuleCodeBytes, f.Offset, "function bodies reach %d bytes with it, at most %d are allowed; make the module smaller or raise the limit", v.allBytes, v.lim.CodeBytes)
	}
	v.locals = append(v.locals[:0], typ.Params...)
	for groups := v.u32(); groups > 0 && v.ok(); groups-- {
		n := int(v.u32())
		t := valueType(&v.cursor)
		for range n {
			v.locals = append(v.locals, t)
		}
	}

	v.operands, v.frames, v.top = v.operands[:0], v.frames[:0], nil
	v.deepest, v.branches, v.spread, v.moves, v.targets, v.live = 0, 0, 0, 0, 0, true
	v.used, v.carried, v.basic = append(v.used[:0], make([]int, len(v.locals))...), 0, 0
	if v.plan != nil {
		v.plan.start(v.pos)
	}
	v.push(opBlock, &FuncType{Results: typ.Results})
}

// compiling applies the limits on what the body at hand takes to compile.
func (v *validator) compiling(offset int) {
	if !v.ok() {
		return
	}
	e := effort(v.branches, v.spread, v.carried, v.moves)
	before := v.allEffort
	v.allEffort = min(before+e, math.MaxInt32)
	v.exhausted = v.exhausted || v.allEffort > v.lim.AllEffort
	switch {
	case e > v.lim.Effort:
		v.note(RuleEffort, offset, "%d locals that carry values between %d blocks and branches, some in loops, and %d values that are passed on, are an effort of %d to compile, at most %d is allowed; optimise or split the function, or raise the limit", v.carried, v.branches, v.moves, e, v.lim.Effort)
	case v.allEffort > v.lim.AllEffort && before <= v.lim.AllEffort:
		v.note(RuleAllEffort, offset, "functions reach an effort of %d to compile with it, at most %d is allowed; optimise, make the module smaller, or raise the limit", v.allEffort, v.lim.AllEffort)
	}
}

// branching counts a block, an else or a branch.
func (v *validator) branching(offset int) {
	v.branches++
	v.basic++
	v.spread += 1 + v.top.loops
	if v.branches > v.lim.Branches {
		v.fail(RuleBranches, offset, "more than %d blocks and branches; split the function or raise the limit", v.lim.Branches)
	}
}

// passing counts values that are passed on. These alone are compared with the
// limit at once, since a few bytes can pass hundreds.
func (v *validator) passing(offset, values int) {
	v.moves += 1 + values
	if v.ok() && effort(0, 0, 0, v.moves) > v.lim.Effort {
		v.compiling(offset)
		v.found.halted = true
	}
}

// readLocal notes a use of a local's value, writeLocal one that gives it another.
// At the entry all have one.
func (v *validator) readLocal(i int) {
	if at := v.used[i]; at >= 0 && at != v.basic {
		v.used[i] = -1
		v.carried++
	}
}

func (v *validator) writeLocal(i int) {
	if v.used[i] >= 0 {
		v.used[i] = v.basic
	}
}

// broken refuses what no correct encoder emits.
func (v *validator) broken(rule string, offset int, format string, args ...any) {
	v.fail(rule, offset, format+"; the file is damaged or its compiler broken", args...)
}

// operand is a value on the operand stack.
type operand struct {
	// typ is 0 for a value that code which cannot run would have left.
	typ ValType
	// nan is the note, plus one, of the instruction whose result this is,
	// where its NaN bits are left open; else 0.
	nan int32
}

func (v *validator) pushOperand(t ValType) {
	v.operands = append(v.operands, operand{typ: t})
	if v.live && len(v.operands) > v.deepest {
		v.deepest = len(v.operands)
	}
	if len(v.operands) > v.lim.Operands {
		v.fail(RuleOperands, v.pos, "more than %d values on the operand stack; split the function or raise the limit", v.lim.Operands)
	}
}

func (v *validator) pushOperands(types []ValType) {
	for _, t := range types {
		if v.pushOperand(t); !v.ok() {
			return
		}
	}
}

// takeOperand takes the value on top, of whatever type, and says nothing of
// what becomes of its bits.
func (v *validator) takeOperand() operand {
	n := len(v.operands)
	if n == v.top.height {
		if !v.top.dead && v.ok() {
			v.broken(RuleOperandType, v.pos, "an instruction lacks an operand")
		}
		return operand{}
	}
	o := v.operands[n-1]
	v.operands = v.operands[:n-1]
	return o
}

// popAny takes the value on top for a use that may show its bits.
func (v *validator) popAny() ValType {
	o := v.takeOperand()
	if o.nan > 0 {
		v.plan.canonicalise(o.nan - 1)
	}
	return o.typ
}

func (v *validator) pop(want ValType) {
	if got := v.popAny(); got != want && got != 0 {
		v.mismatch(got, want)
	}
}

// popNumber takes the value on top for a use to which all NaNs are the same,
// if it reads its bits as the instruction that made it did.
func (v *validator) popNumber(want ValType, as lanes) {
	o := v.takeOperand()
	if o.typ != want && o.typ != 0 {
		v.mismatch(o.typ, want)
		return
	}
	if o.nan > 0 && v.plan.notes[o.nan-1].lanes() != as {
		v.plan.canonicalise(o.nan - 1)
	}
}

func (v *validator) mismatch(got, want ValType) {
	if v.ok() {
		v.broken(RuleOperandType, v.pos, "an operand is of type %s, and %s is needed", got, want)
	}
}

func (v *validator) popOperands(types []ValType) {
	for i := len(types) - 1; i >= 0 && v.ok(); i-- {
		if v.top.dead && len(v.operands) == v.top.height {
			return // the rest is whatever it should be
		}
		v.pop(types[i])
	}
}

// frame is a block that is open.
type frame struct {
	op      byte      // opBlock, opLoop, opIf; opElse after an else
	dead    bool      // what follows cannot run, up to the else or the end
	born    bool      // the block itself can run
	height  int       // operands below it
	loops   int       // around what is in it
	typ     *FuncType // parameters and results
	mark    int32     // the latest br_table that was seen to suit it
	control           // for the rewriter
}

// label gives the types that a branch to the frame carries.
func (f *frame) label() []ValType {
	if f.op == opLoop {
		return f.typ.Params
	}
	return f.typ.Results
}

// push opens a block whose parameters the caller has taken off the stack.
func (v *validator) push(op byte, typ *FuncType) {
	loops := 0
	if v.top != nil {
		loops = v.top.loops
	}
	if op == opLoop {
		loops++
	}
	v.frames = append(v.frames, frame{op: op, born: v.live, height: len(v.operands), loops: loops, typ: typ})
	v.top = &v.frames[len(v.frames)-1]
	// The outermost frame is the body itself.
	if len(v.frames)-1 > v.lim.Nesting {
		v.fail(RuleNesting, v.pos, "blocks nest deeper than %d; split the function or raise the limit", v.lim.Nesting)
		return
	}
	v.pushOperands(typ.Params)
}

// leave marks the rest of the block as code that cannot run.
func (v *validator) leave() {
	v.operands = v.operands[:v.top.height]
	v.top.dead = true
	if v.live && v.plan != nil {
		v.plan.note(noteDead, v.pos, 0, 0)
	}
	v.live = false
}

// popFrame closes the block on top and gives its results to the one around it.
func (v *validator) popFrame() {
	f := v.top
	v.popOperands(f.typ.Results)
	if v.ok() && len(v.operands) != f.height {
		v.broken(RuleOperandType, v.pos, "%d values too many are left at the end of a block", len(v.operands)-f.height)
	}
	if !v.ok() {
		return
	}
	v.frames = v.frames[:len(v.frames)-1]
	if len(v.frames) == 0 {
		v.top = nil
		return
	}
	v.top = &v.frames[len(v.frames)-1]
	v.live = v.top.born && !v.top.dead
	v.pushOperands(f.typ.Results)
}
