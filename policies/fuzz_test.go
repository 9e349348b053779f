package policies_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// FuzzPolicies: whatever context a router sends, the built-in policies answer something
// that the runtime takes: they do not trap, do not run out of fuel, and what they add is
// not dropped for what is in it.
func FuzzPolicies(f *testing.F) {
	files, err := filepath.Glob("*/cases/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var c struct{ Context json.RawMessage }
			if json.Unmarshal(lines.Bytes(), &c) == nil && c.Context != nil && len(c.Context) < 4096 {
				f.Add([]byte(c.Context))
			}
		}
	}
	var policies []*formulator
	for _, p := range [][2]string{
		{"retain-session", `{}`}, {"retain-session", `{"variant":"blocks","anchored":true,"include_current_request":true}`},
		{"retain-session", `{"variant":"request_blocks"}`}, {"evict-on-final", `{}`}, {"fetch-longest-prefix", `{"tiers":["external","gpu"]}`},
		{"retain-on-tool-call", `{"ttl_seconds":1,"triggers":["user_message","tool_result","other"]}`}, {"retain-on-tool-call", `{"variant":"blocks"}`},
	} {
		policies = append(policies, newFormulator(f, p[0], p[1]))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for i, p := range policies {
			p.sessions.Drop("")
			req := runtime.FormulateRequest{Body: body, Seed: func(c *hint.Context) error {
				p.sessions.Drop(string(c.Frame().Text(abi.OffContextFrameNamespace)))
				p.sessions.Seed(c, func(int, error) {})
				return nil
			}}
			if p.runtime.Formulate(context.Background(), &req, p.res) != nil {
				return
			}
			switch got := &p.res.Policies[0]; got.Reason {
			case abi.ReasonNone, abi.ReasonNotFound:
				for _, d := range got.Dropped {
					if d.Reason != abi.ReasonUnsupportedActionType && p.res.Context.RequestHint() == nil && p.res.Context.SelectionHint() == nil {
						t.Errorf("policy %d: dropped: %s %s", i, d.Reason, d.Detail)
					}
				}
			case abi.ReasonLimitExceeded:
			default:
				t.Errorf("policy %d: %s %s", i, got.Reason, got.Detail)
			}
		}
	})
}
