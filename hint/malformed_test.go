package hint_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// refused holds that a body is malformed at an offset, for a reason.
func refused(t *testing.T, format hint.Format, body string, offset int, msg string) {
	t.Helper()
	var f hint.Frame
	err := decode(t, &f, format, []byte(body), hint.Limits{})
	var bad *hint.MalformedError
	switch {
	case !errors.As(err, &bad):
		t.Errorf("%q: %v", body, err)
	case bad.Offset != offset || !strings.Contains(bad.Msg, msg):
		t.Errorf("%q: %v, want %q at offset %d", body, err, msg, offset)
	case f.Len() != 0 || f.MessageID() != nil || f.Format() != hint.FormatUnknown:
		t.Errorf("%q: a refused envelope left something behind", body)
	}
}

func TestMalformedError(t *testing.T) {
	var f hint.Frame
	err := f.Decode(0, []byte(`{"actions":5}`), hint.Limits{})
	if err == nil || err.Error() != "malformed envelope: actions is not a list at offset 11" {
		t.Error(err)
	}
	_, _, err = hint.AppendTree(nil, hint.FormatJSON, []byte(`[1,]`))
	if err == nil || err.Error() != "malformed document: unexpected byte ']', expected a value at offset 3" {
		t.Error(err)
	}
}

func TestMalformedJSON(t *testing.T) {
	// In a payload: {"actions":[{"action_type":"t","payload":HERE}]}
	const before = `{"actions":[{"action_type":"t","payload":`
	at := len(before)
	for _, test := range []struct {
		payload string
		offset  int
		msg     string
	}{
		{`{"a":1,}`, 7, "a string key"}, {`{,}`, 1, "a string key"}, {`{a:1}`, 1, "a string key"}, {`{"a"}`, 4, "':'"}, {`{"a" 1}`, 5, "':'"}, {`{"a":}`, 5, "a value"},
		{`{"a":1 "b":2}`, 7, "',' or '}'"}, {`{"a":[1 2]}`, 8, "',' or ']'"}, {`{"a":[1,]}`, 8, "a value"}, {`{"a":[,1]}`, 6, "a value"}, {`{"a":[-1 2]}`, 9, "',' or ']'"},
		{`{"a":[1,2,3,4,5,6;7]}`, 17, "',' or ']'"}, {`{"a":[1}`, 7, "',' or ']'"}, {`{1:2}`, 1, "a string key"},
		{`{"a":01}`, 5, "leading zero"}, {`{"a":-01}`, 6, "leading zero"}, {`{"a":-}`, 6, "a digit"}, {`{"a":+1}`, 5, "a value"}, {`{"a":.5}`, 5, "a value"}, {`{"a":1.}`, 7, "a digit"},
		{`{"a":1.e5}`, 7, "a digit"}, {`{"a":1e}`, 7, "a digit"}, {`{"a":1e+}`, 8, "a digit"}, {`{"a":0x10}`, 6, "',' or '}'"}, {`{"a":[00]}`, 6, "leading zero"},
		{`{"a":[1,02,3,4,5,6,7,8,9,10,11]}`, 8, "leading zero"}, {`{"a":[1,0123456789,3,4,5,6,7,8,9,10,11]}`, 8, "leading zero"}, {`{"a":[01234567890123456789,3,4,5,6,7,8,9,10,11]}`, 6, "leading zero"}, {`{"a":[1,01234567890123456789,3,4,5,6,7,8,9,10,11]}`, 8, "leading zero"},
		{`{"a":NaN}`, 5, "a value"}, {`{"a":Infinity}`, 5, "a value"}, {`{"a":-Infinity}`, 6, "a digit"}, {`{"a":nul}`, 5, "expected null"}, {`{"a":nulL}`, 5, "expected null"}, {`{"a":True}`, 5, "a value"},
		{`{"a":'x'}`, 5, "a value"}, {"{\"a\":\"x\ny\"}", 7, "a control character"}, {"{\"a\":\"longer than eight\x1f\"}", 23, "a control character"}, {"{\"a\":\"\x00\"}", 6, "a control character"},
		{`{"a":"\x"}`, 6, "unknown escape"}, {`{"a":"\u12G4"}`, 10, "hexadecimal"}, {`{"a":"\u12"}`, 10, "hexadecimal"},
		{`{"a":"\ud800"}`, 6, "a surrogate"}, {`{"a":"x\udc00"}`, 7, "a surrogate"}, {`{"a":"\ud800\u0041"}`, 6, "a surrogate"}, {`{"a":"\ud800\ud800"}`, 6, "a surrogate"}, {`{"a":"\ud800x"}`, 6, "a surrogate"}, {`{"\ud800":1}`, 2, "a surrogate"},
		{"{\"a\":\"\xff\"}", 6, "not UTF-8"}, {"{\"a\":\"abcdefghijk\xc3\"}", 17, "not UTF-8"}, {"{\"a\":\"é\\n\xed\xa0\x80\"}", 10, "not UTF-8"}, {"{\"\xc0\x80\":1}", 2, "not UTF-8"}, {"{\"a\":\"\xf4\x90\x80\x80\"}", 6, "not UTF-8"},
		{"{\"a\":\"\xe2\\u0082\"}", 6, "not UTF-8"},
		{`{"a":1,"a":2}`, 7, "duplicate key"}, {`{"a":1,"\u0061":2}`, 7, "duplicate key"}, {`{"x":{"a":1,"b":2,"a":3}}`, 18, "duplicate key"}, {`[{"":1,"":2}]`, 7, "duplicate key"},
		{`{"x":[{"b":[1,2],"c":{"d":{}},"b":{}}]}`, 30, "duplicate key"}, {`{"z": 1 , "y" : 2 , "z" : 3}`, 20, "duplicate key"},
		{`{}}`, 3, "',' or ']'"}, {`{"a":1}//`, 7, "',' or '}'"}, {"{\"a\":1\x0b}", 6, "',' or '}'"}, {"{\"a\":1\xc2\xa0}", 6, "',' or '}'"}, {`/**/{}`, 0, "a value"},
	} {
		refused(t, hint.FormatJSON, before+test.payload+"}]}", at+test.offset, test.msg)
	}

	deep := func(n int, open, inner, closing string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
	}
	for _, test := range []struct {
		body   string
		offset int
		msg    string
	}{
		{"", 0, "unexpected end, expected a mapping"}, {"  ", 2, "unexpected end"}, {"[]", 0, "not a mapping"}, {" null", 1, "not a mapping"}, {"5", 0, "not a mapping"}, {`"x"`, 0, "not a mapping"},
		{"{}", 0, "actions is missing"}, {` {"message_id":"m"}`, 1, "actions is missing"}, {`{"actions":null}`, 11, "actions is not a list"}, {`{"actions": {}}`, 12, "actions is not a list"}, {`{"actions":"bad"}`, 11, "actions is not a list"},
		{`{"Actions":[]}`, 0, "actions is missing"}, {`{"actions":`, 11, "unexpected end"}, {`{"actions" []}`, 11, "':'"}, {`{"actions":[]]`, 13, "',' or '}'"},
		{`{"actions":[]}x`, 14, "trailing bytes"}, {`{"actions":[]} {}`, 15, "trailing bytes"}, {"{\"actions\":[]}\x00", 14, "trailing bytes"},
		{"\xef\xbb\xbf{\"actions\":[]}", 0, "a byte order mark"}, {`{"actions":[{}{}]}`, 14, "',' or ']'"}, {`{"actions":[{},]}`, 15, "a value"}, {`{"actions":[,]}`, 12, "a value"},
		{`{"actions":[],"actions":[]}`, 14, "duplicate key"}, {`{"actions":[],"\u0061ctions":[]}`, 14, "duplicate key"}, {`{"message_id":"a","message_id":"b","actions":[]}`, 18, "duplicate key"},
		{`{"protocol_version":"a","actions":[],"protocol_version":"a"}`, 37, "duplicate key"}, {`{"x":1,"actions":[{}],"y":2,"x":3}`, 28, "duplicate key"},
		{`{"actions":[{"action_id":1,"action_id":2}]}`, 27, "duplicate key"}, {`{"actions":[{"action_type":"","action_type":""}]}`, 30, "duplicate key"}, {`{"actions":[{"action_version":"","action_version":""}]}`, 33, "duplicate key"},
		{`{"actions":[{"payload":{},"payload":{}}]}`, 26, "duplicate key"}, {`{"actions":[{"q":1,"r":{"s":[]},"q":2}]}`, 32, "duplicate key"}, {`{"q":{"a":1,"a":2},"actions":[]}`, 12, "duplicate key"},
		{`{"actions":[{"a":1},{"a":1,"b":1,"a":2}]}`, 33, "duplicate key"},
		{`{"actions":[{"action_id":"\ud800"}]}`, 26, "a surrogate"}, {"{\"actions\":[{\"action_id\":\"\xff\"}]}", 26, "not UTF-8"}, {"{\"\xff\":1,\"actions\":[]}", 2, "not UTF-8"}, {"{\"actions\":[{\"\xff\":1}]}", 14, "not UTF-8"},
		{`{"x":` + deep(32, "[", "", "]") + `,"actions":[` + deep(33, "[", "", "]") + `]}`, 5 + 64 + 12 + 32, "nested deeper than 32"},
		{`{"x":` + deep(33, "[", "", "]") + `,"actions":[]}`, 5 + 32, "nested deeper than 32"},
		{`{"actions":[{"action_type":"t","payload":` + deep(32, `{"a":`, "{}", "}") + `}]}`, 41 + 32*5, "nested deeper than 32"},
		{strings.Repeat("[", 100000), 0, "not a mapping"}, {`{"actions":` + strings.Repeat("[", 100000), 12 + 32, "nested deeper than 32"}, {`{"actions":[` + strings.Repeat(`{"payload":`, 100000), 12 + 33*11, "nested deeper than 32"},
	} {
		refused(t, hint.FormatJSON, test.body, test.offset, test.msg)
	}
	f := mustDecode(t, hint.FormatJSON, []byte(`{"actions":[{"action_type":"t","payload":`+deep(31, `{"a":`, "{}", "}")+`}]}`))
	if reason, detail := f.Action(0).Fault(); reason != abi.ReasonNone {
		t.Errorf("32 levels: %v %s", reason, detail)
	}
}

func TestMalformedMsgpack(t *testing.T) {
	const before = "\x81\xa7actions\x91\x82\xabaction_type\xa1t\xa7payload"
	at := len(before)
	for _, test := range []struct {
		payload string
		offset  int
		msg     string
	}{
		{"\xc1", 0, "the reserved byte 0xc1"}, {"\x81\xa1a\xc1", 3, "0xc1"}, {"\x81\xa1a\xa1\xff", 4, "not UTF-8"}, {"\x81\xa1\xff\x01", 2, "not UTF-8"},
		{"\x81\xa1a\xb0123456789012345\xff", 4 + 15, "not UTF-8"}, {"\x81\xa1a\xbf123456789012345678901234567890\xff" + strings.Repeat("x", 40), 4 + 30, "not UTF-8"},
		{"\x81\xa1a\xb81234567890123456789012\xc3\xff" + strings.Repeat("x", 40), 4 + 22, "not UTF-8"}, {"\x81\xa1a\xd9\x03a\xed\xa0", 6, "not UTF-8"},
		{"\x82\xa1a\x01\xa1a\x02", 4, "duplicate key"}, {"\x82\xa1a\x01\xd9\x01a\x02", 4, "duplicate key"}, {"\x82\x05\x01\xcc\x05\x02", 3, "duplicate key"}, {"\x82\xff\x01\xd0\xff\x02", 3, "duplicate key"},
		{"\x81\xa1m\x93\x01\x82\xc4\x01k\x90\xc5\x00\x01k\x90\xc0", 10, "duplicate key"}, {"\x82\xca\x3f\x80\x00\x00\x01\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\x02", 7, "duplicate key"}, {"\x82\xd4\x01x\xc0\xc7\x01\x01x\xc0", 5, "duplicate key"},
		{"\x81\xa1a\x92\x01\xa2\xc3\xa9\xff", 8, "trailing bytes"},
	} {
		refused(t, hint.FormatMsgpack, before+test.payload, at+test.offset, test.msg)
	}
	// What is too deep to be kept is still checked.
	deep := "\x81\xa1a" + strings.Repeat("\x91", 32)
	for _, test := range []struct{ value, msg string }{
		{"\xa1\xff", "not UTF-8"}, {"\xd9\x01\xff", "not UTF-8"}, {"\xda\x00\x01\xff", "not UTF-8"}, {"\xdb\x00\x00\x00\x01\xff", "not UTF-8"}, {"\xc1", "0xc1"}, {"\x92\x01", "unexpected end"}, {"\x81\x01", "unexpected end"},
		{"\xdc\x00\x02\x01", "unexpected end"}, {"\xdf\xff\xff\xff\xff\x01", "unexpected end"}, {"\xcd\x01", "unexpected end"}, {"\xcb1234567", "unexpected end"}, {"\xca123", "unexpected end"}, {"\xc4\x02x", "announced"}, {"\xc7\x02\x01x", "announced"}, {"\xd8\x01x", "announced"}, {"\xa2x", "announced"}, {"\x01\x02", "trailing"},
	} {
		var f hint.Frame
		if err := f.Decode(hint.FormatMsgpack, []byte(before+deep+test.value), hint.Limits{}); err == nil || !strings.Contains(err.Error(), test.msg) {
			t.Errorf("%q: %v", test.value, err)
		}
	}
	// Lengths that say more than there is, before anything is reserved for them.
	for _, test := range []string{
		"\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff", "\xdb\xff\xff\xff\xff", "\xc6\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff\x01", "\xdc\xff\xff", "\xde\xff\xff", "\xda\xff\xff", "\xc5\xff\xff", "\xc8\xff\xff\x01",
		"\xd9\xff", "\xc4\xff", "\xc7\xff\x01", "\xd8\x01", "\xbf", "\x9f", "\x8f", "\xdd\xff\xff\xff\xff\x01\x02\x03", "\xdf\x80\x00\x00\x00\xa1a\x01", "\xd9\x05abc",
	} {
		refused(t, hint.FormatMsgpack, before+"\x81\xa1a"+test, at+3, "announced")
		refused(t, hint.FormatMsgpack, before+"\x81\xa1a\x92\x01"+test, at+5, "announced")
		refused(t, hint.FormatMsgpack, "\x81\xa1x"+test, 3, "announced")
	}
	for _, test := range []struct {
		body   string
		offset int
		msg    string
	}{
		{"\x90", 0, "not a mapping"}, {"\xc0", 0, "not a mapping"}, {"\xa1x", 0, "not a mapping"}, {"\x93\xa30.1\xa2m1\x90", 0, "not a mapping"}, {"\x80", 0, "actions is missing"},
		{"\x81\xa7actions\xc0", 9, "actions is not a list"}, {"\x81\xa7actions\x80", 9, "actions is not a list"}, {"\x81\xa7actions", 9, "unexpected end"}, {"\x81\xa7actions\x91\x81", 10, "announced"},
		{"\x81\xa7actions\x90\xc0", 10, "trailing bytes"}, {"\x81\xc4\x07actions\x90", 0, "actions is missing"}, {"\x8f", 0, "announced"}, {"\xdf\xff\xff\xff\xff", 0, "announced"}, {"\x81\xa7actions\xdd\xff\xff\xff\xff", 9, "announced"}, {"\xde\x00", 2, "unexpected end"},
		{"\x82\xa7actions\x90\xa7actions\x90", 10, "duplicate key"}, {"\x83\x01\x02\xa7actions\x90\x01\x02", 12, "duplicate key"}, {"\x83\xa1x\x02\xd9\x01x\xc0\xa7actions\x90", 4, "duplicate key"},
		{"\x81\xa7actions\x91\x82\x01\x02\x01\x02", 13, "duplicate key"}, {"\x82\xa1\xff\x01\xa7actions\x90", 2, "not UTF-8"}, {"\x81\xa7actions\x91\x81\xa9action_id\xa1\xff", 22, "not UTF-8"}, {"\x81\xa7actions\x91\xc1", 10, "0xc1"},
	} {
		refused(t, hint.FormatMsgpack, test.body, test.offset, test.msg)
	}
}

// TestStringBytes puts every byte at every place of a string.
func TestStringBytes(t *testing.T) {
	for b := range 256 {
		for at := range 26 {
			text := []byte("abcdefghijklmnopqrstuvwxyz")
			text[at] = byte(b)
			body := []byte(`{"actions":[{"action_type":"t","payload":{"v":"` + string(text) + `"}}],"more":"more text"}`)
			var f hint.Frame
			for range 2 { // the second time the buffers have room
				err := f.Decode(hint.FormatJSON, body, hint.Limits{})
				good := b >= ' ' && b < 0x80 && b != '"' && b != '\\'
				if (err == nil) != good && b != '\\' { // which may begin an escape
					t.Fatalf("byte %#x at %d: %v", b, at, err)
				}
				if good && showPayload(f.Action(0)) != fmt.Sprintf(`{"v":%q}`, text) {
					t.Fatalf("byte %#x at %d: %s", b, at, showPayload(f.Action(0)))
				}
			}
			for n := range 27 { // strings of every short length
				body := mp(envelope(fetch(obj{"v", raw(append([]byte{0xa0 | byte(n)}, text[:n]...)), "w", "more"})))
				for range 2 {
					if err := f.Decode(hint.FormatMsgpack, body, hint.Limits{}); (err == nil) != (b < 0x80 || at >= n) {
						t.Fatalf("byte %#x at %d of %d: %v", b, at, n, err)
					}
				}
			}
		}
	}
}

// TestTruncated cuts good envelopes at every byte.
func TestTruncated(t *testing.T) {
	doc := obj{"x", arr{1, obj{"y", "z"}}, "protocol_version", "0.1", "message_id", "message", "actions", arr{
		fetch(obj{"block_hashes", arr{uint64(1<<63 + 5), 2, uint64(1 << 40)}, "mode", "copy", "neg", arr{1, -500}, "deep", arr{arr{obj{"k", 1.5}}}, "n", nil, "t", true, "u", "é\n"}),
		fetch(obj{}), obj{"action_type", "é"}, 5,
	}}
	bodies := [][]byte{js(doc), mp(doc), goldenBytes(t), mp(envelope(fetch(obj{"b", []byte("bytes"), "e", ext{1, "ext"}, "f", float32(1), "long", strings.Repeat("x", 300)}))),
		mp(envelope(fetch(obj{"deep", raw(strings.Repeat("\x91", 40) + "\x85\x01\xa1a\xcd\x01\x02\xc0\xcb12345678\xca1234\xc7\x02\x01xx\xc4\x02zz\xd5\x01qq\xd9\x03abc")})))}
	for _, body := range bodies {
		mustDecode(t, hint.FormatUnknown, body)
		for n := range len(body) {
			var f hint.Frame
			err := decode(t, &f, hint.Detect(body), body[:n:n], hint.Limits{})
			var bad *hint.MalformedError
			if !errors.As(err, &bad) || bad.Offset > n {
				t.Fatalf("%q cut at %d: %v", body, n, err)
			}
		}
	}
}

// TestDuplicateKeys: small maps, large ones, and none by mistake.
func TestDuplicateKeys(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 18, 100, 5000} {
		pairs := func() (o obj) {
			for i := range n {
				o = append(o, fmt.Sprintf("key-%d", i), obj{"same", 1, "n", i})
			}
			return o
		}
		both(t, envelope(fetch(pairs())), func(t *testing.T, f *hint.Frame) {})
		both(t, append(pairs(), "actions", arr{append(pairs(), "action_type", "t")}), func(t *testing.T, f *hint.Frame) {
			if reason, detail := f.Action(0).Fault(); reason != abi.ReasonNone {
				t.Error(reason, detail)
			}
		})
		for _, dup := range []int{0, n / 2, n - 1} {
			key := fmt.Sprintf("key-%d", dup)
			for _, doc := range []obj{
				envelope(fetch(append(pairs(), key, nil))), envelope(append(pairs(), key, nil)), append(pairs(), key, nil, "actions", arr{}), envelope(fetch(obj{"in", arr{append(pairs(), key, nil)}})),
			} {
				for _, body := range [][]byte{js(doc), mp(doc)} {
					want := strings.LastIndex(string(body), key)
					if want--; n > 1 && dup == 0 && body[0] != '{' && body[want] != 0xa0|byte(len(key)) {
						t.Fatal("test is wrong")
					}
					refused(t, hint.FormatUnknown, string(body), want, "duplicate key")
				}
			}
		}
	}
	// Numbers as keys, beyond what is compared one by one.
	var keys obj
	for i := range 100 {
		keys = append(keys, i, 0, -i-1, 0, float64(i)+0.5, 0, []byte{byte(i)}, 0, ext{1, string(rune('a' + i%26))}, 0)
		if i >= 26 {
			keys = keys[:len(keys)-2]
		}
	}
	mustDecode(t, hint.FormatMsgpack, mp(envelope(fetch(keys))))
	for i := 0; i < len(keys); i += 2 {
		body := mp(envelope(fetch(append(keys[:len(keys):len(keys)], keys[i], nil))))
		refused(t, hint.FormatMsgpack, string(body), len(body)-1-len(mp(keys[i])), "duplicate key")
	}
}

func TestBodyThatLies(t *testing.T) {
	// A few bytes must not reserve gigabytes: AllocsPerRun counts the buffers.
	lie, _ := hex.DecodeString("81a7616374696f6e7391" + "81a77061796c6f6164" + "81a161" + "ddffffffff")
	var f hint.Frame
	for range 2 {
		if err := f.Decode(0, lie, hint.Limits{}); err == nil {
			t.Fatal("taken")
		}
	}
	if n := len(f.Bytes()); n > 200 {
		t.Error(n)
	}
}
