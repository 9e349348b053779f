package hint

import (
	"math"

	"github.com/kvrt/kvrt/abi"
)

// fault is what is wrong with one action. The text is made when somebody asks.
type fault struct {
	reason abi.Reason
	field  field
	rule   rule
	got    got
}

// field is a field of an action, in the order in which faults take precedence.
type field uint8

const (
	fieldAction field = iota
	fieldID
	fieldType
	fieldVersion
	fieldPayload
)

func (f field) String() string {
	return [...]string{"the action", "action_id", "action_type", "action_version", "payload"}[f]
}

type rule uint8

const (
	ruleMapping rule = iota
	ruleText         // a string or a number
	ruleString
	ruleMissing
	ruleEmpty
	ruleFinite
	ruleFormat // the frame's encoding cannot hold it
	ruleDepth
	ruleCount
)

// got is what was found in place of what a rule wants.
type got uint8

const (
	gotAbsent got = iota
	gotText
	gotNull
	gotBool
	gotNumber
	gotBytes
	gotList
	gotMap
	gotExt
)

func gotOf(t abi.Tag) got {
	switch t {
	case abi.TagAbsent:
		return gotAbsent
	case abi.TagNull:
		return gotNull
	case abi.TagBool:
		return gotBool
	case abi.TagU64, abi.TagI64, abi.TagF64, abi.TagNumber:
		return gotNumber
	case abi.TagString:
		return gotText
	case abi.TagBytes:
		return gotBytes
	case abi.TagArray, abi.TagU64s:
		return gotList
	case abi.TagMap:
		return gotMap
	}
	return gotExt
}

func (g got) String() string {
	return [...]string{"nothing", "a string", "null", "a bool", "a number", "bytes", "a list", "a mapping", "an extension"}[g]
}

// set keeps the fault of the first field, whatever order the sender wrote them in.
func (f *fault) set(reason abi.Reason, fd field, r rule, g got) {
	if f.reason == abi.ReasonNone || fd < f.field {
		*f = fault{reason, fd, r, g}
	}
}

// msgSurplus is one text for all: there may be thousands of such actions.
const msgSurplus = "more actions in one envelope than are allowed"

// Sound tells whether action i of the envelope has no fault.
func (f *Frame) Sound(i int) bool {
	return i < len(f.acts) && f.acts[i].fault.reason == abi.ReasonNone
}

// Fault says why the action cannot be handled, whatever its handler: ReasonNone and ""
// when it can.
func (a ActionView) Fault() (abi.Reason, string) {
	if a.Base == nil {
		return abi.ReasonLimitExceeded, msgSurplus
	}
	f := &a.f.acts[a.i].fault
	if f.reason == abi.ReasonNone {
		return abi.ReasonNone, ""
	}
	return f.reason, f.detail(a)
}

func (f *fault) detail(a ActionView) string {
	switch f.rule {
	case ruleMapping:
		return f.field.String() + " must be a mapping, not " + f.got.String()
	case ruleText:
		return f.field.String() + " must be a string or a number, not " + f.got.String()
	case ruleString:
		return f.field.String() + " must be a string, not " + f.got.String()
	case ruleMissing:
		return f.field.String() + " is missing"
	case ruleEmpty:
		return f.field.String() + " is empty"
	case ruleFinite:
		return pathTo(a.Base, a.Payload, notFinite) + ": " + msgNotFinite
	case ruleFormat:
		return unwritable(a.f.format, a.Base, a.Payload)
	}
	return f.field.String() + " is " + msgDeep
}

const msgNotFinite = "NaN or infinite"

func notFinite(n abi.Node) bool {
	return n.Tag == abi.TagF64 && (math.IsNaN(n.F64()) || math.IsInf(n.F64(), 0))
}
