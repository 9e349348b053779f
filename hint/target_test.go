package hint_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// added adds actions, each "type version payload", to one envelope and spells what became
// of each.
func added(t *testing.T, c *hint.Check, actions ...string) string {
	t.Helper()
	var out []string
	for _, a := range actions {
		typ, rest, _ := strings.Cut(a, " ")
		version, text, _ := strings.Cut(rest, " ")
		keep := strings.HasPrefix(typ, "!")
		base, root, err := hint.AppendTree(nil, hint.FormatJSON, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var v []byte // nil: the action has none
		if version != "" {
			v = []byte(version)
		}
		if keep {
			c.Keep([]byte(typ[1:]), v, base, root)
			continue
		}
		reason, detail := c.Add([]byte(typ), v, base, root)
		if (reason == abi.ReasonNone) != (detail == "") {
			t.Errorf("%s: %v %q", a, reason, detail)
		}
		word := "ok"
		if reason != abi.ReasonNone {
			word = reason.String() + ": " + detail
		}
		out = append(out, word)
	}
	return strings.Join(out, " | ")
}

func directives(list string) string { return "kv.retain 1.0 {\"directives\":[" + list + "]}" }

func TestCheckAlone(t *testing.T) {
	const ok, invalid = "ok", "invalid_payload: "
	fetch := func(more string) string { return `kv.fetch 1.0 {"block_hashes":[1]` + more + `}` }
	blocks := func(more string) string {
		return `kv.retain 1.0 {"execute_at":"request_completion","include_current_request":false` + more + `}`
	}
	for _, c := range []struct{ action, want string }{
		{"demo.echo  {}", ok},
		{fetch(""), ok},
		{fetch(`,"source_control_endpoint":null,"mode":"copy","no_retain":true,"x":[]`), ok},
		{fetch(`,"source_control_endpoint":"tcp://h:1"`), ok},
		{fetch(`,"source_control_endpoint":""`), invalid + "source_control_endpoint must be null or a string that is not empty"},
		{fetch(`,"source_control_endpoint":5`), invalid + "source_control_endpoint must be null or a string that is not empty"},
		{fetch(`,"mode":"move"`), invalid + "mode must be 'copy', which is the only one that is executed"},
		{fetch(`,"mode":null`), invalid + "mode must be 'copy', which is the only one that is executed"},
		{fetch(`,"no_retain":"yes"`), invalid + "no_retain must be a boolean"},
		{`kv.fetch 1.0 {"block_hashes":[]}`, invalid + "block_hashes must be a list of at least one integer in [0, 2^64)"},
		{`kv.fetch 1.0 {"block_hashes":[-1]}`, invalid + "block_hashes must be a list of at least one integer in [0, 2^64)"},
		{`kv.fetch 1.0 {"block_hashes":[true]}`, invalid + "block_hashes must be a list of at least one integer in [0, 2^64)"},
		{`kv.fetch 1.0 {}`, invalid + "block_hashes must be a list of at least one integer in [0, 2^64)"},
		{`kv.fetch  {"block_hashes":[1]}`, ok},
		{`kv.fetch 1 {"block_hashes":[1]}`, ok},
		{`kv.fetch 01.9 {"block_hashes":[1]}`, ok},
		{`kv.fetch 2.0 {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version '2.0'"},
		{`kv.fetch 11 {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version '11'"},
		{`kv.fetch 10 {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version '10'"},
		{`kv.fetch v1 {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version 'v1'"},
		{`kv.fetch .1 {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version '.1'"},
		{`kv.fetch 1.0.0 {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version '1.0.0'"},
		{`kv.fetch 1. {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version '1.'"},
		{`kv.fetch 0 {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version '0'"},
		{`kv.fetch ١.0 {"block_hashes":[1]}`, "unsupported_action_version: unsupported kv.fetch action_version '١.0'"},

		{directives(``), ok},
		{`kv.retain 1.3 {"scope":null,"directives":[]}`, ok},
		{`kv.retain 2.0 {"directives":[]}`, "unsupported_action_version: unsupported kv.retain action_version '2.0'"},
		{`kv.retain 1.0 {}`, invalid + "directives must be a list"},
		{`kv.retain 1.0 {"directives":{}}`, invalid + "directives must be a list"},
		{`kv.retain 1.0 {"scope":5,"directives":[]}`, invalid + "scope must be a string or null"},
		{`kv.retain 1.0 {"directives":[1]}`, invalid + "each directive must be an object"},
		{directives(`{"priority":1},null`), invalid + "each directive must be an object"},
		{directives(`{"priority":1,"b":1,"a":2}`), invalid + "unknown directive fields: ['a', 'b']"},
		{directives(`{}`), invalid + "priority must be an integer in [0, 100]"},
		{directives(`{"priority":null}`), invalid + "priority must be an integer in [0, 100]"},
		{directives(`{"priority":true}`), invalid + "priority must be an integer in [0, 100]"},
		{directives(`{"priority":1.0}`), invalid + "priority must be an integer in [0, 100]"},
		{directives(`{"priority":-1}`), invalid + "priority must be an integer in [0, 100]"},
		{directives(`{"priority":101}`), invalid + "priority must be an integer in [0, 100]"},
		{directives(`{"priority":1e400}`), invalid + "priority must be an integer in [0, 100]"},
		{directives(`{"priority":100,"start":0,"end":1,"duration":2592000},{"priority":0,"start":18446744073709551615,"end":null,"duration":null}`), ok},
		{directives(`{"priority":1,"start":null}`), invalid + "start must be a non-negative integer"},
		{directives(`{"priority":1,"start":-1}`), invalid + "start must be a non-negative integer"},
		{directives(`{"priority":1,"start":0.0}`), invalid + "start must be a non-negative integer"},
		{directives(`{"priority":1,"start":18446744073709551616}`), invalid + "start must be a non-negative integer"},
		{directives(`{"priority":1,"start":5,"end":5}`), invalid + "end must be null or an integer greater than start"},
		{directives(`{"priority":1,"end":0}`), invalid + "end must be null or an integer greater than start"},
		{directives(`{"priority":1,"duration":-1}`), invalid + "duration must be null or a number in [0, 2.592e+06]"},
		{directives(`{"priority":1,"duration":2592000.5}`), invalid + "duration must be null or a number in [0, 2.592e+06]"},
		{directives(`{"priority":1,"duration":2592001}`), invalid + "duration must be null or a number in [0, 2.592e+06]"},
		{directives(`{"priority":1,"duration":1e400}`), invalid + "duration must be null or a number in [0, 2.592e+06]"},
		{directives(`{"priority":1,"duration":true}`), invalid + "duration must be null or a number in [0, 2.592e+06]"},
		{directives(`{"priority":1,"duration":0.0}`), ok},
		{directives(`{"priority":1,"covers_output":"true"}`), invalid + "covers_output must be a boolean"},
		{directives(`{"priority":1,"covers_output":true,"start":0}`), invalid + "covers_output cannot be combined with start or end"},
		{directives(`{"priority":1,"covers_output":true,"end":null}`), invalid + "covers_output cannot be combined with start or end"},
		{directives(`{"priority":1,"covers_output":false,"start":3}`), ok},
		{directives(`{"priority":1,"covers_output":true},{"priority":2,"start":9}`), ok}, // the output comes last
		{directives(`{"priority":2,"covers_output":true},{"priority":1,"start":18446744073709551615}`), invalid + "priorities must be non-increasing across token positions (prefix-cache constraint): priority 2 in the output is above priority 1 at start 18446744073709551615"},
		{directives(`{"priority":1,"start":64},{"priority":9}`), ok}, // sorted by start
		{directives(`{"priority":1},{"priority":2}`), invalid + "priorities must be non-increasing across token positions (prefix-cache constraint): priority 2 at start 0 is above priority 1 at start 0"},
		{directives(`{"priority":2},{"priority":1}`), ok},

		{blocks(`,"block_hashes":["18446744073709551615","0",7],"priority":18446744073709551615,"ttl_seconds":0.5`), ok},
		{blocks(`,"block_hashes":[1,2],"priority":1,"ttl_seconds":1,"x":{}`), ok},
		{blocks(`,"block_hashes":[],"priority":1,"ttl_seconds":1`), invalid + "block_hashes must not be empty unless include_current_request is true"},
		{blocks(`,"block_hashes":[],"priority":1,"ttl_seconds":1,"current_request_block_start":3,"current_request_block_count":1`), ok},
		{blocks(`,"block_hashes":[1],"priority":1,"ttl_seconds":1,"current_request_block_start":3,"current_request_block_count":1`), invalid + "current_request_block_start needs empty block_hashes and include_current_request false"},
		{blocks(`,"block_hashes":[],"priority":1,"ttl_seconds":1,"current_request_block_start":18446744073709551615,"current_request_block_count":1`), invalid + "the blocks from current_request_block_start on must end below 2^64"},
		{blocks(`,"block_hashes":[],"priority":1,"ttl_seconds":1,"current_request_block_start":3,"current_request_block_count":0`), invalid + "current_request_block_count must be a positive integer"},
		{blocks(`,"block_hashes":[],"priority":1,"ttl_seconds":1,"current_request_block_start":-3,"current_request_block_count":1`), invalid + "current_request_block_start must be an integer in [0, 2^64)"},
		{blocks(`,"block_hashes":[],"priority":1,"ttl_seconds":1,"current_request_block_start":3`), invalid + "current_request_block_start and current_request_block_count go together"},
		{blocks(`,"block_hashes":["01"],"priority":1,"ttl_seconds":1`), invalid + "block_hashes[0] must be an integer in [0, 2^64), or its decimal text without leading zeros"},
		{blocks(`,"block_hashes":[1,"18446744073709551616"],"priority":1,"ttl_seconds":1`), invalid + "block_hashes[1] must be an integer in [0, 2^64), or its decimal text without leading zeros"},
		{blocks(`,"block_hashes":["000000000000000b"],"priority":1,"ttl_seconds":1`), invalid + "block_hashes[0] must be an integer in [0, 2^64), or its decimal text without leading zeros"},
		{blocks(`,"block_hashes":5,"priority":1,"ttl_seconds":1`), invalid + "block_hashes must be a list"},
		{blocks(`,"block_hashes":[1],"priority":-1,"ttl_seconds":1`), invalid + "priority must be an integer in [0, 2^64)"},
		{blocks(`,"block_hashes":[1],"priority":1,"ttl_seconds":0`), invalid + "ttl_seconds must be a finite number greater than 0"},
		{blocks(`,"block_hashes":[1],"priority":1,"ttl_seconds":"1"`), invalid + "ttl_seconds must be a finite number greater than 0"},
		{blocks(`,"block_hashes":[1],"priority":1,"ttl_seconds":1,"scope":null`), invalid + "keys of two schemas in one payload: token ranges (scope, directives) or blocks, not both"},
		{`kv.retain 1.0 {"execute_at":"now"}`, invalid + "execute_at must be 'request_completion'"},
		{`kv.retain 1.0 {"execute_at":"request_completion"}`, invalid + "include_current_request must be a boolean"},
	} {
		var check hint.Check
		check.Reset(hint.Target{})
		if got := added(t, &check, c.action); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.action, got, c.want)
		}
	}
}

// TestCheckNotFinite: doubles that JSON cannot spell.
func TestCheckNotFinite(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		b := abi.NewBuilder(nil)
		d := b.Map(abi.Entry{Key: b.String("priority"), Val: abi.Uint(1)}, abi.Entry{Key: b.String("duration"), Val: abi.Float(v)})
		list := b.Array(d)
		root := b.Map(abi.Entry{Key: b.String("directives"), Val: list})
		if reason, _ := hint.CheckRetain(nil, b.Bytes(), root); reason != abi.ReasonInvalidPayload {
			t.Errorf("a duration of %v: %v", v, reason)
		}
		b = abi.NewBuilder(nil)
		root = b.Map(abi.Entry{Key: b.String("execute_at"), Val: b.String("request_completion")}, abi.Entry{Key: b.String("include_current_request"), Val: abi.Bool(true)},
			abi.Entry{Key: b.String("block_hashes"), Val: b.Array()}, abi.Entry{Key: b.String("priority"), Val: abi.Uint(1)}, abi.Entry{Key: b.String("ttl_seconds"), Val: abi.Float(v)})
		if reason, detail := hint.CheckRetain(nil, b.Bytes(), root); detail != "ttl_seconds must be a finite number greater than 0" {
			t.Errorf("a TTL of %v: %v %s", v, reason, detail)
		}
	}
}

func TestCheckTogether(t *testing.T) {
	const fetch = `kv.fetch 1.0 {"block_hashes":[1]}`
	const blocks = `kv.retain 1.0 {"execute_at":"request_completion","include_current_request":true,"block_hashes":[],"priority":9,"ttl_seconds":1}`
	retain := func(scope, list string) string {
		return `kv.retain 1.0 {"scope":` + scope + `,"directives":[` + list + `]}`
	}
	many := func(n int, action string) []string {
		return strings.Split(strings.TrimSuffix(strings.Repeat(action+"\n", n), "\n"), "\n")
	}
	n := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"priority":1},`, n), ",") }
	oks := func(n int) string { return strings.TrimSuffix(strings.Repeat("ok | ", n), " | ") }
	const second = "superseded: the envelope has a kv.fetch already, and takes one"
	const share = "invalid_payload: kv.retain actions in one envelope must share a scope"
	for _, c := range []struct {
		name    string
		target  hint.Target
		actions []string
		want    string
	}{
		{"two fetches", hint.Target{}, []string{fetch, fetch}, "ok | " + second},
		{"two where they are allowed", hint.Target{ManyFetches: true}, []string{fetch, fetch}, "ok | ok"},
		{"one behind one that was there", hint.Target{}, []string{"!" + fetch, fetch}, second},
		{"one behind a bad one that was there", hint.Target{}, []string{"!kv.fetch 9 {}", fetch}, second},
		{"one behind a bad one", hint.Target{}, []string{"kv.fetch 9 {}", fetch, fetch}, "unsupported_action_version: unsupported kv.fetch action_version '9' | ok | " + second},
		{"16 retains", hint.Target{}, append(many(16, retain("null", "")), retain("null", "")), oks(16) + " | limit_exceeded: at most 16 kv.retain actions per envelope"},
		{"bad ones that were there count", hint.Target{}, append(many(16, "!kv.retain 9 {}"), retain("null", "")), "limit_exceeded: at most 16 kv.retain actions per envelope"},
		{"bad ones do not", hint.Target{}, append(many(20, "kv.retain 1.0 {}"), retain("null", "")), strings.Repeat("invalid_payload: directives must be a list | ", 20) + "ok"},
		{"claims over blocks count", hint.Target{}, append(many(16, blocks), retain("null", "")), oks(16) + " | limit_exceeded: at most 16 kv.retain actions per envelope"},
		{"128 directives", hint.Target{}, []string{retain("null", n(128)), retain("null", n(1)), retain("null", "")}, "ok | limit_exceeded: at most 128 directives per envelope | ok"},
		{"129 in one", hint.Target{}, []string{retain("null", n(129)), retain("null", n(128))}, "limit_exceeded: at most 128 directives per envelope | ok"},
		{"those that were there count", hint.Target{}, []string{"!" + retain("null", n(100)), "!" + retain("7", n(20)), retain("null", n(9)), retain("null", n(8))}, "limit_exceeded: at most 128 directives per envelope | ok"},
		{"scopes", hint.Target{}, []string{retain(`"a"`, ""), retain(`"b"`, ""), retain("null", ""), retain(`""`, ""), retain(`"a"`, ""), blocks}, "ok | " + share + " | " + share + " | " + share + " | ok | ok"},
		{"the null scope", hint.Target{}, []string{retain("null", ""), retain(`""`, ""), `kv.retain 1.0 {"directives":[]}`}, "ok | " + share + " | ok"},
		{"the scope of one that was there", hint.Target{}, []string{"!" + retain(`"a"`, ""), retain("null", ""), retain(`"a"`, "")}, share + " | ok"},
		{"a bad one sets no scope", hint.Target{}, []string{retain(`"a"`, "5"), retain(`"b"`, "")}, "invalid_payload: each directive must be an object | ok"},
		{"priorities", hint.Target{}, []string{retain("null", `{"priority":50}`), retain("null", `{"priority":51,"start":10}`), retain("null", `{"priority":20,"start":10}`), retain("null", `{"priority":30,"start":5},{"priority":25,"start":9}`), retain("null", `{"priority":19,"start":5}`)},
			"ok | invalid_payload: priorities must be non-increasing across token positions (prefix-cache constraint): priority 51 at start 10 is above priority 50 at start 0 | ok | ok | " +
				"invalid_payload: priorities must be non-increasing across token positions (prefix-cache constraint): priority 25 at start 9 is above priority 19 at start 5"},
		{"token ranges alone", hint.Target{TokenRanges: true}, []string{blocks, retain("null", "")}, "invalid_payload: the target reads kv.retain over token ranges (scope, directives) alone | ok"},
	} {
		var check hint.Check
		for range 2 { // Reset forgets everything
			check.Reset(c.target)
			if got := added(t, &check, c.actions...); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
			}
		}
	}
}

func TestCheckAllocs(t *testing.T) {
	base, root, err := hint.AppendTree(nil, hint.FormatJSON, []byte(`{"scope":"a scope","directives":[{"priority":5,"start":0,"duration":1.5},{"priority":2,"covers_output":true},{"priority":3,"start":9}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var check hint.Check
	if n := testing.AllocsPerRun(100, func() {
		check.Reset(hint.Target{})
		check.Add([]byte("kv.retain"), []byte("1.0"), base, root)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFormulated: the reply, in both encodings.
func TestFormulated(t *testing.T) {
	policies := []hint.PolicyResult{
		{Name: "retain-session", Actions: 1, Fuel: 900, DurationNS: 1500},
		{Name: "p\"2", Dropped: []hint.DroppedAction{{ActionID: []byte("a"), ActionType: []byte("t"), Reason: abi.ReasonSuperseded, Detail: "one"}, {}}, Reason: abi.ReasonHandlerTrap, Detail: []byte("cut \xc3")},
		{Name: "3", Reason: abi.ReasonHandlerUnavailable},
	}
	const list = `[{"name":"retain-session","actions":1,"dropped":[],"error":"","fuel":900,"duration_ns":1500},` +
		`{"name":"p\"2","actions":0,"dropped":[{"action_id":"a","action_type":"t","reason":"superseded","detail":"one"},{"action_id":"","action_type":"","reason":"","detail":""}],"error":"handler_trap: cut �","fuel":0,"duration_ns":0},` +
		`{"name":"3","actions":0,"dropped":[],"error":"handler_unavailable","fuel":0,"duration_ns":0}]`
	for _, envelope := range []string{"", `{"protocol_version":"0.1","message_id":"r1","actions":[]}`} {
		want := `{"envelope":` + envelope + `,"policies":` + list + `}`
		packed := []byte(nil)
		if envelope == "" {
			want = `{"envelope":null,"policies":` + list + `}`
		} else {
			packed = toMsgpack(t, envelope)
		}
		got := hint.AppendFormulatedJSON(nil, []byte(envelope), policies)
		if string(got) != want || !json.Valid(got) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		base, root, err := hint.AppendTree(nil, hint.FormatMsgpack, hint.AppendFormulatedMsgpack(nil, packed, policies))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := hint.AppendTreeJSON(nil, base, root); err != nil || string(text) != want {
			t.Errorf("%v: got  %s\nwant %s", err, text, want)
		}
	}
}
