package hint_test

import (
	"math"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// TestFaults: what is wrong with one action rejects that action and no other.
func TestFaults(t *testing.T) {
	none, malformed := abi.ReasonNone, abi.ReasonMalformedAction
	tests := []struct {
		action any
		reason abi.Reason
		detail string
	}{
		{obj{"action_type", "t"}, none, ""},
		{obj{"action_id", "i", "action_type", "t", "action_version", "1.0", "payload", obj{}}, none, ""},
		{obj{"action_id", nil, "action_type", "t", "action_version", nil, "payload", nil}, none, ""},
		{obj{"action_id", "", "action_type", "t", "action_version", ""}, none, ""},
		{obj{"action_id", 123, "action_type", "t", "action_version", 1.5}, none, ""},
		{obj{"action_type", "t", "unknown", arr{1, obj{"a", "b"}}, "payloads", 5}, none, ""},
		{5, malformed, "the action must be a mapping, not a number"},
		{nil, malformed, "the action must be a mapping, not null"},
		{"x", malformed, "the action must be a mapping, not a string"},
		{arr{1}, malformed, "the action must be a mapping, not a list"},
		{arr{"a1", "kv.fetch", "1.0", obj{}}, malformed, "the action must be a mapping, not a list"},
		{true, malformed, "the action must be a mapping, not a bool"},
		{obj{}, malformed, "action_type is missing"},
		{obj{"action_type", nil}, malformed, "action_type is missing"},
		{obj{"action_type", ""}, malformed, "action_type is empty"},
		{obj{"action_type", 5}, malformed, "action_type must be a string, not a number"},
		{obj{"action_type", 5.5}, malformed, "action_type must be a string, not a number"},
		{obj{"action_type", true}, malformed, "action_type must be a string, not a bool"},
		{obj{"action_type", arr{"t"}}, malformed, "action_type must be a string, not a list"},
		{obj{"action_type", obj{}}, malformed, "action_type must be a string, not a mapping"},
		{obj{"action_type", "t", "action_id", false}, malformed, "action_id must be a string or a number, not a bool"},
		{obj{"action_type", "t", "action_id", arr{}}, malformed, "action_id must be a string or a number, not a list"},
		{obj{"action_type", "t", "action_version", obj{}}, malformed, "action_version must be a string or a number, not a mapping"},
		{obj{"action_type", "t", "action_version", arr{1}}, malformed, "action_version must be a string or a number, not a list"},
		{obj{"action_type", "t", "payload", "bad"}, malformed, "payload must be a mapping, not a string"},
		{obj{"action_type", "t", "payload", arr{obj{}}}, malformed, "payload must be a mapping, not a list"},
		{obj{"action_type", "t", "payload", arr{1, 2}}, malformed, "payload must be a mapping, not a list"},
		{obj{"action_type", "t", "payload", false}, malformed, "payload must be a mapping, not a bool"},
		{obj{"action_type", "t", "payload", 0}, malformed, "payload must be a mapping, not a number"},
		// The first field counts, in whatever order they were sent.
		{obj{"payload", 1, "action_version", true, "action_type", 3, "action_id", true}, malformed, "action_id must be a string or a number, not a bool"},
		{obj{"payload", 1, "action_version", true, "action_type", 3}, malformed, "action_type must be a string, not a number"},
		{obj{"payload", 1, "action_version", true}, malformed, "action_type is missing"},
		{obj{"action_type", "t", "payload", 1, "action_version", true}, malformed, "action_version must be a string or a number, not a bool"},
	}
	var all arr
	for _, test := range tests {
		all = append(all, test.action)
		both(t, envelope(fetch(obj{"a", 1}), test.action, fetch(obj{"b", 2})), func(t *testing.T, f *hint.Frame) {
			reason, detail := f.Action(1).Fault()
			if reason != test.reason || detail != test.detail {
				t.Errorf("%s: %v %q, want %v %q", js(test.action), reason, detail, test.reason, test.detail)
			}
			for _, i := range []int{0, 2} {
				if reason, detail := f.Action(i).Fault(); reason != none {
					t.Errorf("%s: its neighbour: %v %s", js(test.action), reason, detail)
				}
			}
			if want := 3; reason != none {
				want = 2
				if f.Listed() != want {
					t.Errorf("%d listed", f.Listed())
				}
			}
			if raw := string(f.Action(1).RawAction()); raw != string(js(test.action)) && raw != string(mp(test.action)) {
				t.Errorf("%s: raw %q", js(test.action), raw)
			}
		})
	}
	both(t, envelope(all...), func(t *testing.T, f *hint.Frame) {
		for i, test := range tests {
			if reason, detail := f.Action(i).Fault(); reason != test.reason || detail != test.detail {
				t.Errorf("%s: %v %q", js(test.action), reason, detail)
			}
		}
	})
}

// TestFaultsMsgpack: what only msgpack can express.
func TestFaultsMsgpack(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	nest := func(n int, v any) any {
		for range n {
			v = arr{v}
		}
		return v
	}
	tests := []struct {
		action any
		reason abi.Reason
		detail string
	}{
		{fetch(obj{"a", inf}), abi.ReasonInvalidPayload, "payload.a: NaN or infinite"},
		{fetch(obj{"x", 1, "duration", obj{"list", arr{1, 2.5, arr{-inf}}}}), abi.ReasonInvalidPayload, "payload.duration.list[2][0]: NaN or infinite"},
		{fetch(obj{"block_hashes", arr{1, 2, nan}}), abi.ReasonInvalidPayload, "payload.block_hashes[2]: NaN or infinite"},
		{fetch(obj{"f", float32(math.Inf(-1))}), abi.ReasonInvalidPayload, "payload.f: NaN or infinite"},
		{fetch(obj{"a b", arr{nan}}), abi.ReasonInvalidPayload, `payload["a b"][0]: NaN or infinite`},
		{fetch(obj{5, nan}), abi.ReasonInvalidPayload, "payload[key 5]: NaN or infinite"},
		{fetch(obj{-5, nan}), abi.ReasonInvalidPayload, "payload[key -5]: NaN or infinite"},
		{fetch(obj{1, 2, nan, 1}), abi.ReasonInvalidPayload, "payload key 1: NaN or infinite"},
		{fetch(obj{arr{1, nan}, 1}), abi.ReasonInvalidPayload, "payload key 0: NaN or infinite"},
		{fetch(obj{arr{1}, nan}), abi.ReasonInvalidPayload, "payload[key a list]: NaN or infinite"},
		{fetch(obj{strings.Repeat("k", 1000), nan}), abi.ReasonInvalidPayload, `payload["` + strings.Repeat("k", 64) + `"]: NaN or infinite`},
		{fetch(obj{"a", nest(32, 1)}), abi.ReasonNone, ""},
		{fetch(obj{"a", nest(33, 1)}), abi.ReasonInvalidPayload, "payload is nested deeper than 32"},
		{fetch(obj{"a", nest(31, obj{})}), abi.ReasonInvalidPayload, "payload is nested deeper than 32"},
		{fetch(obj{nest(33, 1), 1}), abi.ReasonInvalidPayload, "payload is nested deeper than 32"},
		{fetch(obj{"a", raw(strings.Repeat("\x91", 200000) + "\xc0")}), abi.ReasonInvalidPayload, "payload is nested deeper than 32"},
		{fetch(obj{"a", raw(strings.Repeat("\x81\x01", 200000) + "\xa2é")}), abi.ReasonInvalidPayload, "payload is nested deeper than 32"},
		{fetch(obj{"text", strings.Repeat("x", 1000), "a", nest(40, 1)}), abi.ReasonInvalidPayload, "payload is nested deeper than 32"},
		{fetch(obj{"a", nest(40, nan), "b", nan}), abi.ReasonInvalidPayload, "payload is nested deeper than 32"},
		{fetch(nest(40, 1)), abi.ReasonMalformedAction, "payload must be a mapping, not a list"},
		{nest(40, 1), abi.ReasonMalformedAction, "the action must be a mapping, not a list"},
		{obj{"action_type", "t", "x", nan, "y", nest(60, 1)}, abi.ReasonNone, ""}, // not in the payload
		{obj{"action_type", "t", 5, 6, nil, 7, arr{1}, 8, "payload", obj{}}, abi.ReasonNone, ""},
		{obj{"action_type", []byte("t")}, abi.ReasonMalformedAction, "action_type must be a string, not bytes"},
		{obj{"action_type", "t", "action_id", ext{1, "x"}}, abi.ReasonMalformedAction, "action_id must be a string or a number, not an extension"},
		{obj{"action_type", "t", "action_id", nest(40, 1)}, abi.ReasonMalformedAction, "action_id must be a string or a number, not a list"},
		{obj{"action_type", "t", "payload", []byte("t")}, abi.ReasonMalformedAction, "payload must be a mapping, not bytes"},
		{obj{[]byte("action_type"), "t"}, abi.ReasonMalformedAction, "action_type is missing"},
	}
	for _, test := range tests {
		f := mustDecode(t, hint.FormatMsgpack, mp(envelope(fetch(obj{"a", 1}), test.action, fetch(obj{"b", 2}))))
		reason, detail := f.Action(1).Fault()
		if reason != test.reason || detail != test.detail {
			t.Errorf("%.200v: %v %q, want %v %q", test.action, reason, detail, test.reason, test.detail)
		}
		if got := showPayload(f.Action(2)); got != `{"b":u2}` {
			t.Errorf("%.200v: its neighbour: %s", test.action, got)
		}
		if test.reason == abi.ReasonInvalidPayload && strings.Contains(detail, "deeper") && (len(f.Action(1).Base) > 128 || f.Action(1).Payload.Tag != abi.TagAbsent) {
			t.Errorf("%.200v: its block has %d bytes", test.action, len(f.Action(1).Base))
		}
		if raw := string(f.Action(1).RawAction()); raw != string(mp(test.action)) {
			t.Errorf("%.200v: raw %.200q", test.action, raw)
		}
	}
}

// TestText: ids and versions become strings as Python's str spells them.
func TestText(t *testing.T) {
	type test struct {
		val  any
		want string
	}
	check := func(f *hint.Frame, want string) {
		t.Helper()
		a := f.Action(0)
		for _, got := range [][]byte{a.ID, a.Version, f.ProtocolVersion(), f.MessageID()} {
			if got == nil || string(got) != want {
				t.Errorf("%v: got %q, want %q", f.Format(), got, want)
			}
		}
	}
	doc := func(v any) obj {
		return obj{"protocol_version", v, "message_id", v, "actions", arr{obj{"action_id", v, "action_type", "t", "action_version", v}}}
	}
	for _, test := range []test{
		{"", ""}, {"x", "x"}, {"é\"", "é\""}, {strings.Repeat("long", 100), strings.Repeat("long", 100)}, {123, "123"}, {0, "0"}, {-7, "-7"}, {uint64(math.MaxUint64), "18446744073709551615"}, {math.MinInt64, "-9223372036854775808"},
		{1.0, "1.0"}, {0.1, "0.1"}, {1.5, "1.5"}, {-2.0, "-2.0"}, {1e15, "1000000000000000.0"}, {1e16, "1e+16"}, {1.5e300, "1.5e+300"}, {1e-4, "0.0001"}, {1e-5, "1e-05"}, {1.25e-7, "1.25e-07"}, {0.0, "0.0"},
		{123456789012345680.0, "1.2345678901234568e+17"}, {5e-324, "5e-324"},
	} {
		both(t, doc(test.val), func(_ *testing.T, f *hint.Frame) { check(f, test.want) })
	}
	for _, test := range []test{
		{num("18446744073709551616"), "18446744073709551616"}, {num("-9223372036854775809"), "-9223372036854775809"}, {num("1e400"), "inf"}, {num("-1e400"), "-inf"}, {num("1.50"), "1.5"}, {num("-0"), "0"}, {num("-0.0"), "-0.0"}, {num("1E2"), "100.0"},
		{raw(` "\u0041" `), "A"},
	} {
		check(mustDecode(t, hint.FormatJSON, js(doc(test.val))), test.want)
	}
	for _, test := range []test{{math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"}, {float32(0.5), "0.5"}} {
		check(mustDecode(t, hint.FormatMsgpack, mp(doc(test.val))), test.want)
	}
	// Absent: not sent, null, and at the level of the envelope whatever is no text.
	for _, v := range []any{nil, true, arr{1}, obj{"a", "b"}} {
		both(t, obj{"protocol_version", v, "message_id", v, "actions", arr{}}, func(t *testing.T, f *hint.Frame) {
			if f.ProtocolVersion() != nil || f.MessageID() != nil {
				t.Errorf("%v: %q %q", v, f.ProtocolVersion(), f.MessageID())
			}
		})
	}
	both(t, obj{"actions", arr{obj{"action_id", nil, "action_type", "t"}}}, func(t *testing.T, f *hint.Frame) {
		if a := f.Action(0); f.ProtocolVersion() != nil || f.MessageID() != nil || a.ID != nil || a.Version != nil || a.Payload.Tag != abi.TagAbsent || a.RawPayload() != nil {
			t.Error("something that was not sent is there")
		}
	})
	both(t, obj{"actions", arr{obj{"action_type", "t", "payload", nil}}}, func(t *testing.T, f *hint.Frame) {
		if a := f.Action(0); a.Payload.Tag != abi.TagAbsent || a.RawPayload() != nil {
			t.Error("a null payload is not absent")
		}
	})
}
