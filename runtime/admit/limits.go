package admit

// Limits bound what Read accepts. A field that is zero or negative has its
// default, so the zero value is a usable set. Every limit is inclusive.
//
// How many pages of memory a guest may have is not among them: that depends on
// the manifest inside the module and on the operator's grant, both of which are
// known only after reading. See Module.CheckMemory.
type Limits struct {
	ModuleBytes int // the whole module

	Types           int // entries of the type section
	Params          int // parameters of one signature
	Results         int // results of one signature
	Imports         int
	Functions       int // own functions, imports not included
	Tables          int // imported and own
	TableElements   int // minimum sizes of all tables together
	Globals         int // own globals
	Exports         int
	ElementSegments int
	Elements        int // entries of all element segments together
	DataSegments    int
	Locals          int // declared locals of one function
	FunctionBytes   int // one function body
	NameBytes       int // one name of an import, export or custom section
	CustomSections  int
	CustomBytes     int // all custom sections together

	// Validate applies these, the others are Read's.
	CodeBytes        int // all function bodies together
	Nesting          int // blocks open at once in one function
	Operands         int // values on the operand stack of one function
	BranchTargets    int // entries of the br_tables of one function
	AllBranchTargets int // entries of the br_tables of all functions
	LocalsByBlocks   int // parameters and locals of a function x its blocks
}

// WithDefaults returns the limits with every unset field filled in. The
// defaults leave room for every stock toolchain. The largest guest that was
// measured, a Go program that links net/http, has 5.5 MB, 3,149 functions (46 KB
// and 20 locals at most), 7,245 table entries and 55,102 data segments.
func (l Limits) WithDefaults() Limits {
	// Three times such a Go guest. A compiler's work and memory grow with it.
	set(&l.ModuleBytes, 16<<20)
	// Each costs the reader, and later the engine, a multiple of its bytes.
	set(&l.Types, 8192)
	// Compilers pass more than this in memory. Each is a slot of 16 bytes
	// in the depth that a call weighs.
	set(&l.Params, 128)
	set(&l.Results, 128)
	// A host offers some dozens of functions; Go's 20 import some twice.
	set(&l.Imports, 1024)
	set(&l.Functions, 32768)
	// Stock tools emit one.
	set(&l.Tables, 16)
	// Tables lie outside the memory limit and engines pay 8 bytes an entry
	// for each instance: 256 KiB.
	set(&l.TableElements, 32768)
	set(&l.Globals, 4096)
	set(&l.Exports, 4096)
	set(&l.ElementSegments, 8192)
	// Long segments are a known way to keep a compiler busy.
	set(&l.Elements, 65536)
	// Go's linker cuts its data at runs of zeros, so it needs many.
	set(&l.DataSegments, 262144)
	// One frame then takes at most half of a call depth of 256 KiB.
	set(&l.Locals, 8192)
	// Ten times the longest function of the Go guest. Compilers are worse
	// than linear in it.
	set(&l.FunctionBytes, 512<<10)
	// Mangled names fit; a log line still holds one.
	set(&l.NameBytes, 1024)
	set(&l.CustomSections, 1024)
	// Symbols of a Go guest take 110 KB to 1 MB, debug information of a
	// small C or Rust guest up to 3 MB. No engine needs any of it.
	set(&l.CustomBytes, 4<<20)
	set(&l.CodeBytes, 8<<20)
	set(&l.Nesting, 2048)
	set(&l.Operands, 4096)
	set(&l.BranchTargets, 16384)
	set(&l.AllBranchTargets, 1<<18)
	set(&l.LocalsByBlocks, 1<<18)
	return l
}

func set(field *int, value int) {
	if *field <= 0 {
		*field = value
	}
}
