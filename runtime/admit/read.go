package admit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
)

// The sections by their id in the binary format.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
)

// headerSize is the magic number and the version, in bytes.
const headerSize = 8

// Read reads a core module. The Module keeps no reference to wasm but for the
// content of its custom sections.
//
// An error is an *Error, or several joined: violations that do not hide each
// other are reported together, at most 16. Violations lists them.
func Read(wasm []byte, lim Limits) (*Module, error) {
	lim = lim.WithDefaults()
	c := cursor{buf: wasm, end: len(wasm), found: &findings{}}
	r := reader{lim: lim, mod: &Module{Size: len(wasm)}}

	c.at("module", -1)
	if len(wasm) > lim.ModuleBytes {
		c.fail(RuleModuleBytes, 0, "%d bytes, at most %d are allowed; strip debug information and unused code, or raise the limit", len(wasm), lim.ModuleBytes)
	} else {
		header(&c)
	}
	for c.ok() && c.left() > 0 {
		r.section(&c)
	}
	r.finish(&c)
	if err := c.found.err(); err != nil {
		return nil, err
	}
	r.mod.SHA256 = sha256.Sum256(wasm)
	return r.mod, nil
}

// header reads the magic number and the version. Components share the first
// and say in the upper half of the second, the layer, what they are.
func header(c *cursor) {
	magic := []byte("\x00asm")
	if !bytes.HasPrefix(c.buf, magic) {
		if text := bytes.TrimLeft(c.buf[:min(len(c.buf), 4096)], " \t\r\n"); bytes.HasPrefix(text, []byte("(")) || bytes.HasPrefix(text, []byte(";;")) {
			c.fail(RuleMagic, 0, "this looks like WebAssembly text; assemble it to the binary format first, for example with wat2wasm")
			return
		}
		c.fail(RuleMagic, 0, "not a WebAssembly binary, which begins with the bytes 00 61 73 6d; give the .wasm file")
		return
	}
	c.pos = len(magic)
	field := c.take(4)
	if field == nil {
		return
	}
	version, layer := binary.LittleEndian.Uint16(field), binary.LittleEndian.Uint16(field[2:])
	switch {
	case layer == 1:
		c.fail(RuleComponent, len(magic), "this is a component, and only core modules run here; build for wasm32-wasip1 or wasm32-unknown-unknown instead of wasip2, and leave out wasm-tools component new and its like")
	case version != 1 || layer != 0:
		c.fail(RuleVersion, len(magic), "version %d of layer %d, and only version 1 of core modules is known; build with a toolchain that emits it", version, layer)
	}
}

// reader holds what one section leaves for the next.
type reader struct {
	lim Limits
	mod *Module

	last         int   // rank of the latest section that was not custom
	bodies       int   // entries of the code section
	dataCount    int64 // segments that the data count section announces
	tableEntries uint64
	customBytes  int
	allLocals    uint64
	typeValues   int
}

// rank gives the position of a section in the order that the format demands, 0
// for an unknown one. The order is not that of the ids.
func rank(id byte) int {
	switch id {
	case sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory:
		return int(id)
	case sectionTag:
		return 6
	case sectionGlobal, sectionExport, sectionStart, sectionElement:
		return int(id) + 1
	case sectionDataCount:
		return 11
	case sectionCode, sectionData:
		return int(id) + 2
	}
	return 0
}

func sectionName(id byte) string {
	switch id {
	case sectionCustom:
		return "custom section"
	case sectionType:
		return "type section"
	case sectionImport:
		return "import section"
	case sectionFunction:
		return "function section"
	case sectionTable:
		return "table section"
	case sectionMemory:
		return "memory section"
	case sectionGlobal:
		return "global section"
	case sectionExport:
		return "export section"
	case sectionStart:
		return "start section"
	case sectionElement:
		return "element section"
	case sectionCode:
		return "code section"
	case sectionData:
		return "data section"
	case sectionDataCount:
		return "data count section"
	case sectionTag:
		return "tag section"
	}
	return "section with id " + strconv.Itoa(int(id))
}

// section reads one section, and sees that its content ends where its size
// says.
func (r *reader) section(c *cursor) {
	offset := c.pos
	id := c.byte()
	c.at(sectionName(id), -1)
	size := c.u32()
	if !c.ok() {
		return
	}
	if uint64(size) > uint64(c.left()) {
		c.fail(RuleSectionSize, offset, "a size of %d bytes is declared, but only %d follow; the file is cut short or damaged", size, c.left())
		return
	}
	if id != sectionCustom {
		at := rank(id)
		switch {
		case at == 0:
			c.fail(RuleSectionID, offset, "no such section is known; build without experimental features")
			return
		case at == r.last:
			c.fail(RuleSectionOrder, offset, "it appears twice; build the module again, or fix the tool that edited it")
			return
		case at < r.last:
			c.fail(RuleSectionOrder, offset, "it is out of order; build the module again, or fix the tool that edited it")
			return
		}
		r.last = at
	}
	s := c.part(int(size))
	r.content(id, &s)
	if s.ok() && s.left() > 0 {
		s.at(sectionName(id), -1)
		s.fail(RuleSectionSize, s.pos, "%d bytes are left over at its end; the file is damaged or its encoder broken", s.left())
	}
}

func (r *reader) content(id byte, c *cursor) {
	switch id {
	case sectionCustom:
		r.custom(c)
	case sectionType:
		r.types(c)
	case sectionImport:
		r.imports(c)
	case sectionFunction:
		r.functions(c)
	case sectionTable:
		r.tables(c)
	case sectionMemory:
		r.memories(c)
	case sectionTag:
		c.note(RuleExceptions, c.pos, "exception handling does not run here; build without exceptions, for example with -fno-exceptions or panic=abort")
		c.pos = c.end
	case sectionGlobal:
		r.globals(c)
	case sectionExport:
		r.exports(c)
	case sectionStart:
		r.mod.HasStart = true
		offset := c.pos
		f := r.functionIndex(c)
		if !c.ok() {
			return
		}
		if t := r.mod.functionType(f); len(t.Params) > 0 || len(t.Results) > 0 {
			c.note(RuleStartType, offset, "the start function has the signature %s, and must have () -> (); the file is damaged or its encoder broken", t)
		}
	case sectionElement:
		r.elements(c)
	case sectionDataCount:
		r.mod.hasDataCount = true
		r.dataCount = int64(c.u32())
	case sectionCode:
		r.code(c)
	case sectionData:
		r.data(c)
	}
}

// finish checks what only the whole module shows.
func (r *reader) finish(c *cursor) {
	if !c.ok() {
		return
	}
	if r.bodies != len(r.mod.Functions) {
		c.at("code section", -1)
		c.note(RuleCodeCount, c.pos, "%d functions are declared, but %d bodies are there; the file is cut short or damaged", len(r.mod.Functions), r.bodies)
	}
	if r.mod.hasDataCount && r.dataCount != int64(r.mod.DataSegments) {
		c.at("data section", -1)
		c.note(RuleDataCount, c.pos, "%d segments are announced, but %d are there; the file is cut short or damaged", r.dataCount, r.mod.DataSegments)
	}
}

// custom reads a custom section. Its content is opaque.
func (r *reader) custom(c *cursor) {
	c.at("custom section", len(r.mod.Customs))
	offset, size := c.pos, c.left()
	if len(r.mod.Customs) >= r.lim.CustomSections {
		c.fail(RuleCustomSections, offset, "at most %d are allowed; strip the module or raise the limit", r.lim.CustomSections)
		return
	}
	name, ok := c.name(r.lim.NameBytes)
	c.item.name = name
	within := r.customBytes <= r.lim.CustomBytes
	r.customBytes += size
	if within && r.customBytes > r.lim.CustomBytes {
		c.note(RuleCustomBytes, offset, "custom sections reach %d bytes with it, at most %d are allowed; strip debug information or raise the limit", r.customBytes, r.lim.CustomBytes)
	}
	if ok {
		at := c.pos
		r.mod.Customs = append(r.mod.Customs, Custom{Name: name, Offset: at, Data: c.take(uint32(c.left()))})
	}
	c.pos = c.end
}
