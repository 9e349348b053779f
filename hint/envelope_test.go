package hint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func TestEnvelope(t *testing.T) {
	e, err := hint.DecodeEnvelope(hint.FormatUnknown, goldenBytes(t))
	if err != nil {
		t.Fatal(err)
	}
	if e.ProtocolVersion != "0.1" || e.MessageID != "m1" || len(e.Actions) != 1 || e.Actions[0].ActionID != "a1" || e.Actions[0].ActionType != "kv.fetch" || e.Actions[0].ActionVersion != "1.0" {
		t.Errorf("%+v", e)
	}
	if out, err := e.AppendMsgpack(nil); err != nil || !bytes.Equal(out, goldenBytes(t)) {
		t.Errorf("%x, %v", out, err)
	}
	text, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(text), `"block_hashes":[11,18446744073709551615]`) {
		t.Errorf("%s, %v", text, err)
	}
	var back hint.Envelope
	if err := json.Unmarshal(text, &back); err != nil || !back.Actions[0].Payload.Equal(e.Actions[0].Payload) {
		t.Error(err)
	}
	f, err := e.Frame(testID)
	if err != nil || !bytes.Equal(f.Bytes(), mustDecode(t, 0, goldenBytes(t)).Bytes()) {
		t.Errorf("%x, %v", f.Bytes(), err)
	}
	var action hint.Action
	if err := json.Unmarshal([]byte(`{"action_id":"x","action_type":"t","payload":{"a":18446744073709551615}}`), &action); err != nil || action.ActionID != "x" || action.Payload.Len() != 1 {
		t.Errorf("%+v, %v", action, err)
	}
	if text, err := json.Marshal(action); err != nil || string(text) != `{"action_id":"x","action_type":"t","action_version":"","payload":{"a":18446744073709551615}}` {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := json.Marshal(hint.Envelope{}); err != nil || string(text) != `{"protocol_version":"","message_id":"","actions":[]}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestEnvelopeCoerces(t *testing.T) {
	both(t, obj{"actions", arr{obj{"action_id", 123, "action_type", "t", "action_version", 1.0}}}, func(t *testing.T, f *hint.Frame) {
		e, err := f.Envelope()
		if err != nil || e.Actions[0].ActionID != "123" || e.Actions[0].ActionVersion != "1.0" || e.ProtocolVersion != "" || e.Actions[0].Payload.Len() != 0 {
			t.Errorf("%+v, %v", e, err)
		}
		if out, err := e.AppendJSON(nil); err != nil || string(out) != `{"protocol_version":"","message_id":"","actions":[{"action_id":"123","action_type":"t","action_version":"1.0","payload":{}}]}` {
			t.Errorf("%s, %v", out, err)
		}
	})
}

func TestEnvelopeErrors(t *testing.T) {
	_, err := hint.DecodeEnvelope(hint.FormatJSON, js(envelope(fetch(obj{}), obj{"action_type", 5})))
	var bad *hint.ActionError
	if !errors.As(err, &bad) || bad.Index != 1 || bad.Reason != abi.ReasonMalformedAction || err.Error() != "actions[1]: action_type must be a string, not a number" {
		t.Error(err)
	}
	var malformed *hint.MalformedError
	if _, err = hint.DecodeEnvelope(hint.FormatJSON, []byte(`{"actions":1}`)); !errors.As(err, &malformed) {
		t.Error(err)
	}
	var e hint.Envelope
	if err := json.Unmarshal([]byte(`{"actions":1}`), &e); !errors.As(err, &malformed) {
		t.Error(err)
	}
	for _, e := range []hint.Envelope{
		{MessageID: "\xff"}, {ProtocolVersion: "\xff"}, {Actions: []hint.Action{{ActionID: "\xff"}}}, {Actions: []hint.Action{{ActionType: "\xff"}}}, {Actions: []hint.Action{{ActionVersion: "\xff"}}},
	} {
		if out, err := e.AppendJSON([]byte("x")); err == nil || string(out) != "x" {
			t.Errorf("%+v was written", e)
		}
		if _, err := e.Frame(testID); err == nil {
			t.Errorf("%+v was framed", e)
		}
	}
	p, err := hint.PayloadFromMsgpack(mp(obj{"a", []byte("x")}))
	if err != nil {
		t.Fatal(err)
	}
	e = hint.Envelope{Actions: []hint.Action{{}, {Payload: p}}}
	if out, err := e.AppendJSON([]byte("x")); err == nil || err.Error() != "actions[1]: payload.a: bytes cannot be written as JSON" || string(out) != "x" {
		t.Error(err)
	}
}

func TestPayload(t *testing.T) {
	a, b := payload(t, `{"x":[1,2,18446744073709551615],"y":{"z":-1,"f":1.0}}`), payload(t, ` { "x" : [ 1, 2, 18446744073709551615 ], "y" : { "z" : -1, "f" : 1.00 } } `)
	packed, err := a.AppendMsgpack(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := hint.PayloadFromMsgpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	d, err := hint.PayloadFromBase(a.Base(), a.Root())
	if err != nil {
		t.Fatal(err)
	}
	f := mustDecode(t, 0, js(envelope(fetch(obj{"x", arr{1, 2, uint64(math.MaxUint64)}, "y", obj{"z", -1, "f", 1.0}}))))
	e, err := f.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []hint.Payload{b, c, d, e.Actions[0].Payload} {
		if !a.Equal(p) {
			t.Errorf("%d: not equal", i)
		}
		if err := abi.CheckTree(p.Base(), p.Root()); err != nil {
			t.Error(err)
		}
		if text, err := json.Marshal(p); err != nil || string(text) != `{"x":[1,2,18446744073709551615],"y":{"z":-1,"f":1.0}}` {
			t.Errorf("%s, %v", text, err)
		}
	}
	for _, other := range []string{`{}`, `{"y":{"z":-1,"f":1.0},"x":[1,2,18446744073709551615]}`, `{"x":[1,2,18446744073709551615],"y":{"z":-1,"f":1}}`, `{"x":[1,2,18446744073709551614],"y":{"z":-1,"f":1.0}}`} {
		if a.Equal(payload(t, other)) {
			t.Errorf("equal to %s", other)
		}
	}
	var zero hint.Payload
	empty, err := hint.PayloadFromBase(nil, abi.Node{})
	if err != nil || !zero.Equal(payload(t, "{ }")) || !zero.Equal(empty) || zero.Len() != 0 {
		t.Error("the zero payload is not the empty mapping")
	}
	if text, err := zero.MarshalJSON(); err != nil || string(text) != "{}" {
		t.Errorf("%s, %v", text, err)
	}
	if packed, err := zero.AppendMsgpack(nil); err != nil || string(packed) != "\x80" {
		t.Errorf("%x, %v", packed, err)
	}
	if err := json.Unmarshal([]byte("null"), &a); err != nil || !a.Equal(zero) {
		t.Error("null is not the empty mapping")
	}
	// What is made from bytes does not change with them.
	text := []byte(`{"a":"text"}`)
	p, err := hint.PayloadFromJSON(text)
	copy(text, bytes.Repeat([]byte("#"), len(text)))
	if err != nil || !p.Equal(payload(t, `{"a":"text"}`)) {
		t.Error("a payload changed")
	}
	for text, want := range map[string]string{
		"[]": "payload must be a mapping, not a list", "5": "payload must be a mapping, not a number", "{": "malformed payload: unexpected end, expected a string key at offset 1", "": "malformed payload: unexpected end, expected a value at offset 0",
		`{"a":1,"a":1}`: "malformed payload: duplicate key at offset 7",
	} {
		if _, err := hint.PayloadFromJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := hint.PayloadFromMsgpack(mp(obj{"a", math.NaN()})); err == nil || err.Error() != "payload.a: NaN or infinite" {
		t.Error(err)
	}
}

func TestDocument(t *testing.T) {
	var doc hint.Document
	frame := []byte("12345678901") // the tree becomes a part of it
	for _, body := range [][]byte{js(obj{"a", arr{1, 2}, "s", "text"}), mp(obj{"a", arr{1, 2}, "s", "text"})} {
		out, root, err := doc.Append(frame, hint.Detect(body), body)
		if err != nil || !bytes.HasPrefix(out, frame) {
			t.Fatal(err)
		}
		if got := show(out, root); got != `{"a":u[1 2] "s":"text"}` {
			t.Error(got)
		}
		if err := abi.CheckTree(out, root); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		format     hint.Format
		body, want string
	}{
		{hint.FormatJSON, "{} x", "malformed document: trailing bytes at offset 3"}, {hint.FormatJSON, "", "malformed document: unexpected end, expected a value at offset 0"},
		{hint.FormatMsgpack, "\x01\x02", "malformed document: trailing bytes at offset 1"}, {hint.FormatMsgpack, "", "malformed document: unexpected end, expected a value at offset 0"},
		{hint.FormatUnknown, "{}", "malformed document: neither JSON nor msgpack at offset 0"}, {hint.FormatJSON, "\xef\xbb\xbf1", "malformed document: a byte order mark, which JSON does not have at offset 0"},
		{hint.FormatMsgpack, strings.Repeat("\x91", 33) + "\xc0", "malformed document: nested deeper than 32 at offset 0"}, {hint.FormatJSON, strings.Repeat("[", 33), "malformed document: nested deeper than 32 at offset 32"},
		{hint.FormatJSON, `{"a":"b`, "malformed document: unexpected end in a string at offset 7"},
	} {
		out, root, err := doc.Append(frame, test.format, []byte(test.body))
		if err == nil || err.Error() != test.want || !bytes.Equal(out, frame) || root.Tag != abi.TagAbsent {
			t.Errorf("%.20q: %v", test.body, err)
		}
	}
	doc.Limits.FrameBytes = 100
	if _, _, err := doc.Append(frame, hint.FormatJSON, []byte("[1,2]")); err != nil {
		t.Error(err)
	}
	if out, _, err := doc.Append(frame, hint.FormatJSON, []byte("[1,2,3,4,5,6,7,8,9,10,11,12]")); err == nil || !strings.Contains(err.Error(), "larger than 100 bytes") || !bytes.Equal(out, frame) {
		t.Error(err)
	}
	doc.Limits.BodyBytes = 4
	if _, _, err := doc.Append(frame, hint.FormatJSON, []byte(`"xx"`)); err != nil {
		t.Error(err)
	}
	if out, _, err := doc.Append(frame, hint.FormatJSON, []byte(`"xxx"`)); err == nil || err.Error() != "malformed document: a body of 5 bytes, 4 are allowed at offset 4" || !bytes.Equal(out, frame) {
		t.Error(err)
	}
	doc.Limits = hint.Limits{}
	full := make([]byte, 64<<20-64)
	for _, write := range []func(any) []byte{js, mp} {
		body := write(strings.Repeat("x", 4<<20))
		if out, _, err := hint.AppendTree(frame, hint.Detect(body), body); err == nil || !strings.Contains(err.Error(), "4194304 are allowed") || !bytes.Equal(out, frame) {
			t.Error(err)
		}
		body = write(arr{nil, nil, nil, nil})
		if _, _, err := hint.AppendTree(full, hint.Detect(body), body); err != nil {
			t.Error(err)
		}
		body = write(arr{nil, nil, nil, nil, nil})
		if out, _, err := hint.AppendTree(full, hint.Detect(body), body); err == nil || !strings.Contains(err.Error(), "larger than 67108864 bytes") || len(out) != len(full) {
			t.Error(err)
		}
	}
	// Used again, it allocates nothing, for large documents either.
	var again hint.Document
	for _, body := range [][]byte{js(many("key", 20000)), mp(many("key", 20000)), mp(make(arr, 40000)), js(obj{"a", arr{many("k", 500), many("k", 1000)}})} {
		fill := func() {
			var err error
			if frame, _, err = again.Append(frame[:0], hint.Detect(body), body); err != nil {
				t.Fatal(err)
			}
		}
		fill()
		if n := testing.AllocsPerRun(3, fill); n != 0 {
			t.Errorf("%.10q: %v allocations", body, n)
		}
	}
	for _, body := range []string{"5", `"x"`, "null", "[1,2]", strings.Repeat("[", 32) + strings.Repeat("]", 32)} {
		if _, _, err := doc.Append(nil, hint.FormatJSON, []byte(body)); err != nil {
			t.Error(err)
		}
	}
}

func TestResult(t *testing.T) {
	r := hint.Result{Index: 0, ActionID: []byte("a1"), ActionType: []byte("kv.fetch"), ActionVersion: []byte("1.0"), Status: abi.StatusAccepted, Guest: "kv-fetch", Generation: 1, Fuel: 412, DurationNS: 640}
	const want = `{"index":0,"action_id":"a1","action_type":"kv.fetch","action_version":"1.0","status":"ACCEPTED","reason":"","detail":"","guest":"kv-fetch","generation":1,"fuel":412,"duration_ns":640}`
	if got := string(r.AppendJSON([]byte("x"))); got != "x"+want {
		t.Error(got)
	}
	bad := hint.Result{Index: 300, ActionType: []byte("a\"b\\\n"), Status: abi.StatusRejected, Reason: abi.ReasonInvalidPayload, Detail: []byte("cut \xc3"), Generation: math.MaxUint64, Fuel: math.MaxUint64, DurationNS: -1}
	const wantBad = `{"index":300,"action_id":"","action_type":"a\"b\\\n","action_version":"","status":"REJECTED","reason":"invalid_payload","detail":"cut ` + "\ufffd" + `","guest":"","generation":18446744073709551615,"fuel":18446744073709551615,"duration_ns":-1}`
	if got := string(bad.AppendJSON(nil)); got != wantBad || !json.Valid([]byte(got)) {
		t.Error(got)
	}
	for r, want := range map[*hint.Result]string{&r: want, &bad: wantBad} {
		base, n, err := hint.AppendTree(nil, hint.FormatMsgpack, r.AppendMsgpack(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := hint.AppendTreeJSON(nil, base, n); err != nil || string(got) != want {
			t.Errorf("msgpack: %s, %v", got, err)
		}
	}
}

// TestAllocs: what runs for every hint allocates nothing once its buffers have grown.
func TestAllocs(t *testing.T) {
	var f hint.Frame
	var out, sub []byte
	var doc hint.Document
	check := func(name string, fn func()) {
		t.Helper()
		fn()
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	big := obj{}
	for i := range 200 {
		big = append(big, strings.Repeat("k", i), 1.5)
	}
	bodies := map[string][]byte{
		"json bare": js(envelope(obj{"action_type", "t", "payload", obj{}})), "msgpack bare": mp(envelope(obj{"action_type", "t", "payload", obj{}})),
		"json big": js(envelope(fetch(big))), "msgpack big": mp(envelope(fetch(append(obj{5, 6}, big...)))),
		"json 1": fetchJSON(1, ","), "json 1024": fetchJSON(1024, ", "), "msgpack 1": fetchMsgpack(t, 1), "msgpack 1024": fetchMsgpack(t, 1024),
		"json other":    js(obj{"\u0001x", 1, "actions", arr{fetch(obj{"é\n", arr{-1, 1.25, true, nil, "\t"}, "n", num("9" + strings.Repeat("0", 30))}), obj{"action_id", 1.5, "action_type", "t", "z", big}}}),
		"msgpack other": mp(obj{"x", 1, 5, 6, "actions", arr{fetch(obj{"é\n", arr{-1, 1.25, true, nil, []byte("b"), ext{1, "x"}}, "big", big}), obj{"action_id", 1.5, "action_type", "t", "z", arr{1}}}}),
	}
	for name, body := range bodies {
		check("decode "+name, func() {
			if err := f.Decode(0, body, hint.Limits{}); err != nil {
				t.Fatal(err)
			}
			f.Finish(testID)
			for i := range f.Len() {
				a := f.Action(i)
				if reason, _ := a.Fault(); reason != abi.ReasonNone || a.RawPayload() == nil && len(a.Type) == 0 {
					t.Fatal(reason)
				}
			}
		})
		pick, actions := []int32{0}, []hint.Forward{{Index: 0}}
		check("subset "+name, func() { sub = f.AppendSubset(sub[:0], pick, true) })
		check("forward "+name, func() {
			var err error
			if out, err = hint.AppendEnvelope(out[:0], f.Format(), &f, actions); err != nil {
				t.Fatal(err)
			}
		})
		loaded, answer := new(hint.Frame), f.AppendSubset(nil, pick, false)
		check("load "+name, func() {
			if err := loaded.Load(f.Format(), answer, hint.Limits{}); err != nil {
				t.Fatal(err)
			}
		})
		check("check forward "+name, func() {
			if reason, detail := loaded.CheckForward(loaded.Action(0).Base); reason != abi.ReasonNone {
				t.Fatal(detail)
			}
		})
		check("document "+name, func() {
			var err error
			if out, _, err = doc.Append(out[:0], hint.Detect(body), body); err != nil {
				t.Fatal(err)
			}
		})
	}
	r := hint.Result{ActionID: []byte("a1"), ActionType: []byte("kv.fetch"), Detail: []byte("detail"), Guest: "g", Fuel: 1}
	check("result", func() { out = r.AppendMsgpack(r.AppendJSON(out[:0])) })
}
