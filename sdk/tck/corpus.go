package tck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// input is one call of one role.
type input struct {
	name  string
	role  abi.Role
	frame []byte
	pos   uint32
	typ   string        // of the action
	plain bool          // of a type and version that the manifest names
	seed  *hint.Context // of a policy's case: its events come before the call
}

// Bounds of what is probed.
const (
	maxInputs = 96 // of all roles
	maxNames  = 8  // action types and dialects
)

// mixed is a payload with a value of every kind.
const mixed = `{"a":null,"b":true,"c":1,"d":-1,"e":1.5,"f":"text","g":[],"h":[1,18446744073709551615],"i":["x",{"y":[null]}],"j":{},"k":18446744073709551616,"l":"\u00e9\u0000"}`

// nested is an object that nests as deep as the ABI allows inside an action's payload.
var nested = strings.Repeat(`{"a":`, abi.MaxDepth-1) + `{}` + strings.Repeat(`}`, abi.MaxDepth-1)

// payloads are sent to every handler and parser.
func payloads() []struct{ name, text string } {
	integers := strings.Repeat("18446744073709551615,", 1023) + "0"
	return []struct{ name, text string }{
		{"an empty object", `{}`},
		{"every kind of value", mixed},
		{"the deepest nesting", nested},
		{"1,024 integers", `{"block_hashes":[` + integers + `]}`},
		{"a long text", `{"text":"` + strings.Repeat("0123456789abcdef", 128) + `"}`},
	}
}

// corpus is what the probes send: the same for every guest of the same manifest, and
// after that what its cases send.
func corpus(m *abi.Manifest, features abi.Feature, cases []namedCase) []input {
	var all []input
	if m.Has(abi.RoleHandler) {
		all = append(all, handlerInputs(m, features)...)
	}
	if m.Has(abi.RoleParser) {
		all = append(all, parserInputs(m)...)
	}
	if m.Has(abi.RolePolicy) {
		all = append(all, policyInputs()...)
	}
	all = all[:min(len(all), maxInputs)]
	var more []input
	for i := range cases {
		more = append(more, cases[i].inputs(m, features)...)
	}
	// Of too many, every so manieth.
	room := maxInputs - len(all)
	for i := range min(room, len(more)) {
		all = append(all, more[i*len(more)/min(room, len(more))])
	}
	return all
}

func handlerInputs(m *abi.Manifest, features abi.Feature) (all []input) {
	for _, t := range m.ActionTypes[:min(len(m.ActionTypes), maxNames)] {
		version := "1.0"
		if len(t.Versions) > 0 {
			version = t.Versions[0]
		}
		for _, p := range payloads() {
			all = append(all, plain(handle(m, features, t.Type+": "+p.name, actionText(t.Type, version, p.text)))...)
		}
		all = append(all, handle(m, features, t.Type+": no version", actionText(t.Type, "", `{}`))...)
		all = append(all, handle(m, features, t.Type+": version 999.0", actionText(t.Type, "999.0", `{}`))...)
		three := actionText(t.Type, version, `{}`) + "," + actionText(t.Type, version, mixed) + "," + actionText(t.Type, version, `{"x":[]}`)
		all = append(all, handle(m, features, t.Type+": three actions", three)...)
	}
	return all
}

func plain(all []input) []input {
	for i := range all {
		all[i].plain = true
	}
	return all
}

func actionText(actionType, version, payload string) string {
	if version != "" {
		version = fmt.Sprintf(`,"action_version":%q`, version)
	}
	return fmt.Sprintf(`{"action_id":"a1","action_type":%q%s,"payload":%s}`, actionType, version, payload)
}

// handle makes one input for each of the actions that the guest takes.
func handle(m *abi.Manifest, features abi.Feature, name, actions string) []input {
	return envelopeInputs(m, features, name, abi.FormatJSON, []byte(`{"protocol_version":"0.1","message_id":"m1","actions":[`+actions+`]}`))
}

func envelopeInputs(m *abi.Manifest, features abi.Feature, name string, format abi.Format, body []byte) (all []input) {
	var f hint.Frame
	if err := f.Decode(format, body, hint.Limits{}); err != nil {
		return nil
	}
	f.Finish(hint.Identity{RequestID: "r1", Engine: "test"})
	var taken []int32
	for i := range f.Len() {
		if reason, _ := Skips(m, f.Action(i)); reason == abi.ReasonNone {
			taken = append(taken, int32(i))
		}
	}
	frame := HandleFrame(&f, taken, features)
	for pos, i := range taken {
		in := input{name: name, role: abi.RoleHandler, frame: frame, pos: uint32(pos), typ: string(f.Action(int(i)).Type)}
		if len(taken) > 1 {
			in.name = fmt.Sprintf("%s, position %d", name, pos)
		}
		all = append(all, in)
	}
	return all
}

func parserInputs(m *abi.Manifest) (all []input) {
	parse := func(name string, format abi.Format, document, dialect string) {
		all = append(all, input{name: dialect + ": " + name, role: abi.RoleParser, frame: ParseFrame(format, []byte(document), "r1", dialect)})
	}
	for _, d := range m.Dialects[:min(len(m.Dialects), maxNames)] {
		for _, p := range payloads() {
			parse(p.name, abi.FormatJSON, p.text, d)
		}
		parse("a list", abi.FormatJSON, `[{},1]`, d)
		parse("no JSON", abi.FormatJSON, `{"a":`, d)
		parse("nothing", abi.FormatUnknown, ``, d)
		parse("an empty map in msgpack", abi.FormatMsgpack, "\x80", d)
		parse("no msgpack", abi.FormatMsgpack, "\xc1\xff\x00", d)
	}
	return all
}

func policyInputs() []input {
	worker := abi.Worker{ID: abi.Uint(7), Present: abi.WorkerHasDPRank | abi.WorkerHasCapabilities | abi.WorkerHasGPU, DPRank: 1, Type: "aggregated",
		SourceControlEndpoint: "tcp://127.0.0.1:1", Capabilities: []string{"kv.fetch", "kv.retain"}, GPU: 3}
	other := worker
	other.Name, other.GPU = "node-9", 12
	least := abi.Context{RequestID: "r1", Selected: &abi.Worker{ID: abi.Uint(7)}}
	most := abi.Context{
		Present:   abi.HasAttempt | abi.HasPromptTokens | abi.HasExpectedOutputTokens | abi.HasToolsDeclared | abi.HasBlockSize | abi.HasBlockHashes | abi.HasCandidates | abi.HasSessionFinal,
		RequestID: "r1", Attempt: 1, Leg: abi.LegPrefill, Model: "m", Group: "default", WorkerType: "aggregated", Tenant: "t1", Namespace: "n",
		PromptTokens: 4096, ExpectedOutputTokens: 512, ToolsDeclared: true, HashKind: abi.HashKindEngine, BlockSize: 16, BlockHashes: []uint64{1, 1<<64 - 1},
		Candidates: []abi.Worker{worker, other}, SessionID: "s1", ParentSessionID: "s0", InputTrigger: abi.TriggerToolResult, Selected: &worker,
	}
	empty := most
	empty.BlockHashes, empty.Candidates, empty.SessionFinal = nil, nil, true
	var all []input
	for _, x := range []struct {
		name    string
		context abi.Context
	}{{"the smallest context", least}, {"a full context", most}, {"a context with empty lists", empty}} {
		all = append(all, input{name: x.name, role: abi.RolePolicy, frame: abi.FinishContext(abi.BeginContext(nil, &x.context), abi.Node{}, abi.Node{})})
	}
	return all
}

// namedCase is a case with the file that it comes from.
type namedCase struct {
	file string
	Case
}

func (c *namedCase) name() string { return c.file + ": " + c.Name }

// inputs are the calls of a case that takes the parameters that are loaded anyway.
func (c *namedCase) inputs(m *abi.Manifest, features abi.Feature) []input {
	if c.Params != nil && string(c.Params) != "null" {
		return nil
	}
	for _, format := range []abi.Format{abi.FormatJSON, abi.FormatMsgpack} {
		body, ok, err := c.body(m, format)
		switch {
		case err != nil || !ok:
			continue
		case c.Context != nil:
			var x hint.Context
			if x.Decode(format, body, hint.ContextOptions{}) != nil {
				return nil
			}
			return []input{{name: c.name(), role: abi.RolePolicy, frame: x.Bytes(), seed: &x}}
		case !c.parses():
			return envelopeInputs(m, features, c.name(), format, body)
		}
		id := ""
		if c.RequestID != nil {
			id = *c.RequestID
		}
		return []input{{name: c.name(), role: abi.RoleParser, frame: ParseFrame(format, body, id, m.Dialects[0])}}
	}
	return nil
}

// rolesOf lists the roles of a manifest in the order in which they are probed.
func rolesOf(m *abi.Manifest) []abi.Role {
	return slices.DeleteFunc([]abi.Role{abi.RoleHandler, abi.RoleParser, abi.RolePolicy}, func(r abi.Role) bool { return !m.Has(r) })
}
