package tck_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/sdk/tck"
)

// TestPolicyCases: a case of a policy sends a context, whose events come first, and says
// what became of the policy, of its actions and of the envelope.
func TestPolicyCases(t *testing.T) {
	const (
		events  = `"events":[{"type":"stored","session_id":"s1","worker_id":7,"block_hashes":[1,2]}]`
		final   = `{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1","session_final":true},` + events + `}`
		unheard = `{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1","session_final":true}}`
		alone   = `{"request_id":"r1","selected":{"worker_id":7}}`
		picky   = `{"request_id":"r1","selected":{"worker_id":7,"capabilities":[]},"session":{"session_id":"s1","session_final":true},` + events + `}`
		evict   = `{"message_id":"r1","protocol_version":"0.1","actions":[{"action_id":"s1-7-r1","action_type":"kv.evict","action_version":"1.0","payload":{"execute_at":"request_completion","include_current_request":false,"block_hashes":["1","2"]}}]}`
	)
	for _, c := range []struct {
		guest, text string
		runs        int
		want        []string // what each failure has
	}{
		{"evict-on-final", `"context":` + final + `,"envelope":` + evict, 2, nil},
		{"evict-on-final", `"context":` + final + `,"envelope":null`, 2, []string{"json: envelope: got ", "msgpack: envelope: got "}},
		{"evict-on-final", `"context":` + final + `,"envelope":{"actions":[]}`, 2, []string{`json: envelope: got {`, "msgpack: envelope: got {"}},
		{"evict-on-final", `"context":` + unheard + `,"envelope":null`, 2, nil}, // nothing is left of the events before
		{"evict-on-final", `"context":` + unheard + `,"envelope":` + evict, 2, []string{"json: envelope: got none, want {", "msgpack: envelope: got none"}},
		{"evict-on-final", `"context":` + final, 2, []string{"json: want an envelope, null for none, or refused", "msgpack: want an"}},
		{"evict-on-final", `"context":` + alone + `,"refused":{"reason":"not_found"}`, 2, nil},
		{"evict-on-final", `"context":` + alone + `,"envelope":null`, 2, []string{`json: policy: got  "not_found"`, "msgpack: policy: got "}},
		{"evict-on-final", `"context":` + final + `,"refused":{"reason":"not_found"}`, 2, []string{`json: policy: got  "" (), want  "not_found"`, "msgpack: policy: got "}},
		{"evict-on-final", `"context":` + picky + `,"envelope":null,"dropped":["unsupported_action_type"]`, 2, nil},
		{"evict-on-final", `"context":` + picky + `,"envelope":null,"dropped":[]`, 2, []string{`json: dropped: got ["unsupported_action_type"], want []`, "msgpack: dropped: "}},
		{"evict-on-final", `"context":{"request_id":"r1"},"envelope":null`, 2, []string{"json: malformed context: ", "msgpack: malformed context: "}},
		{"evict-on-final", `"context":` + strings.Replace(final, `"type":"stored"`, `"type":"stored","parent_block_hash":9`, 1) + `,"envelope":null`, 2, []string{"json: events[0]: ", "msgpack: events[0]: "}},
		{"evict-on-final", `"context":` + final + `,"workers":[{"id":7,"capabilities":["kv.retain"]}],"envelope":null,"dropped":["unsupported_action_type"]`, 2, nil},
		{"evict-on-final", `"context":` + final + `,"workers":[{"id":7,"capabilities":["kv.evict"]}],"envelope":` + evict, 2, nil},
		{"evict-on-final", `"context":` + final + `,"workers":[{"id":7,"capabilities":[""]}],"envelope":null`, 2, []string{"json: workers: worker 7: capabilities[0]", "msgpack: workers: "}},
		{"kv-fetch", `"context":` + alone + `,"envelope":null`, 0, []string{"a context, and the guest is no policy"}},
		{"evict-on-final", `"payload":{}`, 0, []string{"an envelope, and the guest is no handler"}},
	} {
		runner, err := (&tck.Kit{Engine: compiled(t)}).NewRunner(embedded(t, c.guest))
		if err != nil {
			t.Fatal(err)
		}
		cases, err := tck.ReadCases(strings.NewReader(`{"name":"a",` + c.text + `}`))
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		out := runner.Run(context.Background(), &cases[0])
		ok := out.Runs == c.runs && len(out.Failures) == len(c.want)
		for i := range min(len(out.Failures), len(c.want)) {
			ok = ok && strings.HasPrefix(out.Failures[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s: %d runs, %q\nwant %d, %q", c.text, out.Runs, out.Failures, c.runs, c.want)
		}
		runner.Close()
	}
}
