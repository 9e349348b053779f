package admit

// generator makes valid modules out of any bytes: each is a decision, and where
// they end, so does the code.
type generator struct {
	data   []byte
	pos    int
	floats bool // use floating-point arithmetic

	types  []FuncType // of functions and blocks
	funcs  []int      // types of the functions
	locals []ValType
	labels [][]ValType // what a branch to each takes, outermost first
	code   []byte
	deep   int
}

var genTypes = []ValType{I32, I64, F32, F64, V128}

// choose gives a number below n, 0 once the input has ended.
func (g *generator) choose(n int) int {
	if g.pos >= len(g.data) {
		return 0
	}
	g.pos++
	return int(g.data[g.pos-1]) % n
}

func (g *generator) emit(b ...byte) { g.code = append(g.code, b...) }

func (g *generator) emitIndex(op byte, i int) {
	g.code = append(append(g.code, op), uleb(uint64(i))...)
}

func (g *generator) typ() ValType {
	n := len(genTypes)
	if !g.floats {
		n = 2
	}
	return genTypes[g.choose(n)]
}

func (g *generator) signature() FuncType {
	var t FuncType
	for range g.choose(4) {
		t.Params = append(t.Params, g.typ())
	}
	for range g.choose(4) {
		t.Results = append(t.Results, g.typ())
	}
	return t
}

// module makes a module.
func (g *generator) module() []byte {
	g.floats = g.choose(2) == 1
	// Types 0 and 1 are of functions that call nothing, so that code ends.
	g.types = []FuncType{{}, {Params: []ValType{I32}, Results: []ValType{I32}}}
	for range 4 {
		g.types = append(g.types, g.signature())
	}
	g.funcs = []int{1, 2, 3, 4, 5}
	var bodies, funcs, exports, types [][]byte
	for i, t := range g.funcs {
		funcs = append(funcs, uleb(uint64(t)))
		exports = append(exports, export(string(rune('a'+i)), 0, uint64(i)))
		bodies = append(bodies, g.function(g.types[t]))
	}
	for _, t := range g.types {
		types = append(types, funcType(valBytes(t.Params), valBytes(t.Results)))
	}
	exports = append(exports, export("memory", 2, 0))
	v128 := cat(raw(byte(V128), 1, opVector, vecV128Const), make([]byte, 16), end)
	return module(
		section(1, vec(types...)),
		section(3, vec(funcs...)),
		section(4, vec(raw(byte(FuncRef), 0, 6))),
		section(5, vec(raw(0, 1))),
		section(6, vec(
			raw(i32, 1, opI32Const, 1, opEnd), raw(i64, 1, opI64Const, 1, opEnd),
			cat(raw(byte(F32), 1, opF32Const), make([]byte, 4), end), cat(raw(byte(F64), 1, opF64Const), make([]byte, 8), end), v128,
		)),
		section(7, vec(exports...)),
		section(9, vec(cat(raw(0), zero, vec(uleb(0), uleb(1), uleb(2), uleb(3), uleb(4))))),
		section(12, uleb(1)),
		section(10, vec(bodies...)),
		section(11, vec(cat(raw(1), str("some forty bytes of data that can be copied")))),
	)
}

func valBytes(list []ValType) []byte {
	b := make([]byte, len(list))
	for i, t := range list {
		b[i] = byte(t)
	}
	return b
}

func (g *generator) function(t FuncType) []byte {
	g.locals = append([]ValType(nil), t.Params...)
	var groups [][]byte
	for _, v := range genTypes { // one of each, and some more
		g.locals = append(g.locals, v)
		groups = append(groups, raw(1, byte(v)))
	}
	for range g.choose(3) {
		v := g.typ()
		g.locals = append(g.locals, v, v)
		groups = append(groups, raw(2, byte(v)))
	}
	g.code, g.deep = nil, 0
	g.labels = [][]ValType{t.Results}
	g.block(t.Results)
	return body(vec(groups...), g.code, end)
}

// block makes some statements and then the values.
func (g *generator) block(results []ValType) {
	for range g.choose(5) {
		g.statement()
	}
	for _, t := range results {
		g.value(t)
	}
}

// inside makes the code of a block.
func (g *generator) inside(label, results []ValType) {
	g.labels = append(g.labels, label)
	g.block(results)
	g.labels = g.labels[:len(g.labels)-1]
}

func (g *generator) local(t ValType) int {
	var have []int
	for i, v := range g.locals {
		if v == t {
			have = append(have, i)
		}
	}
	return have[g.choose(len(have))]
}

func (g *generator) values(list []ValType) {
	for _, t := range list {
		g.value(t)
	}
}

func (g *generator) drop(n int) {
	for range n {
		g.emit(opDrop)
	}
}

// small makes an i32 below 64, so that most accesses are in bounds.
func (g *generator) small() {
	g.value(I32)
	g.emit(opI32Const, 63, 0x71) // i32.and
}

func (g *generator) statement() {
	if g.pos >= len(g.data) || g.deep > 10 {
		g.emit(opNop)
		return
	}
	g.deep++
	defer func() { g.deep-- }()
	switch g.choose(16) {
	case 0, 1:
		t := g.typ()
		g.value(t)
		g.emitIndex(opLocalSet, g.local(t))
	case 2:
		g.small()
		g.value(I64)
		g.emit(0x37, 0, 8)
	case 3: // if
		g.value(I32)
		g.emit(opIf, none)
		g.inside(nil, nil)
		if g.choose(2) == 1 {
			g.emit(opElse)
			g.inside(nil, nil)
		}
		g.emit(opEnd)
	case 4:
		g.emit(opBlock, none)
		g.inside(nil, nil)
		g.emit(opEnd)
	case 5, 6: // a loop that mostly ends
		g.emit(opLoop, none)
		g.labels = append(g.labels, nil)
		g.block(nil)
		g.value(I32)
		g.labels = g.labels[:len(g.labels)-1]
		g.emit(opI32Const, 3, 0x71, opBrIf, 0, opEnd)
	case 7:
		d := g.choose(len(g.labels))
		g.values(g.labels[len(g.labels)-1-d])
		g.emitIndex(opBr, d)
	case 8, 9:
		d := g.choose(len(g.labels))
		types := g.labels[len(g.labels)-1-d]
		g.values(types)
		g.value(I32)
		g.emitIndex(opBrIf, d)
		g.drop(len(types))
	case 10:
		d := g.choose(len(g.labels))
		types := g.labels[len(g.labels)-1-d]
		g.values(types)
		g.small()
		var to []byte
		n := 0
		for i := range g.labels {
			if k := len(g.labels) - 1 - i; equalTypes(g.labels[k], types) && g.choose(2) == 1 {
				to = append(to, uleb(uint64(i))...)
				n++
			}
		}
		g.emitIndex(opBrTable, n)
		g.emit(append(to, uleb(uint64(d))...)...)
	case 11:
		g.values(g.labels[0])
		g.emit(opReturn)
	case 12: // bulk
		switch g.choose(4) {
		case 0:
			g.small()
			g.value(I32)
			g.small()
			g.emit(opMisc, miscMemoryFill, 0)
		case 1:
			g.small()
			g.small()
			g.small()
			g.emit(opMisc, miscMemoryCopy, 0, 0)
		case 2:
			g.small()
			g.small()
			g.small()
			g.emit(opMisc, miscMemoryInit, 0, 0)
		case 3:
			g.value(I32)
			g.emit(opRefNull, byte(FuncRef))
			g.value(I32)
			g.emit(opMisc, miscTableFill, 0)
		}
	case 13:
		i := g.choose(2)
		g.value(genTypes[i])
		g.emitIndex(opGlobalSet, i)
	case 14:
		g.value(g.typ())
		g.emit(opDrop)
	case 15:
		if g.choose(8) == 0 {
			g.emit(opUnreachable)
		}
		f := g.choose(len(g.funcs))
		g.values(g.types[g.funcs[f]].Params)
		g.emitIndex(opCall, f)
		g.drop(len(g.types[g.funcs[f]].Results))
	}
}

// value makes code that leaves one value.
func (g *generator) value(t ValType) {
	if g.pos >= len(g.data) || g.deep > 12 {
		g.emitIndex(opLocalGet, g.local(t))
		return
	}
	g.deep++
	defer func() { g.deep-- }()
	switch g.choose(12) {
	case 0, 1:
		g.emitIndex(opLocalGet, g.local(t))
	case 2:
		g.constant(t)
	case 3, 4:
		g.arithmetic(t)
	case 5:
		g.value(I32)
		g.emit(opIf, byte(t))
		g.inside([]ValType{t}, []ValType{t})
		g.emit(opElse)
		g.inside([]ValType{t}, []ValType{t})
		g.emit(opEnd)
	case 6:
		g.emit(opBlock, byte(t))
		g.inside([]ValType{t}, []ValType{t})
		g.emit(opEnd)
	case 7: // a call, of which the last result may be right
		f := g.choose(len(g.funcs))
		typ := g.types[g.funcs[f]]
		g.values(typ.Params)
		if g.choose(3) == 0 {
			g.emit(opI32Const, byte(f))
			g.emitIndex(opCallIndirect, g.funcs[f])
			g.emit(0)
		} else {
			g.emitIndex(opCall, f)
		}
		if n := len(typ.Results); n > 0 && typ.Results[n-1] == t {
			g.emitIndex(opLocalSet, g.local(t))
			g.drop(n - 1)
		} else {
			g.drop(n)
		}
		g.emitIndex(opLocalGet, g.local(t))
	case 8:
		g.value(t)
		g.emitIndex(opLocalTee, g.local(t))
	case 9:
		g.value(t)
		g.value(t)
		g.value(I32)
		g.emit(opSelect)
	case 10: // a block or loop with the type of a function
		i := 2 + g.choose(len(g.types)-2)
		typ := g.types[i]
		g.values(typ.Params)
		loop := g.choose(3) == 0
		if loop {
			g.emit(opLoop)
			g.emit(uleb(uint64(i))...)
			g.drop(len(typ.Params))
			g.inside(typ.Params, typ.Results)
		} else {
			g.emit(opBlock)
			g.emit(uleb(uint64(i))...)
			g.drop(len(typ.Params))
			g.inside(typ.Results, typ.Results)
		}
		g.emit(opEnd)
		g.drop(len(typ.Results))
		g.emitIndex(opLocalGet, g.local(t))
	case 11:
		switch t {
		case I32:
			switch g.choose(3) {
			case 0:
				g.value(I32)
				g.emit(opI32Const, 3, 0x71, opMemoryGrow, 0)
			case 1:
				g.small()
				g.emit(0x2d, 0, 4) // i32.load8_u
			case 2:
				g.value(I64)
				g.emit(0xa7)
			}
		case I64:
			g.small()
			g.emit(0x29, 0, 16) // i64.load
		case F32:
			g.small()
			g.emit(0x2a, 0, 16)
		case F64:
			g.small()
			g.emit(0x2b, 0, 16)
		case V128:
			g.small()
			g.emit(opVector, 0, 0, 16)
		}
	}
}

func (g *generator) constant(t ValType) {
	b := byte(g.choose(256))
	switch t {
	case I32:
		g.emit(opI32Const, b&0x7f)
	case I64:
		g.emit(opI64Const, b&0x7f)
	case F32:
		g.emit(opF32Const, b, 0, b, 0x7f) // about NaN
	case F64:
		g.emit(opF64Const, b, 0, 0, 0, 0, 0, b, 0x7f)
	case V128:
		g.emit(opVector, vecV128Const)
		g.emit(append(make([]byte, 14), b, 0x7f)...)
	}
}

func (g *generator) arithmetic(t ValType) {
	pick := func(ops ...byte) byte { return ops[g.choose(len(ops))] }
	two := func(t ValType) {
		g.value(t)
		g.value(t)
	}
	switch t {
	case I32:
		if g.floats && g.choose(4) == 0 {
			two(F64)
			g.emit(pick(0x61, 0x62, 0x63, 0x64))
			return
		}
		if g.floats && g.choose(4) == 0 {
			g.value(F32)
			g.emit(pick(0xbc, 0xa8)) // reinterpret, or a conversion that may trap
			return
		}
		two(I32)
		g.emit(pick(0x6a, 0x6b, 0x6c, 0x6e, 0x70, 0x71, 0x72, 0x73, 0x74, 0x48, 0x4d))
	case I64:
		if g.floats && g.choose(4) == 0 {
			g.value(F64)
			g.emit(0xbd)
			return
		}
		if g.choose(4) == 0 {
			g.value(I32)
			g.emit(pick(0xac, 0xad))
			return
		}
		two(I64)
		g.emit(pick(0x7c, 0x7d, 0x7e, 0x80, 0x82, 0x83, 0x85, 0x86, 0x89))
	case F32:
		if g.choose(4) == 0 {
			g.value(F64)
			g.emit(0xb6)
			return
		}
		two(F32)
		g.emit(pick(0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98))
		if g.choose(3) == 0 {
			g.emit(pick(0x8b, 0x8c, 0x8d, 0x8e, 0x8f, 0x90, 0x91))
		}
	case F64:
		if g.choose(4) == 0 {
			g.value(F32)
			g.emit(0xbb)
			return
		}
		two(F64)
		g.emit(pick(0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6))
		if g.choose(3) == 0 {
			g.emit(pick(0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f))
		}
	case V128:
		two(V128)
		g.emit(opVector)
		g.emit(uleb(uint64([]int{78, 81, 228, 229, 230, 231, 232, 240, 241, 242, 243, 244, 65, 71, 174, 206, 234}[g.choose(17)]))...)
	}
}
