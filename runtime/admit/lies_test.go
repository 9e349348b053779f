package admit

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// TestTruncated cuts a module that uses every section at every byte. Only a cut
// between sections can leave a module.
func TestTruncated(t *testing.T) {
	whole := wholeModule()
	ends := sectionEnds(t, whole)
	for n := range whole {
		m, err := Read(whole[:n:n], Limits{})
		if err == nil && !slices.Contains(ends, n) {
			t.Errorf("the first %d bytes were read as %+v", n, m)
		}
		if err != nil && len(Violations(err)) == 0 {
			t.Errorf("the first %d bytes gave an untyped error: %v", n, err)
		}
	}
}

// sectionEnds gives the offsets at which a section ends, by walking the frames
// alone.
func sectionEnds(t *testing.T, wasm []byte) []int {
	t.Helper()
	ends := []int{headerSize}
	for at := headerSize; at < len(wasm); {
		size, n := 0, at+1
		for shift := 0; ; shift += 7 {
			b := wasm[n]
			n++
			size |= int(b&0x7f) << shift
			if b < 0x80 {
				break
			}
		}
		at = n + size
		ends = append(ends, at)
	}
	return ends
}

// TestEveryByteReplaced puts each of some bytes, among them the largest LEB128
// parts, at each place.
func TestEveryByteReplaced(t *testing.T) {
	whole := wholeModule()
	for i := range whole {
		for _, b := range []byte{0x00, 0x01, 0x40, 0x7f, 0x80, 0xff} {
			wasm := bytes.Clone(whole)
			wasm[i] = b
			holds(t, wasm)
		}
	}
}

// TestScrambled changes several bytes at once, by a fixed seed.
func TestScrambled(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	whole := wholeModule()
	for range 20000 {
		wasm := bytes.Clone(whole)
		for range 1 + rng.IntN(6) {
			switch i := rng.IntN(len(wasm)); rng.IntN(3) {
			case 0:
				wasm[i] = byte(rng.Uint32())
			case 1:
				wasm = slices.Insert(wasm, i, slices.Repeat(raw(0xff), 1+rng.IntN(5))...)
			case 2:
				wasm = slices.Delete(wasm, i, min(len(wasm), i+1+rng.IntN(4)))
			}
		}
		holds(t, wasm)
	}
}

// TestAllocationIsCovered reads modules that announce as much as the format
// lets them, at both ends of the scale: some bytes that announce billions, and
// megabytes of the shortest possible entries. What is allocated, outgrown slices
// included, must be within a multiple of the input even without limits.
func TestAllocationIsCovered(t *testing.T) {
	const perByte, fixed = 100, 32 << 10
	huge := uleb(1<<32 - 1)
	open := Limits{ // as good as none
		Types: 1 << 31, Params: 1 << 31, Results: 1 << 31, Imports: 1 << 31, Functions: 1 << 31,
		Tables: 1 << 31, TableElements: 1 << 31, Globals: 1 << 31, Exports: 1 << 31, ElementSegments: 1 << 31,
		Elements: 1 << 31, DataSegments: 1 << 31, Locals: 1 << 31, NameBytes: 1 << 31, CustomSections: 1 << 31, CustomBytes: 1 << 31,
	}
	cases := map[string][]byte{
		"nameless custom sections": module(bytes.Repeat(custom(""), 1<<20)),
		"empty types":              module(section(1, many(1<<20, funcType(nil, nil)))),
		"long types":               module(section(1, vec(funcType(make([]byte, 1<<20), nil)))),
		"functions":                module(oneType, section(3, many(1<<20, uleb(0)))),
		"nameless imports":         module(oneType, section(2, many(1<<20, imported("", "", 0, uleb(0))))),
		"tables":                   module(section(4, many(1<<20, raw(byte(FuncRef), 0, 0)))),
		"globals":                  module(section(6, many(1<<20, cat(raw(i32, 0), zero)))),
		"nameless exports":         module(oneMemory, section(7, many(1<<20, export("", 2, 0)))),
		"a long name":              module(oneMemory, section(7, vec(export(string(make([]byte, 1<<20)), 2, 0)))),
		"a lying name":             module(custom("a"), section(0, huge, []byte("abc"))),
		"lying types":              module(section(1, vec(cat(raw(0x60), huge, huge)))),
		"lying bodies":             module(oneType, oneFunc, section(10, vec(cat(huge, noLocals, end)))),
		"lying locals":             module(oneType, oneFunc, section(10, vec(body(huge, raw(1, i32))))),
		"lying data":               module(oneMemory, section(12, huge), section(11, huge, raw(0))),
		"lying elements":           module(oneTable, section(9, vec(cat(raw(1, 0), huge)))),
	}
	for id := range byte(13) {
		cases["lying count in the "+sectionName(id)] = module(section(id, huge, raw(0, 0, 0, 0)))
	}
	for name, wasm := range cases {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Read(wasm, open)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(perByte*len(wasm)+fixed); got > most {
			t.Errorf("%s: %d bytes allocated for %d, at most %d", name, got, len(wasm), most)
		}
		runtime.KeepAlive(m)
		runtime.KeepAlive(err)
	}
}

// holds checks what is true of every input: Read does not panic, gives either a
// module or typed errors of declared rules, and a module's positions lie inside
// it.
func holds(t *testing.T, wasm []byte) {
	t.Helper()
	m, err := Read(wasm, Limits{})
	if err != nil {
		found := Violations(err)
		if m != nil || len(found) == 0 || len(found) > maxFindings {
			t.Fatalf("% x: module %v with %d violations: %v", wasm, m, len(found), err)
		}
		for _, v := range found {
			if v.Rule == "" || v.Item == "" || v.Msg == "" || v.Offset < 0 || v.Offset > len(wasm) {
				t.Fatalf("% x: incomplete violation %+v", wasm, v)
			}
		}
		return
	}
	if m.Size != len(wasm) || len(m.Memories) > 1 {
		t.Fatalf("% x: size %d, %d memories", wasm, m.Size, len(m.Memories))
	}
	at := headerSize
	for i, f := range m.Functions {
		if f.Offset < at || f.Code < f.Offset || f.Code >= f.Offset+f.Size || f.Offset+f.Size > len(wasm) || f.Type >= len(m.Types) || f.Locals < 0 {
			t.Fatalf("% x: function %d is %+v", wasm, i, f)
		}
		if wasm[f.Offset+f.Size-1] != opEnd {
			t.Fatalf("% x: function %d does not close", wasm, i)
		}
		at = f.Offset + f.Size
	}
	at = headerSize
	for i, c := range m.Customs {
		if c.Offset < at || c.Offset+len(c.Data) > len(wasm) || cap(c.Data) != len(c.Data) {
			t.Fatalf("% x: custom section %d is at %d", wasm, i, c.Offset)
		}
		at = c.Offset + len(c.Data)
	}
	spaces := map[Kind]int{KindFunction: m.functionCount(), KindTable: len(m.Tables), KindMemory: len(m.Memories), KindGlobal: len(m.Globals)}
	names := map[string]bool{}
	for i, e := range m.Exports {
		if names[e.Name] || e.Index >= spaces[e.Kind] || (e.Type != nil) != (e.Kind == KindFunction) {
			t.Fatalf("% x: export %d is %+v", wasm, i, e)
		}
		names[e.Name] = true
	}
	for i, imp := range m.Imports {
		if imp.Index >= spaces[imp.Kind] || (imp.Type != nil) != (imp.Kind == KindFunction) {
			t.Fatalf("% x: import %d is %+v", wasm, i, imp)
		}
	}
	// What the checks do with a module that passed is never a panic either.
	_ = m.CheckExport("handle", []ValType{I32}, nil)
	_ = m.CheckImports(offer)
	_ = m.CheckMemory(0)
	_ = m.CheckStart()
	_ = m.CheckCustom("first")
}
