//go:build !wasip1

package guesttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/sdk/go"
)

// testCase is one line of a case file, as policies/CASES.md describes it.
type testCase struct {
	Name   string          `json:"name"`
	Params json.RawMessage `json:"params"`
	Host   struct {
		Submit   string   `json:"submit"`
		Prefetch string   `json:"prefetch"`
		Store    string   `json:"store"`
		Device   string   `json:"device"`
		Request  []uint64 `json:"request"`
	} `json:"host"`
	Init      *string         `json:"init"`
	Input     json.RawMessage `json:"input"`
	Payload   json.RawMessage `json:"payload"`
	Version   json.RawMessage `json:"version"`
	Results   []caseVerdict   `json:"results"`
	RequestID *string         `json:"request_id"`
	Document  json.RawMessage `json:"document"`
	Text      *string         `json:"document_text"`
	Context   json.RawMessage `json:"context"`
	Envelope  json.RawMessage `json:"envelope"`
	Refused   *caseVerdict    `json:"refused"`
	Log       []string        `json:"log"`
	Submits   []caseSubmit    `json:"submits"`
	Effects   *[]caseEffect   `json:"effects"`
}

type caseEffect struct {
	Function string   `json:"function"`
	Source   string   `json:"source"`
	Hashes   []uint64 `json:"hashes"`
}

type caseVerdict struct {
	Status string  `json:"status"`
	Reason string  `json:"reason"`
	Detail *string `json:"detail"`
}

type caseSubmit struct {
	Source   *string  `json:"source"`
	Hashes   []uint64 `json:"hashes"`
	NoRetain bool     `json:"no_retain"`
}

// Cases runs the case files *.jsonl of a guest natively, each case on the guest that
// make makes. What only a host can judge is left to the runner that has one: msgpack,
// actions that are not the guest's or have no mapping for a payload, what is passed on.
func Cases(t *testing.T, files fs.FS, actionType string, make func() kvrt.Guest) {
	names, err := fs.Glob(files, "*.jsonl")
	if err != nil || len(names) == 0 {
		t.Fatalf("no case files (%v)", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var c testCase
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatalf("%s: %v: %s", name, err, line)
			}
			t.Run(strings.TrimSuffix(name, ".jsonl")+"/"+c.Name, func(t *testing.T) { c.run(t, actionType, make()) })
		}
	}
}

func (c *testCase) run(t *testing.T, actionType string, g kvrt.Guest) {
	h := Host{
		Submit: reasonOf(t, c.Host.Submit), PrefetchRefuses: reasonOf(t, c.Host.Prefetch), StoreRefuses: reasonOf(t, c.Host.Store),
		DeviceRefuses: reasonOf(t, c.Host.Device), Request: c.Host.Request,
	}
	if c.Text == nil && c.Document == nil {
		h.Identity.RequestID = "r1"
	}
	if c.RequestID != nil {
		h.Identity.RequestID = *c.RequestID
	}
	params := string(c.Params)
	if params == "null" {
		params = ""
	}
	refusal := h.Init(g, params)
	if c.Init != nil && refusal != *c.Init || c.Init == nil && refusal != "" {
		t.Errorf("init: %q", refusal)
	}
	switch {
	case refusal != "":
		return
	case c.Text != nil:
		c.made(t, h.Parse(g, abi.FormatJSON, []byte(*c.Text), ""))
	case c.Document != nil:
		c.made(t, h.Parse(g, abi.FormatJSON, c.Document, ""))
	case c.Context != nil:
		c.made(t, h.Formulate(g, string(c.Context)))
	default:
		c.judged(t, &h, actionType, g)
	}
	if c.Log != nil && !slices.Equal(h.Log, c.Log) {
		t.Errorf("log %q, want %q", h.Log, c.Log)
	}
	if c.Submits != nil {
		c.submitted(t, h.Submits)
	}
	if c.Effects != nil {
		done := []caseEffect{}
		for _, e := range h.Effects {
			done = append(done, caseEffect{e.Function, e.Source, e.Hashes})
		}
		if fmt.Sprint(done) != fmt.Sprint(*c.Effects) {
			t.Errorf("effects %v, want %v", done, *c.Effects)
		}
	}
}

func (c *testCase) submitted(t *testing.T, got []Submit) {
	spell := func(source string, hashes []uint64, noRetain bool) string {
		return fmt.Sprintf("%q %d %t", source, hashes, noRetain)
	}
	var have, want []string
	for _, s := range got {
		have = append(have, spell(s.Source, s.Hashes, s.Flags&abi.FetchFlagNoRetain != 0))
	}
	for _, s := range c.Submits {
		source := ""
		if s.Source != nil {
			source = *s.Source
		}
		want = append(want, spell(source, s.Hashes, s.NoRetain))
	}
	if !slices.Equal(have, want) {
		t.Errorf("submits %q, want %q", have, want)
	}
}

// judged calls a handler for each action that a host would hand it.
func (c *testCase) judged(t *testing.T, h *Host, actionType string, g kvrt.Guest) {
	input := c.Input
	if c.Payload != nil {
		version := string(c.Version)
		if c.Version == nil {
			version = `"1.0"`
		}
		input = fmt.Appendf(nil, `{"actions":[{"action_id":"a1","action_type":%q,"action_version":%s,"payload":%s}]}`, actionType, version, c.Payload)
	}
	if input == nil {
		return
	}
	var envelope struct {
		Actions []json.RawMessage `json:"actions"`
	}
	if err := json.Unmarshal(input, &envelope); err != nil {
		t.Fatal(err)
	}
	var ours []string
	var at []int
	for i, text := range envelope.Actions {
		var a struct {
			Type    any             `json:"action_type"`
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(text, &a) == nil && a.Type == actionType && bytes.HasPrefix(a.Payload, []byte("{")) {
			ours, at = append(ours, string(text)), append(at, i)
		}
	}
	for position, i := range at {
		before := len(h.Effects)
		got := h.Handle(g, position, ours...)
		if got.Status != abi.StatusAccepted {
			h.Effects = h.Effects[:before] // they take place when the action is accepted
		}
		if i < len(c.Results) {
			c.Results[i].compare(t, fmt.Sprintf("action %d", i), got)
		}
	}
}

// made holds what a parser or a policy made against the case.
func (c *testCase) made(t *testing.T, got Outcome) {
	if c.Refused != nil {
		c.Refused.Status = abi.StatusRejected.String()
		c.Refused.compare(t, "refusal", got)
		return
	}
	want := string(c.Envelope)
	if want == "" || want == "null" {
		want = ""
	}
	if canonical(t, got.Body) != canonical(t, want) || got.Status != abi.StatusAccepted {
		t.Errorf("got  %+v\nwant %s", got, want)
	}
}

// canonical is an envelope without white space.
func canonical(t *testing.T, text string) string {
	if text == "" {
		return ""
	}
	e, err := hint.DecodeEnvelope(abi.FormatJSON, []byte(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func (v *caseVerdict) compare(t *testing.T, what string, got Outcome) {
	if got.Status.String() != v.Status || got.Reason.String() != v.Reason || v.Detail != nil && got.Detail != *v.Detail {
		t.Errorf("%s: got %s %s %q, want %s %s", what, got.Status, got.Reason, got.Detail, v.Status, v.Reason)
		if v.Detail != nil {
			t.Errorf("%s: want the detail %q", what, *v.Detail)
		}
	}
}

// reasonOf is a reason by its name; "": none.
func reasonOf(t *testing.T, name string) abi.Reason {
	for _, e := range abi.Contract().Enums {
		for _, v := range e.Values {
			if e.Name == "Reason" && (v.Text == name || name == "") {
				return abi.Reason(v.Value)
			}
		}
	}
	t.Fatalf("%q is no reason", name)
	return 0
}
