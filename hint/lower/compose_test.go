package lower_test

import (
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
)

// TestStructTarget: a composition for a target that has payloads as protobuf Structs can
// be lowered for SGLang, whatever a policy answers, and loses no action that can be.
func TestStructTarget(t *testing.T) {
	const big = "9007199254740993"
	action := func(typ, version, payload string) string {
		return `{"action_id":"p","action_type":"` + typ + `","action_version":"` + version + `","payload":` + payload + `}`
	}
	for _, tt := range []struct {
		request, action string
		detail          string // of what is left out; "": it is taken
	}{
		{"null", action("kv.fetch", "1.0", `{"block_hashes":[`+big+`,18446744073709551615]}`), ""},
		{`{"protocol_version":"0.1","actions":[]}`, action("kv.fetch", "1.0", `{"block_hashes":[`+big+`]}`), ""},
		{`{"protocol_version":"0.2","actions":[]}`, action("kv.fetch", "1.0", `{"block_hashes":[5]}`), ""},
		{`{"protocol_version":"0.2","actions":[]}`, action("kv.fetch", "1.0", `{"block_hashes":[5,`+big+`]}`), "payload.block_hashes[1]: the integer " + big},
		{"null", action("kv.fetch", "1.1", `{"block_hashes":[`+big+`]}`), "payload.block_hashes[0]: the integer"},
		{"null", action("kv.fetch", "1.0", `{"block_hashes":[1],"x":{"y z":[0,-`+big+`]}}`), `payload.x["y z"][1]: the integer -` + big},
		{"null", action("kv.retain", "1.0", `{"directives":[{"priority":5,"end":`+big+`}]}`), "payload.directives[0].end: the integer"},
		{"null", action("kv.retain", "1.0", `{"execute_at":"request_completion","include_current_request":false,"block_hashes":["`+big+`"],"priority":1,"ttl_seconds":1}`), ""},
		{"null", action("kv.retain", "1.0", `{"execute_at":"request_completion","include_current_request":false,"block_hashes":[`+big+`],"priority":1,"ttl_seconds":1}`), "payload.block_hashes[0]: the integer"},
		{"null", action("t", "1.0", `{"a":9007199254740992,"b":-9223372036854775808,"c":1.5,"d":[null,true,"x"],"e":18446744073709551616}`), ""},
		{"null", action("t", "1.0", `{"e":18446744073709551617}`), "payload.e: a number of more than 64 bits"},
		{"null", action("t", "1.0", `{"e":1e400}`), "payload.e: a number of more than 64 bits"},
		{"null", action("t", "1.0", `{}`), ""},
	} {
		var ctx hint.Context
		if err := ctx.Decode(hint.FormatJSON, []byte(`{"request_id":"r","selected":{"worker_id":7},"request_hint":`+tt.request+`}`), hint.ContextOptions{}); err != nil {
			t.Fatal(err)
		}
		var f hint.Frame
		if err := f.Decode(hint.FormatJSON, []byte(`{"actions":[`+tt.action+`]}`), hint.Limits{}); err != nil {
			t.Fatal(err)
		}
		for _, target := range []hint.Target{{Struct: true}, {}} {
			var c hint.Composition
			c.Begin(&ctx, target, nil)
			reason, detail := c.Offer(&f, 0, "p")
			if target.Struct && ((reason == abi.ReasonNone) != (tt.detail == "") || !strings.HasPrefix(detail, tt.detail)) {
				t.Errorf("%s: %v %s", tt.action, reason, detail)
			}
			env, err := c.Append(nil, hint.FormatJSON)
			if err != nil {
				t.Fatal(err)
			}
			if len(env) == 0 {
				env = []byte("null")
			}
			_, _, err = run(t, lower.Target{Engine: lower.SGLang}, `{"kv_hint":`+string(env)+`}`)
			if good := target.Struct || tt.detail == ""; (err == nil) != good {
				t.Errorf("%s with %+v: %v", tt.action, target, err)
			}
		}
	}
}
