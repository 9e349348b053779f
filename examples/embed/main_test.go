package main

import (
	"bytes"
	"testing"
)

func TestRun(t *testing.T) {
	const want = `a1: ACCEPTED
a2: REJECTED invalid_payload block_hashes[0] must be an integer in [0, 2^64), not a negative integer
block 11 of request r1: true, from tcp://127.0.0.1:23280
pass on: {"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":"kv.fetch","action_version":"1.0","payload":{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[11,18446744073709551615]}}]}
`
	var got bytes.Buffer
	if err := run(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got:\n%swant:\n%s", got.String(), want)
	}
}
