package admit

import "math"

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
	TypeValues      int // parameters and results of all signatures together
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
	AllLocals       int // declared locals of all functions
	FunctionBytes   int // one function body
	NameBytes       int // one name of an import, export or custom section
	CustomSections  int
	CustomBytes     int // all custom sections together

	// Validate applies these, the others are Read's.
	CodeBytes        int // all function bodies together
	Nesting          int // blocks open at once in one function
	Operands         int // values on the operand stack of one function
	Branches         int // blocks, elses, branches and bulk instructions of one function
	BranchTargets    int // entries of the br_tables of one function
	AllBranchTargets int // entries of the br_tables of all functions
	Effort           int // of compiling one function, see below
	AllEffort        int // of compiling all functions

	RewrittenBytes int // function bodies after Rewrite, all together
}

// effort estimates what compiling a function takes. branches counts its blocks,
// elses, branches and bulk instructions, spread the same with each one weighed by
// one more than the loops around it, locals those of its parameters and locals
// that carry a value from one basic block to another, moves the values that its
// calls, blocks and branches pass on.
//
// The form is that of what wazero's compiler was measured to take, at worst 5 us
// for 1: it is linear in the moves, quadratic in the basic blocks, and where all of
// these locals are in use throughout, quadratic in them and linear in blocks and
// loops. 2,000 of them and 2,000 loops, a module of 41 KB that took it 68 s, are an
// effort of 16 million.
func effort(branches, spread, locals, moves int) int {
	b, s, l, m := uint64(branches), uint64(spread), uint64(locals+1), uint64(moves)
	return int(min((16*b*b+l*l*s+256*m)>>10, math.MaxInt32))
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
	// An engine makes code for each signature, as long as its values are many, even
	// where it takes all other code from a cache. Guests have some hundreds.
	set(&l.TypeValues, 64<<10)
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
	// Some bytes declare thousands, and engines keep a byte or more for each as
	// long as the module is loaded. The Go guest above has 37,000.
	set(&l.AllLocals, 1<<20)
	// Ten times the longest function of the Go guest. Compilers are worse
	// than linear in it.
	set(&l.FunctionBytes, 512<<10)
	// Mangled names fit; a log line still holds one.
	set(&l.NameBytes, 1024)
	set(&l.CustomSections, 1024)
	// Symbols of a Go guest take 110 KB to 1 MB; rustc leaves 5 MB of debug
	// information about its standard library. No engine needs any of it.
	set(&l.CustomBytes, 8<<20)
	// Twice that of the Go guest above.
	set(&l.CodeBytes, 12<<20)
	// Go nests up to 549 blocks, other compilers some dozens.
	set(&l.Nesting, 2048)
	// Compilers keep some dozens. One frame then takes a quarter of a call
	// depth of 256 KiB.
	set(&l.Operands, 4096)
	// Go's longest functions have 1,900 in 46 KB. Compilers are quadratic
	// in it: wazero's took 0.8 s for 4,096, 3.3 s for 8,192.
	set(&l.Branches, 4096)
	// Go has up to 1,032, and 199,604 in all functions. wazero's compiler
	// took 0.1 s for 8,192, 4.3 s for 100,000.
	set(&l.BranchTargets, 8192)
	set(&l.AllBranchTargets, 512<<10)
	// A Go program that links net/http, templates and regular expressions has 43,000
	// and 1.3 million. The worst of those shapes that were tried takes wazero's compiler
	// 2.3 s in a child that has a core to itself. See effort.
	set(&l.Effort, 320<<10)
	set(&l.AllEffort, 1536<<10)
	// Code of compilers grows by a fifth (Go) to two fifths (C, Rust). What
	// is nothing but memory.grow grows twenty times.
	set(&l.RewrittenBytes, 32<<20)
	return l
}

func set(field *int, value int) {
	if *field <= 0 {
		*field = value
	}
}
