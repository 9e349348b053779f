package server

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/fetcher"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/hosts/fetch/peer"
)

var update = flag.Bool("update", false, "rewrite the golden frames")

const goldenFile = "testdata/frames.txt"

// golden is one frame of the protocol with what it says.
type golden struct {
	name  string
	frame []byte
	want  any // request or reply
}

// goldens are all kinds of frames. Every number form and every optional part occurs.
func goldens() []golden {
	id := hint.Identity{Engine: "vllm-0", DPRank: 3, Leg: abi.LegDecode, Attempt: 1, RequestID: "req-1"}
	body := []byte(`{"actions":[]}`)
	var out []golden
	ask := func(name string, q request) {
		frame := appendRequest(nil, &q)
		q.named = true
		out = append(out, golden{name, frame, q})
	}
	answer := func(name string, frame []byte, p reply) { out = append(out, golden{name, frame, p}) }

	ask("hello", requestOf(opHello, 0, request{version: 1, client: "kvrt-python/1.0"}))
	ask("ping", requestOf(opPing, 127, request{}))
	ask("submit", requestOf(opSubmit, 128, request{body: body, identity: hint.Identity{RequestID: "r"}}))
	ask("submit with everything", requestOf(opSubmit, 1<<16, request{flags: flagForward, identity: id, format: abi.FormatJSON, dialect: "router-hint", body: body}))
	ask("submit without a reply", requestOf(opSubmit, 1<<32, request{flags: flagOneway, identity: id, format: abi.FormatMsgpack, body: []byte("\x81\xa7actions\x90")}))
	ask("finish", requestOf(opFinish, 1<<64-1, request{identity: id, aborted: true}))
	ask("discard", requestOf(opDiscard, 255, request{flags: flagOneway, identity: id}))
	ask("status", requestOf(opStatus, 256, request{identity: id}))

	ask("formulate", requestOf(opFormulate, 1, request{format: abi.FormatJSON, body: []byte(`{}`)}))
	ask("formulate several", requestOf(opFormulateBatch, 2, request{format: abi.FormatMsgpack, output: abi.FormatJSON, batch: batch{[]byte("\xc4\x02{}\x81\xa1a\x01"), 2}}))

	ask("describe", requestOf(opDescribe, 3, request{identity: id, tenant: "t", namespace: "llama", blockSize: 16, body: []byte("\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")}))

	blocks := []byte("\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")
	ask("outcomes", requestOf(opOutcomes, 4, request{identity: id, messageID: "m", limit: 1024}))
	ask("fetch", requestOf(opFetch, 5, request{identity: id, tenant: "t", namespace: "llama", blockBytes: 65536, body: blocks}))
	ask("put block", requestOf(opPutBlock, 6, request{tenant: "t", namespace: "llama", hash: 1<<64 - 1, body: []byte{0, 1, 2, 3}}))
	ask("get block", requestOf(opGetBlock, 7, request{tenant: "t", namespace: "llama", hash: 1<<64 - 1}))
	ask("follow", requestOf(opFollow, 8, request{messageID: "m", limit: 1, waitMS: 10_000}))

	answer("hello reply", appendHelloReply(nil, 0, "1.2.3", DefaultMaxFrame, 7), replyOf(opHello, 0, func(p *reply) {
		p.version, p.server, p.maxFrame, p.generation = 1, "1.2.3", DefaultMaxFrame, 7
	}))
	answer("ping reply", appendPingReply(nil, 127, 7, true), replyOf(opPing, 127, func(p *reply) { p.generation, p.draining = 7, true }))
	results := []hint.Result{
		{Index: 0, ActionID: []byte("a1"), ActionType: []byte("kv.fetch"), ActionVersion: []byte("1.0"), Status: abi.StatusAccepted,
			Detail: []byte{}, Guest: "kv-fetch", Generation: 7, Fuel: 412, DurationNS: 640},
		{Index: 1, ActionID: []byte{}, ActionType: []byte("kv.other"), ActionVersion: []byte{}, Status: abi.StatusRejected,
			Reason: abi.ReasonUnsupportedActionType, Detail: []byte("no loaded guest handles this action type"), Generation: 7},
	}
	answer("submit reply", appendSubmitReply(nil, 128, results, false, nil), replyOf(opSubmit, 128, func(p *reply) { p.results = results }))
	answer("submit reply with the envelope to pass on", appendSubmitReply(nil, 1<<16, nil, true, body), replyOf(opSubmit, 1<<16, func(p *reply) {
		p.results, p.forward = []hint.Result{}, body
	}))
	answer("finish reply", appendDone(nil, opFinish, 1<<64-1), replyOf(opFinish, 1<<64-1, nil))
	st := fetch.Status{State: abi.FetchStateLive, Hashes: 1024, HasSource: true, NoRetain: true, Submitted: 1_700_000_000_000_000_000, Expires: 1_700_000_600_000_000_000}
	answer("status reply", appendStatusReply(nil, 256, &st), replyOf(opStatus, 256, func(p *reply) { p.status = st }))
	policies := []hint.PolicyResult{
		{Name: "retain-session", Actions: 1, Detail: []byte{}, Generation: 7, Fuel: 900, DurationNS: 1500},
		{Name: "fetch", Dropped: []hint.DroppedAction{{ActionID: []byte("a1"), ActionType: []byte("kv.fetch"), Reason: abi.ReasonSuperseded, Detail: "one is there"}},
			Reason: abi.ReasonHandlerTrap, Detail: []byte("unreachable"), Generation: 7},
	}
	answer("formulate reply", appendFormulateReply(nil, 1, body, policies), replyOf(opFormulate, 1, func(p *reply) { p.formulated = []Formulated{{Envelope: body, Policies: policies}} }))
	several := beginBatchReply(nil, 2, 2)
	several = appendFormulated(append(appendArray(several, 3), byte(CodeOK)), nil, policies[:1])
	several = endFrame(appendFailed(several, CodeMalformed, "malformed context: selected is missing at offset 0", 0), 0)
	answer("formulate reply to several", several, replyOf(opFormulateBatch, 2, func(p *reply) {
		p.formulated = []Formulated{{Policies: policies[:1]}, {Err: &RemoteError{CodeMalformed, "malformed context: selected is missing at offset 0", 0}}}
	}))
	answer("describe reply", endFrame(appendBool(beginReply(append([]byte(nil), 0, 0, 0, 0), opDescribe, 3, 4), true), 0), replyOf(opDescribe, 3, func(p *reply) { p.kept = true }))
	ended := []outcome.Outcome{{
		Identity: id, MessageID: "m", Index: 2, State: outcome.Partial, Reason: abi.ReasonUnavailable, Blocks: 300, Fetched: 2, Bytes: 131072,
		Accepted: 1_700_000_000_000_000_000, Ended: 1_700_000_000_100_000_000,
	}}
	frame := func(payload []byte) []byte { return endFrame(append(make([]byte, frameHead), payload...), 0) }
	answer("outcomes reply", frame(appendOutcomes(nil, opOutcomes, 4, ended)), replyOf(opOutcomes, 4, func(p *reply) { p.outcomes = ended }))
	answer("fetch reply", appendFetchReply(nil, 5, fetcher.Result{Here: 1, Fetched: 0, Bytes: 0}, []byte{1, 0}, "too late"), replyOf(opFetch, 5, func(p *reply) {
		p.fetched = Fetched{Here: 1, Status: []peer.Status{peer.Success, peer.Failed}, Why: "too late"}
	}))
	answer("put block reply", frame(appendBool(beginReply(nil, opPutBlock, 6, 4), true)), replyOf(opPutBlock, 6, func(p *reply) { p.kept = true }))
	answer("get block reply", frame(appendBin(beginReply(nil, opGetBlock, 7, 4), []byte{0, 1, 2, 3})), replyOf(opGetBlock, 7, func(p *reply) { p.block = []byte{0, 1, 2, 3} }))
	answer("follow reply", frame(appendUint(appendOutcomes(nil, opFollow, 8, ended), 3)), replyOf(opFollow, 8, func(p *reply) { p.outcomes, p.dropped = ended, 3 }))
	answer("malformed envelope", appendErrorReply(nil, opSubmit, 128, CodeMalformed, "malformed envelope: actions is missing at offset 2", 2),
		replyOf(opSubmit, 128, func(p *reply) {
			p.err = &RemoteError{CodeMalformed, "malformed envelope: actions is missing at offset 2", 2}
		}))
	answer("the connection ends", appendErrorReply(nil, opError, 0, CodeFrameTooLarge, "a frame of 4294967295 bytes, 8388608 are allowed", 0),
		replyOf(opError, 0, func(p *reply) {
			p.err = &RemoteError{CodeFrameTooLarge, "a frame of 4294967295 bytes, 8388608 are allowed", 0}
		}))
	return out
}

func requestOf(o op, seq uint64, q request) request { q.op, q.seq = o, seq; return q }

func replyOf(o op, seq uint64, fill func(*reply)) reply {
	p := reply{op: o, seq: seq}
	if fill != nil {
		fill(&p)
	}
	return p
}

// TestGoldenFrames holds the protocol still: these bytes are what other clients send
// and read.
func TestGoldenFrames(t *testing.T) {
	var text strings.Builder
	for _, g := range goldens() {
		fmt.Fprintf(&text, "%s: %s\n", g.name, hex.EncodeToString(g.frame))
	}
	if *update {
		if err := os.WriteFile(goldenFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(want) {
		t.Errorf("the frames have changed, which breaks every client: got\n%swant\n%s", text.String(), want)
	}
	for _, g := range goldens() {
		payload := g.frame[frameHead:]
		var err *frameError
		var got any
		switch g.want.(type) {
		case request:
			var q request
			err = q.decode(payload)
			got = q
		case reply:
			var p reply
			err = p.decode(payload)
			got = p
		}
		if err != nil || !reflect.DeepEqual(got, g.want) {
			t.Errorf("%s: read as\n%+v, want\n%+v (%v)", g.name, got, g.want, err)
		}
		// A library that knows nothing of this protocol reads the same frame, and writes
		// it in the same bytes.
		v, bad := msgpack.NewDecoder(bytes.NewReader(payload)).DecodeInterface()
		if bad != nil {
			t.Errorf("%s: another library: %v", g.name, bad)
		} else if again := packed(t, v); !bytes.Equal(again, payload) {
			t.Errorf("%s: another library writes %x, this one %x", g.name, again, payload)
		}
	}
}

func packed(t *testing.T, v any) []byte {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.UseCompactInts(true)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRequestForms(t *testing.T) {
	for _, c := range []struct{ name, frame, want string }{
		{"nil stands for a default", "9b 02 01 c0 c0 c0 c0 c0 c0 c0 c0 c0", "submit 1 flags=0 {  0 0 absent} format=0 dialect= body="},
		{"signed and wide integers", "92 d0 01 d3 0000000000000007", "ping 7 flags=0 {  0 0 absent} format=0 dialect= body="},
		{"long headers", "dd0000000b cd0002 ce00000001 00 d901 65 00 01 00 da0001 72 02 a0 c50001 80", "submit 1 flags=0 {e r 0 0 aggregated} format=2 dialect= body=80"},
		{"a body that is a map", "9b 02 01 00 a0 00 00 00 a0 00 a0 81a7616374696f6e7390", "submit 1 flags=0 {  0 0 absent} format=2 dialect= body=81a7616374696f6e7390"},
		{"a body that is a string", "9b 02 01 00 a0 00 00 00 a0 01 a0 a27b7d", "submit 1 flags=0 {  0 0 absent} format=1 dialect= body=7b7d"},
		{"an unknown operation", "93 0e 01 01", "operation 14 1 flags=1 {  0 0 absent} format=0 dialect= body="},
		{"a context that is a map", "96 06 01 00 00 01 81a16101", "formulate 1 flags=0 {  0 0 absent} format=2 dialect= body=81a16101"},
		{"an unknown operation with what follows", "95 0e 01 00 81 01 02 c0", "operation 14 1 flags=0 {  0 0 absent} format=0 dialect= body="},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(c.frame, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		var q request
		if bad := q.decode(b); bad != nil {
			t.Errorf("%s: %v", c.name, bad)
		}
		i := q.identity
		got := fmt.Sprintf("%s %d flags=%d {%s %s %d %d %s} format=%d dialect=%s body=%x", q.op, q.seq, q.flags, i.Engine, i.RequestID, i.DPRank, i.Attempt, legText(i.Leg), q.format, q.dialect, q.body)
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func legText(l abi.Leg) string {
	if l == abi.LegAbsent {
		return "absent"
	}
	return l.String()
}

func TestBadRequests(t *testing.T) {
	for _, c := range []struct{ name, frame, want string }{
		{"nothing", "", "the frame ends where a request should stand at offset 0"},
		{"no array", "a3666f6f", "a request must be an array, not byte 0xa3 at offset 0"},
		{"no operation", "91 a0", "the operation must be an integer, not byte 0xa0 at offset 1"},
		{"an operation out of range", "92 cd0100 01", "the operation must be an integer from 0 to 255 at offset 1"},
		{"a negative number", "92 01 ff", "the sequence number must not be negative at offset 2"},
		{"a negative wide number", "92 01 d3ffffffffffffffff", "the sequence number must not be negative at offset 2"},
		{"too few", "92 02 01", "submit is an array of 11 elements, not 2 at offset 0"},
		{"too many", "93 01 01 c0", "ping is an array of 2 elements, not 3 at offset 0"},
		{"trailing bytes", "92 01 01 00", "1 bytes behind the end at offset 3"},
		{"a truncated string", "94 00 01 01 a561", "the frame ends early at offset 6"},
		{"unknown flags", "98 04 01 04 a0 00 00 00 a0", "unknown flags 0x4 at offset 3"},
		{"a leg that does not exist", "98 04 01 00 a0 00 04 00 a0", "the leg must be an integer from 0 to 3 at offset 6"},
		{"an id that is not UTF-8", "98 04 01 00 a0 00 00 00 a1ff", "the request id is not UTF-8 at offset 8"},
		{"an id that is bytes", "98 04 01 00 a0 00 00 00 c40161", "the request id must be a string, not byte 0xc4 at offset 8"},
		{"a long id", "98 04 01 00 a0 00 00 00 da0201" + strings.Repeat("61", 513), "the request id has 513 bytes, 512 are allowed at offset 8"},
		{"a body that is a list", "9b 02 01 00 a0 00 00 00 a0 00 a0 90", "the body must be bytes, a string or a map, not byte 0x90 at offset 11"},
		{"a map that is said to be JSON", "9b 02 01 00 a0 00 00 00 a0 01 a0 80", "a body that is a map is msgpack, and the format says otherwise at offset 12"},
		{"a body longer than the frame", "9b 02 01 00 a0 00 00 00 a0 00 a0 c6ffffffff00", "the frame ends early at offset 17"},
		{"a format that does not exist", "9b 02 01 00 a0 00 00 00 a0 03 a0 c400", "the format must be an integer from 0 to 2 at offset 9"},
		{"a context that is a list", "96 06 01 00 00 00 90", "the body must be bytes, a string or a map, not byte 0x90 at offset 6"},
		{"an output that does not exist", "96 06 01 00 00 03 80", "the output must be an integer from 0 to 2 at offset 5"},
		{"contexts that are no list", "96 07 01 00 00 00 80", "the bodies must be an array, not byte 0x80 at offset 6"},
		{"a context in a list that is none", "96 07 01 00 00 00 92 a0 01", "a body must be bytes, a string or a map, not byte 0x01 at offset 8"},
		{"too many contexts", "96 07 01 00 00 00 dc0401", "1025 bodies, 1024 are allowed at offset 6"},
		{"fewer contexts than announced", "96 07 01 00 00 00 93 a0", "the frame ends where a body should stand at offset 8"},
		{"a map that does not end", "96 07 01 00 00 00 91 dfffffffff a0", "the frame ends where a value should stand at offset 13"},
		{"a byte that is no value", "96 07 01 00 00 00 91 81a0c1", "byte 0xc1 begins no value at offset 9"},
		{"a wait that is too long", "9b 0d 01 00 a0 00 00 00 a0 a0 00 cd2711", "the time to wait must be an integer from 0 to 10000 at offset 11"},
		{"a block that is empty", "97 0b 01 00 a0 a0 01 c400", "the block is bytes, at least one at offset 7"},
		{"hashes of blocks that are cut off", "9c 0a 01 00 a0 00 00 00 a0 a0 a0 00 c40101", "the block hashes are bytes, 8 for each, of 65536 blocks at most at offset 12"},
		{"aborted is a number", "99 03 01 00 a0 00 00 00 a0 01", "aborted must be a boolean, not byte 0x01 at offset 9"},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(c.frame, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		var q request
		if bad := q.decode(b); bad == nil || bad.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, bad, c.want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.frame[frameHead:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q request
		if q.decode(b) != nil || !q.op.known() {
			return
		}
		// What was read is written and read again without a change.
		var again request
		if bad := again.decode(appendRequest(nil, &q)[frameHead:]); bad != nil {
			t.Fatalf("%+v cannot be read again: %v", q, bad)
		}
		if len(q.batch.raw) == 0 && len(again.batch.raw) == 0 {
			q.batch, again.batch = batch{}, batch{}
		}
		if len(q.body) == 0 && len(again.body) == 0 { // nil and empty bytes are the same body
			q.body, again.body = nil, nil
		}
		if !reflect.DeepEqual(q, again) {
			t.Fatalf("%+v became %+v", q, again)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.frame[frameHead:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p reply
		if p.decode(b) == nil && len(p.results)+len(p.formulated) > len(b) {
			t.Fatalf("%d results and %d answers in %d bytes", len(p.results), len(p.formulated), len(b))
		}
	})
}
