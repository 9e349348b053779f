package lower_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
)

const envelope = `{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":"kv.fetch","action_version":"1.0","payload":{"source_control_endpoint":"tcp://h:1","block_hashes":[11,18446744073709551615]}}]}`

// run lowers a JSON request.
func run(t *testing.T, target lower.Target, request string) (string, lower.Report, error) {
	t.Helper()
	l, err := lower.New(target, lower.Limits{})
	if err != nil {
		return "", lower.Report{}, err
	}
	src := []byte(request)
	out, report, err := l.Append([]byte("before"), hint.FormatUnknown, src)
	if string(src) != request {
		t.Errorf("the request was changed to %s", src)
	}
	if !bytes.HasPrefix(out, []byte("before")) || err != nil && string(out) != "before" {
		t.Errorf("what was there became %q", out)
	}
	again, _, err2 := l.Append(nil, hint.FormatUnknown, src)
	if (err == nil) != (err2 == nil) || err == nil && string(again) != string(out[6:]) {
		t.Errorf("a second time: %s, %v; first %s, %v", again, err2, out[6:], err)
	}
	return string(out[6:]), report, err
}

func TestPlaces(t *testing.T) {
	newer, older := lower.Target{Engine: lower.VLLM, Version: "0.31.0"}, lower.Target{Engine: lower.VLLM, Version: "0.30.2+cu130"}
	decode := newer
	decode.Leg = abi.LegDecode
	for _, c := range []struct {
		name          string
		target        lower.Target
		request, want string
	}{
		{"first class", newer, `{"token_ids":[1],"kv_hint":` + envelope + `}`, `{"token_ids":[1],"kv_hints":` + envelope + `}`},
		{"what it does not own stays", newer, "{ \"a\" : 1.50, \"sampling_params\": {\"extra_args\":{\"x\" : 1e3}},\"kv_hint\":" + envelope + ",\"z\":[ 1,2 ] }\n", "{ \"a\" : 1.50, \"sampling_params\": {\"extra_args\":{\"x\" : 1e3}},\"kv_hints\":" + envelope + ",\"z\":[ 1,2 ] }\n"},
		{"the payload keeps its spelling", newer, `{"kv_hint":{"message_id":7,"protocol_version":0.1,"extra":1,"actions":[{"payload":{"z": 1.50,"a":[ -1, 1e2],"é":"\u00e9"},"action_type":"t","x":1,"action_id":18446744073709551615}]}}`,
			`{"kv_hints":{"protocol_version":"0.1","message_id":"7","actions":[{"action_id":"18446744073709551615","action_type":"t","action_version":"1.0","payload":{"z": 1.50,"a":[ -1, 1e2],"é":"\u00e9"}}]}}`},
		{"empty list", newer, `{"kv_hint":{"actions":[]}}`, `{"kv_hints":{"protocol_version":"","message_id":"","actions":[]}}`},
		{"hints of the client are replaced", newer, `{"kv_hints":{"mine":1},"kv_hint":{"actions":[]},"b":1}`, `{"kv_hints":{"protocol_version":"","message_id":"","actions":[]},"b":1}`},
		{"connector's parameters replace", newer, `{"sampling_params":{"extra_args":{"x":1,"kv_transfer_params":{"old":1}},"n":1},"kv_transfer_params":{"new":2},"kv_hint":{"actions":[]}}`,
			`{"sampling_params":{"extra_args":{"x":1,"kv_transfer_params":{"new":2}},"n":1},"kv_hints":{"protocol_version":"","message_id":"","actions":[]}}`},
		{"a hint of an earlier hop", newer, `{"sampling_params":{"extra_args":{"kv_transfer_params":{"kv_hint":{},"k":1,"router_hint":{}}}},"kv_hint":{"actions":[]}}`,
			`{"sampling_params":{"extra_args":{"kv_transfer_params":{"k":1}}},"kv_hints":{"protocol_version":"","message_id":"","actions":[]}}`},
		{"transitional", older, `{"sampling_params":{"extra_args":{"x":1,"kv_transfer_params":{"old":1}}},"kv_transfer_params":{"new":2},"kv_hint":` + envelope + `}`,
			`{"sampling_params":{"extra_args":{"x":1,"kv_transfer_params":{"new":2,"kv_hint":` + envelope + `}}}}`},
		{"transitional, parameters in place", older, `{"kv_hint":` + envelope + `,"sampling_params":{"extra_args":{"kv_transfer_params":{"old":1}}}}`, `{"sampling_params":{"extra_args":{"kv_transfer_params":{"old":1,"kv_hint":` + envelope + `}}}}`},
		{"transitional, no parameters", older, `{"token_ids":[1],"kv_hint":` + envelope + `}`, `{"token_ids":[1],"sampling_params":{"extra_args":{"kv_transfer_params":{"kv_hint":` + envelope + `}}}}`},
		{"transitional, null all the way", older, `{"kv_hint":` + envelope + `,"sampling_params":{"extra_args":null}}`, `{"sampling_params":{"extra_args":{"kv_transfer_params":{"kv_hint":` + envelope + `}}}}`},
		{"transitional, text", older, `{"prompt":"hi","kv_hint":` + envelope + `}`, `{"prompt":"hi","kv_transfer_params":{"kv_hint":` + envelope + `}}`},
		{"transitional, text with parameters", older, `{"messages":[],"kv_transfer_params":{"k":1,"kv_hint":0},"kv_hint":` + envelope + `}`, `{"messages":[],"kv_transfer_params":{"k":1,"kv_hint":` + envelope + `}}`},
		{"transitional, extra_args at the top", older, `{"extra_args":{"x":1,"kv_transfer_params":{"old":1}},"kv_transfer_params":{"new":2},"kv_hint":{"actions":[]}}`, `{"extra_args":{"x":1,"kv_transfer_params":{"new":2,"kv_hint":{"protocol_version":"","message_id":"","actions":[]}}}}`},
		{"asked for", lower.Target{Engine: lower.VLLM, Version: "0.31.0", Hints: lower.HintsTransitional}, `{"prompt":"hi","kv_hint":{"actions":[]}}`, `{"prompt":"hi","kv_transfer_params":{"kv_hint":{"protocol_version":"","message_id":"","actions":[]}}}`},
		{"the request names the engine", lower.Target{}, `{"prompt":"hi","engine":{"name":"vllm","version":"0.30.0"},"kv_hint":{"actions":[]}}`, `{"prompt":"hi","engine":{"name":"vllm","version":"0.30.0"},"kv_transfer_params":{"kv_hint":{"protocol_version":"","message_id":"","actions":[]}}}`},
		{"a capability goes before the version", lower.Target{}, `{"engine":{"name":"vllm","version":"0.30.0","kv_hints":true},"kv_hint":{"actions":[]}}`, `{"engine":{"name":"vllm","version":"0.30.0","kv_hints":true},"kv_hints":{"protocol_version":"","message_id":"","actions":[]}}`},
		{"no hint", older, " {\"kv_transfer_params\" :{\"a\":1}, \"sampling_params\":{}}\n\n", " {\"kv_transfer_params\" :{\"a\":1}, \"sampling_params\":{}}\n\n"},
		{"null is no hint", newer, `{"kv_hint":null,"leg":"x"}`, `{"kv_hint":null,"leg":"x"}`},
		{"empty request", newer, " { } ", " { } "},
		{"decode replays nothing", decode, `{"kv_hint":` + envelope + `,"sampling_params":{"extra_args":{"x":1}},"kv_transfer_params":{"do_remote_prefill":true}}`, `{"sampling_params":{"extra_args":{"x":1,"kv_transfer_params":{"do_remote_prefill":true}}}}`},
		{"decode, in extra_args", decode, `{"sampling_params":{"extra_args":{"kv_transfer_params":{"do_remote_prefill":true,"kv_hint":{}}}},"kv_hint":` + envelope + `}`, `{"sampling_params":{"extra_args":{"kv_transfer_params":{"do_remote_prefill":true}}}}`},
		{"decode, text", decode, `{"prompt":"x","kv_transfer_params":{"remote_block_ids":[1]},"kv_hint":` + envelope + `}`, `{"prompt":"x","kv_transfer_params":{"remote_block_ids":[1]}}`},
		{"decode, result of prefill", decode, `{"kv_hint":` + envelope + `,"prefill_result":{"disaggregated_params":{}}}`, `{"prefill_result":{"disaggregated_params":{}}}`},
		{"decode, bootstrap", lower.Target{Engine: lower.SGLang, Leg: abi.LegDecode}, `{"kv_hint":` + envelope + `,"bootstrap_info":{"bootstrap_room":5}}`, `{"bootstrap_info":{"bootstrap_room":5}}`},
		{"decode, nothing from prefill", lower.Target{Engine: lower.TRTLLM, Leg: abi.LegDecode}, `{"kv_hint":` + envelope + `,"bootstrap_info":null}`, `{"kv_hints":` + envelope + `,"bootstrap_info":null}`},
		{"decode without", decode, `{"kv_hint":` + envelope + `,"kv_transfer_params":{}}`, `{"kv_hints":` + envelope + `,"kv_transfer_params":{}}`},
		{"decode with a hint only", decode, `{"kv_hint":` + envelope + `,"kv_transfer_params":{"kv_hint":{}}}`, `{"kv_hints":` + envelope + `,"kv_transfer_params":{}}`},
		{"leg of the request", newer, `{"leg":"decode","kv_hint":` + envelope + `,"disaggregated_params":{"a":1}}`, `{"leg":"decode","disaggregated_params":{"a":1}}`},
		{"prefill carries", newer, `{"leg":"prefill","kv_hint":` + envelope + `,"kv_transfer_params":{"do_remote_decode":true}}`, `{"leg":"prefill","kv_hints":` + envelope + `,"kv_transfer_params":{"do_remote_decode":true}}`},
		{"decode replays no older one", lower.Target{Engine: lower.SGLang, Leg: abi.LegDecode}, `{"kv_hint":` + envelope + `,"kv_hints":{"mine":1},"bootstrap_room":0}`, `{"bootstrap_room":0}`},
		{"transitional, hints of the client are replaced", older, `{"prompt":"hi","kv_hints":{"mine":1},"kv_hint":{"actions":[]}}`, `{"prompt":"hi","kv_transfer_params":{"kv_hint":{"protocol_version":"","message_id":"","actions":[]}}}`},
		{"null ids are empty", newer, `{"kv_hint":{"message_id":null,"protocol_version":1e2,"actions":[]}}`, `{"kv_hints":{"protocol_version":"100.0","message_id":"","actions":[]}}`},
		{"an escaped key", newer, `{"kv_\u0068int":{"actions":[]}}`, `{"kv_hints":{"protocol_version":"","message_id":"","actions":[]}}`},
	} {
		got, _, err := run(t, c.target, c.request)
		if err != nil || got != c.want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", c.name, got, err, c.want)
		}
	}
}

func TestVersionChoosesForm(t *testing.T) {
	for version, first := range map[string]bool{
		"": true, "0.31.0": true, "0.31": true, "v0.31.0": true, "0.31.0+cu130": true, "0.31.0.post1": true, "0.31.1.dev3+gabc123": true, "0.32.0rc1": true, "1.0": true, "0.100.0": true, "1!0.1": true, " 0.31.0 ": true, "0.31.0-1": true, "0.31.0.0.1": true,
		"0.31.0rc1": false, "0.31.0.dev12": false, "0.31.0a1": false, "0.31.0.alpha": false, "0.31.0beta2": false, "0.31.0c1": false, "0.31.0pre1": false, "0.31.0rc1.post2": true, "0.30.2+cu130": false, "0.30.99999999999999999999999": false, "0.9.1": false, "0.4.0.post1": false, "0.1.dev1234+gdeadbee.d20260901": false, "0": false,
	} {
		l, err := lower.New(lower.Target{Engine: lower.VLLM, Version: version}, lower.Limits{})
		if err != nil {
			t.Errorf("%q: %v", version, err)
			continue
		}
		out, _, err := l.Append(nil, hint.FormatJSON, []byte(`{"kv_hint":{"actions":[]}}`))
		if err != nil || strings.HasPrefix(string(out), `{"kv_hints"`) != first {
			t.Errorf("%q: %s, %v", version, out, err)
		}
	}
	for _, garbage := range []string{"x", "latest", "0.31.x", "0..31", ".31", "0.31.0rc1rc2", "0.31.0+", "0.31.0 beta", "-1", "0.31.0+a+b", "nightly-2026", "1!", "0.31.0\n0.1", strings.Repeat("9.", 50)} {
		if _, err := lower.New(lower.Target{Engine: lower.VLLM, Version: garbage}, lower.Limits{}); err == nil || !strings.Contains(err.Error(), "is no version") {
			t.Errorf("%q: %v", garbage, err)
		}
	}
}

func TestTRTLLM(t *testing.T) {
	target := lower.Target{Engine: lower.TRTLLM}
	got, _, err := run(t, target, `{"kv_hint":{"z":1, "actions": [ {"q":[1.50],"action_version":1.0,"payload":{"a": 18446744073709551616},"action_id":3,"action_type":"t"},{"action_id":"b","action_type":"u","action_version":"2","payload":{}} ],"message_id":"m","protocol_version":"9.0"},"p":1}`)
	if want := `{"kv_hints":{"z":1, "actions": [{"q":[1.50],"action_version":"1.0","payload":{"a": 18446744073709551616},"action_id":"3","action_type":"t"},{"action_id":"b","action_type":"u","action_version":"2","payload":{}}],"message_id":"m","protocol_version":"9.0"},"p":1}`; err != nil || got != want {
		t.Errorf("\n got %s (%v)\nwant %s", got, err, want)
	}
	const good = `{"kv_hint":{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"a","action_type":"t","action_version":"1.0","payload":{}}]}}`
	for _, field := range []string{`"protocol_version":"0.1"`, `"message_id":"m"`, `"action_id":"a"`, `"action_version":"1.0"`} {
		name := field[1 : strings.IndexByte(field, ':')-1]
		for what, bad := range map[string]string{"is missing": `"x":1`, "is empty": `"` + name + `":""`} {
			_, _, err := run(t, target, strings.Replace(good, field, bad, 1))
			if err == nil || !strings.Contains(err.Error(), name+": "+what) {
				t.Errorf("%s %s: %v", name, what, err)
			}
		}
	}
}

func TestDialects(t *testing.T) {
	const two = `{"actions":[{"action_type":"kv.evict","payload":{}},{"action_type":"kv.fetch","action_version":"1.0","payload":{"no_retain":true,"other":1,"block_hashes":[1, 18446744073709551615],"source_control_endpoint":"tcp://[::1]:5"}},{"action_type":"kv.retain","payload":{"scope":"s","directives":[{"start":0,"priority":70, "duration":12.80}]}},{"action_type":"kv.retain","payload":{"directives":[ {"priority":1} ],"scope":"s"}},{"action_type":"kv.fetch","payload":{"block_hashes":[2]}}]}`
	flat := lower.Target{Engine: lower.VLLM, Dialect: lower.DialectRouterHint}
	llmd := lower.Target{Engine: lower.VLLM, Dialect: lower.DialectLLMD}
	for _, c := range []struct {
		name          string
		target        lower.Target
		request, want string
		carried       bool
		dropped       int
		source        string
	}{
		{"router_hint", flat, `{"token_ids":[1],"kv_transfer_params":{"k":1},"kv_hint":` + two + `}`, `{"token_ids":[1],"sampling_params":{"extra_args":{"kv_transfer_params":{"k":1,"router_hint":{"source_control_endpoint":"tcp://[::1]:5","block_hashes":[1, 18446744073709551615],"no_retain":true}}}}}`, true, 4, ""},
		{"router_hint, nothing to say", flat, `{"kv_hint":{"actions":[]},"a":1}`, `{"a":1}`, false, 0, ""},
		{"llm-d, text", llmd, `{"prompt":"x","kv_hint":` + two + `}`, `{"prompt":"x","retention_directives":[{"start":0,"priority":70, "duration":12.80},{"priority":1}],"retention_scope":"s"}`, true, 2, "[::1]:5"},
		{"llm-d, tokens", llmd, `{"kv_hint":` + two + `,"sampling_params":{"extra_args":{"x":1}}}`, `{"sampling_params":{"extra_args":{"x":1,"retention_directives":[{"start":0,"priority":70, "duration":12.80},{"priority":1}],"retention_scope":"s"}}}`, true, 2, "[::1]:5"},
		{"llm-d, the client's own win", llmd, `{"retention_directives":[],"kv_hint":` + two + `}`, `{"retention_directives":[]}`, true, 4, "[::1]:5"},
		{"llm-d, other scopes", llmd, `{"kv_hint":{"actions":[{"action_type":"kv.retain","payload":{"directives":[]}},{"action_type":"kv.retain","payload":{"scope":"t","directives":[1]}},{"action_type":"kv.retain","action_version":"2.0","payload":{"directives":[1]}},{"action_type":"kv.retain","payload":{"execute_at":"x"}},{"action_type":"kv.fetch","payload":{"source_control_endpoint":"tcp://h:1\r\nx: y"}},{"action_type":"kv.fetch","payload":{"source_control_endpoint":null}}]}}`, `{"retention_directives":[]}`, true, 5, ""},
	} {
		got, report, err := run(t, c.target, c.request)
		if err != nil || got != c.want || report.Carried != c.carried || len(report.Dropped) != c.dropped {
			t.Errorf("%s:\n got %s (%v, %+v)\nwant %s", c.name, got, err, report, c.want)
		}
		source := ""
		for _, h := range report.Headers {
			source += h.Value
		}
		if source != c.source {
			t.Errorf("%s: source %q, want %q", c.name, source, c.source)
		}
	}
}

func TestGoldenBytes(t *testing.T) {
	const golden = "83b070726f746f636f6c5f76657273696f6ea3302e31aa6d6573736167655f6964a26d31a7616374696f6e739184a9616374696f6e5f6964a26131ab616374696f6e5f74797065a86b762e6665746368ae616374696f6e5f76657273696f6ea3312e30a77061796c6f616482b7736f757263655f636f6e74726f6c5f656e64706f696e74a97463703a2f2f683a31ac626c6f636b5f686173686573920bcfffffffffffffffff"
	got, _, err := run(t, lower.Target{Engine: lower.VLLM, Form: lower.FormMsgpack, EnvelopeOnly: true}, `{"kv_hint":`+envelope+`}`)
	if err != nil || hex.EncodeToString([]byte(got)) != golden {
		t.Errorf("%x, %v", got, err)
	}
}

func TestErrors(t *testing.T) {
	action := func(rest string) string {
		return `{"kv_hint":{"actions":[{"action_type":"t","payload":{}},{` + rest + `}]}}`
	}
	vllm, sglang := lower.Target{Engine: lower.VLLM}, lower.Target{Engine: lower.SGLang}
	older := lower.Target{Engine: lower.VLLM, Version: "0.30.0"}
	for _, c := range []struct {
		target  lower.Target
		request string
		path    string
		msg     string
	}{
		{vllm, ``, "", "must be"}, {vllm, `[]`, "", "must be a JSON object, not a list"}, {vllm, `{"a":}`, "", `"a"`}, {vllm, `{"a":1`, "", "malformed"}, {vllm, `{"a":1}x`, "", "follows"}, {vllm, `{"kv_hint":{"actions":[]},"a":[}]}`, "", `malformed`}, {vllm, `{"kv_hint":{"actions":[]},"a":[1,]}`, "", `"a"`}, {vllm, `{"a" 1}`, "", "colon"}, {vllm, `{"a":01,"kv_hint":{"actions":[]}}`, "", `"a"`}, {vllm, `{a:1}`, "", "malformed"}, {vllm, `{"a":1,}`, "", "malformed"}, {vllm, `{"\q":1}`, "", "key"},
		{vllm, `{"kv_hint":1,"kv_hint":null}`, "kv_hint", "twice"}, {vllm, `{"kv_hint":{"actions":[]},"leg":"a","leg":"b"}`, "leg", "twice"},
		{vllm, `{"kv_hint":[]}`, "kv_hint", "must be a mapping, not a list"}, {vllm, `{"kv_hint":"x"}`, "kv_hint", "must be a mapping, not a string"}, {vllm, `{"kv_hint":{}}`, "kv_hint.actions", "is missing"}, {vllm, `{"kv_hint":{"actions":{}}}`, "kv_hint.actions", "must be a list, not a mapping"},
		{vllm, `{"kv_hint":{"actions":[],"actions":[]}}`, "kv_hint", "malformed"}, {vllm, `{"kv_hint":{"actions":[}}`, "", "malformed"}, {vllm, `{"kv_hint":{"actions":[1,]}}`, "kv_hint", "malformed"},
		{vllm, `{"kv_hint":{"actions":[1]}}`, "kv_hint.actions[0]", "must be a mapping, not a number"},
		{vllm, action(``), "kv_hint.actions[1].action_type", "is missing"}, {vllm, action(`"action_type":""`), "kv_hint.actions[1].action_type", "is empty"}, {vllm, action(`"action_type":1`), "kv_hint.actions[1].action_type", "must be a string"},
		{vllm, action(`"action_type":"t"`), "kv_hint.actions[1].payload", "is missing"}, {vllm, action(`"action_type":"t","payload":null`), "kv_hint.actions[1].payload", "is missing"}, {vllm, action(`"action_type":"t","payload":[1]`), "kv_hint.actions[1].payload", "must be a mapping, not a list"},
		{vllm, `{"kv_hint":{"message_id":[],"actions":[]}}`, "kv_hint.message_id", "must be a string or a number, not a list"}, {vllm, `{"kv_hint":{"message_id":"m","protocol_version":{"a":1},"actions":[]}}`, "kv_hint.protocol_version", "must be a string or a number, not a mapping"},
		{sglang, `{"kv_hint":{"message_id":true,"protocol_version":"0.1","actions":[]}}`, "kv_hint.message_id", "must be a string or a number, not a bool"},
		{vllm, action(`"action_type":"t","payload":{},"action_id":[]`), "kv_hint.actions[1].action_id", "must be a string or a number"}, {vllm, action(`"action_type":"t","payload":{},"action_version":true`), "kv_hint.actions[1].action_version", "must be a string or a number"},
		{older, `{"kv_hint":{"actions":[]},"sampling_params":[]}`, "sampling_params", "must be a mapping, not a list"}, {older, `{"kv_hint":{"actions":[]},"sampling_params":{"extra_args":3}}`, "sampling_params.extra_args", "must be a mapping, not a number"},
		{older, `{"kv_hint":{"actions":[]},"sampling_params":{"extra_args":{"kv_transfer_params":"x"}}}`, "sampling_params.extra_args.kv_transfer_params", "must be a mapping"}, {older, `{"kv_hint":{"actions":[]},"kv_transfer_params":"x"}`, "kv_transfer_params", "must be a mapping"},
		{older, `{"kv_hint":{"actions":[]},"sampling_params":{"extra_args":{},"extra_args":{}}}`, "sampling_params.extra_args", "twice"},
		{lower.Target{}, `{"kv_hint":{"actions":[]}}`, "engine", "nobody says"}, {lower.Target{}, `{"kv_hint":{"actions":[]},"engine":"mlx"}`, "engine", "unknown engine"}, {lower.Target{}, `{"kv_hint":{"actions":[]},"engine":[]}`, "engine", "must be"}, {lower.Target{}, `{"kv_hint":{"actions":[]},"engine":{"name":"vllm","version":"soon"}}`, "engine", "is no version"},
		{lower.Target{}, `{"kv_hint":{"actions":[]},"engine":{"name":"vllm","version":31}}`, "engine.version", "must be a string"}, {lower.Target{}, `{"kv_hint":{"actions":[]},"engine":{"name":"vllm","kv_hints":"yes"}}`, "engine.kv_hints", "must be a bool"}, {vllm, `{"kv_hint":{"actions":[]},"leg":"both"}`, "leg", "none of"}, {vllm, `{"kv_hint":{"actions":[]},"leg":1}`, "leg", "must be a string"},
		{sglang, action(`"action_type":"t","payload":{"a":{"b c":[1,9007199254740993]}}`), `kv_hint.actions[1].payload.a["b c"][1]`, "cannot be represented exactly"},
	} {
		_, _, err := run(t, c.target, c.request)
		var bad *lower.Error
		if !errors.As(err, &bad) || bad.Path != c.path || !strings.Contains(bad.Msg, c.msg) {
			t.Errorf("%s: got %v, want %s: ...%s...", c.request, err, c.path, c.msg)
		}
	}
	if _, _, err := run(t, lower.Target{Engine: lower.VLLM, Form: lower.FormStruct}, `{}`); err == nil {
		t.Error("vLLM has no protobuf form")
	}
	l, _ := lower.New(vllm, lower.Limits{RequestBytes: 10})
	if _, _, err := l.Append(nil, hint.FormatJSON, []byte(`{"a":12345678}`)); err == nil {
		t.Error("a request over the limit")
	}
}

// TestPassingOnAllocatesNothing: a request without a hint pays for one look at its keys.
func TestPassingOnAllocatesNothing(t *testing.T) {
	request := []byte(`{"token_ids":[1,2,3],"sampling_params":{"extra_args":{"x":1}},"kv_transfer_params":{"a":1}}`)
	var l lower.Lowerer
	out := make([]byte, 0, 1024)
	for _, body := range [][]byte{request, transcoded(t, string(request))} {
		if n := testing.AllocsPerRun(100, func() {
			if _, report, err := l.Append(out, hint.FormatUnknown, body); err != nil || report.Hint {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
