package hint_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// golden is an envelope as a minimal msgpack encoder with string-keyed maps writes it.
const golden = "83b070726f746f636f6c5f76657273696f6ea3302e31aa6d6573736167655f6964a26d31a7616374696f6e739184a9616374696f6e5f6964a26131" +
	"ab616374696f6e5f74797065a86b762e6665746368ae616374696f6e5f76657273696f6ea3312e30a77061796c6f616482b7736f757263655f636f6e74726f6c5f656e64706f696e74" +
	"a97463703a2f2f683a31ac626c6f636b5f686173686573920bcfffffffffffffffff"

func goldenBytes(tb testing.TB) []byte {
	b, err := hex.DecodeString(golden)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestGolden(t *testing.T) {
	f := mustDecode(t, hint.FormatUnknown, goldenBytes(t))
	a := f.Action(0)
	if got := showPayload(a); got != `{"source_control_endpoint":"tcp://h:1" "block_hashes":u[11 18446744073709551615]}` {
		t.Error(got)
	}
	if string(f.ProtocolVersion()) != "0.1" || string(f.MessageID()) != "m1" || string(a.ID) != "a1" || string(a.Type) != "kv.fetch" || string(a.Version) != "1.0" {
		t.Error(string(f.ProtocolVersion()), string(f.MessageID()), string(a.ID), string(a.Type), string(a.Version))
	}
	const text = `{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":"kv.fetch","action_version":"1.0",` +
		`"payload":{"source_control_endpoint":"tcp://h:1","block_hashes":[11,18446744073709551615]}}]}`
	out, err := hint.AppendEnvelope(nil, hint.FormatJSON, f, []hint.Forward{{Index: 0}})
	if err != nil || string(out) != text {
		t.Errorf("%s, %v", out, err)
	}
	back := mustDecode(t, hint.FormatUnknown, out)
	if !bytes.Equal(back.Bytes(), f.Bytes()) {
		t.Error("the two encodings of one envelope give different frames")
	}
	out, err = hint.AppendEnvelope(nil, hint.FormatMsgpack, back, []hint.Forward{{Index: 0}})
	if err != nil || hex.EncodeToString(out) != golden {
		t.Errorf("%x, %v", out, err)
	}
	e := abi.EnvelopeFrame(f.Bytes())
	if string(e.RequestID()) != "req-1" || string(e.Engine()) != "vllm" || e.Leg() != abi.LegPrefill || e.DPRank() != 3 || e.Attempt() != 2 || e.Total() != 1 || e.Count() != 1 {
		t.Errorf("identity: %q %q %v %d %d %d %d", e.RequestID(), e.Engine(), e.Leg(), e.DPRank(), e.Attempt(), e.Total(), e.Count())
	}
}

// TestValues: what a payload may hold and what it becomes, in both encodings.
func TestValues(t *testing.T) {
	long := strings.Repeat("x", 70000)
	tests := []struct {
		val  any
		want string
	}{
		{nil, "null"}, {true, "true"}, {false, "false"},
		{0, "u0"}, {127, "u127"}, {128, "u128"}, {uint64(1<<53 + 1), "u9007199254740993"}, {uint64(math.MaxUint64), "u18446744073709551615"},
		{-1, "i-1"}, {-32, "i-32"}, {-33, "i-33"}, {math.MinInt64, "i-9223372036854775808"},
		{0.0, "f0"}, {1.0, "f1"}, {1.5, "f1.5"}, {-2.5e-300, "f-2.5e-300"}, {math.MaxFloat64, "f1.7976931348623157e+308"}, {5e-324, "f5e-324"},
		{"", `""`}, {"a", `"a"`}, {"12345678", `"12345678"`}, {"123456789", `"123456789"`}, {"1234567890123456", `"1234567890123456"`},
		{"12345678901234567", `"12345678901234567"`}, {strings.Repeat("y", 31), `"` + strings.Repeat("y", 31) + `"`}, {strings.Repeat("y", 32), `"` + strings.Repeat("y", 32) + `"`},
		{long, `"` + long + `"`}, {"é", `"é"`}, {"日本語のテキスト", `"日本語のテキスト"`}, {"a\"b\\c\n\x01", `"a\"b\\c\n\x01"`}, {"\U0001f600", `"😀"`}, {strings.Repeat("é", 12), `"` + strings.Repeat("é", 12) + `"`},
		{"\x00", `"\x00"`},
		{arr{}, "[]"}, {obj{}, "{}"}, {arr{arr{}, obj{}}, "[[] {}]"},
		{arr{1}, "u[1]"}, {arr{1, uint64(math.MaxUint64), 3}, "u[1 18446744073709551615 3]"},
		{arr{1, -1}, "[u1 i-1]"}, {arr{-1, 1}, "[i-1 u1]"}, {arr{1, 2, 1.0}, "[u1 u2 f1]"}, {arr{1, true}, "[u1 true]"}, {arr{1, nil}, "[u1 null]"},
		{arr{1, "x"}, `[u1 "x"]`}, {arr{1, arr{2}}, "[u1 u[2]]"}, {arr{arr{1}, arr{2, -3}}, "[u[1] [u2 i-3]]"}, {arr{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -11}, "[u1 u2 u3 u4 u5 u6 u7 u8 u9 u10 i-11]"},
		{obj{"b", 1, "a", obj{"c", arr{1, 2}}}, `{"b":u1 "a":{"c":u[1 2]}}`},
		{arr{"s", arr{1, 2}, "t", arr{3}}, `["s" u[1 2] "t" u[3]]`},
	}
	for _, test := range tests {
		both(t, envelope(fetch(obj{"v", test.val})), func(t *testing.T, f *hint.Frame) {
			if got := showPayload(f.Action(0)); got != `{"v":`+test.want+`}` {
				t.Errorf("%v: got %s", f.Format(), got)
			}
			if reason, detail := f.Action(0).Fault(); reason != abi.ReasonNone {
				t.Errorf("%v: %v %s", f.Format(), reason, detail)
			}
		})
	}
}

// TestValuesJSON: what only JSON can write.
func TestValuesJSON(t *testing.T) {
	digits400 := strings.Repeat("9", 400)
	tests := []struct{ text, want string }{
		{"18446744073709551616", "n18446744073709551616"}, {"-9223372036854775809", "n-9223372036854775809"},
		{digits400, "n" + digits400}, {"-" + digits400, "n-" + digits400}, {"1e400", "n1e400"}, {"-1e400", "n-1e400"}, {"1E+400", "n1E+400"},
		{"1e-400", "f0"}, {"1e5", "f100000"}, {"1E5", "f100000"}, {"1.0", "f1"}, {"-0", "u0"}, {"-0.0", "f-0"}, {"0.5", "f0.5"}, {"1e16", "f1e+16"},
		{"12345678", "u12345678"}, {"123456789", "u123456789"}, {"1234567890123456", "u1234567890123456"}, {"12345678901234567", "u12345678901234567"},
		{"-12345678901234567", "i-12345678901234567"},
		{"[18446744073709551616]", "[n18446744073709551616]"}, {"[1,18446744073709551616,2]", "[u1 n18446744073709551616 u2]"},
		{"[-0]", "u[0]"}, {"[-0,1]", "u[0 1]"}, {"[1,-0]", "u[1 0]"}, {"[-0,-1]", "[u0 i-1]"}, {"[0]", "u[0]"}, {"[0,0,10,0]", "u[0 0 10 0]"},
		{" [ 1 , 2 ,\n3\t,\r4 ] ", "u[1 2 3 4]"}, {"[1, 2,  3]", "u[1 2 3]"}, {"[ ]", "[]"}, {"{ }", "{}"}, {"[\n]", "[]"},
		{"[1,12,123,1234,12345,123456,1234567,12345678,123456789,1234567890]", "u[1 12 123 1234 12345 123456 1234567 12345678 123456789 1234567890]"},
		{"[12345678901,123456789012,1234567890123,12345678901234,123456789012345,1234567890123456]",
			"u[12345678901 123456789012 1234567890123 12345678901234 123456789012345 1234567890123456]"},
		{"[12345678901234567,123456789012345678,1234567890123456789,12345678901234567890,1]",
			"u[12345678901234567 123456789012345678 1234567890123456789 12345678901234567890 1]"},
		{"[18446744073709551614,18446744073709551615,18446744073709551616,18446744073709551617,99999999999999999999,1]",
			"[u18446744073709551614 u18446744073709551615 n18446744073709551616 n18446744073709551617 n99999999999999999999 u1]"},
		{"[123456789012345678901,1,1,1,1,1,1]", "[n123456789012345678901 u1 u1 u1 u1 u1 u1]"},
		{"[123456789012345678901234567,1,1]", "[n123456789012345678901234567 u1 u1]"},
		{"[1,2.5,3]", "[u1 f2.5 u3]"}, {"[1,2e1,3]", "[u1 f20 u3]"},
		{`"\u0041\u00e9\u65e5\ud83d\ude00\"\\\/\b\f\n\r\t"`, `"Aé日😀\"\\/\b\f\n\r\t"`}, {`"\u0000"`, `"\x00"`}, {`"\uFFFF"`, `"\uffff"`},
		{`"abcdefgh\tijklmnopqrstuvwxyz\u00e9xyzé"`, `"abcdefgh\tijklmnopqrstuvwxyzéxyzé"`}, {"\"\x7f\"", `"\x7f"`},
		{`{"\u0061":1}`, `{"a":u1}`}, {`{"é":1,"e":2}`, `{"é":u1 "e":u2}`},
	}
	for _, test := range tests {
		f := mustDecode(t, hint.FormatJSON, js(envelope(fetch(obj{"v", raw(test.text)}))))
		if got := showPayload(f.Action(0)); got != `{"v":`+test.want+`}` {
			t.Errorf("%s: got %s", test.text, got)
		}
	}
}

// TestValuesMsgpack: what only msgpack can write, and every way to write an integer.
func TestValuesMsgpack(t *testing.T) {
	tests := []struct {
		val  any
		want string
	}{
		{float32(1.5), "f1.5"}, {float32(0.1), "f0.10000000149011612"}, {math.Copysign(0, -1), "f-0"},
		{[]byte("\xff\x00"), "bff00"}, {[]byte{}, "b"}, {bytes.Repeat([]byte{7}, 300), "b" + strings.Repeat("07", 300)},
		{ext{5, "abc"}, "e5:616263"}, {ext{-1, "\x00\x00\x00\x01"}, "e-1:00000001"}, {raw("\xd4\x01\x02"), "e1:02"}, {raw("\xd8\x01" + strings.Repeat("z", 16)), "e1:" + strings.Repeat("7a", 16)},
		{raw("\xc8\x00\x01\x09\x01"), "e9:01"}, {raw("\xc9\x00\x00\x00\x01\x09\x01"), "e9:01"},
		{raw("\xcc\x05"), "u5"}, {raw("\xcd\x00\x05"), "u5"}, {raw("\xce\x00\x00\x00\x05"), "u5"}, {raw("\xcf\x00\x00\x00\x00\x00\x00\x00\x05"), "u5"},
		{raw("\xd0\x05"), "u5"}, {raw("\xd1\x00\x05"), "u5"}, {raw("\xd2\x00\x00\x00\x05"), "u5"}, {raw("\xd3\x00\x00\x00\x00\x00\x00\x00\x05"), "u5"},
		{raw("\xd0\xff"), "i-1"}, {raw("\xd1\xff\xff"), "i-1"}, {raw("\xd2\xff\xff\xff\xff"), "i-1"}, {raw("\xd3\xff\xff\xff\xff\xff\xff\xff\xff"), "i-1"}, {raw("\xe0"), "i-32"},
		{raw("\x99\x05\xcc\x06\xcd\x00\x07\xce\x00\x00\x00\x08\xcf\x00\x00\x00\x00\x00\x00\x00\x09\xd0\x0a\xd1\x00\x0b\xd2\x00\x00\x00\x0c\xd3\x00\x00\x00\x00\x00\x00\x00\x0d"), "u[5 6 7 8 9 10 11 12 13]"},
		{raw("\x93\xd0\x05\xcc\x06\xd0\xff"), "[u5 u6 i-1]"}, {raw("\xdc\x00\x02\x01\x02"), "u[1 2]"}, {raw("\xdd\x00\x00\x00\x02\x01\xff"), "[u1 i-1]"},
		{raw("\xd9\x01a"), `"a"`}, {raw("\xda\x00\x01a"), `"a"`}, {raw("\xdb\x00\x00\x00\x01a"), `"a"`}, {raw("\xde\x00\x01\xa1a\x01"), `{"a":u1}`}, {raw("\xdf\x00\x00\x00\x01\xa1a\x01"), `{"a":u1}`},
		{raw("\xc5\x00\x01a"), "b61"}, {raw("\xc6\x00\x00\x00\x01a"), "b61"},
		{obj{1, 2, nil, 3, true, 4, 1.5, 5, []byte("k"), 6, arr{1}, 7, obj{}, 8, -1, 9, "1", 10, ext{1, "x"}, 11},
			`{u1:u2 null:u3 true:u4 f1.5:u5 b6b:u6 u[1]:u7 {}:u8 i-1:u9 "1":u10 e1:78:u11}`},
		{obj{arr{1}, 1, arr{1}, 2, obj{}, 3, obj{}, 4}, `{u[1]:u1 u[1]:u2 {}:u3 {}:u4}`}, // containers as keys are not compared
		{obj{1, 1, 1.0, 2, true, 3, "1", 4, []byte("1"), 5}, `{u1:u1 f1:u2 true:u3 "1":u4 b31:u5}`},
	}
	for _, test := range tests {
		f := mustDecode(t, hint.FormatMsgpack, mp(envelope(fetch(obj{"v", test.val}))))
		if got := showPayload(f.Action(0)); got != `{"v":`+test.want+`}` {
			t.Errorf("%x: got %s, want %s", mp(test.val), got, test.want)
		}
	}
	// Runs of nine-byte integers, whole and broken off at every place.
	for n := range 40 {
		for at := range n + 1 {
			list, want := arr{}, "u["
			for i := range n {
				v := uint64(1<<63) + uint64(i)
				if i == at {
					v = 7
				}
				list = append(list, v)
			}
			if want = show2(list); at < n {
				list[at] = 7
			}
			f := mustDecode(t, hint.FormatMsgpack, mp(envelope(fetch(obj{"v", list}))))
			if got := showPayload(f.Action(0)); got != `{"v":`+want+`}` {
				t.Fatalf("%d %d: got %s, want %s", n, at, got, want)
			}
		}
	}
}

func show2(list arr) string {
	var f hint.Document
	out, n, err := f.Append(nil, hint.FormatJSON, js(list))
	if err != nil {
		panic(err)
	}
	return show(out, n)
}

// TestFieldOrder: the usual order of fields is read in another way than all others, and
// gives what they give.
func TestFieldOrder(t *testing.T) {
	fields := []obj{{"action_id", "a1"}, {"action_type", "kv.fetch"}, {"action_version", "1.0"}, {"payload", obj{"x", arr{1, 2}}}, {"other", obj{"y", "z"}}}
	var orders func(done obj, left []obj)
	orders = func(done obj, left []obj) {
		both(t, append(obj{"protocol_version", "0.1", "message_id", "m1"}, "actions", arr{done, fetch(obj{"n", 1})}), func(t *testing.T, f *hint.Frame) {
			a := f.Action(0)
			for i := 0; i < len(done); i += 2 {
				got := map[any]string{"action_id": string(a.ID), "action_type": string(a.Type), "action_version": string(a.Version), "payload": showPayload(a), "other": ""}[done[i]]
				want := map[any]string{"action_id": "a1", "action_type": "kv.fetch", "action_version": "1.0", "payload": `{"x":u[1 2]}`, "other": ""}[done[i]]
				if got != want {
					t.Errorf("%s: %v is %q", js(done), done[i], got)
				}
			}
			if string(f.MessageID()) != "m1" || string(f.ProtocolVersion()) != "0.1" || showPayload(f.Action(1)) != `{"n":u1}` {
				t.Errorf("%s: what is around it: %q", js(done), f.MessageID())
			}
		})
		for i, field := range left {
			rest := append(append([]obj{}, left[:i]...), left[i+1:]...)
			orders(append(append(obj{}, done...), field...), rest)
		}
	}
	orders(obj{}, fields)
	for _, doc := range []obj{
		{"message_id", "m", "protocol_version", "p", "actions", arr{}}, {"actions", arr{}, "protocol_version", "p", "message_id", "m"}, {"protocol_version", "p", "actions", arr{}, "message_id", "m"}, {"protocol_version", "p", "message_id", "m", "x", 1, "actions", arr{}},
	} {
		both(t, doc, func(t *testing.T, f *hint.Frame) {
			if string(f.MessageID()) != "m" || string(f.ProtocolVersion()) != "p" {
				t.Errorf("%s: %q %q", js(doc), f.ProtocolVersion(), f.MessageID())
			}
		})
	}
	for _, doc := range []obj{
		{"protocol_version", "p", "message_id", "m", "protocol_version", "p", "actions", arr{}}, {"protocol_version", "p", "message_id", "m", "actions", arr{}, "message_id", "m"},
		envelope(append(fetch(obj{}), "action_id", "a1")), envelope(append(fetch(obj{}), "payload", nil)), envelope(append(fetch(obj{}), "x", 1, "action_version", "a1")),
	} {
		for _, body := range [][]byte{js(doc), mp(doc)} {
			var f hint.Frame
			if err := f.Decode(0, body, hint.Limits{}); err == nil || !strings.Contains(err.Error(), "duplicate key") {
				t.Errorf("%s: %v", js(doc), err)
			}
		}
	}
}

func TestDetect(t *testing.T) {
	for body, want := range map[string]hint.Format{
		"": hint.FormatUnknown, "{}": hint.FormatJSON, " \n{}": hint.FormatJSON, "x": hint.FormatJSON, "\xef\xbb\xbf{}": hint.FormatJSON,
		"\x80": hint.FormatMsgpack, "\xde\x00\x00": hint.FormatMsgpack, "\xc1": hint.FormatMsgpack, "\xef": hint.FormatMsgpack,
	} {
		if got := hint.Detect([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}

func TestLimits(t *testing.T) {
	var actions arr
	for range 5 {
		actions = append(actions, fetch(obj{"x", 1}))
	}
	both(t, obj{"actions", actions}, func(*testing.T, *hint.Frame) {})
	for _, body := range [][]byte{js(envelope(actions...)), mp(envelope(actions...))} {
		var f hint.Frame
		if err := decode(t, &f, 0, body, hint.Limits{Actions: 3}); err != nil {
			t.Fatal(err)
		}
		if f.Len() != 5 || f.Listed() != 3 {
			t.Errorf("len %d, listed %d", f.Len(), f.Listed())
		}
		for i := range 5 {
			a := f.Action(i)
			reason, detail := a.Fault()
			if i < 3 && (reason != abi.ReasonNone || string(a.ID) != "a1") {
				t.Errorf("%d: %v %q", i, reason, a.ID)
			}
			if i >= 3 && (reason != abi.ReasonLimitExceeded || detail != "more actions in one envelope than are allowed" || a.Base != nil || a.RawPayload() != nil || a.RawAction() != nil) {
				t.Errorf("%d: %v %q", i, reason, detail)
			}
		}
		if e := abi.EnvelopeFrame(f.Bytes()); e.Total() != 5 || e.Count() != 3 {
			t.Errorf("total %d, count %d", e.Total(), e.Count())
		}
		if _, err := hint.AppendEnvelope(nil, hint.FormatJSON, &f, []hint.Forward{{Index: 4}}); err == nil {
			t.Error("an action that was not read was passed on")
		}

		var bad *hint.MalformedError
		if err := decode(t, &f, 0, body, hint.Limits{BodyBytes: len(body) - 1}); !errors.As(err, &bad) || bad.Offset != len(body)-1 || !strings.Contains(err.Error(), "are allowed") {
			t.Errorf("body: %v", err)
		}
		if err := decode(t, &f, 0, body, hint.Limits{BodyBytes: len(body)}); err != nil {
			t.Error(err)
		}
		if err := decode(t, &f, 0, body, hint.Limits{FrameBytes: 500}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "larger than 500 bytes") {
			t.Errorf("frame: %v", err)
		}
		if f.Len() != 0 {
			t.Error("a refused envelope left actions behind")
		}
	}
}

// TestFrameLimit: no frame is larger than the limit, whatever the body is made of, and
// what is not kept counts while it is read.
func TestFrameLimit(t *testing.T) {
	many := func(v any, n int) arr {
		out := make(arr, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	for name, payload := range map[string]any{
		"u64s": many(1, 3000), "nodes": many(-1, 3000), "mixed": append(many(1, 3000), nil), "nested": many(arr{}, 3000), "maps": many(obj{"a", 1}, 1000), "strings": many("xxxxxxxxxxxxxxxxxxxxxxxxx", 1200),
		"text": strings.Repeat("x", 40000), "text escaped": strings.Repeat("\n", 40000), "text wide": strings.Repeat("é", 20000),
	} {
		kept, ignored := envelope(fetch(obj{"v", payload})), envelope(obj{"unknown", payload})
		for i, body := range [][]byte{js(kept), mp(kept), js(ignored), mp(ignored)} {
			for limit := 1000; limit < 20000; limit += 777 {
				var f hint.Frame
				err := f.Decode(0, body, hint.Limits{FrameBytes: limit})
				if i >= 2 && strings.HasPrefix(name, "text") {
					if err != nil || len(f.Bytes()) > limit {
						t.Errorf("%s, limit %d, ignored: %v", name, limit, err)
					}
				} else if err == nil || !strings.Contains(err.Error(), "would be larger") {
					t.Errorf("%s, limit %d: %v", name, limit, err)
				}
			}
		}
	}
}
