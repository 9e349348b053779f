package hint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func jsonSeeds() (seeds [][]byte) {
	for _, v := range []string{
		"9007199254740993", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "1e400", "-1e400", "1e-400", strings.Repeat("9", 400), "NaN", "-1", "-0", "0.1", "01", "1.",
		"true", "null", `"x"`, `"\ud83d\ude00"`, `"\ud800"`, `"\u0000"`, "\"\xff\"", "[]", "{}", "[1,true]", "[1,-1]", "[1,18446744073709551616]", "[[1],[2,3]]", `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
		"1.23456789012345678901e-5", "9007199254740993.00000000000000000001", "1.79769313486231580793e308", "2.4703282292062327e-324", "1e309", "0.00000000000000000000000000000000001e-300",
		strings.Repeat("[", 31) + "[1]" + strings.Repeat("]", 31), strings.Repeat("[", 40) + strings.Repeat("]", 40), "[12345678901234567890,1234567890123456789, 123456789012345678,12345678901234567,1,2,3,4,5,6]", "[ 1 ,\n2 ]",
	} {
		seeds = append(seeds, js(envelope(fetch(obj{"block_hashes", raw(v)}))), []byte(v))
	}
	return append(seeds, fetchJSON(5, ","), fetchJSON(3, ", "), []byte(`{"actions":[5,{},{"action_id":1.0,"action_type":true,"payload":[]},{"action_type":"t","action_version":1e16,"x":{"y":1},"x":2}],"z":[{}]}`), []byte("\xef\xbb\xbf{}"))
}

func msgpackSeeds() (seeds [][]byte) {
	for _, v := range []any{
		uint64(1<<53 + 1), uint64(1<<64 - 1), -1, true, nil, 1.5, float32(1.5), raw("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"), raw("\xca\x7f\x80\x00\x00"), raw("\xdd\xff\xff\xff\xff"), raw("\xdf\xff\xff\xff\xff"), raw("\xdb\xff\xff\xff\xff"), raw("\xc1"),
		raw(strings.Repeat("\x91", 60) + "\xc0"), raw(strings.Repeat("\x81\x01", 60) + "\xa1x"), obj{"a", 1, "a", 2}, obj{1, 2, nil, 3, arr{1}, 4}, []byte("b"), ext{1, "x"}, "\xff", "é", strings.Repeat("é", 20), arr{1, 2, -3}, arr{uint64(1 << 63), 1, uint64(1 << 63)},
		raw("\x99\x05\xcc\x06\xcd\x00\x07\xce\x00\x00\x00\x08\xcf\x00\x00\x00\x00\x00\x00\x00\x09\xd0\x0a\xd1\x00\x0b\xd2\x00\x00\x00\x0c\xd3\x00\x00\x00\x00\x00\x00\x00\x0d"),
	} {
		seeds = append(seeds, mp(envelope(fetch(obj{"block_hashes", v}))), mp(v))
	}
	return append(seeds, mp(obj{"x", 1, 5, 6, "actions", arr{5, obj{}, obj{"action_id", 1.0, "action_type", true, "payload", arr{}}, obj{"action_type", "t", 7, 8}}}))
}

// fuzzFrame decodes a body and holds what is true of every frame.
func fuzzFrame(t *testing.T, format hint.Format, body []byte) *hint.Frame {
	before := bytes.Clone(body)
	var f hint.Frame
	err := decode(t, &f, format, body, hint.Limits{Actions: 50})
	if !bytes.Equal(before, body) {
		t.Fatal("the body was changed")
	}
	var bad *hint.MalformedError
	if err != nil {
		if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(body) || f.Len() != 0 {
			t.Fatalf("%v", err)
		}
		return nil
	}
	for i := range f.Len() {
		a := f.Action(i)
		reason, detail := a.Fault()
		if (reason == abi.ReasonNone) != (detail == "") {
			t.Fatalf("%v %q", reason, detail)
		}
		if reason == abi.ReasonNone && (len(a.Type) == 0 || a.Payload.Tag != abi.TagMap && a.Payload.Tag != abi.TagAbsent) {
			t.Fatalf("action %d has no fault: type %q, payload %v", i, a.Type, a.Payload.Tag)
		}
	}
	return &f
}

// FuzzDecodeJSON compares with encoding/json, which takes what this package refuses:
// strings that are not UTF-8, lone surrogates, duplicate keys, and deep nesting.
func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range jsonSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzFrame(t, hint.FormatJSON, body)
		base, n, err := hint.AppendTree(nil, hint.FormatJSON, body)
		if err != nil {
			known := false
			for _, why := range []string{"not UTF-8", "a surrogate", "duplicate key", "nested deeper", "half way"} {
				known = known || strings.Contains(err.Error(), why)
			}
			if !known && json.Valid(body) {
				t.Fatalf("%q is valid for encoding/json: %v", body, err)
			}
			return
		}
		if err := abi.CheckTree(base, n); err != nil {
			t.Fatal(err)
		}
		got, err := genericJSON(body)
		if err != nil || !json.Valid(body) {
			t.Fatalf("%q is not valid for encoding/json: %v", body, err)
		}
		if want := plain(base, n); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: encoding/json reads %#v, here %#v", body, got, want)
		}
	})
}

func FuzzDecodeMsgpack(f *testing.F) {
	for _, seed := range msgpackSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzFrame(t, hint.FormatMsgpack, body)
		base, n, err := hint.AppendTree(nil, hint.FormatMsgpack, body)
		if err != nil {
			return
		}
		if err := abi.CheckTree(base, n); err != nil {
			t.Fatal(err)
		}
		out, err := hint.AppendTreeMsgpack(nil, base, n)
		if err != nil || len(out) > 2*len(body) { // floats of 32 bits become wider
			t.Fatalf("%q is written as %q: %v", body, out, err)
		}
		if base2, n2 := tree(t, hint.FormatMsgpack, out); !bytes.Equal(base, base2) || n != n2 {
			t.Fatalf("%q is written as %q: another tree", body, out)
		}
	})
}

// FuzzRoundTrip: what is passed on reads back as what was sent, in either encoding, and
// is passed on unchanged from then on.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range append(jsonSeeds(), msgpackSeeds()...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		format := hint.Detect(body)
		first := fuzzFrame(t, format, body)
		if first == nil {
			return
		}
		var pick []int32
		var actions []hint.Forward
		for i := range first.Len() {
			if reason, _ := first.Action(i).Fault(); reason == abi.ReasonNone {
				pick, actions = append(pick, int32(i)), append(actions, hint.Forward{Index: i})
			}
		}
		var loaded hint.Frame
		if err := loaded.Load(format, first.AppendSubset(nil, pick, true), hint.Limits{}); err != nil {
			t.Fatal(err)
		}
		for _, to := range []hint.Format{hint.FormatJSON, hint.FormatMsgpack} {
			out, err := hint.AppendEnvelope(nil, to, first, actions)
			if err != nil {
				if to == format {
					t.Fatalf("to %v: %v", to, err)
				}
				continue
			}
			second := mustDecode(t, to, out)
			if second.Len() != len(actions) || !bytes.Equal(second.MessageID(), first.MessageID()) || !bytes.Equal(second.ProtocolVersion(), first.ProtocolVersion()) {
				t.Fatalf("%q is passed on as %q", body, out)
			}
			again := actions[:0:0]
			for k, fw := range actions {
				a, b := first.Action(fw.Index), second.Action(k)
				want := showPayload(a)
				if a.Payload.Tag == abi.TagAbsent {
					want = "{}"
				}
				version := a.Version
				if version == nil {
					version = []byte("1.0")
				}
				if showPayload(b) != want || !bytes.Equal(a.ID, b.ID) || !bytes.Equal(a.Type, b.Type) || !bytes.Equal(version, b.Version) {
					t.Fatalf("%q is passed on as %q: action %d", body, out, k)
				}
				if showPayload(loaded.Action(k)) != showPayload(a) {
					t.Fatalf("%q is loaded as %s", body, showPayload(loaded.Action(k)))
				}
				again = append(again, hint.Forward{Index: k})
			}
			if twice, err := hint.AppendEnvelope(nil, to, second, again); err != nil || !bytes.Equal(twice, out) {
				t.Fatalf("%q, then %q: %v", out, twice, err)
			}
		}
	})
}
