package admit

import "slices"

// A small assembler: each function returns bytes, and bytes are joined.

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func raw(b ...byte) []byte { return b }

// uleb encodes in the shortest form.
func uleb(v uint64) []byte {
	var out []byte
	for v >= 0x80 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v))
}

// padded encodes in exactly n bytes.
func padded(v uint64, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(v)&0x7f | 0x80
		v >>= 7
	}
	out[n-1] &= 0x7f
	return out
}

func str(s string) []byte { return cat(uleb(uint64(len(s))), []byte(s)) }

func vec(entries ...[]byte) []byte {
	return cat(uleb(uint64(len(entries))), cat(entries...))
}

// many is a vector of n equal entries.
func many(n int, entry []byte) []byte {
	return cat(uleb(uint64(n)), slices.Repeat(entry, n))
}

func section(id byte, content ...[]byte) []byte {
	body := cat(content...)
	return cat(raw(id), uleb(uint64(len(body))), body)
}

func module(sections ...[]byte) []byte {
	return cat([]byte("\x00asm\x01\x00\x00\x00"), cat(sections...))
}

func custom(name string, content ...[]byte) []byte {
	return section(0, str(name), cat(content...))
}

func funcType(params, results []byte) []byte {
	return cat(raw(0x60), vecBytes(params), vecBytes(results))
}

func vecBytes(b []byte) []byte { return cat(uleb(uint64(len(b))), b) }

func export(name string, kind byte, index uint64) []byte {
	return cat(str(name), raw(kind), uleb(index))
}

func imported(module, name string, kind byte, desc ...[]byte) []byte {
	return cat(str(module), str(name), raw(kind), cat(desc...))
}

// body is a function body with its size, content given from the local
// declarations on.
func body(content ...[]byte) []byte {
	b := cat(content...)
	return cat(uleb(uint64(len(b))), b)
}

var (
	noLocals = raw(0)
	end      = raw(opEnd)
	zero     = raw(opI32Const, 0, opEnd) // the constant expression i32 0
	i32      = byte(I32)
	i64      = byte(I64)
)

// The sections of a small module that uses every one of them: two types, three
// kinds of import, two functions of its own.
func wholeModule() []byte {
	return module(
		custom("first", []byte("one")),
		section(1, vec(
			funcType(raw(i32, i32), raw(i64)),
			funcType(nil, nil),
		)),
		section(2, vec(
			imported("kvrt_log", "write", 0, uleb(0)),
			imported("env", "base", 3, raw(i32, 0)),
			imported("kvrt_log", "write", 0, uleb(1)),
		)),
		section(3, vec(uleb(0), uleb(1))),
		section(4, vec(raw(byte(FuncRef), 1, 4, 9))),
		section(5, vec(cat(raw(0), uleb(2)))),
		section(6, vec(
			cat(raw(i32, 1, opI32Const), raw(0x80, 0x80, 0x04), end),
			cat(raw(byte(F64), 0, opF64Const), make([]byte, 8), end),
			cat(raw(byte(V128), 0, opVector, vecV128Const), make([]byte, 16), end),
			raw(byte(ExternRef), 0, opRefNull, byte(ExternRef), opEnd),
			raw(i32, 0, opGlobalGet, 0, opEnd),
		)),
		section(7, vec(
			export("memory", 2, 0),
			export("handle", 0, 2),
			export("log", 0, 1),
			export("table", 1, 0),
			export("stack", 3, 1),
		)),
		section(8, uleb(3)),
		section(9, vec(
			cat(raw(0), zero, vec(uleb(0), uleb(3))),                                  // active
			cat(raw(1, 0), vec(uleb(2))),                                              // passive
			cat(raw(2), uleb(0), zero, raw(0), vec(uleb(1))),                          // active, explicit
			cat(raw(3, 0), vec(uleb(2))),                                              // declarative
			cat(raw(4), zero, vec(raw(opRefFunc, 1, opEnd))),                          // active, expressions
			cat(raw(5, byte(FuncRef)), vec(raw(opRefNull, byte(FuncRef), opEnd))),     // passive, expressions
			cat(raw(6), uleb(0), zero, raw(byte(FuncRef)), vec()),                     // explicit, expressions
			cat(raw(7, byte(ExternRef)), vec(raw(opRefNull, byte(ExternRef), opEnd))), // declarative, expressions
		)),
		section(12, uleb(3)),
		section(10, vec(
			body(vec(raw(2, i32), cat(uleb(300), raw(i64))), raw(0x42, 0), end),
			body(noLocals, end),
		)),
		section(11, vec(
			cat(raw(0), zero, str("abc")),
			cat(raw(1), str("d")),
			cat(raw(2, 0), zero, str("")),
		)),
		custom("last", []byte("two")),
		custom("first"),
	)
}
