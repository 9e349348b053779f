package hint_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// fullContext has every field.
const fullContext = `{"request_id":"r1","attempt":2,"leg":"prefill","partition":{"model":"m","group":"default","worker_type":"aggregated","x":1},
 "tenant":"t1","namespace":"","prompt_tokens":4096,"expected_output_tokens":18446744073709551615,"tools_declared":true,
 "session":{"session_id":"s1","parent_session_id":null,"session_final":false,"input_trigger":"tool_result"},
 "selected":{"worker_id":7,"dp_rank":0,"worker_type":"aggregated","capabilities":["kv.fetch","kv.retain"],"matched_blocks":{"gpu":3,"cpu":0}},
 "candidates":[{"worker_id":9,"dp_rank":1,"source_control_endpoint":"tcp://10.0.0.9:23280","matched_blocks":{"disk":12,"external":1}},{"worker_id":"node-é","capabilities":[]},{"worker_id":-3}],
 "block_hashes":[1,18446744073709551615],"hash_kind":"engine","block_size":16,"unknown":{"a":[1,{}]},
 "request_hint":{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a","action_type":"t","action_version":"1.0","payload":{"n":18446744073709551615}}]},
 "selection_hint":null,
 "events":[{"type":"match","session_id":"s1","worker_id":7,"dp_rank":0,"block_hash":1},
  {"type":"stored","session_id":"s1","worker_id":"w","medium":"gpu","parent_block_hash":1,"block_hashes":[2,18446744073709551615]},
  {"type":"removed","worker_id":-7,"dp_rank":0,"block_hashes":[3]},{"type":"cleared","worker_id":7,"dp_rank":4294967295}]}`

// toMsgpack is a JSON document in msgpack.
func toMsgpack(tb testing.TB, text string) []byte {
	tb.Helper()
	base, root, err := hint.AppendTree(nil, hint.FormatJSON, []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	out, err := hint.AppendTreeMsgpack(nil, base, root)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func decodeContext(tb testing.TB, format hint.Format, body []byte) *hint.Context {
	tb.Helper()
	c := new(hint.Context)
	if err := c.Decode(format, body, hint.ContextOptions{}); err != nil {
		tb.Fatal(err)
	}
	if err := abi.CheckContext(c.Bytes()); err != nil {
		tb.Fatal(err)
	}
	return c
}

// worker spells a worker.
func worker(w abi.WorkerView) string {
	var s strings.Builder
	switch id := w.ID(); id.Tag {
	case abi.TagString:
		fmt.Fprintf(&s, "%q", w.Base.Bytes(id))
	default:
		fmt.Fprint(&s, id.I64())
	}
	fmt.Fprintf(&s, " rank %d type %q at %q has %v gpu %d cpu %d disk %d external %d caps", w.U32(abi.OffWorkerDPRank), w.Text(abi.OffWorkerWorkerType),
		w.Text(abi.OffWorkerSourceControlEndpoint), uint32(w.Present()), w.U32(abi.OffWorkerMatchedGPU), w.U32(abi.OffWorkerMatchedCPU), w.U32(abi.OffWorkerMatchedDisk), w.U32(abi.OffWorkerMatchedExternal))
	for i := range w.U32(abi.OffWorkerCapabilitiesCount) {
		fmt.Fprintf(&s, " %s", w.Capability(int(i)))
	}
	return s.String()
}

func TestContext(t *testing.T) {
	c := decodeContext(t, hint.FormatUnknown, []byte(fullContext))
	m := decodeContext(t, hint.FormatUnknown, toMsgpack(t, fullContext))
	if !bytes.Equal(c.Bytes(), m.Bytes()) {
		t.Fatal("the two encodings give two frames")
	}
	if c.Format() != hint.FormatJSON || m.Format() != hint.FormatMsgpack {
		t.Errorf("formats %v, %v", c.Format(), m.Format())
	}
	f := c.Frame()
	all := abi.HasAttempt | abi.HasPromptTokens | abi.HasExpectedOutputTokens | abi.HasToolsDeclared | abi.HasBlockSize | abi.HasBlockHashes | abi.HasCandidates | abi.HasSessionFinal
	if f.Present() != all {
		t.Errorf("present %x, want %x", f.Present(), all)
	}
	for off, want := range map[uint32]string{
		abi.OffContextFrameRequestID: "r1", abi.OffContextFrameModel: "m", abi.OffContextFrameGroup: "default", abi.OffContextFrameWorkerType: "aggregated",
		abi.OffContextFrameTenant: "t1", abi.OffContextFrameSessionID: "s1",
	} {
		if got := string(f.Text(off)); got != want {
			t.Errorf("text at %d: %q, want %q", off, got, want)
		}
	}
	if ns := f.Text(abi.OffContextFrameNamespace); ns == nil || len(ns) > 0 || f.Text(abi.OffContextFrameParentSessionID) != nil {
		t.Error("an empty namespace is present, and a null parent is not")
	}
	for off, want := range map[uint32]uint32{
		abi.OffContextFrameAttempt: 2, abi.OffContextFrameLeg: uint32(abi.LegPrefill), abi.OffContextFrameToolsDeclared: 1, abi.OffContextFrameHashKind: uint32(abi.HashKindEngine),
		abi.OffContextFrameBlockSize: 16, abi.OffContextFrameInputTrigger: uint32(abi.TriggerToolResult), abi.OffContextFrameSessionFinal: 0,
	} {
		if got := f.U32(off); got != want {
			t.Errorf("number at %d: %d, want %d", off, got, want)
		}
	}
	if f.U64(abi.OffContextFramePromptTokens) != 4096 || f.U64(abi.OffContextFrameExpectedOutputTokens) != 1<<64-1 || f.BlockHashes() != 2 || f.BlockHash(1) != 1<<64-1 {
		t.Error("64-bit numbers")
	}
	workers := []string{worker(f.Selected())}
	for i := range f.Candidates() {
		workers = append(workers, worker(f.Candidate(i)))
	}
	want := []string{
		`7 rank 0 type "aggregated" at "" has 15 gpu 3 cpu 0 disk 0 external 0 caps kv.fetch kv.retain`,
		`9 rank 1 type "" at "tcp://10.0.0.9:23280" has 49 gpu 0 cpu 0 disk 12 external 1 caps`,
		`"node-é" rank 0 type "" at "" has 2 gpu 0 cpu 0 disk 0 external 0 caps`,
		`-3 rank 0 type "" at "" has 0 gpu 0 cpu 0 disk 0 external 0 caps`,
	}
	if !slices.Equal(workers, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(workers, "\n     "), strings.Join(want, "\n     "))
	}
	n := abi.Base(f).Lookup(f.RequestHint(), "actions")
	if n.Tag != abi.TagArray || n.Len != 1 || f.SelectionHint().Tag != abi.TagAbsent || c.SelectionHint() != nil {
		t.Errorf("hints: %v", n)
	}
	if h := c.RequestHint(); h == nil || string(h.MessageID()) != "m1" || string(h.Action(0).RawPayload()) != `{"n":18446744073709551615}` {
		t.Error("the request's hint as an envelope")
	}
	id := c.Identity()
	if id != (hint.Identity{RequestID: "r1", Attempt: 2, Leg: abi.LegPrefill}) {
		t.Errorf("%+v", id)
	}
}

func TestContextEvents(t *testing.T) {
	c := decodeContext(t, hint.FormatJSON, []byte(fullContext))
	w := func(id hint.WorkerID, rank int64) hint.Worker {
		return hint.Worker{ID: id, Rank: uint32(max(rank, 0)), HasRank: rank >= 0}
	}
	want := []hint.Event{
		{Type: hint.EventMatch, SessionID: "s1", Worker: w(hint.UintWorker(7), 0), BlockHash: 1},
		{Type: hint.EventStored, SessionID: "s1", Worker: w(hint.NamedWorker("w"), -1), Medium: "gpu", Parent: 1, HasParent: true, BlockHashes: []uint64{2, 1<<64 - 1}},
		{Type: hint.EventRemoved, Worker: w(hint.IntWorker(-7), 0), BlockHashes: []uint64{3}},
		{Type: hint.EventCleared, Worker: w(hint.UintWorker(7), 1<<32-1)},
	}
	if c.Events() != len(want) {
		t.Fatalf("%d events", c.Events())
	}
	for i := range want {
		if got := c.Event(i); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("event %d: got %+v, want %+v", i, got, want[i])
		}
	}
}

// minimal is a context with more fields.
func minimal(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"request_id":"r1","selected":{"worker_id":7}` + more + `}`
}

func TestContextAbsent(t *testing.T) {
	base := decodeContext(t, hint.FormatJSON, []byte(minimal("")))
	if f := base.Frame(); f.Present() != 0 || f.Selected().Present() != 0 || len(base.Bytes()) != (abi.SizeContextFrame+2+7)&^7 {
		t.Errorf("present %x, %d bytes", f.Present(), len(base.Bytes()))
	}
	var nulls []string
	for _, name := range []string{"attempt", "leg", "partition", "tenant", "namespace", "prompt_tokens", "expected_output_tokens", "tools_declared", "session", "candidates", "block_hashes", "hash_kind", "block_size", "request_hint", "selection_hint", "events"} {
		nulls = append(nulls, fmt.Sprintf("%q:null", name))
	}
	null := decodeContext(t, hint.FormatJSON, []byte(minimal(strings.Join(nulls, ","))))
	if !bytes.Equal(base.Bytes(), null.Bytes()) {
		t.Error("null is not absent")
	}
	kind := decodeContext(t, hint.FormatJSON, []byte(minimal(`"hash_kind":"local"`)))
	if !bytes.Equal(base.Bytes(), kind.Bytes()) {
		t.Error("a kind of hashes without hashes is not absent")
	}
	for caps, want := range map[string]string{`null`: "absent", `[]`: "0", `["a"]`: "1"} {
		f := decodeContext(t, hint.FormatJSON, []byte(`{"request_id":"r","selected":{"worker_id":"w","capabilities":`+caps+`}}`)).Frame()
		got := "absent"
		if w := f.Selected(); w.Present()&abi.WorkerHasCapabilities != 0 {
			got = fmt.Sprint(w.U32(abi.OffWorkerCapabilitiesCount))
		}
		if got != want {
			t.Errorf("capabilities %s: %s", caps, got)
		}
	}
	for text, want := range map[string]bool{``: false, `"events":null`: false, `"events":[]`: true, `"events":[{"type":"cleared","worker_id":1}]`: true} {
		if got := decodeContext(t, hint.FormatJSON, []byte(minimal(text))).HasEvents(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	empty := decodeContext(t, hint.FormatJSON, []byte(minimal(`"candidates":[],"block_hashes":[]`))).Frame()
	if empty.Present() != abi.HasCandidates|abi.HasBlockHashes {
		t.Errorf("empty lists: %x", empty.Present())
	}
}

func TestContextStrip(t *testing.T) {
	const hints = `"request_hint":{"message_id":"secret","actions":[]},"selection_hint":{"message_id":"kept","actions":[]}`
	var c hint.Context
	if err := c.Decode(hint.FormatJSON, []byte(minimal(hints)), hint.ContextOptions{StripRequestHint: true}); err != nil {
		t.Fatal(err)
	}
	if c.RequestHint() != nil || c.Frame().RequestHint().Tag != abi.TagAbsent || bytes.Contains(c.Bytes(), []byte("secret")) {
		t.Error("the request's hint is still there")
	}
	if c.SelectionHint() == nil || c.Frame().SelectionHint().Tag != abi.TagMap {
		t.Error("the selection's hint is gone")
	}
	err := c.Decode(hint.FormatJSON, []byte(minimal(`"request_hint":5`)), hint.ContextOptions{StripRequestHint: true})
	if err == nil {
		t.Error("a stripped hint is not checked")
	}
}

func TestContextErrors(t *testing.T) {
	sel := func(more string) string { return `{"request_id":"r1","selected":{"worker_id":7,` + more + `}}` }
	for _, c := range []struct{ doc, want string }{
		{`[]`, "it is not a mapping at offset 0"},
		{`{}`, "request_id is missing at offset 0"},
		{`{"request_id":"r"}`, "selected is missing"},
		{`{"request_id":"r","selected":{}}`, "selected.worker_id is missing at offset 29"},
		{`{"request_id":"r","selected":null}`, "selected must be a mapping, not null"},
		{`{"request_id":7,"selected":{"worker_id":7}}`, "request_id must be a string, not 7 at offset 14"},
		{`{"request_id":"","selected":{"worker_id":7}}`, "request_id must not be empty"},
		{`{"request_id":"` + strings.Repeat("x", 513) + `","selected":{"worker_id":7}}`, "request_id has 513 bytes: want at most 512"},
		{`{"request_id":"r","selected":{"worker_id":true}}`, "selected.worker_id must be an integer in [-2^63, 2^64) or a string of 1 to 512 bytes, not true"},
		{`{"request_id":"r","selected":{"worker_id":""}}`, `selected.worker_id must be an integer in [-2^63, 2^64) or a string of 1 to 512 bytes, not the string ""`},
		{`{"request_id":"r","selected":{"worker_id":7.0}}`, "selected.worker_id must be an integer in [-2^63, 2^64) or a string of 1 to 512 bytes, not 7.0"},
		{sel(`"dp_rank":-1`), "selected.dp_rank must be an integer in [0, 2^32), not -1"},
		{sel(`"dp_rank":4294967296`), "selected.dp_rank must be an integer in [0, 2^32), not 4294967296"},
		{sel(`"dp_rank":18446744073709551616`), "selected.dp_rank must be an integer in [0, 2^32), not 18446744073709551616"},
		{sel(`"worker_type":1`), "selected.worker_type must be a string, not 1"},
		{sel(`"capabilities":{}`), "selected.capabilities must be a list, not a mapping"},
		{sel(`"capabilities":["a",null]`), "selected.capabilities[1] must be a string, not null"},
		{sel(`"matched_blocks":[]`), "selected.matched_blocks must be a mapping, not a list"},
		{sel(`"matched_blocks":{"cpu":true}`), "selected.matched_blocks.cpu must be an integer in [0, 2^32), not true"},
		{sel(`"worker_id":8`), "duplicate key"},
		{minimal(`"attempt":1.0`), "attempt must be an integer in [0, 2^32), not 1.0"},
		{minimal(`"attempt":"1"`), `attempt must be an integer in [0, 2^32), not the string "1"`},
		{minimal(`"leg":"sideways"`), `leg must be one of aggregated, prefill, decode, not the string "sideways"`},
		{minimal(`"partition":"m"`), `partition must be a mapping, not the string "m"`},
		{minimal(`"partition":{"model":1}`), "partition.model must be a string, not 1"},
		{minimal(`"tenant":["t"]`), "tenant must be a string, not a list"},
		{minimal(`"prompt_tokens":-1`), "prompt_tokens must be an integer in [0, 2^64), not -1"},
		{minimal(`"tools_declared":"yes"`), `tools_declared must be true or false, not the string "yes"`},
		{minimal(`"session":{"session_id":5}`), "session.session_id must be a string, not 5"},
		{minimal(`"session":{"session_final":1}`), "session.session_final must be true or false, not 1"},
		{minimal(`"session":{"input_trigger":"UserMessage"}`), `session.input_trigger must be one of user_message, tool_result, other, not the string "UserMessage"`},
		{minimal(`"candidates":{}`), "candidates must be a list, not a mapping"},
		{minimal(`"candidates":[{"worker_id":1},5]`), "candidates[1] must be a mapping, not 5"},
		{minimal(`"candidates":[{"worker_id":1},{}]`), "candidates[1].worker_id is missing"},
		{minimal(`"candidates":[{"worker_id":1,"matched_blocks":{"gpu":-1}}]`), "candidates[0].matched_blocks.gpu must be an integer in [0, 2^32), not -1"},
		{minimal(`"block_hashes":5`), "block_hashes must be a list of integers in [0, 2^64), not 5"},
		{minimal(`"block_hashes":[1,-1]`), "block_hashes[1] must be an integer in [0, 2^64), not -1"},
		{minimal(`"block_hashes":[1.0]`), "block_hashes[0] must be an integer in [0, 2^64), not 1.0"},
		{minimal(`"block_hashes":[18446744073709551616]`), "block_hashes[0] must be an integer in [0, 2^64), not 18446744073709551616"},
		{minimal(`"hash_kind":"sha256"`), `hash_kind must be one of engine, sequence, local, not the string "sha256"`},
		{minimal(`"block_size":"16"`), `block_size must be an integer in [0, 2^32), not the string "16"`},
		{minimal(`"request_hint":[]`), "request_hint must be a mapping, not a list"},
		{minimal(`"request_hint":{}`), "request_hint: actions is missing"},
		{minimal(`"request_hint":{"actions":{}}`), "request_hint: actions is not a list"},
		{minimal(`"selection_hint":{"actions":[{"action_type":"t","payload":{}},{"payload":{}}]}`), "selection_hint.actions[1]: action_type is missing"},
		{minimal(`"request_hint":{"actions":[{"action_type":"t","payload":5}]}`), "request_hint.actions[0]: payload must be a mapping, not a number"},
		{minimal(`"events":{}`), "events must be a list, not a mapping"},
		{minimal(`"events":[5]`), "events[0] must be a mapping, not 5"},
		{minimal(`"events":[{}]`), "events[0].type is missing"},
		{minimal(`"events":[{"type":"moved","worker_id":7}]`), `events[0].type must be one of match, stored, removed, cleared, not the string "moved"`},
		{minimal(`"events":[{"type":"cleared"}]`), "events[0].worker_id is missing"},
		{minimal(`"events":[{"type":"cleared","worker_id":7},{"type":"match","worker_id":7,"block_hash":1}]`), "events[1].session_id is missing"},
		{minimal(`"events":[{"type":"match","worker_id":7,"session_id":"s"}]`), "events[0].block_hash is missing"},
		{minimal(`"events":[{"type":"stored","worker_id":7}]`), "events[0].block_hashes is missing"},
		{minimal(`"events":[{"type":"removed","worker_id":7,"block_hashes":[1,"2"]}]`), `events[0].block_hashes[1] must be an integer in [0, 2^64), not the string "2"`},
		{minimal(`"events":[{"type":"stored","worker_id":7,"block_hashes":[1],"parent_block_hash":-1}]`), "events[0].parent_block_hash must be an integer in [0, 2^64), not -1"},
		{minimal(`"events":[{"type":"cleared","worker_id":7,"dp_rank":"0"}]`), `events[0].dp_rank must be an integer in [0, 2^32), not the string "0"`},
		{minimal(`"x":1,"x":2`), "duplicate key"},
		{minimal(`"tenant":"a","tenant":"b"`), "duplicate key"},
		{minimal(``) + `x`, "trailing bytes"},
		{minimal(`"tenant":`), "expected a value"},
	} {
		bodies := [][]byte{[]byte(c.doc)}
		if _, _, err := hint.AppendTree(nil, hint.FormatJSON, []byte(c.doc)); err == nil && !strings.Contains(c.doc, "18446744073709551616") {
			bodies = append(bodies, toMsgpack(t, c.doc))
		}
		for _, body := range bodies {
			var x hint.Context
			err := x.Decode(hint.FormatUnknown, body, hint.ContextOptions{})
			var bad *hint.MalformedError
			if !errors.As(err, &bad) || bad.What != "context" || bad.Offset < 0 || bad.Offset > len(body) {
				t.Errorf("%s: %v", c.doc, err)
				continue
			}
			want := c.want
			if body[0] >= 0x80 {
				want, _, _ = strings.Cut(want, " at offset")
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s:\n got %v\nwant %s", c.doc, err, want)
			}
			if x.Events() != 0 || x.RequestHint() != nil || x.SelectionHint() != nil {
				t.Errorf("%s: something is left", c.doc)
			}
		}
	}
}

// TestContextLimits: a document over its limits is refused, and a deep hint by its name.
func TestContextLimits(t *testing.T) {
	var c hint.Context
	err := c.Decode(hint.FormatJSON, []byte(minimal(`"tenant":"aaaaaaaaaaaaaaaaaaaa"`)), hint.ContextOptions{Limits: hint.Limits{BodyBytes: 20}})
	if err == nil || !strings.HasPrefix(err.Error(), "malformed context: a body of ") {
		t.Error(err)
	}
	many := minimal(`"candidates":[` + strings.Repeat(`{"worker_id":1},`, 999) + `{"worker_id":1}]`)
	if err := c.Decode(hint.FormatJSON, []byte(many), hint.ContextOptions{Limits: hint.Limits{FrameBytes: 32 << 10}}); err == nil || !strings.Contains(err.Error(), "the decoded frame would be larger than") {
		t.Error(err)
	}
	deep := append([]byte("\x83\xaarequest_id\xa1r\xa8selected\x81\xa9worker_id\x07\xacrequest_hint\x81\xa1x"), bytes.Repeat([]byte{0x91}, 40)...)
	if err := c.Decode(hint.FormatMsgpack, append(deep, 0xc0), hint.ContextOptions{}); err == nil || !strings.Contains(err.Error(), "request_hint is nested deeper than 32") {
		t.Error(err)
	}
}

func TestContextAllocs(t *testing.T) {
	for _, body := range [][]byte{[]byte(fullContext), toMsgpack(t, fullContext)} {
		var c hint.Context
		sum := uint64(0)
		n := testing.AllocsPerRun(100, func() {
			if err := c.Decode(hint.FormatUnknown, body, hint.ContextOptions{}); err != nil {
				t.Fatal(err)
			}
			for i := range c.Events() {
				sum += c.Event(i).BlockHash
			}
		})
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// FuzzContext: whatever is read is a frame that package abi accepts.
func FuzzContext(f *testing.F) {
	f.Add([]byte(fullContext))
	f.Add(toMsgpack(f, fullContext))
	f.Add([]byte(minimal(`"candidates":[],"events":[{"type":"cleared","worker_id":"7"}]`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		var c hint.Context
		err := c.Decode(hint.FormatUnknown, body, hint.ContextOptions{})
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			var bad *hint.MalformedError
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(body) || bad.Msg == "" {
				t.Fatal(err)
			}
			return
		}
		if err := abi.CheckContext(c.Bytes()); err != nil {
			t.Fatal(err)
		}
		id := c.Identity()
		if err := id.Check(); err != nil {
			t.Fatal(err)
		}
		for i := range c.Events() {
			if e := c.Event(i); e.Type == 0 || e.Worker.ID.Check() != nil {
				t.Fatalf("%+v", e)
			}
		}
		var again hint.Context
		if err := again.Decode(c.Format(), body, hint.ContextOptions{StripRequestHint: true}); err != nil || again.RequestHint() != nil {
			t.Fatal(err)
		}
	})
}

// TestHashKind: the kind is told of the events' hashes too, where there are no block_hashes.
func TestHashKind(t *testing.T) {
	for text, want := range map[string]abi.HashKind{
		`"hash_kind":"sequence","events":[]`:    abi.HashKindSequence,
		`"hash_kind":"local","block_hashes":[]`: abi.HashKindLocal,
		`"hash_kind":null,"block_hashes":[1]`:   abi.HashKindAbsent,
		`"events":[]`:                           abi.HashKindAbsent,
	} {
		if got := decodeContext(t, hint.FormatJSON, []byte(minimal(text))).HashKind(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
