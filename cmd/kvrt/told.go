package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/tck"
)

// told is what the verb call tells of one call.
type told struct {
	Call    string `json:"call"` // handle, parse or formulate
	*action        // handle
	Dialect string `json:"dialect,omitempty"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
	// What the guest made, null when it made nothing.
	Rewritten  *json.RawMessage `json:"rewritten,omitempty"` // handle: the action
	Envelope   *json.RawMessage `json:"envelope,omitempty"`  // parse, formulate
	Fuel       uint64           `json:"fuel"`
	Memory     uint64           `json:"memory"` // bytes; 0 after a trap
	Log        []string         `json:"log"`
	LogDropped uint64           `json:"log_dropped"`
	Effects    []tck.Effect     `json:"effects"`
}

// made keeps what the guest made, which may be nil.
func (t *told) made(text json.RawMessage) {
	if t.action != nil {
		t.Rewritten = &text
	} else {
		t.Envelope = &text
	}
}

// action is the one that a handler was called for.
type action struct {
	Index         int    `json:"index"`
	ActionID      string `json:"action_id"`
	ActionType    string `json:"action_type"`
	ActionVersion string `json:"action_version"`
}

// name names the call in messages.
func (t *told) name() string {
	if t.action != nil {
		return fmt.Sprintf("action %d", t.Index)
	}
	return t.Call
}

// writeLine writes one line of JSON.
func (t *told) writeLine(w io.Writer) error {
	line := *t
	if line.Log == nil {
		line.Log = []string{}
	}
	if line.Effects == nil {
		line.Effects = []tck.Effect{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(line)
}

// write writes the call for people.
func (t *told) write(w io.Writer, limits runtime.Limits) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(key, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t%s\n", key, printable(fmt.Sprintf(format, args...)))
	}
	if t.action != nil {
		line("action", "%d: %s, %s %s", t.Index, cell(t.ActionID), cell(t.ActionType), cell(t.ActionVersion))
	} else if t.Dialect != "" {
		line("document", "%s", t.Dialect)
	}
	line("verdict", "%s", strings.TrimSpace(t.Status+" "+t.Reason))
	if t.Detail != "" {
		line("detail", "%s", t.Detail)
	}
	line("fuel", "%d of %d", t.Fuel, limits.Fuel)
	if t.Memory > 0 {
		line("memory", "%d of %d bytes", t.Memory, limits.Memory)
	}
	for _, l := range t.Log {
		line("log", "%s", l)
	}
	if t.LogDropped > 0 {
		line("log", "%d more lines, which are dropped", t.LogDropped)
	}
	for _, e := range t.Effects {
		line("effect", "%s", shorten(describe(e)))
	}
	if t.Rewritten != nil && *t.Rewritten != nil {
		line("rewritten", "%s", *t.Rewritten)
	}
	if t.Envelope != nil && *t.Envelope != nil {
		line("envelope", "%s", *t.Envelope)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// shorten cuts what is too long to be read, such as a list of a thousand hashes.
func shorten(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes more)", strings.ToValidUTF8(s[:most], ""), len(s)-most)
}

// describe says in one line what a guest asked for.
func describe(e tck.Effect) string {
	text := e.Function
	if e.Arguments != nil {
		if b, err := json.Marshal(e.Arguments); err == nil {
			text += " " + string(b)
		}
	}
	if !e.Taken {
		text += " (dropped)"
	}
	return text
}
