package admit

import (
	"encoding/binary"
	"slices"
	"testing"
)

// naive counts each instruction by itself, in a global, where Rewrite counts
// regions, and charges growths when they have happened. It checks nothing.
func naive(t testing.TB, wasm []byte) []byte {
	t.Helper()
	m, err := Read(wasm, wide())
	if err != nil {
		t.Fatal(err)
	}
	counter := uint32(len(m.Globals))
	v := newValidator(m, wasm, wide())
	r := rewriter{opts: Options{Depth: 1}, mod: m}
	e := emitter{}
	bodies := binary.AppendUvarint(nil, uint64(len(m.Functions)))
	for i := range m.Functions {
		v.enter(i)
		f := &m.Functions[i]
		groups, n := binary.Uvarint(wasm[f.Offset:])
		e.out = binary.AppendUvarint(e.out[:0], groups+1)
		e.out = append(append(e.out, wasm[f.Offset+n:f.Code]...), 2, byte(I32))
		length := uint32(len(m.Types[f.Type].Params) + f.Locals)
		charge := func(shift int64, op byte) {
			e.opIndex(opGlobalGet, counter)
			e.opIndex(opLocalGet, length)
			e.op(opI64ExtendU)
			e.opConst(opI64Const, shift)
			e.op(op, opI64Sub)
			e.opIndex(opGlobalSet, counter)
		}
		for v.top != nil {
			start := v.pos
			labels := make([]int, len(v.frames))
			for i := range v.frames {
				labels[i] = len(v.frames[i].label())
			}
			if v.instruction(); !v.ok() {
				t.Fatal(v.fn.first())
			}
			code := wasm[start:v.pos]
			cost := int64(1)
			pages := int64(-1) // what a unit of growth costs, as a power of two
			switch code[0] {
			case opNop, opElse, opEnd:
				cost = 0
			case opBlock, opLoop, opIf:
				if cost = 0; code[0] == opIf {
					cost = 1
				}
				typ := v.top.typ
				cost += max(int64(max(len(typ.Params), len(typ.Results)))-1, 0)
			case opBr, opBrIf, opBrTable:
				at := code[1:]
				if code[0] == opBrTable {
					_, n := binary.Uvarint(at)
					at = at[n:]
				}
				d, _ := binary.Uvarint(at)
				cost += max(int64(labels[len(labels)-1-int(d)])-1, 0)
			case 0x91, 0x94, 0x95, 0x9f, 0xa2, 0xa3: // sqrt, mul, div
				cost = 16
			case opVector:
				switch op, _ := binary.Uvarint(code[1:]); op {
				case 227, 230, 231, 239, 242, 243:
					cost = 16
				}
			case opRefFunc:
				cost = 64
			case opMemoryGrow:
				cost, pages = 64, 12
			case opMisc:
				shift := int64(-1)
				switch code[1] {
				case miscTableGrow:
					cost, pages = 64, 0
				case miscMemoryInit, miscMemoryCopy, miscMemoryFill:
					shift = 4
				case miscTableInit, miscTableCopy, miscTableFill:
					shift = 0
				}
				if shift >= 0 {
					e.opIndex(opLocalSet, length)
					charge(shift, opI64ShrU)
					e.opIndex(opLocalGet, length)
				}
			}
			if cost > 0 {
				e.opIndex(opGlobalGet, counter)
				e.opConst(opI64Const, cost)
				e.op(opI64Sub)
				e.opIndex(opGlobalSet, counter)
			}
			if pages < 0 {
				e.op(code...)
				continue
			}
			e.opIndex(opLocalTee, length)
			e.op(code...)
			e.opIndex(opLocalTee, length+1)
			e.opConst(opI32Const, -1)
			e.op(0x47 /* i32.ne */, opIf, none)
			charge(pages, opI64Shl)
			e.op(opEnd)
			e.opIndex(opLocalGet, length+1)
		}
		bodies = binary.AppendUvarint(bodies, uint64(len(e.out)))
		bodies = append(bodies, e.out...)
	}
	out := slices.Clone(wasm[:headerSize])
	done := map[byte]bool{}
	for _, s := range spans(wasm) {
		for _, id := range []byte{sectionGlobal, sectionExport} {
			if s.id != sectionCustom && rank(id) < rank(s.id) && !done[id] {
				out = appendSection(out, id, r.extend(id, []byte{0}))
				done[id] = true
			}
		}
		done[s.id] = true
		switch s.id {
		case sectionGlobal, sectionExport:
			out = appendSection(out, s.id, r.extend(s.id, wasm[s.content:s.to]))
		case sectionCode:
			out = appendSection(out, s.id, bodies)
		default:
			out = append(out, wasm[s.start:s.to]...)
		}
	}
	return out
}
