package lower_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
)

// fetchRequest is a request of the token path with n block hashes of 20 digits.
func fetchRequest(n int) []byte {
	hashes := make([]string, n)
	v := uint64(0x9e3779b97f4a7c15)
	for i := range hashes {
		v = v*6364136223846793005 + 1442695040888963407
		hashes[i] = fmt.Sprint(1e19 + v%8e18)
	}
	return []byte(`{"token_ids":[1,2,3],"sampling_params":{"temperature":0.7,"extra_args":{"x":1}},"kv_transfer_params":{"do_remote_decode":true},"kv_hint":{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":"kv.fetch","action_version":"1.0","payload":{"source_control_endpoint":"tcp://10.0.0.9:23280","block_hashes":[` + strings.Join(hashes, ",") + `],"mode":"copy"}}]}}`)
}

func packed(b *testing.B, request []byte) []byte {
	tree, root, err := hint.AppendTree(nil, hint.FormatJSON, request)
	if err != nil {
		b.Fatal(err)
	}
	out, err := hint.AppendTreeMsgpack(nil, tree, root)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func BenchmarkLower1024(b *testing.B) {
	request := fetchRequest(1024)
	for _, format := range []string{"json", "msgpack"} {
		body := request
		if format == "msgpack" {
			body = packed(b, request)
		}
		b.Run(format+"/copy", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			var out []byte
			for b.Loop() {
				out = append(out[:0], body...)
			}
		})
		for _, t := range []struct {
			name   string
			target lower.Target
		}{{"vllm", lower.Target{Engine: lower.VLLM}}, {"transitional", lower.Target{Engine: lower.VLLM, Version: "0.30.0"}}, {"trtllm", lower.Target{Engine: lower.TRTLLM}}, {"sglang", lower.Target{Engine: lower.SGLang}}, {"struct", lower.Target{Engine: lower.SGLang, Form: lower.FormStruct}}} {
			b.Run(format+"/"+t.name, func(b *testing.B) { lowerLoop(b, t.target, body) })
		}
		b.Run(format+"/nohint", func(b *testing.B) {
			var out []byte
			plain := []byte(strings.Replace(string(body), "kv_hint", "kv_hunt", 1))
			l, err := lower.New(lower.Target{Engine: lower.VLLM}, lower.Limits{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if out, _, err = l.Append(out[:0], hint.FormatUnknown, plain); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func lowerLoop(b *testing.B, target lower.Target, body []byte) {
	l, err := lower.New(target, lower.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var report lower.Report
		if out, report, err = l.Append(out[:0], hint.FormatUnknown, body); err != nil || !report.Carried {
			b.Fatal(err)
		}
	}
}
