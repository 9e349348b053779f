package admit

// types reads the type section.
func (r *reader) types(c *cursor) {
	n := c.countWithin("types", 3, uint64(r.lim.Types), RuleTypes)
	r.mod.Types = make([]FuncType, 0, n)
	for i := 0; i < n && c.ok(); i++ {
		c.at("type", i)
		offset := c.pos
		switch form := c.byte(); form {
		case 0x60:
			r.mod.Types = append(r.mod.Types, FuncType{
				Params:  valueTypes(c, "parameters", r.lim.Params, RuleParams),
				Results: valueTypes(c, "results", r.lim.Results, RuleResults),
			})
			t := &r.mod.Types[i]
			if r.typeValues += len(t.Params) + len(t.Results); c.ok() && r.typeValues > r.lim.TypeValues {
				c.fail(RuleTypeValues, offset, "signatures reach %d parameters and results with it, at most %d are allowed; pass more in memory, or raise the limit", r.typeValues, r.lim.TypeValues)
			}
		case 0x4e, 0x4f, 0x50, 0x5e, 0x5f:
			c.fail(RuleGC, offset, "struct, array and recursive types do not run here; build without the GC feature")
		case 0x5d:
			c.fail(RuleStackSwitching, offset, "continuation types do not run here; build without stack switching")
		case 0x65:
			c.fail(RuleThreads, offset, "shared types do not run here; build without threads")
		default:
			c.fail(RuleTypeForm, offset, "no type begins with 0x%02x; the file is damaged or uses an unknown feature", form)
		}
	}
}

func valueTypes(c *cursor, what string, limit int, rule string) []ValType {
	n := c.countWithin(what, 1, uint64(limit), rule)
	list := make([]ValType, 0, n)
	for i := 0; i < n && c.ok(); i++ {
		list = append(list, valueType(c))
	}
	return list
}

// valueType reads a value type, and names the feature that an unknown one
// belongs to.
func valueType(c *cursor) ValType {
	offset := c.pos
	b := c.byte()
	switch ValType(b) {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		return ValType(b)
	}
	switch b {
	case 0x63, 0x64:
		c.fail(RuleFunctionReferences, offset, "typed references do not run here; build without function references and GC")
	case 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73, 0x77, 0x78:
		c.fail(RuleGC, offset, "the type 0x%02x of the GC feature does not run here; build without it", b)
	case 0x69, 0x74:
		c.fail(RuleExceptions, offset, "exception references do not run here; build without exceptions")
	case 0x68, 0x75:
		c.fail(RuleStackSwitching, offset, "continuation references do not run here; build without stack switching")
	default:
		c.fail(RuleValueType, offset, "0x%02x is no value type; the file is damaged or uses an unknown feature", b)
	}
	return 0
}

func referenceType(c *cursor) ValType {
	offset := c.pos
	t := valueType(c)
	if c.ok() && t != FuncRef && t != ExternRef {
		c.fail(RuleValueType, offset, "%s is no reference type; the file is damaged or its encoder broken", t)
	}
	return t
}

// index reads an index into a space of count entries.
func index(c *cursor, what string, count int) int {
	offset := c.pos
	i := c.u32()
	if c.ok() && uint64(i) >= uint64(count) {
		c.fail(RuleIndex, offset, "there is no %s %d, only %d are defined; the file is damaged or its encoder broken", what, i, count)
		return 0
	}
	return int(i)
}

func (r *reader) functionIndex(c *cursor) int {
	return index(c, "function", r.mod.functionCount())
}

// imports reads the import section.
func (r *reader) imports(c *cursor) {
	n := c.countWithin("imports", 4, uint64(r.lim.Imports), RuleImports)
	r.mod.Imports = make([]Import, 0, n)
	for i := 0; i < n && c.ok(); i++ {
		c.at("import", i)
		module, _ := c.name(r.lim.NameBytes)
		name, _ := c.name(r.lim.NameBytes)
		c.item.name = module + "." + name
		imp := Import{Module: module, Name: name}
		offset := c.pos
		kind := c.byte()
		imp.Kind = Kind(kind)
		switch kind {
		case byte(KindFunction):
			imp.Index = r.mod.ImportedFunctions
			if t := index(c, "type", len(r.mod.Types)); c.ok() {
				imp.Type = &r.mod.Types[t]
			}
			r.mod.ImportedFunctions++
		case byte(KindTable):
			imp.Index = len(r.mod.Tables)
			r.table(c, true)
		case byte(KindMemory):
			imp.Index = len(r.mod.Memories)
			r.memory(c, true)
		case byte(KindGlobal):
			imp.Index = len(r.mod.Globals)
			r.mod.Globals = append(r.mod.Globals, globalType(c, true))
		case 4:
			c.fail(RuleExceptions, offset, "a tag: exception handling does not run here; build without exceptions")
		default:
			c.fail(RuleKind, offset, "0x%02x is no kind of import; the file is damaged or uses an unknown feature", kind)
		}
		r.mod.Imports = append(r.mod.Imports, imp)
	}
}

// functions reads the function section: the types of the bodies to come.
func (r *reader) functions(c *cursor) {
	n := c.countWithin("functions", 1, uint64(r.lim.Functions), RuleFunctions)
	r.mod.Functions = make([]Function, 0, n)
	for i := 0; i < n && c.ok(); i++ {
		c.at("function", r.mod.ImportedFunctions+i)
		t := index(c, "type", len(r.mod.Types))
		r.mod.Functions = append(r.mod.Functions, Function{Type: t})
	}
}

// The bits of the flags before the limits of a table or memory.
const (
	limitHasMax   = 1 << 0
	limitShared   = 1 << 1
	limit64       = 1 << 2
	limitPageSize = 1 << 3
	limitKnown    = limitHasMax | limitShared | limit64 | limitPageSize
)

// limits reads the size limits of a table or memory, neither of which may
// exceed most. Features are noted and read over, so that what follows is judged
// too.
func limits(c *cursor, most uint32) (low, high uint32, hasMax bool) {
	offset := c.pos
	flags := c.byte()
	if flags&^limitKnown != 0 {
		c.fail(RuleFlags, offset, "the flags 0x%02x of these size limits are not known; build without experimental features", flags)
		return 0, 0, false
	}
	read := func() uint64 { return uint64(c.u32()) }
	if flags&limitShared != 0 {
		c.note(RuleThreads, offset, "shared memory does not run here; build without threads and atomics")
	}
	if flags&limit64 != 0 {
		c.note(RuleMemory64, offset, "64-bit addresses do not run here; build for wasm32")
		read, most = c.u64, 1<<32-1
	}
	at := c.pos
	low64 := read()
	high64 := low64
	hasMax = flags&limitHasMax != 0
	if hasMax {
		high64 = read()
	}
	if flags&limitPageSize != 0 {
		c.note(RuleCustomPageSizes, offset, "only pages of 64 KiB run here; build without custom page sizes")
		c.u32()
		most = 1<<32 - 1
	}
	if c.ok() && flags&limit64 == 0 && (low64 > high64 || high64 > uint64(most)) {
		c.note(RuleRange, at, "a size from %d to %d: the first must not exceed the second, nor that %d; declare smaller limits", low64, high64, most)
	}
	if !hasMax {
		high64 = 0
	}
	return uint32(low64), uint32(high64), hasMax
}

// tables reads the table section.
func (r *reader) tables(c *cursor) {
	n := c.countWithin("tables", 3, uint64(r.lim.Tables), RuleTables)
	for i := 0; i < n && c.ok(); i++ {
		c.at("table", len(r.mod.Tables))
		r.table(c, false)
	}
}

func (r *reader) table(c *cursor, imported bool) {
	offset := c.pos
	if c.left() > 0 && c.buf[c.pos] == 0x40 {
		c.fail(RuleFunctionReferences, offset, "a table with an initial value does not run here; build without function references and GC")
		return
	}
	if len(r.mod.Tables) >= r.lim.Tables {
		c.fail(RuleTables, offset, "at most %d tables are allowed; use fewer or raise the limit", r.lim.Tables)
		return
	}
	t := TableType{Element: referenceType(c), Imported: imported}
	t.Min, t.Max, t.HasMax = limits(c, 1<<32-1)
	r.mod.Tables = append(r.mod.Tables, t)

	most := uint64(r.lim.TableElements)
	within := r.tableEntries <= most
	r.tableEntries += uint64(t.Min)
	if within && r.tableEntries > most {
		c.note(RuleTableElements, offset, "tables reach %d entries with it, at most %d are allowed; use fewer or raise the limit", r.tableEntries, most)
	}
}

// maxPages is the 32-bit address space in pages of 64 KiB.
const maxPages = 65536

// memories reads the memory section.
func (r *reader) memories(c *cursor) {
	n := c.count("memories", 2)
	for i := 0; i < n && c.ok(); i++ {
		c.at("memory", len(r.mod.Memories))
		r.memory(c, false)
	}
}

func (r *reader) memory(c *cursor, imported bool) {
	if len(r.mod.Memories) > 0 {
		c.fail(RuleMultiMemory, c.pos, "a second memory does not run here; use one")
		return
	}
	m := MemoryType{Imported: imported}
	m.Min, m.Max, m.HasMax = limits(c, maxPages)
	r.mod.Memories = append(r.mod.Memories, m)
}

// globals reads the global section.
func (r *reader) globals(c *cursor) {
	n := c.countWithin("globals", 5, uint64(r.lim.Globals), RuleGlobals)
	for i := 0; i < n && c.ok(); i++ {
		c.at("global", len(r.mod.Globals))
		g := globalType(c, false)
		r.constExpr(c, g.Type)
		r.mod.Globals = append(r.mod.Globals, g)
	}
}

func globalType(c *cursor, imported bool) GlobalType {
	g := GlobalType{Type: valueType(c), Imported: imported}
	offset := c.pos
	switch b := c.byte(); b {
	case 0:
	case 1:
		g.Mutable = true
	case 2, 3:
		c.note(RuleThreads, offset, "a shared global does not run here; build without threads")
	default:
		c.fail(RuleFlags, offset, "0x%02x is no mutability; the file is damaged or its encoder broken", b)
	}
	return g
}

// exports reads the export section.
func (r *reader) exports(c *cursor) {
	n := c.countWithin("exports", 3, uint64(r.lim.Exports), RuleExports)
	r.mod.Exports = make([]Export, 0, n)
	seen := make(map[string]struct{}, n)
	for i := 0; i < n && c.ok(); i++ {
		c.at("export", i)
		offset := c.pos
		name, ok := c.name(r.lim.NameBytes)
		c.item.name = name
		if _, twice := seen[name]; ok && twice {
			c.note(RuleDuplicateExport, offset, "the name is exported twice; export it once")
		}
		if ok {
			seen[name] = struct{}{}
		}
		exp := Export{Name: name}
		offset = c.pos
		kind := c.byte()
		exp.Kind = Kind(kind)
		switch kind {
		case byte(KindFunction):
			if exp.Index = r.functionIndex(c); c.ok() {
				r.declare(exp.Index)
				exp.Type = r.mod.functionType(exp.Index)
			}
		case byte(KindTable):
			exp.Index = index(c, "table", len(r.mod.Tables))
		case byte(KindMemory):
			exp.Index = index(c, "memory", len(r.mod.Memories))
		case byte(KindGlobal):
			exp.Index = index(c, "global", len(r.mod.Globals))
		case 4:
			c.note(RuleExceptions, offset, "a tag: exception handling does not run here; build without exceptions")
			c.u32()
		default:
			c.fail(RuleKind, offset, "0x%02x is no kind of export; the file is damaged or uses an unknown feature", kind)
		}
		r.mod.Exports = append(r.mod.Exports, exp)
	}
}
