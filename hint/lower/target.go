package lower

import (
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Engine is a kind of serving engine.
type Engine uint8

// The engines. EngineUnknown stands for what the request says.
const (
	EngineUnknown Engine = iota
	VLLM
	SGLang
	TRTLLM
)

var engineNames = [...]string{"", "vllm", "sglang", "trtllm"}

func (e Engine) String() string { return engineNames[e] }

// ParseEngine reads an engine's name.
func ParseEngine(name string) (Engine, error) {
	for e, n := range engineNames {
		if n != "" && n == strings.ToLower(name) {
			return Engine(e), nil
		}
	}
	return 0, fmt.Errorf("unknown engine %q; want vllm, sglang or trtllm", name)
}

// Form is how the answer is encoded.
type Form uint8

// The forms. FormSame is the encoding of the request.
const (
	FormSame Form = iota
	FormJSON
	FormMsgpack
	FormStruct // SGLang only: the bytes of its protobuf envelope, nothing without a hint
)

// Hints says whether an engine takes the envelope as an argument of its own.
type Hints uint8

const (
	HintsByVersion    Hints = iota // the version decides; without one, they are first class
	HintsFirstClass                // kv_hints
	HintsTransitional              // kv_hint inside kv_transfer_params
)

// Dialect is a way to write hints.
type Dialect uint8

const (
	// DialectEnvelope is the envelope.
	DialectEnvelope Dialect = iota

	// DialectRouterHint is the flat hint of before there were envelopes, for older
	// routers' workers: kv_transfer_params.router_hint with the payload's
	// source_control_endpoint, block_hashes, mode and no_retain. It holds one kv.fetch,
	// the first.
	DialectRouterHint

	// DialectLLMD is what llm-d's plugins write: the source of the first kv.fetch that
	// has one as the header x-kv-cache-source-host-port, and the directives of kv.retain
	// as retention_directives and retention_scope (at the top of an OpenAI body, in
	// extra_args of sampling_params). Directives that the request has already win.
	// Hashes are not part of it: the engine asks the source for what it misses. Nor is
	// the source's control port: llm-d's sidecar takes the host and its own port.
	DialectLLMD
)

// Target is whom a request is lowered for.
type Target struct {
	Engine  Engine
	Version string  // of the engine, as it declares it; "" is not told
	Leg     abi.Leg // LegAbsent: as the request says, else aggregated
	Hints   Hints   // vLLM only
	Dialect Dialect
	Form    Form

	// EnvelopeOnly gives the lowered envelope alone, without the request around it, and
	// nothing where there is none.
	EnvelopeOnly bool
}

// check refuses what cannot be combined, once the engine is known.
func (t *Target) check() error {
	switch {
	case t.Form == FormStruct && t.Engine != SGLang:
		return fmt.Errorf("the form struct is SGLang's; %s takes JSON or msgpack", t.Engine)
	case t.Dialect == DialectRouterHint && t.Engine != VLLM:
		return fmt.Errorf("the dialect router_hint was for vLLM; %s never took it", t.Engine)
	case t.Dialect == DialectLLMD && t.Engine != VLLM:
		return fmt.Errorf("llm-d's spellings are for vLLM, not for %s", t.Engine)
	case t.Dialect != DialectEnvelope && t.EnvelopeOnly:
		return fmt.Errorf("there is no envelope in this dialect")
	}
	if t.Version != "" {
		if _, err := parseVersion(t.Version); err != nil {
			return fmt.Errorf("version: %w", err)
		}
	}
	return nil
}

// transitional tells whether a vLLM gets the older form.
func (t *Target) transitional() bool {
	if t.Hints != HintsByVersion {
		return t.Hints == HintsTransitional
	}
	v, err := parseVersion(t.Version) // check has read it before
	return err == nil && v.compare(firstClass) < 0
}

// from fills in what the request says and the target does not.
func (t Target) from(top *object) (Target, error) {
	format := top.format
	if t.Leg == abi.LegAbsent {
		if raw := top.get(keyLeg); raw != nil {
			name, ok := stringOf(format, raw)
			if !ok {
				return t, wrong(keyLeg, "must be a string, not %s", kindOf(format, raw))
			}
			switch name {
			case "aggregated", "agg":
				t.Leg = abi.LegAggregated
			case "prefill":
				t.Leg = abi.LegPrefill
			case "decode":
				t.Leg = abi.LegDecode
			default:
				return t, wrong(keyLeg, "%q is none of aggregated, prefill and decode", name)
			}
		}
	}
	raw := top.get(keyEngine)
	if raw == nil {
		return t, t.known()
	}
	if name, ok := stringOf(format, raw); ok {
		return t.named(keyEngine, name)
	}
	var said object
	if kind := kindOf(format, raw); kind != "a mapping" {
		return t, wrong(keyEngine, "must be a string or a mapping, not %s", kind)
	}
	if err := said.read(format, raw); err != nil {
		return t, wrong(keyEngine, "%s", err.(*Error).Msg)
	}
	field := func(key string) (string, error) {
		raw := said.get(key)
		if raw == nil {
			return "", nil
		}
		s, ok := stringOf(format, raw)
		if !ok {
			return "", wrong(keyEngine+"."+key, "must be a string, not %s", kindOf(format, raw))
		}
		return s, nil
	}
	name, err := field("name")
	if err != nil {
		return t, err
	}
	ver, err := field("version")
	if err != nil {
		return t, err
	}
	told := t.Version != "" || t.Hints != HintsByVersion
	if t.Version == "" {
		t.Version = ver
	}
	if raw := said.get("kv_hints"); raw != nil && !told {
		if kindOf(format, raw) != "a bool" {
			return t, wrong(keyEngine+".kv_hints", "must be a bool, not %s", kindOf(format, raw))
		}
		t.Hints = HintsTransitional
		if raw[0] == 't' || raw[0] == 0xc3 {
			t.Hints = HintsFirstClass
		}
	}
	return t.named(keyEngine+".name", name)
}

// named takes the engine's name from the request, unless the target has one.
func (t Target) named(path, name string) (Target, error) {
	if t.Engine == EngineUnknown && name != "" {
		e, err := ParseEngine(name)
		if err != nil {
			return t, &Error{path, err.Error()}
		}
		t.Engine = e
	}
	return t, t.known()
}

func (t *Target) known() error {
	if t.Engine == EngineUnknown {
		return wrong(keyEngine, "nobody says which engine the request is for")
	}
	if err := t.check(); err != nil {
		return &Error{keyEngine, err.Error()}
	}
	return nil
}

// stringOf reads a string, in either encoding.
func stringOf(format hint.Format, raw []byte) (string, bool) {
	if kindOf(format, raw) != "a string" {
		return "", false
	}
	data, root, err := hint.AppendTree(nil, format, raw)
	if err != nil {
		return "", false
	}
	return string(abi.Base(data).Bytes(root)), true
}
