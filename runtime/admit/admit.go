package admit

import (
	"strings"
)

// Module describes a module that Read accepted. It is not changed after Read
// returns and may be shared; callers treat everything in it as read only.
type Module struct {
	Types   []FuncType
	Imports []Import
	Exports []Export
	// Functions are the module's own functions, in order. Function index i
	// of the module is Functions[i-ImportedFunctions].
	Functions         []Function
	ImportedFunctions int
	// Tables, Memories and Globals hold the imported ones first, so that a
	// position is an index of the module.
	Tables   []TableType
	Memories []MemoryType // at most one, imported or own
	Globals  []GlobalType
	// HasStart reports a start section: a function that an engine runs
	// during instantiation.
	HasStart bool
	Customs  []Custom

	DataSegments    int
	ElementSegments int
	Elements        int // entries of all element segments together

	Size   int // bytes of the module
	SHA256 [32]byte

	// What the validator needs of the rest of the module.
	segmentTypes []ValType // of the element segments
	declared     []bool    // functions that ref.func may name, by index
	hasDataCount bool
}

// Import is one entry of the import section. The same name may be imported
// more than once; Go's linker does it.
type Import struct {
	Module, Name string
	Kind         Kind
	Index        int       // within the index space of Kind
	Type         *FuncType // of a function, otherwise nil
}

// Export is one entry of the export section. Names are unique.
type Export struct {
	Name  string
	Kind  Kind
	Index int       // within the index space of Kind
	Type  *FuncType // of a function, otherwise nil
}

// Function is one function of the module's own. Offsets count from the start of
// the module.
type Function struct {
	Type   int // index into Module.Types
	Offset int // of the body: the first byte after its size
	Size   int // bytes of the body, local declarations included
	Code   int // offset of the first instruction
	Locals int // declared locals, parameters not included
}

// TableType is a table. Entries are counted, not bytes.
type TableType struct {
	Element  ValType
	Min, Max uint32 // Max is 0 where HasMax is false
	HasMax   bool
	Imported bool
}

// MemoryType is a memory. The unit is a page of 64 KiB.
type MemoryType struct {
	Min, Max uint32 // Max is 0 where HasMax is false
	HasMax   bool
	Imported bool
}

// GlobalType is a global.
type GlobalType struct {
	Type     ValType
	Mutable  bool
	Imported bool
}

// Custom is a custom section. Data shares the memory of the module that was
// given to Read.
type Custom struct {
	Name   string
	Offset int // of Data, from the start of the module
	Data   []byte
}

// Custom returns the content of the first custom section of that name. Names
// may repeat in the format; where two would be ambiguous, ask CheckCustom.
func (m *Module) Custom(name string) ([]byte, bool) {
	for i := range m.Customs {
		if m.Customs[i].Name == name {
			return m.Customs[i].Data, true
		}
	}
	return nil, false
}

// Export returns the export of that name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// functionType returns the type of a function of the module, by its index.
func (m *Module) functionType(index int) *FuncType {
	if own := index - m.ImportedFunctions; own >= 0 {
		return &m.Types[m.Functions[own].Type]
	}
	for i := range m.Imports {
		if imp := &m.Imports[i]; imp.Kind == KindFunction && imp.Index == index {
			return imp.Type
		}
	}
	return nil
}

func (m *Module) functionCount() int { return m.ImportedFunctions + len(m.Functions) }

// ValType is a value type by its byte in the binary format.
type ValType byte

// The value types that the engines run.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
)

// String returns the type as the text format writes it.
func (t ValType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return "unknown"
}

// FuncType is a function's signature.
type FuncType struct {
	Params, Results []ValType
}

// Equal reports whether both have the same parameters and results.
func (t FuncType) Equal(u FuncType) bool {
	return equalTypes(t.Params, u.Params) && equalTypes(t.Results, u.Results)
}

// String returns the signature in the form (i32, i32) -> (i64).
func (t FuncType) String() string {
	var b strings.Builder
	for i, list := range [2][]ValType{t.Params, t.Results} {
		if i == 1 {
			b.WriteString(" -> ")
		}
		b.WriteByte('(')
		for k, v := range list {
			if k > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.String())
		}
		b.WriteByte(')')
	}
	return b.String()
}

func equalTypes(a, b []ValType) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Kind is what an import or export is, by its byte in the binary format.
type Kind byte

// The kinds that the engines run.
const (
	KindFunction Kind = 0
	KindTable    Kind = 1
	KindMemory   Kind = 2
	KindGlobal   Kind = 3
)

// String returns the kind as the text format writes it, spelled out.
func (k Kind) String() string {
	switch k {
	case KindFunction:
		return "function"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return "unknown"
}
