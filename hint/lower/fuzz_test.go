package lower_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
)

// owned are the keys at the top of a request that lowering may write.
var owned = map[string]bool{"kv_hint": true, "kv_hints": true, "kv_transfer_params": true, "sampling_params": true, "extra_args": true, "retention_directives": true, "retention_scope": true}

// entries are the keys of a JSON object with their values as they are spelled.
func entries(t *testing.T, doc []byte) (names []string, vals []json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(doc))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		var val json.RawMessage
		if err := d.Decode(&val); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		names, vals = append(names, key.(string)), append(vals, val)
	}
	return names, vals
}

func targets() []lower.Target {
	return []lower.Target{
		{}, {Engine: lower.VLLM}, {Engine: lower.VLLM, Version: "0.30.0"}, {Engine: lower.VLLM, Leg: abi.LegDecode}, {Engine: lower.TRTLLM}, {Engine: lower.SGLang}, {Engine: lower.SGLang, Form: lower.FormStruct},
		{Engine: lower.VLLM, Dialect: lower.DialectRouterHint}, {Engine: lower.VLLM, Dialect: lower.DialectLLMD}, {Engine: lower.VLLM, Form: lower.FormMsgpack}, {Engine: lower.SGLang, Form: lower.FormJSON}, {Engine: lower.TRTLLM, EnvelopeOnly: true},
	}
}

func FuzzLower(f *testing.F) {
	for i := range targets() {
		for _, seed := range []string{
			``, `{}`, ` { } `, `{"a":1}`, `{"kv_hint":null}`, `{"kv_hint":` + envelope + `}`, `{"kv_hint":` + envelope + `,"token_ids":[1,2],"sampling_params":{"extra_args":{"kv_transfer_params":{"a":1,"kv_hint":{}}}},"kv_transfer_params":{"b":2}}`,
			"{\n \"prompt\" : \"x\",\n \"kv_transfer_params\" : {},\n \"kv_hint\" : " + envelope + "\n}\n", `{"leg":"decode","engine":{"name":"vllm","version":"0.30.0"},"kv_hint":` + envelope + `,"kv_transfer_params":{"b":2}}`,
			`{"engine":"sglang","kv_hint":{"protocol_version":"0.1","actions":[{"action_type":"kv.fetch","payload":{"block_hashes":[1,-1,"x"],"y":[1.5,9007199254740993]}}]}}`,
			`{"kv_hint":{"actions":[{"action_type":"kv.retain","payload":{"scope":"s","directives":[{"start":0}]}},{"action_type":"kv.retain","payload":{"directives":[1,2]}}]}}`, `{"kv_hint":{"actions":[{"action_type":"t","payload":{"a":{"a":1,"a":2}}}]}}`, `{"\u006bv_hint":{"actions":[]}}`, `{"a":[}]}`, `{"a":"\`,
		} {
			f.Add(uint8(i), []byte(seed))
			if tree, root, err := hint.AppendTree(nil, hint.FormatJSON, []byte(seed)); err == nil {
				if packed, err := hint.AppendTreeMsgpack(nil, tree, root); err == nil {
					f.Add(uint8(i), packed)
				}
			}
		}
		f.Add(uint8(i), []byte("\x82\xa1a\xc4\x01x\xa7kv_hint\x81\xa7actions\x91\x82\xabaction_type\xa1t\xa7payload\x81\xa1b\xd4\x01x"))
		f.Add(uint8(i), []byte("\xdf\xff\xff\xff\xff"))
	}
	f.Fuzz(func(t *testing.T, which uint8, request []byte) {
		all := targets()
		target := all[int(which)%len(all)]
		l, err := lower.New(target, lower.Limits{RequestBytes: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(request)
		out, report, err := l.Append([]byte("x"), hint.FormatUnknown, request)
		if !bytes.Equal(before, request) {
			t.Fatal("the request was changed")
		}
		if err != nil {
			var bad *lower.Error
			if !errors.As(err, &bad) || string(out) != "x" {
				t.Fatalf("%v, %q", err, out)
			}
			return
		}
		out = out[1:]
		if target.Form == lower.FormStruct || target.EnvelopeOnly {
			return
		}
		if !report.Hint {
			if target.Form == lower.FormSame && !bytes.Equal(out, request) {
				t.Fatalf("%q became %q without a hint", request, out)
			}
			return
		}
		// What was lowered has no hint for a router left, so it is passed through.
		again, report, err := l.Append(nil, hint.FormatUnknown, out)
		if err != nil || report.Hint || !bytes.Equal(again, out) {
			t.Fatalf("%q became %q, and that %q (%v)", request, out, again, err)
		}
		if hint.Detect(request) != hint.FormatJSON || hint.Detect(out) != hint.FormatJSON {
			return
		}
		var kept int
		names, vals := entries(t, out)
		was, wasVals := entries(t, request)
		for i, name := range was {
			for ; kept < len(names) && owned[names[kept]]; kept++ {
			}
			switch {
			case owned[name]:
			case kept == len(names) || names[kept] != name || !bytes.Equal(vals[kept], wasVals[i]):
				t.Fatalf("%q became %q: %q is not what it was", request, out, name)
			default:
				kept++
			}
		}
	})
}
