package admit

import "encoding/binary"

// emitter writes bodies that count.
//
// The counters live in two globals. Within a body the fuel lives in a local, and
// at each point it is known at compile time which of the two is right: state.
type emitter struct {
	wasm []byte
	plan *plan
	out  []byte
	pos  int // in wasm, of what has not been copied yet

	fuelGlobal  uint32
	depthGlobal uint32
	pages       uint64   // maximum of the memory
	entries     []uint64 // maxima of the tables
	typeOf      func(results []ValType) uint32

	// The body at hand.
	state  state
	skip   bool // the code at hand cannot run and is left out
	frames []label
	exit   bool // a block stands around the body, for branches out of it
	weight int  // of the call, in depth
	nans   int  // results that are made canonical
	local  struct{ fuel, depth, length, f32, f64, v128 uint32 }
}

func (e *emitter) op(b ...byte) { e.out = append(e.out, b...) }

func (e *emitter) opIndex(op byte, index uint32) {
	e.out = binary.AppendUvarint(append(e.out, op), uint64(index))
}

func (e *emitter) opConst(op byte, v int64) { e.out = appendSigned(append(e.out, op), v) }

// appendSigned appends v as signed LEB128.
func appendSigned(out []byte, v int64) []byte {
	for {
		b := byte(v) & 0x7f
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

// body writes one body, without its size. slots are its parameters and locals.
func (e *emitter) body(f *Function, typ *FuncType, deepest int) {
	p := e.plan
	slots := len(typ.Params) + f.Locals
	charges, loops := 0, false
	nan := [lanesF64x2 + 1]bool{}
	e.nans = 0
	for i := range p.regions {
		if p.regions[i].cost > 0 {
			charges++
		}
		loops = loops || p.regions[i].loop
	}
	for i := range p.notes {
		if n := &p.notes[i]; n.kind == noteNaN && n.extra&nanShows != 0 {
			nan[n.lanes()] = true
			e.nans++
		}
	}
	metered := charges > 0 || loops || p.bulk
	e.locals(f, slots, metered, p.calls, p.bulk, nan)

	e.exit = p.exits
	e.op(opBlock, 0x40)
	if metered {
		e.op(opBlock, 0x40)
	}
	if e.exit {
		e.op(opBlock)
		switch r := typ.Results; len(r) {
		case 0:
			e.op(0x40)
		case 1:
			e.op(byte(r[0]))
		default:
			e.out = appendSigned(e.out, int64(e.typeOf(r)))
		}
	}
	e.frames = append(e.frames[:0], label{})
	e.state = state{global: true}
	e.skip = false
	e.enter(weight(slots+deepest), metered)
	e.code(f.Code, charges == 1 && !loops && !p.bulk)

	if metered {
		e.op(opEnd)
		e.opConst(opI64Const, -1)
		e.opIndex(opGlobalSet, e.fuelGlobal)
		e.op(opUnreachable)
	}
	e.op(opEnd)
	e.opConst(opI32Const, -1)
	e.opIndex(opGlobalSet, e.depthGlobal)
	e.op(opUnreachable, opEnd)
}

// locals writes the declarations of the locals, with further ones at their end.
func (e *emitter) locals(f *Function, slots int, metered, calls, bulk bool, nan [lanesF64x2 + 1]bool) {
	groups, n := binary.Uvarint(e.wasm[f.Offset:f.Code])
	declared := e.wasm[f.Offset+n : f.Code]
	next := uint32(slots)
	var added []byte
	add := func(wanted bool, t ValType, local *uint32) {
		if wanted {
			*local = next
			next++
			groups++
			added = append(added, 1, byte(t))
		}
	}
	add(metered, I64, &e.local.fuel)
	add(calls, I32, &e.local.depth)
	add(bulk, I32, &e.local.length)
	add(nan[lanesF32], F32, &e.local.f32)
	add(nan[lanesF64], F64, &e.local.f64)
	add(nan[lanesF32x4] || nan[lanesF64x2], V128, &e.local.v128)
	e.out = binary.AppendUvarint(e.out, groups)
	e.out = append(append(e.out, declared...), added...)
}

// enter writes what comes first: the check of the depth. A body that calls
// nothing leaves the global as it is.
func (e *emitter) enter(weight int, metered bool) {
	outermost := uint32(0)
	if metered {
		outermost++
	}
	if e.exit {
		outermost++
	}
	e.opIndex(opGlobalGet, e.depthGlobal)
	e.opConst(opI32Const, int64(weight))
	if e.plan.calls {
		e.op(opI32Sub)
		e.opIndex(opLocalTee, e.local.depth)
		e.opConst(opI32Const, 0)
	}
	e.op(opI32LtS)
	e.opIndex(opBrIf, outermost)
	e.weight = weight
}

// code writes the instructions, up to and including the return at their end.
func (e *emitter) code(pos int, once bool) {
	e.pos = pos
	for i := range e.plan.notes {
		n := &e.plan.notes[i]
		if n.kind == noteLive {
			e.pos, e.skip = int(n.offset), false
			continue
		}
		if e.skip {
			continue
		}
		e.out = append(e.out, e.wasm[e.pos:n.offset]...)
		e.pos = int(n.offset)
		switch n.kind {
		case noteRegion:
			r := &e.plan.regions[n.arg]
			if e.charge(r.cost, r.loop || n.arg == 0); once && r.cost > 0 {
				e.flush()
			}
		case noteOpen:
			e.open(&e.plan.blocks[n.arg])
		case noteElse:
			l := &e.frames[len(e.frames)-1]
			if n.extra != 0 {
				e.reload()
				l.edge(e.state)
			}
			e.state = l.saved
		case noteEnd:
			if len(e.frames) == 1 {
				e.finish(n.extra != 0)
				return
			}
			e.close(n.extra != 0)
		case noteBranch:
			e.branch(&e.frames[n.arg], n.arg == 0)
		case noteReturn:
			e.leave()
			e.skip = true
		case noteCall:
			if n.extra == callHost && (e.state.called || e.state.unchecked) {
				e.takeFuel()
				e.check()
			}
			e.flush()
			e.deepen()
			e.state.local, e.state.called = false, true
		case noteBulk:
			e.bulk(n)
		case noteNaN:
			if n.extra&nanShows != 0 {
				e.canonicalise(n.lanes())
			}
		case noteDead:
			e.skip = true
		}
	}
}

// reload makes the local of the fuel right.
func (e *emitter) reload() {
	if !e.state.local {
		e.opIndex(opGlobalGet, e.fuelGlobal)
		e.opIndex(opLocalSet, e.local.fuel)
		e.state.local = true
	}
}

// flush makes the global of the fuel right.
func (e *emitter) flush() {
	if !e.state.global {
		e.opIndex(opLocalGet, e.local.fuel)
		e.opIndex(opGlobalSet, e.fuelGlobal)
		e.state.global = true
	}
}

// deepen puts the depth of this call into its global.
func (e *emitter) deepen() {
	if !e.state.deep {
		e.opIndex(opLocalGet, e.local.depth)
		e.opIndex(opGlobalSet, e.depthGlobal)
		e.state.deep, e.state.maybeDeep = true, true
	}
}

// surface undoes deepen. Where the global may hold either depth, the local
// tells; where it is certain, the local need not be kept until here.
func (e *emitter) surface() {
	if !e.state.maybeDeep {
		return
	}
	if e.state.deep {
		e.opIndex(opGlobalGet, e.depthGlobal)
	} else {
		e.opIndex(opLocalGet, e.local.depth)
	}
	e.opConst(opI32Const, int64(e.weight))
	e.op(opI32Add)
	e.opIndex(opGlobalSet, e.depthGlobal)
}

// takeFuel puts the fuel onto the stack.
func (e *emitter) takeFuel() {
	if e.state.local {
		e.opIndex(opLocalGet, e.local.fuel)
	} else {
		e.opIndex(opGlobalGet, e.fuelGlobal)
	}
}

// keepFuel takes the fuel off the stack.
func (e *emitter) keepFuel(check bool) {
	e.state.local, e.state.global = true, false
	if !check {
		e.state.unchecked = true
		e.opIndex(opLocalSet, e.local.fuel)
		return
	}
	e.opIndex(opLocalTee, e.local.fuel)
	e.check()
}

// check takes the fuel off the stack, and traps where it is used up.
func (e *emitter) check() {
	e.state.called, e.state.unchecked = false, false
	e.opConst(opI64Const, 0)
	e.op(opI64LtS)
	target := uint32(len(e.frames) - 1)
	if e.exit {
		target++
	}
	e.opIndex(opBrIf, target)
}

// charge comes where a region begins. At the entry of a function there is nothing
// to check where the first region is empty: then so is the body, or a loop
// follows.
func (e *emitter) charge(cost int64, check bool) {
	if cost == 0 && (!check || len(e.frames) == 1) {
		return
	}
	e.takeFuel()
	if cost == 0 {
		e.check()
		return
	}
	e.opConst(opI64Const, cost)
	e.op(opI64Sub)
	e.keepFuel(check || e.state.called)
}

// open comes before a block.
func (e *emitter) open(b *block) {
	if b.op == opLoop {
		// What holds before the loop must hold on each way back. That the
		// global is right need not: it is not read before the next charge.
		e.reload()
		if b.calls {
			e.deepen()
		}
	}
	if b.op == opIf && !b.whole {
		e.reload() // where nothing can stand, for want of an else
	}
	e.frames = append(e.frames, label{block: b, saved: e.state})
}

// close comes before the end of a block.
func (e *emitter) close(reached bool) {
	l := &e.frames[len(e.frames)-1]
	if l.block.op == opLoop {
		e.frames = e.frames[:len(e.frames)-1]
		return
	}
	if l.block.op == opIf && !l.block.whole {
		l.edge(l.saved)
	}
	if l.edges > 0 {
		if reached {
			e.reload()
			l.edge(e.state)
		}
		e.state = l.join
	}
	e.frames = e.frames[:len(e.frames)-1]
}

// branch comes before a branch that goes to a label, perhaps.
func (e *emitter) branch(l *label, exit bool) {
	if exit {
		e.flush()
	} else {
		e.reload()
	}
	l.edge(e.state)
}

// leave writes a return.
func (e *emitter) leave() {
	e.flush()
	e.surface()
	e.op(opReturn)
}

// finish comes in place of the end of the body.
func (e *emitter) finish(reached bool) {
	if e.exit {
		l := &e.frames[0]
		if reached {
			e.flush()
			l.edge(e.state)
		}
		e.op(opEnd)
		e.state = l.join
		reached = true
	}
	if reached {
		e.leave()
	}
}
