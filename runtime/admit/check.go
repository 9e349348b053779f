package admit

import "strings"

// DefaultMemoryPages is the memory that a guest gets where neither its manifest
// nor the operator says otherwise: 1 MiB. Pointer chasing in a larger memory
// costs up to twelve times as much an instruction, so fuel bounds time less
// well there.
const DefaultMemoryPages = 16

// CheckExport checks that the module exports a function of that name and exactly
// that signature.
func (m *Module) CheckExport(name string, params, results []ValType) error {
	want := FuncType{Params: params, Results: results}
	exp, ok := m.Export(name)
	switch {
	case !ok:
		return violation(RuleExportMissing, "export "+quote(name), "a function %s of this name must be exported; %s", want, m.exportedFunctions())
	case exp.Kind != KindFunction:
		return violation(RuleExportKind, "export "+quote(name), "it is a %s and must be a function %s", exp.Kind, want)
	case !exp.Type.Equal(want):
		return violation(RuleExportSignature, "export "+quote(name), "its signature is %s and must be %s", exp.Type, want)
	}
	return nil
}

// exportedFunctions tells an author who misspelt a name what is there.
func (m *Module) exportedFunctions() string {
	const most = 8
	var names []string
	for _, e := range m.Exports {
		if e.Kind != KindFunction {
			continue
		}
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, quote(e.Name))
	}
	if names == nil {
		return "the module exports no function, which often means that the linker dropped it"
	}
	return "the module exports the functions " + strings.Join(names, ", ")
}

// CheckImports checks every import against what a host offers. The function
// offered returns the signature behind a name, or an error that says why the
// guest may not have it; that error is the cause of the violation. A guest may
// import functions only.
func (m *Module) CheckImports(offered func(module, name string) (FuncType, error)) error {
	var errs []error
	for i := range m.Imports {
		imp := &m.Imports[i]
		item := "import " + quote(imp.Module+"."+imp.Name)
		if imp.Kind != KindFunction {
			errs = append(errs, violation(RuleImportKind, item, "it is a %s, and only functions can be imported; define it in the module", imp.Kind))
			continue
		}
		have, err := offered(imp.Module, imp.Name)
		if err != nil {
			errs = append(errs, &Error{Rule: RuleImportOffer, Item: item, Offset: -1, Msg: err.Error(), Err: err})
			continue
		}
		if !imp.Type.Equal(have) {
			errs = append(errs, violation(RuleImportSignature, item, "its signature is %s and must be %s", imp.Type, have))
		}
	}
	return join(errs)
}

// CheckMemory checks that the module has exactly one memory of its own, exported
// as "memory" as every toolchain does, and that it can start within limitPages
// (of 64 KiB; 0 means DefaultMemoryPages). A maximum that is missing or larger is
// no violation: stock toolchains leave it out, and the limit stands in for it.
func (m *Module) CheckMemory(limitPages uint32) error {
	const name = "memory"
	if limitPages == 0 {
		limitPages = DefaultMemoryPages
	}
	if len(m.Memories) == 0 {
		return violation(RuleMemoryMissing, "memory", `the module has none; define one and export it as "memory"`)
	}
	if m.Memories[0].Imported {
		return violation(RuleMemoryImported, "memory 0", "it is imported, and a guest must own its memory; link without --import-memory, and link object files into a module first")
	}
	var errs []error
	exp, ok := m.Export(name)
	switch {
	case !ok:
		errs = append(errs, violation(RuleMemoryExport, "export "+quote(name), "the memory must be exported under this name, so that the host can reach it"))
	case exp.Kind != KindMemory:
		errs = append(errs, violation(RuleMemoryExport, "export "+quote(name), "it is a %s and must be the memory", exp.Kind))
	}
	if least := m.Memories[0].Min; least > limitPages {
		errs = append(errs, m.memoryTooLarge(limitPages))
	}
	return join(errs)
}

func (m *Module) memoryTooLarge(limitPages uint32) error {
	return violation(RuleMemoryPages, "memory 0", "it starts with %d pages of 64 KiB, and at most %d are granted; ask for more in the manifest and have it granted, or shrink static data and stack", m.Memories[0].Min, limitPages)
}

// CheckStart refuses a start section. It would run guest code during
// instantiation, before any budget of a call holds.
func (m *Module) CheckStart() error {
	if m.HasStart {
		return violation(RuleStart, "start section", "code may not run at instantiation; export an init function instead, and link without a start function")
	}
	return nil
}

// CheckCustom checks that there is exactly one custom section of that name, so
// that no two readers can see different ones.
func (m *Module) CheckCustom(name string) error {
	n := 0
	for i := range m.Customs {
		if m.Customs[i].Name == name {
			n++
		}
	}
	switch n {
	case 0:
		return violation(RuleCustomMissing, "custom section "+quote(name), "the module has none; add it")
	case 1:
		return nil
	}
	return violation(RuleCustomDuplicate, "custom section "+quote(name), "the module has %d of them; keep one", n)
}
