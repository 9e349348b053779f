package policies_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/tck"
)

// hashList is n hashes as JSON.
func hashList(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, uint64(i)*0x9e3779b97f4a7c15)
	}
	return "[" + b.String() + "]"
}

func envelope(actionType string, payloads ...string) string {
	actions := make([]string, len(payloads))
	for i, p := range payloads {
		actions[i] = fmt.Sprintf(`{"action_id":"a%d","action_type":%q,"action_version":"1.0","payload":%s}`, i, actionType, p)
	}
	return `{"protocol_version":"0.1","message_id":"m1","actions":[` + strings.Join(actions, ",") + `]}`
}

// A guest's arena grows with the frame up to its memory limit. Past that the action is
// refused, and the next one, of ordinary size, is not.
func TestLargeFrames(t *testing.T) {
	const hashes = 150_000 // 1.2 MB in a frame
	large := hashList(hashes)
	for _, c := range []struct{ guest, large, small string }{
		{"kv-fetch", envelope("kv.fetch", `{"block_hashes":`+large+`}`), envelope("kv.fetch", `{"block_hashes":[1]}`)},
		{"kv-retain", envelope("kv.retain", `{"directives":[{"priority":1}],"note":`+large+`}`), envelope("kv.retain", `{"directives":[]}`)},
		{"kv-evict", envelope("kv.evict", `{"execute_at":"now","include_current_request":false,"block_hashes":[1],"note":`+large+`}`), envelope("kv.evict", `{"execute_at":"now","include_current_request":false,"block_hashes":["1"]}`)},
		{"kv-prefetch", envelope("kv.prefetch", `{"source_control_endpoint":"tcp://h:1","block_hashes":[1],"note":`+large+`}`), envelope("kv.prefetch", `{"tier":"device","block_hashes":[1]}`)},
		{"router-hint", `{"block_hashes":` + large + `}`, `{"block_hashes":[1]}`},
	} {
		t.Run(c.guest, func(t *testing.T) {
			hosts := newHosts(t, c.guest)
			for _, memory := range []uint64{runtime.DefaultMemory, 0} {
				hosts.limits.Memory = memory
				h, err := hosts.load(context.Background(), nil)
				if err != nil {
					t.Fatal(err)
				}
				want := abi.ReasonNone
				if memory != 0 { // less than the manifest asks for
					want = abi.ReasonLimitExceeded
				}
				for range 2 {
					if got := h.only(t, c.large); got != want {
						t.Errorf("a large frame with %d bytes of memory: %q, want %q", memory, got, want)
					}
					if got := h.only(t, c.small); got != abi.ReasonNone {
						t.Errorf("a small frame after that: %q", got)
					}
				}
			}
		})
	}
}

// dispatch sends a body, which is a document of the guest's dialect when it has one.
func (h *host) dispatch(body []byte) (*runtime.Response, error) {
	req := runtime.Request{Body: body, Identity: hint.Identity{RequestID: "r1"}, Forward: true}
	if len(h.manifest.Dialects) > 0 {
		req.Dialect = h.manifest.Dialects[0]
	}
	res := h.runtime.NewResponse()
	return res, h.runtime.Dispatch(&req, res)
}

// only dispatches a body with one action and returns why it was rejected.
func (h *host) only(t *testing.T, body string) abi.Reason {
	t.Helper()
	h.Reset(tck.Answers{})
	res, err := h.dispatch([]byte(body))
	var refused *runtime.ParseError
	if errors.As(err, &refused) {
		return refused.Reason
	}
	if err != nil || len(res.Results) != 1 {
		t.Fatalf("%v, %d results", err, len(res.Results))
	}
	if len(h.manifest.Dialects) > 0 { // nobody here handles what the parser made
		return abi.ReasonNone
	}
	return res.Results[0].Reason
}

// The work of kv-retain for one action does not grow with the envelope: past the cap
// of 16 actions nothing is looked at, and before it a bounded number of directives.
func TestManyActions(t *testing.T) {
	h, err := newHosts(t, "kv-retain").load(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	claim := `{"directives":[` + strings.Repeat(`{"priority":1},`, 126) + `{"priority":1},{"priority":-1}]}`
	payloads := make([]string, 1024)
	for i := range payloads {
		payloads[i] = claim
	}
	res, err := h.dispatch([]byte(envelope("kv.retain", payloads...)))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range res.Results {
		want := abi.ReasonInvalidPayload
		if i >= 4 { // 512 directives were looked at in vain; from 16 on none would be
			want = abi.ReasonLimitExceeded
		}
		if r.Reason != want {
			t.Fatalf("action %d: %s %q (%s), want %q", i, r.Status, r.Reason, r.Detail, want)
		}
	}
}
