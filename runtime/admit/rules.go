package admit

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The rules that a module can break. A rule's text is stable: it may be
// matched, logged and counted. New ones may be added.
const (
	// The binary format.
	RuleMagic           = "wasm/magic"
	RuleVersion         = "wasm/version"
	RuleComponent       = "wasm/component"
	RuleTruncated       = "wasm/truncated"
	RuleLEB128          = "wasm/leb128"
	RuleSectionID       = "wasm/section-id"
	RuleSectionOrder    = "wasm/section-order"
	RuleSectionSize     = "wasm/section-size"
	RuleCount           = "wasm/count"
	RuleUTF8            = "wasm/utf8"
	RuleTypeForm        = "wasm/type-form"
	RuleValueType       = "wasm/value-type"
	RuleKind            = "wasm/kind"
	RuleFlags           = "wasm/flags"
	RuleRange           = "wasm/limits-range"
	RuleIndex           = "wasm/index"
	RuleConstExpr       = "wasm/const-expr"
	RuleDuplicateExport = "wasm/duplicate-export"
	RuleCodeCount       = "wasm/code-count"
	RuleDataCount       = "wasm/data-count"
	RuleBody            = "wasm/function-body"
	RuleStartType       = "wasm/start-type"
	RuleOpcode          = "wasm/opcode"
	RuleOperandType     = "wasm/operand-type"
	RuleControl         = "wasm/control"
	RuleAlignment       = "wasm/alignment"
	RuleLane            = "wasm/lane"
	RuleImmutable       = "wasm/immutable-global"
	RuleUndeclared      = "wasm/undeclared-reference"

	// Features that the engines do not run.
	RuleThreads            = "feature/threads"
	RuleMemory64           = "feature/memory64"
	RuleMultiMemory        = "feature/multi-memory"
	RuleCustomPageSizes    = "feature/custom-page-sizes"
	RuleGC                 = "feature/gc"
	RuleFunctionReferences = "feature/function-references"
	RuleExceptions         = "feature/exceptions"
	RuleStackSwitching     = "feature/stack-switching"
	RuleExtendedConst      = "feature/extended-const"
	RuleTailCalls          = "feature/tail-calls"
	RuleRelaxedSIMD        = "feature/relaxed-simd"
	RuleWideArithmetic     = "feature/wide-arithmetic"

	// Limits, one for each field of Limits.
	RuleModuleBytes     = "limit/module-bytes"
	RuleTypes           = "limit/types"
	RuleParams          = "limit/params"
	RuleResults         = "limit/results"
	RuleTypeValues      = "limit/type-values"
	RuleImports         = "limit/imports"
	RuleFunctions       = "limit/functions"
	RuleTables          = "limit/tables"
	RuleTableElements   = "limit/table-elements"
	RuleGlobals         = "limit/globals"
	RuleExports         = "limit/exports"
	RuleElementSegments = "limit/element-segments"
	RuleElements        = "limit/elements"
	RuleDataSegments    = "limit/data-segments"
	RuleLocals          = "limit/locals"
	RuleAllLocals       = "limit/all-locals"
	RuleFunctionBytes   = "limit/function-bytes"
	RuleNameBytes       = "limit/name-bytes"
	RuleCustomSections  = "limit/custom-sections"
	RuleCustomBytes     = "limit/custom-bytes"
	RuleCodeBytes       = "limit/code-bytes"
	RuleNesting         = "limit/nesting"
	RuleOperands        = "limit/operands"
	RuleBranches        = "limit/branches"
	RuleBranchTargets   = "limit/branch-targets"
	RuleAllTargets      = "limit/all-branch-targets"
	RuleEffort          = "limit/effort"
	RuleAllEffort       = "limit/all-effort"
	RuleRewrittenBytes  = "limit/rewritten-bytes"

	// What a host asks for: the Check methods.
	RuleExportMissing   = "export/missing"
	RuleExportKind      = "export/kind"
	RuleExportSignature = "export/signature"
	RuleExportReserved  = "export/reserved"
	RuleImportKind      = "import/kind"
	RuleImportOffer     = "import/not-offered"
	RuleImportSignature = "import/signature"
	RuleMemoryMissing   = "memory/missing"
	RuleMemoryImported  = "memory/imported"
	RuleMemoryExport    = "memory/export"
	RuleMemoryPages     = "memory/pages"
	RuleStart           = "start/present"
	RuleCustomMissing   = "custom/missing"
	RuleCustomDuplicate = "custom/duplicate"
)

// Error says which rule a module breaks, where, and what to do about it.
type Error struct {
	Rule   string // one of the Rule constants
	Item   string // the offending item, such as: export 3 "memory"
	Offset int    // byte offset in the module, -1 where the rule has none
	Msg    string
	Err    error // the cause, where a caller's function gave one
}

// Error returns the rule, the item, the offset and the message in one line.
func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s: %s", e.Rule, e.Item, e.Msg)
	}
	return fmt.Sprintf("%s: %s at byte 0x%x: %s", e.Rule, e.Item, e.Offset, e.Msg)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// violation is for rules about the module as a whole.
func violation(rule, item, format string, args ...any) error {
	return &Error{Rule: rule, Item: item, Offset: -1, Msg: fmt.Sprintf(format, args...)}
}

// join gives a single violation as what it is.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// Violations lists every *Error inside err, in the order in which they were
// found: Read and the Check methods join several into one error.
func Violations(err error) []*Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, one := range e.Unwrap() {
			all = append(all, Violations(one)...)
		}
		return all
	}
	return Violations(errors.Unwrap(err))
}

// maxFindings bounds the report on a hostile module. Reading stops there.
const maxFindings = 16

// findings collects violations. After a violation that leaves the rest of the
// module without meaning, or after too many, it is halted.
type findings struct {
	errs   []error
	most   int // 0: maxFindings
	halted bool
}

func (f *findings) add(e *Error) {
	if f.halted {
		return
	}
	f.errs = append(f.errs, e)
	most := f.most
	if most == 0 {
		most = maxFindings
	}
	f.halted = len(f.errs) >= most
}

// first returns the violation that was found first, nil where there is none.
func (f *findings) first() *Error {
	if len(f.errs) == 0 {
		return nil
	}
	return f.errs[0].(*Error)
}

func (f *findings) err() error { return join(f.errs) }

// quote makes a name of an untrusted module fit for a log line: escaped, and
// cut at 64 bytes.
func quote(name string) string {
	const most = 64
	if len(name) <= most {
		return strconv.Quote(name)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return strconv.Quote(name[:cut]) + "..."
}
