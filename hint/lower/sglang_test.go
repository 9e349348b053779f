package lower_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
)

func fetchOf(protocol, typ, version, hashes string) string {
	return `{"kv_hint":{"protocol_version":"` + protocol + `","message_id":"m","actions":[{"action_id":"a","action_type":"` + typ + `","action_version":"` + version + `","payload":{"block_hashes":` + hashes + `}}]}}`
}

func TestSGLangHashes(t *testing.T) {
	target := lower.Target{Engine: lower.SGLang}
	for hashes, want := range map[string]string{
		"0": "0000000000000000", "11": "000000000000000b", "9007199254740991": "001fffffffffffff", "9007199254740992": "0020000000000000", "9007199254740993": "0020000000000001", "9223372036854775807": "7fffffffffffffff", "18446744073709551615": "ffffffffffffffff",
		"-1": "ffffffffffffffff", "-9223372036854775808": "8000000000000000", `"ABCdef"`: "ABCdef", `"18446744073709551615"`: "18446744073709551615", `""`: "", `"é\n"`: `é\n`,
	} {
		for _, list := range []string{"[" + hashes + "]", "[1, " + hashes + ",\"x\"]"} {
			got, _, err := run(t, target, fetchOf("0.1", "kv.fetch", "1.0", list))
			if err != nil || !strings.Contains(got, `"`+want+`"`) {
				t.Errorf("%s: %s, %v", list, got, err)
			}
		}
	}
	for hashes, path := range map[string]string{
		"42": "", "null": "", `"11"`: "", "{}": "", "true": "", "[1.5]": "[0]", "[1.0]": "[0]", "[true]": "[0]", "[null]": "[0]", "[{}]": "[0]", "[[]]": "[0]", "[1,2,1e3]": "[2]", "[18446744073709551616]": "[0]", "[-9223372036854775809]": "[0]", "[0,1e400]": "[1]",
	} {
		for _, form := range []lower.Form{lower.FormJSON, lower.FormStruct} {
			target.Form = form
			_, _, err := run(t, target, fetchOf("0.1", "kv.fetch", "1.0", hashes))
			var bad *lower.Error
			if !errors.As(err, &bad) || bad.Path != "kv_hint.actions[0].payload.block_hashes"+path || !strings.Contains(bad.Msg, "kv.fetch block_hashes") {
				t.Errorf("%s: %v", hashes, err)
			}
		}
	}
}

// TestSGLangOthers holds that only kv.fetch 1.0 of protocol 0.1 is rewritten, and that
// every other integer is exact or refused.
func TestSGLangOthers(t *testing.T) {
	target := lower.Target{Engine: lower.SGLang}
	for _, c := range [][3]string{{"0.1", "kv.fetch", "2.0"}, {"0.1", "kv.fetch", "1.1"}, {"0.1", "kv.fetch", "1"}, {"0.1", "kv.prefetch", "1.0"}, {"0.2", "kv.fetch", "1.0"}, {"1.0", "kv.fetch", "1.0"}, {"", "kv.fetch", "1.0"}} {
		got, _, err := run(t, target, fetchOf(c[0], c[1], c[2], "[23, -5, 1.50]"))
		if err != nil || !strings.Contains(got, `"block_hashes":[23, -5, 1.50]`) {
			t.Errorf("%q: %s, %v", c, got, err)
		}
		for _, n := range []string{"18446744073709551615", "9007199254740993", "-9007199254740993", "9223372036854775807", "100000000000000000000000", "1e400"} {
			for _, form := range []lower.Form{lower.FormJSON, lower.FormMsgpack, lower.FormStruct} {
				_, _, err := run(t, lower.Target{Engine: lower.SGLang, Form: form}, fetchOf(c[0], c[1], c[2], "[1,"+n+"]"))
				var bad *lower.Error
				if !errors.As(err, &bad) || !strings.HasPrefix(bad.Path, "kv_hint.actions[0].payload.block_hashes[1]") {
					t.Errorf("%q %s: %v", c, n, err)
				}
				if form != lower.FormMsgpack && !strings.Contains(err.Error(), "cannot be represented exactly") {
					t.Errorf("%q %s: %v", c, n, err)
				}
			}
		}
		for _, n := range []string{"9007199254740992", "9007199254740994", "9223372036854775808", "-9223372036854775808", "18446744073709549568", "18446744073709551616", "-0", "0"} {
			if _, _, err := run(t, target, fetchOf(c[0], c[1], c[2], "["+n+"]")); err != nil {
				t.Errorf("%q %s: %v", c, n, err)
			}
		}
	}
	// In kv.fetch itself only the hashes are strings.
	_, _, err := run(t, target, `{"kv_hint":{"protocol_version":"0.1","actions":[{"action_type":"kv.fetch","payload":{"block_hashes":[18446744073709551615],"x":{"block_hashes":[18446744073709551615]}}}]}}`)
	if err == nil || !strings.Contains(err.Error(), "kv_hint.actions[0].payload.x.block_hashes[0]: ") {
		t.Error(err)
	}
	got, _, err := run(t, target, `{"kv_hint":{"protocol_version":0.1,"actions":[{"action_type":"kv.fetch","payload":{"z":1.0,"block_hashes":[],"a":null}},{"action_type":"t"}]}}`)
	if want := `{"kv_hints":{"protocol_version":"0.1","message_id":"","actions":[{"action_id":"","action_type":"kv.fetch","action_version":"1.0","payload":{"z":1.0,"block_hashes":[],"a":null}},{"action_id":"","action_type":"t","action_version":"1.0","payload":{}}]}}`; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
}

// TestSGLangMsgpackOnly is what JSON has not.
func TestSGLangMsgpackOnly(t *testing.T) {
	head := "\x81\xa7kv_hint\x81\xa7actions\x91\x82\xabaction_type\xa1t\xa7payload"
	for payload, msg := range map[string]string{"\x81\xa1b\xc4\x01x": "payload.b: bytes", "\x81\xa1b\xd4\x01x": "payload.b: an extension", "\x81\x05\xc0": "payload: a key", "\x81\xa1b\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00": "payload.b: NaN"} {
		for _, form := range []lower.Form{lower.FormSame, lower.FormStruct} {
			l, err := lower.New(lower.Target{Engine: lower.SGLang, Form: form}, lower.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := l.Append(nil, hint.FormatUnknown, []byte(head+payload)); err == nil || !strings.Contains(err.Error(), "kv_hint.actions[0]."+msg) {
				t.Errorf("%q: %v", payload, err)
			}
		}
	}
}

func TestNoHintNoProtobuf(t *testing.T) {
	got, report, err := run(t, lower.Target{Engine: lower.SGLang, Form: lower.FormStruct}, `{"input_ids":[1]}`)
	if got != "" || report.Hint || err != nil {
		t.Errorf("%q, %+v, %v", got, report, err)
	}
}

// TestAppendEnvelope is the way in for routers that hold an envelope as a value.
func TestAppendEnvelope(t *testing.T) {
	e, err := hint.DecodeEnvelope(hint.FormatJSON, []byte(envelope))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := e.AppendJSON(nil)
	for _, engine := range []lower.Engine{lower.VLLM, lower.SGLang, lower.TRTLLM} {
		for _, form := range []lower.Form{lower.FormJSON, lower.FormMsgpack, lower.FormStruct} {
			want, _, wantErr := run(t, lower.Target{Engine: engine, Form: form, EnvelopeOnly: true}, `{"kv_hint":`+envelope+`}`)
			got, err := lower.AppendEnvelope(nil, engine, form, &e)
			if string(got) != want || (err == nil) != (wantErr == nil) {
				t.Errorf("%v %v: %q, %v; want %q, %v", engine, form, got, err, want, wantErr)
			}
		}
	}
	if after, _ := e.AppendJSON(nil); string(after) != string(before) {
		t.Errorf("the envelope became %s", after)
	}
	if field := lower.AppendGenerateField(nil, lower.GenerateRequestKVHints, []byte("x")); string(field) != "\x8a\x01\x01x" {
		t.Errorf("%x", field)
	}
}
