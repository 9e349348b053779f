package policies_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
)

// testCase is one line of a case file, as CASES.md describes it.
type testCase struct {
	Name   string          `json:"name"`
	Params json.RawMessage `json:"params"`
	Host   struct {
		Submit string `json:"submit"`
	} `json:"host"`
	Init *string `json:"init"`

	Input   json.RawMessage `json:"input"`
	Payload json.RawMessage `json:"payload"`
	Version json.RawMessage `json:"version"`
	Msgpack string          `json:"msgpack"`
	Results []verdict       `json:"results"`
	Forward json.RawMessage `json:"forward"`

	RequestID    *string         `json:"request_id"`
	Document     json.RawMessage `json:"document"`
	DocumentText *string         `json:"document_text"`
	Envelope     json.RawMessage `json:"envelope"`
	Refused      *verdict        `json:"refused"`

	Log     *[]string `json:"log"`
	Submits *[]submit `json:"submits"`
}

type verdict struct {
	Status string  `json:"status"`
	Reason string  `json:"reason"`
	Detail *string `json:"detail"`
}

func (v verdict) check(t *testing.T, what string, status string, reason abi.Reason, detail string) {
	t.Helper()
	if status != v.Status || reason.String() != v.Reason {
		t.Errorf("%s: got %s %q (%s), want %s %q", what, status, reason, detail, v.Status, v.Reason)
	}
	if v.Detail != nil && detail != *v.Detail {
		t.Errorf("%s: detail\n got %s\nwant %s", what, detail, *v.Detail)
	}
}

func readCases(t *testing.T, file string) []testCase {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []testCase
	seen := map[string]bool{}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			break
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		var c testCase
		if err := d.Decode(&c); err != nil {
			t.Fatalf("%s: line %d: %v", file, len(cases)+1, err)
		}
		if c.Name == "" || seen[c.Name] {
			t.Fatalf("%s: line %d: want a name of its own, not %q", file, len(cases)+1, c.Name)
		}
		seen[c.Name] = true
		cases = append(cases, c)
		if err != nil {
			break
		}
	}
	return cases
}

// TestCases runs the cases of every guest through the runtime, in JSON and msgpack.
func TestCases(t *testing.T) {
	for _, name := range policies.Guests() {
		files, err := filepath.Glob(filepath.Join(name, "cases", "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no cases: %v", name, err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hosts := newHosts(t, name)
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
					for _, c := range readCases(t, file) {
						t.Run(c.Name, func(t *testing.T) { c.run(t, hosts) })
					}
				})
			}
		})
	}
}

func (c *testCase) run(t *testing.T, hosts *hosts) {
	h, err := hosts.get(c)
	if err != nil {
		refused := "(none)"
		if c.Init != nil {
			refused = "kvrt_init refused: invalid_payload: " + *c.Init
		}
		if !strings.HasSuffix(err.Error(), refused) {
			t.Errorf("loading: got %v, want %s", err, refused)
		}
		return
	}
	if c.Init != nil && *c.Init != "" {
		t.Errorf("init accepted, want a refusal: %s", *c.Init)
	}
	for _, format := range []abi.Format{abi.FormatJSON, abi.FormatMsgpack} {
		body, ok := c.body(t, h.manifest, format)
		if !ok {
			continue
		}
		t.Run(format.String(), func(t *testing.T) {
			h, err := hosts.get(c)
			if err != nil {
				t.Fatal(err)
			}
			h.reset(c.Host.Submit)
			c.dispatch(t, h, format, body)
			if c.Log != nil && !slices.Equal(h.log, *c.Log) {
				t.Errorf("log:\n got %q\nwant %q", h.log, *c.Log)
			}
			if c.Submits != nil && fmt.Sprint(h.submits) != fmt.Sprint(*c.Submits) {
				t.Errorf("submits:\n got %v\nwant %v", h.submits, *c.Submits)
			}
		})
	}
}

// body is what the case sends; false when this format cannot say it.
func (c *testCase) body(t *testing.T, m *abi.Manifest, format abi.Format) ([]byte, bool) {
	t.Helper()
	var text []byte
	switch {
	case c.DocumentText != nil:
		return []byte(*c.DocumentText), format == abi.FormatJSON
	case c.Document != nil:
		text = c.Document
	case c.Msgpack != "":
		var body []byte
		if _, err := fmt.Sscanf(c.Msgpack, "%x", &body); err != nil {
			t.Fatalf("msgpack: %v", err)
		}
		return body, format == abi.FormatMsgpack
	case c.Payload != nil:
		version := `,"action_version":"1.0"`
		if string(c.Version) == "null" {
			version = ""
		} else if c.Version != nil {
			version = `,"action_version":` + string(c.Version)
		}
		text = fmt.Appendf(nil, `{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":%q%s,"payload":%s}]}`,
			m.ActionTypes[0].Type, version, c.Payload)
	case c.Input != nil:
		text = c.Input
	default:
		return nil, false
	}
	if format == abi.FormatMsgpack {
		return toMsgpack(t, text)
	}
	return text, true
}

func toMsgpack(t *testing.T, text []byte) ([]byte, bool) {
	t.Helper()
	base, root, err := hint.AppendTree(nil, abi.FormatJSON, text)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	body, err := hint.AppendTreeMsgpack(nil, base, root)
	var cannot *hint.EncodeError
	if errors.As(err, &cannot) { // a number of more than 64 bits
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return body, true
}

// same compares an envelope with what a case expects, both without white space.
func same(t *testing.T, what string, format abi.Format, got []byte, want json.RawMessage) {
	t.Helper()
	for _, e := range []struct {
		format abi.Format
		text   *[]byte
	}{{format, &got}, {abi.FormatJSON, (*[]byte)(&want)}} {
		envelope, err := hint.DecodeEnvelope(e.format, *e.text)
		if err == nil {
			*e.text, err = envelope.AppendJSON(nil)
		}
		if err != nil {
			t.Fatalf("%s: %v: %q", what, err, *e.text)
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func (c *testCase) dispatch(t *testing.T, h *host, format abi.Format, body []byte) {
	req := runtime.Request{Body: body, Format: format, Identity: hint.Identity{Engine: "test", RequestID: "r1"}, Forward: true}
	parses := c.Document != nil || c.DocumentText != nil
	if parses {
		req.Dialect, req.Identity.RequestID = h.manifest.Dialects[0], ""
		if c.RequestID != nil {
			req.Identity.RequestID = *c.RequestID
		}
	}
	res := h.runtime.NewResponse()
	err := h.runtime.Dispatch(&req, res)
	if parses {
		c.checkParse(t, format, res, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Results) != len(c.Results) {
		t.Fatalf("%d results, want %d", len(res.Results), len(c.Results))
	}
	for i, want := range c.Results {
		got := res.Results[i]
		want.check(t, fmt.Sprintf("action %d", i), got.Status.String(), got.Reason, string(got.Detail))
	}
	if c.Forward != nil {
		same(t, "forward", format, res.Forward, c.Forward)
	}
}

func (c *testCase) checkParse(t *testing.T, format abi.Format, res *runtime.Response, err error) {
	t.Helper()
	var refused *runtime.ParseError
	switch {
	case errors.As(err, &refused) && c.Refused != nil:
		c.Refused.check(t, "refusal", "", refused.Reason, refused.Detail)
	case err != nil:
		t.Fatal(err)
	case c.Refused != nil:
		t.Fatalf("not refused: %s", res.Forward)
	default:
		same(t, "envelope", format, res.Forward, c.Envelope)
	}
}

// TestGuests holds the embedded modules to what their folders say.
func TestGuests(t *testing.T) {
	folders, err := filepath.Glob("*/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range folders {
		names = append(names, filepath.Dir(f))
	}
	if got := policies.Guests(); !slices.Equal(got, names) {
		t.Fatalf("embedded are %v, the folders with a manifest are %v: run policies/build.sh", got, names)
	}
	for _, name := range names {
		if m := newHosts(t, name).manifest; m.Name != name {
			t.Errorf("%s: the manifest names it %s", name, m.Name)
		}
	}
	for _, name := range []string{"", ".", "none", "kv-fetch/", "kv-fetch/kv-fetch", "../policies/kv-fetch"} {
		if _, ok := policies.Module(name); ok {
			t.Errorf("there is a module %q", name)
		}
	}
}

// Loading and dispatching must work at the default limits of memory and fuel too.
func TestDefaultLimits(t *testing.T) {
	for _, name := range policies.Guests() {
		h := newHosts(t, name)
		h.limits.Memory = runtime.DefaultMemory
		if _, err := h.load(context.Background(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
