package tck_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

func kit() *tck.Kit { return &tck.Kit{Engine: wazero.New(wazero.Config{})} }

// embedded is the specification of a built-in guest.
func embedded(t testing.TB, name string) runtime.GuestSpec {
	t.Helper()
	wasm, ok := policies.Module(name)
	if !ok {
		t.Fatalf("no guest %s", name)
	}
	info, err := runtime.Inspect(name, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.GuestSpec{Name: name, Module: wasm, Grants: info.Imports}
}

func TestReadCases(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, ""},
		{`{"name":"a"}` + "\n", ""},
		{`{"name":"a"}` + "\n" + `{"name":"b"}`, ""},
		{`{"name":"a","host":{"submit":"superseded"}}`, ""},
		{`{"name":"a"}` + "\n" + `{"name":"a"}`, `line 2: want a name of its own, not "a"`},
		{`{}`, `line 1: want a name of its own`},
		{`{"name":"a","sumbits":[]}`, `line 1: json: unknown field "sumbits"`},
		{`{"name":"a"} {"name":"b"}`, `line 1: text after the case`},
		{`{"name":"a"`, `line 1: unexpected EOF`},
		{"\n", `line 1: EOF`},
		{`{"name":"a","host":{"submit":"perhaps"}}`, `line 1: host: submit: "perhaps" is no reason`},
		{`{"name":"a","msgpack":"8"}`, `line 1: msgpack: `},
		{`{"name":"a"}` + "\n" + `[]`, `line 2: json: cannot unmarshal array`},
	} {
		_, err := tck.ReadCases(strings.NewReader(c.text))
		if got := ""; err != nil {
			got = err.Error()
			if c.want == "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %s, want %s", c.text, got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("%s: accepted, want %s", c.text, c.want)
		}
	}
}

// TestFailures: a case that does not hold says what came back, in every encoding in
// which it was run.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		guest, text string
		runs        int
		want        []string // what each failure has
	}{
		{"kv-fetch", `{"name":"a","payload":{"block_hashes":[1]},"results":[{"status":"ACCEPTED"}],"submits":[{"source":null,"hashes":[1],"no_retain":false}],"log":[]}`, 2, nil},
		{"kv-fetch", `{"name":"a","payload":{"block_hashes":[1]},"results":[{"status":"REJECTED","reason":"invalid_payload"}]}`, 2, []string{"json: action 0: got ACCEPTED", "msgpack: action 0: got ACCEPTED"}},
		{"kv-fetch", `{"name":"a","payload":{"block_hashes":[-1]},"results":[{"status":"REJECTED","reason":"invalid_payload","detail":"no"}]}`, 2, []string{"json: action 0: detail: got \"block_hashes", "msgpack: "}},
		{"kv-fetch", `{"name":"a","payload":{"block_hashes":[1]},"results":[]}`, 2, []string{"json: 1 results, want 0", "msgpack: "}},
		{"kv-fetch", `{"name":"a","payload":{"block_hashes":[1]},"results":[{"status":"ACCEPTED"}],"submits":[]}`, 2, []string{"json: submits: got [{none [1] false}], want []", "msgpack: "}},
		{"kv-fetch", `{"name":"a","host":{"submit":"superseded"},"payload":{"block_hashes":[1]},"results":[{"status":"REJECTED","reason":"superseded"}],"submits":[]}`, 2, nil},
		{"kv-fetch", `{"name":"a","payload":{"block_hashes":[1]},"results":[{"status":"ACCEPTED"}],"log":["warn: odd"]}`, 2, []string{`json: log: got [], want ["warn: odd"]`, "msgpack: "}},
		{"kv-fetch", `{"name":"a","payload":{"block_hashes":[1]},"results":[{"status":"ACCEPTED"}],"forward":{"actions":[]}}`, 2, []string{"json: forward: got {", "msgpack: "}},
		{"kv-fetch", `{"name":"a","params":{"versions":"lenient"},"init":"versions must be \"strict\" or \"kvcr\""}`, 1, nil},
		{"kv-fetch", `{"name":"a","params":{"versions":"lenient"},"init":"no"}`, 1, []string{"loading: got guest kv-fetch refused"}},
		{"kv-fetch", `{"name":"a","params":{"versions":"strict"},"init":"no"}`, 1, []string{"init accepted, want a refusal: no"}},
		{"kv-fetch", `{"name":"a","params":{"versions":"lenient"},"init":""}`, 1, []string{"loading: guest kv-fetch refused"}},
		{"kv-fetch", `{"name":"a","init":"","payload":{"block_hashes":[1]},"results":[]}`, 3, []string{"json: 1 results, want 0", "msgpack: "}},
		{"kv-fetch", `{"name":"a","params":{"versions":"lenient"},"payload":{}}`, 0, []string{"loading: guest kv-fetch refused"}},
		{"kv-fetch", `{"name":"a","document":{}}`, 0, []string{"a document, and the guest is no parser"}},
		{"kv-fetch", `{"name":"a"}`, 0, []string{"the case sends nothing"}},
		{"kv-fetch", `{"name":"a","payload":{"n":18446744073709551616},"results":[{"status":"REJECTED","reason":"invalid_payload"}]}`, 1, nil},
		{"router-hint", `{"name":"a","payload":{}}`, 0, []string{"an envelope, and the guest is no handler"}},
		{"router-hint", `{"name":"a","document":{"block_hashes":[1]}}`, 2, []string{"json: want an envelope or refused", "msgpack: "}},
		{"router-hint", `{"name":"a","document":{"block_hashes":[1]},"refused":{"reason":"invalid_payload"}}`, 2, []string{"json: not refused: {", "msgpack: "}},
		{"router-hint", `{"name":"a","document":5,"refused":{"reason":"invalid_payload"}}`, 2, []string{`json: refusal: got  "malformed_action"`, "msgpack: "}},
		{"router-hint", `{"name":"a","document":5,"envelope":{"actions":[]}}`, 2, []string{"json: malformed envelope: parser router-hint", "msgpack: "}},
		{"router-hint", `{"name":"a","document_text":"{","refused":{"reason":"malformed_action"}}`, 1, nil},
	} {
		cases, err := tck.ReadCases(strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := (&tck.Kit{Engine: compiled(t)}).NewRunner(embedded(t, c.guest))
		if err != nil {
			t.Fatal(err)
		}
		out := r.Run(context.Background(), &cases[0])
		r.Close()
		ok := out.Runs == c.runs && len(out.Failures) == len(c.want)
		for i := range c.want {
			ok = ok && strings.HasPrefix(out.Failures[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s:\n got %d runs, %q\nwant %d, %q", c.text, out.Runs, out.Failures, c.runs, c.want)
		}
	}
}

// FuzzReadCases: no text is read as cases that then break the runner.
func FuzzReadCases(f *testing.F) {
	for _, file := range []string{"kv-fetch/cases/payload.jsonl", "router-hint/cases/refused.jsonl", "evict-on-final/cases/final.jsonl"} {
		text, err := os.ReadFile("../../policies/" + file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f.Add(line)
		}
	}
	runners := map[string]*tck.Runner{}
	for _, name := range []string{"kv-fetch", "router-hint", "evict-on-final"} {
		r, err := (&tck.Kit{Engine: wazero.New(wazero.Config{Interpreter: true})}).NewRunner(embedded(f, name))
		if err != nil {
			f.Fatal(err)
		}
		defer r.Close()
		runners[name] = r
	}
	f.Fuzz(func(t *testing.T, text string) {
		cases, err := tck.ReadCases(strings.NewReader(text))
		for i := range cases {
			if err == nil && i < 4 {
				for _, r := range runners {
					r.Run(context.Background(), &cases[i])
				}
			}
		}
	})
}
