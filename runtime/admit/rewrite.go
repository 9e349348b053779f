package admit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// The names under which a rewritten module exports its counters. A guest may
// export no name that begins with ReservedExports.
const (
	ReservedExports = "kvrt:"

	// ExportFuel is a mutable i64: instructions that may still be executed.
	// The host sets it before a call, to 0 or more and at most MaxFuel, and
	// reads it after. Below 0 the call ran out of fuel, whether it trapped or
	// came to its end in the overdraft: its results must not be used.
	ExportFuel = "kvrt:fuel"

	// ExportDepth is a mutable i32: bytes that calls may still take. A call
	// that returns leaves it as it was. After a trap, below 0 it says that
	// calls went too deep, else nothing; a host that goes on with the
	// instance sets it to Rewritten.Depth.
	ExportDepth = "kvrt:depth"
)

// MaxFuel is the most fuel that a host may set.
const MaxFuel = 1 << 62

// Options say what Rewrite does. The zero value is safe: no fuel, 1 MiB of
// memory, and everything that could tell engines apart is removed.
type Options struct {
	Limits Limits

	// Fuel is the fuel that an instance begins with. It is 0 where the host
	// fuels each call, since there should be no start function.
	Fuel int64
	// Depth is what calls may take, in bytes. 0 means DefaultDepth.
	Depth int32
	// MemoryPages caps the memory that the module defines, in pages of
	// 64 KiB. 0 means DefaultMemoryPages.
	MemoryPages uint32
	// TableElements caps the entries of the tables that the module defines,
	// all together. 0 means Limits.TableElements.
	TableElements uint32

	// KeepNaNs leaves the bits of NaNs to the engine. Then two engines may
	// give different results.
	KeepNaNs bool
	// DropCustoms leaves out every custom section but name and producers.
	// Those that locate code by its offset (debug information, relocations)
	// are left out in any case, since it moves.
	DropCustoms bool
}

// Rewritten describes a module that Rewrite made.
type Rewritten struct {
	CostModel string   // always CostModel
	Source    *Module  // the module as it was
	Size      int      // bytes of the new module
	SHA256    [32]byte // of the new module

	Depth       int32  // bytes that calls may take: the initial ExportDepth
	MemoryPages uint32 // maximum of the memory, 0 where there is none
	Heaviest    int    // most that one call weighs in depth, in bytes
	// NaNs counts the instructions whose result is made canonical.
	NaNs int
}

// Rewrite reads and validates a module, and gives one that behaves the same but
// counts what it executes and how deep its calls go, and stops where either
// counter runs out. See the package documentation for what is guaranteed.
//
// The same input and options give the same bytes. An error is like one of Read.
func Rewrite(wasm []byte, opts Options) ([]byte, *Rewritten, error) {
	opts.Limits = opts.Limits.WithDefaults()
	m, err := Read(wasm, opts.Limits)
	if err != nil {
		return nil, nil, err
	}
	r := rewriter{opts: opts, mod: m, info: &Rewritten{CostModel: CostModel, Source: m}}
	if err := r.grants(); err != nil {
		return nil, nil, err
	}
	out, err := r.module(wasm)
	if err != nil {
		return nil, nil, err
	}
	r.info.Size, r.info.SHA256 = len(out), sha256.Sum256(out)
	return out, r.info, nil
}

type rewriter struct {
	opts    Options
	mod     *Module
	info    *Rewritten
	tables  []uint64 // maxima, imported ones included
	pages   uint64
	types   []FuncType     // that are added
	typeIDs map[string]int // of those, by their results
}

// grants settles how large memory and tables may become.
func (r *rewriter) grants() error {
	m, o := r.mod, &r.opts
	if o.Depth <= 0 {
		o.Depth = DefaultDepth
	}
	if o.MemoryPages == 0 {
		o.MemoryPages = DefaultMemoryPages
	}
	o.MemoryPages = min(o.MemoryPages, maxPages)
	if o.TableElements == 0 {
		o.TableElements = uint32(o.Limits.TableElements)
	}
	o.Fuel = min(max(o.Fuel, 0), MaxFuel)
	r.info.Depth = o.Depth

	var errs []error
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, ReservedExports) {
			errs = append(errs, violation(RuleExportReserved, "export "+quote(e.Name), "names that begin with %s belong to the host; rename it", quote(ReservedExports)))
		}
	}
	if len(m.Memories) > 0 {
		mem := m.Memories[0]
		r.pages = maxPages
		if mem.HasMax {
			r.pages = uint64(mem.Max)
		}
		if !mem.Imported {
			if mem.Min > o.MemoryPages {
				errs = append(errs, m.memoryTooLarge(o.MemoryPages))
			}
			r.pages = min(r.pages, uint64(o.MemoryPages))
		}
		r.info.MemoryPages = uint32(r.pages)
	}

	// What the tables do not take at first is shared out evenly.
	var least, own uint64
	for _, t := range m.Tables {
		if !t.Imported {
			least += uint64(t.Min)
			own++
		}
	}
	if least > uint64(o.TableElements) {
		errs = append(errs, violation(RuleTableElements, "tables", "they begin with %d entries, at most %d are allowed; use fewer or raise the limit", least, o.TableElements))
	}
	for _, t := range m.Tables {
		most := uint64(1<<32 - 1)
		if t.HasMax {
			most = uint64(t.Max)
		}
		if !t.Imported && least <= uint64(o.TableElements) {
			most = min(most, uint64(t.Min)+(uint64(o.TableElements)-least)/own)
		}
		r.tables = append(r.tables, most)
	}
	return join(errs)
}

// span is a section of the module: its content, with the bytes of the header
// before it.
type span struct {
	id                 byte
	start, content, to int
}

// spans lists the sections of a module that Read accepted.
func spans(wasm []byte) []span {
	var list []span
	for pos := headerSize; pos < len(wasm); {
		size, n := binary.Uvarint(wasm[pos+1:])
		s := span{id: wasm[pos], start: pos, content: pos + 1 + n}
		s.to = s.content + int(size)
		list = append(list, s)
		pos = s.to
	}
	return list
}

// module writes the new module.
func (r *rewriter) module(wasm []byte) ([]byte, error) {
	// The code comes first, since it may need further types.
	code, err := r.code(wasm)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(wasm)+len(code)+1024)
	out = append(out, wasm[:headerSize]...)
	missing := []byte{sectionGlobal, sectionExport}
	due := func(id byte) { // writes what must come before such a section
		for len(missing) > 0 && rank(missing[0]) < rank(id) {
			out = appendSection(out, missing[0], r.extend(missing[0], []byte{0}))
			missing = missing[1:]
		}
	}
	customs := 0
	for _, s := range spans(wasm) {
		content := wasm[s.content:s.to]
		if s.id == sectionCustom {
			name := r.mod.Customs[customs].Name
			customs++
			if r.keeps(name) {
				out = append(out, wasm[s.start:s.to]...)
			}
			continue
		}
		due(s.id)
		switch s.id {
		case sectionGlobal, sectionExport, sectionType:
			missing = slices.DeleteFunc(missing, func(id byte) bool { return id == s.id })
			out = appendSection(out, s.id, r.extend(s.id, content))
		case sectionTable:
			out = appendSection(out, s.id, r.tableSection())
		case sectionMemory:
			out = appendSection(out, s.id, r.memorySection())
		case sectionCode:
			out = appendSection(out, s.id, code)
		default:
			out = append(out, wasm[s.start:s.to]...)
		}
	}
	due(sectionData)
	return out, nil
}

func appendSection(out []byte, id byte, content []byte) []byte {
	out = binary.AppendUvarint(append(out, id), uint64(len(content)))
	return append(out, content...)
}

// keeps reports whether a custom section stays.
func (r *rewriter) keeps(name string) bool {
	if name == "name" || name == "producers" {
		return true
	}
	if r.opts.DropCustoms {
		return false
	}
	for _, prefix := range []string{".debug_", "reloc.", "metadata.code."} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return name != "linking" && name != "sourceMappingURL" && name != "external_debug_info"
}

// extend adds entries to a section that is a vector.
func (r *rewriter) extend(id byte, content []byte) []byte {
	count, n := binary.Uvarint(content)
	var added []byte
	counter := uint64(len(r.mod.Globals)) // index of the first one
	switch id {
	case sectionType:
		for _, t := range r.types {
			added = append(added, 0x60, 0)
			added = binary.AppendUvarint(added, uint64(len(t.Results)))
			for _, v := range t.Results {
				added = append(added, byte(v))
			}
		}
		count += uint64(len(r.types))
	case sectionGlobal:
		added = append(appendSigned(append(added, byte(I64), 1, opI64Const), r.opts.Fuel), opEnd)
		added = append(appendSigned(append(added, byte(I32), 1, opI32Const), int64(r.opts.Depth)), opEnd)
		count += 2
	case sectionExport:
		for i, name := range []string{ExportFuel, ExportDepth} {
			added = binary.AppendUvarint(added, uint64(len(name)))
			added = append(append(added, name...), byte(KindGlobal))
			added = binary.AppendUvarint(added, counter+uint64(i))
		}
		count += 2
	}
	out := binary.AppendUvarint(nil, count)
	return append(append(out, content[n:]...), added...)
}

func (r *rewriter) tableSection() []byte {
	var out []byte
	n := uint64(0)
	for i, t := range r.mod.Tables {
		if t.Imported {
			continue
		}
		n++
		out = append(out, byte(t.Element), limitHasMax)
		out = binary.AppendUvarint(out, uint64(t.Min))
		out = binary.AppendUvarint(out, r.tables[i])
	}
	return append(binary.AppendUvarint(nil, n), out...)
}

func (r *rewriter) memorySection() []byte {
	if len(r.mod.Memories) == 0 || r.mod.Memories[0].Imported {
		return []byte{0}
	}
	out := []byte{1, limitHasMax}
	out = binary.AppendUvarint(out, uint64(r.mod.Memories[0].Min))
	return binary.AppendUvarint(out, r.pages)
}

// code validates and writes the bodies.
func (r *rewriter) code(wasm []byte) ([]byte, error) {
	v := newValidator(r.mod, wasm, r.opts.Limits)
	v.plan = &plan{}
	counter := uint32(len(r.mod.Globals))
	e := emitter{
		wasm: wasm, plan: v.plan, fuelGlobal: counter, depthGlobal: counter + 1,
		pages: r.pages, entries: r.tables, typeOf: r.typeOf,
	}
	out := binary.AppendUvarint(nil, uint64(len(r.mod.Functions)))
	for i := range r.mod.Functions {
		v.function(i)
		if v.all.halted {
			break
		}
		if len(v.all.errs) > 0 {
			continue // only to report more of them
		}
		v.plan.settle()
		if r.opts.KeepNaNs {
			v.plan.keepNaNs()
		}
		f := &r.mod.Functions[i]
		e.out = e.out[:0]
		e.body(f, &r.mod.Types[f.Type], v.deepest)
		r.info.Heaviest = max(r.info.Heaviest, e.weight)
		r.info.NaNs += e.nans
		if most := r.opts.Limits.RewrittenBytes; len(out)+len(e.out) > most {
			v.at("function", r.mod.ImportedFunctions+i)
			return nil, &Error{Rule: RuleRewrittenBytes, Item: v.item.String(), Offset: f.Offset,
				Msg: fmt.Sprintf("function bodies that count reach %d bytes with it, at most %d are allowed; make the module smaller or raise the limit", len(out)+len(e.out), most)}
		}
		out = binary.AppendUvarint(out, uint64(len(e.out)))
		out = append(out, e.out...)
	}
	return out, v.all.err()
}

// typeOf gives the index of a type without parameters, which is added at
// the first use.
func (r *rewriter) typeOf(results []ValType) uint32 {
	key := make([]byte, len(results))
	for i, t := range results {
		key[i] = byte(t)
	}
	if r.typeIDs == nil {
		r.typeIDs = map[string]int{}
	}
	i, ok := r.typeIDs[string(key)]
	if !ok {
		i = len(r.mod.Types) + len(r.types)
		r.typeIDs[string(key)] = i
		r.types = append(r.types, FuncType{Results: results})
	}
	return uint32(i)
}
