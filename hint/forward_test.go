package hint_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func forward(tb testing.TB, format hint.Format, f *hint.Frame, actions ...hint.Forward) string {
	tb.Helper()
	out, err := hint.AppendEnvelope([]byte("before"), format, f, actions)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimPrefix(string(out), "before")
}

func TestForwardVerbatim(t *testing.T) {
	// White space, escapes, spellings of numbers and unknown keys of a payload stay; what is around it does not.
	const payload = "{ \"a\" : 1.50 , \"\\u0062\":[1e2,\n-0, 18446744073709551616] }"
	f := mustDecode(t, hint.FormatJSON, []byte(` { "extra":1, "actions": [ {"payload": `+payload+`  , "x":2, "action_type":"t"}, 5, {"action_type":"u","action_id":7,"action_version":1.0} ] }`))
	got := forward(t, hint.FormatJSON, f, hint.Forward{Index: 0}, hint.Forward{Index: 2})
	want := `{"protocol_version":"","message_id":"","actions":[{"action_id":"","action_type":"t","action_version":"1.0","payload":` + payload +
		`},{"action_id":"7","action_type":"u","action_version":"1.0","payload":{}}]}`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := forward(t, hint.FormatJSON, f); got != `{"protocol_version":"","message_id":"","actions":[]}` {
		t.Error(got)
	}
	// Long heads and nine-byte integers stay, too.
	wide := raw("\xde\x00\x01\xd9\x01a\xdc\x00\x02\xcf\x00\x00\x00\x00\x00\x00\x00\x01\xca\x3f\x80\x00\x00")
	f = mustDecode(t, hint.FormatMsgpack, mp(envelope(obj{"payload", wide, "action_type", "t"})))
	got = forward(t, hint.FormatMsgpack, f, hint.Forward{Index: 0})
	if want := string(mp(envelope(obj{"action_id", "", "action_type", "t", "action_version", "1.0", "payload", wide}))); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := forward(t, hint.FormatJSON, f, hint.Forward{Index: 0}); !strings.HasSuffix(got, `"payload":{"a":[1,1.0]}}]}`) {
		t.Error(got)
	}
}

// TestForwardVersion: an action without a version is passed on as what it counts as.
func TestForwardVersion(t *testing.T) {
	for _, test := range []struct {
		fields obj
		want   string
	}{
		{obj{}, "1.0"}, {obj{"action_version", nil}, "1.0"}, {obj{"action_version", ""}, ""}, {obj{"action_version", "2"}, "2"}, {obj{"action_version", 1.5}, "1.5"},
	} {
		both(t, envelope(append(obj{"action_type", "t"}, test.fields...)), func(t *testing.T, f *hint.Frame) {
			var loaded hint.Frame
			if err := loaded.Load(f.Format(), f.AppendSubset(nil, []int32{0}, false), hint.Limits{}); err != nil {
				t.Fatal(err)
			}
			for _, fw := range []hint.Forward{{Index: 0}, {Index: 0, Block: f.Action(0).Base}} {
				for _, src := range []*hint.Frame{f, &loaded} {
					a := mustDecode(t, f.Format(), []byte(forward(t, f.Format(), src, fw))).Action(0)
					if a.Version == nil || string(a.Version) != test.want || a.ID == nil || len(a.ID) != 0 {
						t.Errorf("%v, %v: id %q, version %q, want %q", test.fields, f.Format(), a.ID, a.Version, test.want)
					}
				}
			}
		})
	}
}

func TestForwardRewritten(t *testing.T) {
	f := mustDecode(t, hint.FormatJSON, js(envelope(fetch(obj{"old", 1}), fetch(obj{"keep", 2}))))
	e := hint.Envelope{Actions: []hint.Action{{ActionID: "a1", ActionType: "kv.fetch", ActionVersion: "1.1", Payload: payload(t, `{"new":[1,2]}`)}}}
	made, err := e.Frame(testID)
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Clone(made.Action(0).Base)
	got := forward(t, hint.FormatJSON, f, hint.Forward{Index: 0, Block: block}, hint.Forward{Index: 1})
	want := string(js(envelope(obj{"action_id", "a1", "action_type", "kv.fetch", "action_version", "1.1", "payload", obj{"new", arr{1, 2}}}, fetch(obj{"keep", 2}))))
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	got = forward(t, hint.FormatMsgpack, f, hint.Forward{Index: 1}, hint.Forward{Index: 0, Block: block})
	want = string(mp(envelope(fetch(obj{"keep", 2}), obj{"action_id", "a1", "action_type", "kv.fetch", "action_version", "1.1", "payload", obj{"new", arr{1, 2}}})))
	if got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	b := make([]byte, abi.SizeAction)
	abi.PutU32(b, abi.OffActionSize, abi.SizeAction)
	if got := forward(t, hint.FormatJSON, f, hint.Forward{Index: 0, Block: b}); !strings.Contains(got, `[{"action_id":"","action_type":"","action_version":"1.0","payload":{}}]`) {
		t.Error(got)
	}
	abi.PutNode(b, abi.OffActionPayload, abi.Node{Tag: abi.TagF64, Val: math.Float64bits(math.Inf(1))})
	if out, err := hint.AppendEnvelope([]byte("x"), hint.FormatJSON, f, []hint.Forward{{Index: 0, Block: b}}); err == nil || string(out) != "x" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestCannot: what an encoding cannot hold is an error that names the path.
func TestCannot(t *testing.T) {
	for _, test := range []struct {
		payload any
		want    string
	}{
		{obj{"a", obj{"b", arr{1, []byte("x")}}}, "payload.a.b[1]: bytes cannot be written as JSON"},
		{obj{"a", ext{1, "x"}}, "payload.a: an extension cannot be written as JSON"},
		{obj{"a", arr{obj{5, 1}}}, "payload.a[0][key 5]: a key that is a number cannot be written as JSON"},
		{obj{"a b", math.NaN()}, `payload["a b"]: a NaN or an infinity cannot be written as JSON`},
	} {
		f := mustDecode(t, hint.FormatMsgpack, mp(envelope(fetch(test.payload))))
		out, err := hint.AppendEnvelope([]byte("x"), hint.FormatJSON, f, []hint.Forward{{Index: 0}})
		var cannot *hint.ActionError
		if !errors.As(err, &cannot) || cannot.Reason != abi.ReasonInvalidPayload || err.Error() != "actions[0]: "+test.want || string(out) != "x" {
			t.Errorf("%v, want %s", err, test.want)
		}
		if got := forward(t, hint.FormatMsgpack, f, hint.Forward{Index: 0}); got != string(mp(envelope(fetch(test.payload)))) {
			t.Errorf("%q", got)
		}
	}
	f := mustDecode(t, hint.FormatJSON, []byte(`{"actions":[{"action_type":"t","payload":{"a":[1,{"b":1e400}]}}]}`))
	if _, err := hint.AppendEnvelope(nil, hint.FormatMsgpack, f, []hint.Forward{{Index: 0}}); err == nil || err.Error() != "actions[0]: payload.a[1].b: a number beyond 64 bits cannot be written as msgpack" {
		t.Error(err)
	}
	if got := forward(t, hint.FormatJSON, f, hint.Forward{Index: 0}); !strings.Contains(got, `"payload":{"a":[1,{"b":1e400}]}`) {
		t.Error(got)
	}
	if _, err := hint.AppendEnvelope(nil, hint.FormatUnknown, f, nil); err == nil {
		t.Error("an unknown format was written")
	}
	// Too deep for a tree, but its bytes are there for an envelope of the same encoding.
	deep := fetch(obj{"a", raw(strings.Repeat("\x91", 50) + "\x01")})
	f = mustDecode(t, hint.FormatMsgpack, mp(envelope(deep)))
	if got := forward(t, hint.FormatMsgpack, f, hint.Forward{Index: 0}); got != string(mp(envelope(deep))) {
		t.Errorf("%q", got)
	}
	if _, err := hint.AppendEnvelope(nil, hint.FormatJSON, f, []hint.Forward{{Index: 0}}); err == nil || err.Error() != "actions[0]: payload is nested deeper than 32" {
		t.Error(err)
	}
}

// TestEncodeShortest: msgpack as its usual encoders write it.
func TestEncodeShortest(t *testing.T) {
	for _, test := range []struct{ json, want string }{
		{"0", "\x00"}, {"127", "\x7f"}, {"128", "\xcc\x80"}, {"255", "\xcc\xff"}, {"256", "\xcd\x01\x00"}, {"65535", "\xcd\xff\xff"}, {"65536", "\xce\x00\x01\x00\x00"}, {"4294967295", "\xce\xff\xff\xff\xff"},
		{"4294967296", "\xcf\x00\x00\x00\x01\x00\x00\x00\x00"}, {"-1", "\xff"}, {"-32", "\xe0"}, {"-33", "\xd0\xdf"}, {"-128", "\xd0\x80"}, {"-129", "\xd1\xff\x7f"}, {"-32768", "\xd1\x80\x00"}, {"-32769", "\xd2\xff\xff\x7f\xff"},
		{"-2147483648", "\xd2\x80\x00\x00\x00"}, {"-2147483649", "\xd3\xff\xff\xff\xff\x7f\xff\xff\xff"}, {"1.0", "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"}, {"null", "\xc0"}, {"true", "\xc3"}, {"false", "\xc2"},
		{`""`, "\xa0"}, {`"` + strings.Repeat("x", 31) + `"`, "\xbf" + strings.Repeat("x", 31)}, {`"` + strings.Repeat("x", 32) + `"`, "\xd9\x20" + strings.Repeat("x", 32)}, {`"` + strings.Repeat("x", 256) + `"`, "\xda\x01\x00" + strings.Repeat("x", 256)},
		{`"` + strings.Repeat("x", 65536) + `"`, "\xdb\x00\x01\x00\x00" + strings.Repeat("x", 65536)}, {"[]", "\x90"}, {"{}", "\x80"}, {"[" + strings.Repeat("1,", 15) + "1]", "\xdc\x00\x10" + strings.Repeat("\x01", 16)},
		{"[" + strings.Repeat("null,", 15) + "1]", "\xdc\x00\x10" + strings.Repeat("\xc0", 15) + "\x01"}, {"[" + strings.Repeat("1,", 65535) + "1]", "\xdd\x00\x01\x00\x00" + strings.Repeat("\x01", 65536)},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14,"o":15,"p":16}`,
			"\xde\x00\x10\xa1a\x01\xa1b\x02\xa1c\x03\xa1d\x04\xa1e\x05\xa1f\x06\xa1g\x07\xa1h\x08\xa1i\x09\xa1j\x0a\xa1k\x0b\xa1l\x0c\xa1m\x0d\xa1n\x0e\xa1o\x0f\xa1p\x10"},
	} {
		base, n, err := hint.AppendTree(nil, hint.FormatJSON, []byte(test.json))
		if err != nil {
			t.Fatal(err)
		}
		got, err := hint.AppendTreeMsgpack(nil, base, n)
		if err != nil || string(got) != test.want {
			t.Errorf("%.40s: %.40x, %v", test.json, got, err)
		}
		base, n, err = hint.AppendTree(nil, hint.FormatMsgpack, got)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := hint.AppendTreeJSON(nil, base, n); err != nil || string(back) != test.json {
			t.Errorf("%.40s: back as %.40s, %v", test.json, back, err)
		}
	}
	for n, want := range map[int]string{0: "\xc7\x00\x05", 1: "\xd4\x05", 2: "\xd5\x05", 3: "\xc7\x03\x05", 4: "\xd6\x05", 8: "\xd7\x05", 16: "\xd8\x05", 17: "\xc7\x11\x05", 256: "\xc8\x01\x00\x05", 65536: "\xc9\x00\x01\x00\x00\x05"} {
		data := bytes.Repeat([]byte("x"), n)
		got, err := hint.AppendTreeMsgpack(nil, data, abi.Node{Tag: abi.TagExt, Ext: 5, Len: uint32(n)})
		if err != nil || string(got) != want+string(data) {
			t.Errorf("ext %d: %.20x, %v", n, got, err)
		}
		head := map[int]string{0: "\xc4\x00", 17: "\xc4\x11", 256: "\xc5\x01\x00", 65536: "\xc6\x00\x01\x00\x00"}
		got, err = hint.AppendTreeMsgpack(nil, data, abi.Node{Tag: abi.TagBytes, Len: uint32(n)})
		if want, ok := head[n]; ok && (err != nil || string(got) != want+string(data)) {
			t.Errorf("bytes %d: %.20x, %v", n, got, err)
		}
	}
}

func TestEncodeJSON(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`"\u0001\u001f\b\f\n\r\t\"\\\/<>&\u2028é\u007f"`, `"\u0001\u001f\b\f\n\r\t\"\\/<>&` + "\u2028é\x7f" + `"`},
		{"1e16", "1e+16"}, {"1.0", "1.0"}, {"100.0", "100.0"}, {"1e-7", "1e-07"}, {"-0.0", "-0.0"}, {"-0", "0"}, {"123456789.25", "123456789.25"}, {"1e400", "1e400"}, {"[ 1 , 2.0 ]", "[1,2.0]"}, {"[]", "[]"}, {"[7]", "[7]"}, {`{"a":{},"b":[[]]}`, `{"a":{},"b":[[]]}`},
	} {
		base, n, err := hint.AppendTree(nil, hint.FormatJSON, []byte(test.in))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := hint.AppendTreeJSON([]byte("x"), base, n); err != nil || string(got) != "x"+test.want {
			t.Errorf("%s: %s, %v", test.in, got, err)
		}
	}
}

func payload(tb testing.TB, text string) hint.Payload {
	tb.Helper()
	p, err := hint.PayloadFromJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
