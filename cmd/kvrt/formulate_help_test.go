package main

import (
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// TestFormulateHelp: the context that the help shows is one, and shows every field.
func TestFormulateHelp(t *testing.T) {
	const from = "\n  {\"request_id\""
	long := newFormulate().Long
	text := long[strings.Index(long, from):]
	text, _, _ = strings.Cut(text[1:], "\n\n")
	text = strings.ReplaceAll(text, "ENVELOPE", `{"message_id":"m","actions":[]}`)
	var c hint.Context
	if err := c.Decode(hint.FormatJSON, []byte(text), hint.ContextOptions{}); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if lacks := abi.ContextFieldSet(abi.ContextFieldNames()) &^ c.Frame().Fields(); lacks != 0 {
		t.Errorf("no %v", lacks.Names())
	}
	seen := map[hint.EventType]bool{}
	for i := range c.Events() {
		seen[c.Event(i).Type] = true
	}
	if len(seen) != 4 {
		t.Errorf("events: %v", seen)
	}
}
