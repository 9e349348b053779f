package hint_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// TestCheckCases holds Check to the cases of the shipped handlers of kv.retain and
// kv.fetch, in their strict modes: what they reject in an envelope Check rejects with the
// same reason, and nothing else.
func TestCheckCases(t *testing.T) {
	for guest, skip := range map[string]map[string]bool{
		"kv-retain": {
			"bad actions count too": true, // here they are left out, and the envelope goes without them
			"directives in vain":    true, // bounds on the handler's own work
			"a scope of 4096 bytes": true,
			"too many zeros":        true,
		},
		"kv-fetch": {"1.0 in 65 bytes": true},
	} {
		files, err := filepath.Glob("../policies/" + guest + "/cases/*.jsonl")
		if err != nil || len(files) == 0 {
			t.Fatal("no cases", err)
		}
		n := 0
		for _, file := range files {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 16<<20)
			for lines.Scan() {
				var c retainCase
				if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				if body := c.body(guest); body != nil && !skip[c.Name] {
					n++
					c.check(t, filepath.Base(file), body)
				}
			}
			if err := lines.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if n < 20 {
			t.Errorf("%s: only %d cases", guest, n)
		}
	}
}

type retainCase struct {
	Name    string
	Params  json.RawMessage
	Init    *string
	Host    json.RawMessage
	Input   json.RawMessage
	Payload json.RawMessage
	Version *json.RawMessage
	Results []struct{ Status, Reason, Detail string }
}

// body is the envelope of a case, nil when it is not one for Check.
func (c *retainCase) body(guest string) []byte {
	if c.Params != nil || c.Init != nil || c.Host != nil || c.Results == nil {
		return nil
	}
	if c.Input != nil {
		return c.Input
	}
	if c.Payload == nil {
		return nil
	}
	version := []byte(`"1.0"`)
	if c.Version != nil {
		version = *c.Version
	}
	typ := map[string]string{"kv-retain": "kv.retain", "kv-fetch": "kv.fetch"}[guest]
	return []byte(`{"actions":[{"action_id":"a1","action_type":"` + typ + `","action_version":` + string(version) + `,"payload":` + string(c.Payload) + `}]}`)
}

func (c *retainCase) check(t *testing.T, file string, body []byte) {
	var f hint.Frame
	if err := f.Decode(hint.FormatJSON, body, hint.Limits{}); err != nil {
		t.Fatalf("%s: %s: %v", file, c.Name, err)
	}
	var check hint.Check
	check.Reset(hint.Target{ManyFetches: true})
	for i := range min(f.Len(), len(c.Results)) {
		a, want := f.Action(i), c.Results[i]
		reason, detail := a.Fault()
		if want.Reason == abi.ReasonUnsupportedActionType.String() {
			continue // the handler's business
		}
		if reason == abi.ReasonNone {
			reason, detail = check.Add(a.Type, a.Version, a.Base, a.Payload)
		}
		if reason.String() != want.Reason {
			t.Errorf("%s: %s, action %d: %s %q, the handler says %s %q", file, c.Name, i, reason, detail, want.Reason, want.Detail)
		}
	}
}
