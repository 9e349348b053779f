package hint_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// loaded is what a policy answered, as JSON actions.
func loaded(tb testing.TB, format hint.Format, actions string) *hint.Frame {
	tb.Helper()
	var f hint.Frame
	if err := f.Decode(hint.FormatJSON, []byte(`{"actions":[`+actions+`]}`), hint.Limits{}); err != nil {
		tb.Fatal(err)
	}
	f.Finish(hint.Identity{})
	var answer hint.Frame
	if err := answer.Load(format, f.Bytes(), hint.Limits{}); err != nil {
		tb.Fatal(err)
	}
	return &answer
}

func TestComposition(t *testing.T) {
	ctx := decodeContext(t, hint.FormatJSON, []byte(minimal(`"request_hint":{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"r","action_type":"t","action_version":"2","payload":{"f": 1.50}}]}`)))
	f := loaded(t, hint.FormatJSON, `{"action_type":"p","action_version":"","payload":{"n":18446744073709551615}},{"action_id":"x","action_type":"q"}`)
	var c hint.Composition
	for range 2 { // it can be used again
		c.Begin(ctx, hint.Target{}, nil)
		for i := range f.Len() {
			if reason, detail := c.Offer(f, i, "policy"); reason != abi.ReasonNone {
				t.Errorf("action %d: %s", i, detail)
			}
		}
		if c.Len() != 3 {
			t.Errorf("%d actions", c.Len())
		}
		const want = `dst{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"r","action_type":"t","action_version":"2","payload":{"f": 1.50}},` +
			`{"action_id":"policy-0","action_type":"p","action_version":"1.0","payload":{"n":18446744073709551615}},{"action_id":"x","action_type":"q","action_version":"1.0","payload":{}}]}`
		got, err := c.Append([]byte("dst"), hint.FormatJSON)
		if err != nil || string(got) != want {
			t.Errorf("%v: got %s\nwant %s", err, got, want)
		}
		packed, err := c.Append(nil, hint.FormatMsgpack)
		if err != nil {
			t.Fatal(err)
		}
		again, err := hint.DecodeEnvelope(hint.FormatMsgpack, packed)
		if text, err2 := again.AppendJSON([]byte("dst")); err != nil || err2 != nil || string(text) != strings.Replace(want, `{"f": 1.50}`, `{"f":1.5}`, 1) {
			t.Errorf("%v, %v: %s", err, err2, text)
		}
	}
	if _, err := c.Append(nil, abi.FormatUnknown); err == nil {
		t.Error("an encoding that is none")
	}
	empty := decodeContext(t, hint.FormatJSON, []byte(minimal("")))
	c.Begin(empty, hint.Target{}, nil)
	if got, err := c.Append([]byte("dst"), hint.FormatJSON); err != nil || string(got) != "dst" {
		t.Errorf("no envelope: %v, %s", err, got)
	}
}

// FuzzComposition: whatever hints there are and whatever a policy adds, what comes out is
// an envelope that begins with the hints' actions, and a composition of it with nothing
// is the same.
func FuzzComposition(f *testing.F) {
	f.Add(`{"message_id":"m","actions":[{"action_type":"kv.fetch","payload":{"block_hashes":[1]}}]}`, `{"action_type":"kv.fetch","payload":{"block_hashes":[2]}}`, false)
	f.Add(`{"actions":[]}`, `{"action_type":"kv.retain","payload":{"directives":[{"priority":5},{"priority":9,"start":3}]}},{"action_id":"x","action_type":"t"}`, true)
	f.Add(`null`, `{"action_type":"kv.retain","payload":{"execute_at":"request_completion","include_current_request":true,"block_hashes":["1"],"priority":1,"ttl_seconds":1e3}}`, false)
	f.Add(`null`, `{"action_type":"kv.retain","payload":{"scope":"s","directives":[{"priority":1,"duration":1e400,"x":{}}]}},5,{"payload":{}}`, true)
	f.Fuzz(func(t *testing.T, request, actions string, many bool) {
		var ctx hint.Context
		if ctx.Decode(hint.FormatJSON, []byte(`{"request_id":"r1","selected":{"worker_id":7},"request_hint":`+request+`}`), hint.ContextOptions{}) != nil {
			return
		}
		var answer hint.Frame
		if answer.Decode(hint.FormatJSON, []byte(`{"actions":[`+actions+`]}`), hint.Limits{Actions: 100}) != nil {
			return
		}
		before := 0
		if h := ctx.RequestHint(); h != nil {
			before = h.Len()
		}
		var c hint.Composition
		c.Begin(&ctx, hint.Target{ManyFetches: many}, nil)
		taken := 0
		for i := range answer.Len() {
			reason, detail := c.Offer(&answer, i, "policy")
			if (reason == abi.ReasonNone) != (detail == "") {
				t.Fatalf("%v %q", reason, detail)
			}
			if reason == abi.ReasonNone {
				taken++
			}
		}
		if c.Len() != before+taken {
			t.Fatalf("%d actions: %d were there, %d came", c.Len(), before, taken)
		}
		out, err := c.Append(nil, hint.FormatJSON)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) == 0 {
			if ctx.RequestHint() != nil || taken > 0 {
				t.Fatal("no envelope")
			}
			return
		}
		e, err := hint.DecodeEnvelope(hint.FormatJSON, out)
		if err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		fetches := 0
		for i, a := range e.Actions {
			if i >= before && a.ActionID == "" || i >= before && a.ActionVersion == "" {
				t.Fatalf("action %d has no id or version: %s", i, out)
			}
			if a.ActionType == "kv.fetch" && i >= before {
				fetches++
			}
		}
		if fetches > 1 && !many {
			t.Fatalf("%d fetches: %s", fetches, out)
		}
		var again hint.Context
		if err := again.Decode(hint.FormatJSON, []byte(`{"request_id":"r1","selected":{"worker_id":7},"request_hint":`+string(out)+`}`), hint.ContextOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Begin(&again, hint.Target{}, nil)
		if same, err := c.Append(nil, hint.FormatJSON); err != nil || !bytes.Equal(same, out) {
			t.Fatalf("%v: %s\nbecomes %s", err, out, same)
		}
	})
}
