package lower_test

import (
	"fmt"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hint/lower"
)

// A router writes requests for one engine. The connector's parameters replace what the
// client sent, and the hint becomes an argument of its own.
func Example() {
	l, err := lower.New(lower.Target{Engine: lower.VLLM, Version: "0.31.0+cu130"}, lower.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := []byte(`{"token_ids":[1,2],"sampling_params":{"extra_args":{"x":1,"kv_transfer_params":{"client":1}}},` +
		`"kv_transfer_params":{"do_remote_decode":true},` +
		`"kv_hint":{"protocol_version":"0.1","message_id":"r1","actions":[]}}`)
	out, _, err := l.Append(nil, hint.FormatJSON, request)
	fmt.Println(string(out), err)
	// Output:
	// {"token_ids":[1,2],"sampling_params":{"extra_args":{"x":1,"kv_transfer_params":{"do_remote_decode":true}}},"kv_hints":{"protocol_version":"0.1","message_id":"r1","actions":[]}} <nil>
}
