package runtime_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// formulate runs one context and spells what became of each policy, and the envelope.
func formulate(t testing.TB, r *runtime.Runtime, body []byte) (policies, envelope string) {
	t.Helper()
	res := r.NewFormulation()
	if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: body, Output: abi.FormatJSON}, res); err != nil {
		t.Fatal(err)
	}
	return told(res), string(res.Envelope)
}

// told renders results as "name:actions" words, with the error and what was dropped.
func told(res *runtime.Formulation) string {
	words := make([]string, len(res.Policies))
	for i, p := range res.Policies {
		words[i] = fmt.Sprintf("%s:%d", p.Name, p.Actions)
		if p.Reason != 0 {
			words[i] += "/" + p.Reason.String()
		}
		for _, d := range p.Dropped {
			words[i] += fmt.Sprintf(" -%s(%s)", d.ActionID, d.Reason)
		}
	}
	return strings.Join(words, " ")
}

// ids are the actions of an envelope, as "id" words, or "none".
func ids(t testing.TB, envelope string) string {
	t.Helper()
	if envelope == "" {
		return "none"
	}
	e, err := hint.DecodeEnvelope(abi.FormatJSON, []byte(envelope))
	if err != nil {
		t.Fatalf("%v in %s", err, envelope)
	}
	words := []string{}
	for _, a := range e.Actions {
		words = append(words, a.ActionID)
	}
	return strings.Join(words, " ")
}

func policyRuntime(t testing.TB, cfg runtime.Config, specs ...runtime.GuestSpec) *runtime.Runtime {
	if cfg.Hosts == nil {
		cfg.Hosts = []runtime.HostModule{&effects{}}
	}
	return newRuntime(t, cfg, specs...)
}

// TestFormulateCalls: whatever a policy does, the request goes on with what others gave.
func TestFormulateCalls(t *testing.T) {
	host := &effects{}
	bad := policyGuest(t, "bad", echo("b"))
	bad.Limits.Memory, bad.Limits.Fuel = 16<<20, 2_000_000
	r := policyRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, policyGuest(t, "steady-1", echo("1")), bad, policyGuest(t, "steady-2", echo("2")))
	for _, c := range []struct{ name, id, reason, detail string }{
		{"an answer", "a", "", ""},
		{"trap", "t", "handler_trap", ""},
		{"endless loop", "l", "handler_out_of_fuel", ""},
		{"refusal", "r", "invalid_payload", ""},
		{"a reason that does not exist", "u", "handler_error", "the guest returned what is neither"},
		{"the host's own reason", "h", "handler_error", "the guest returned what is neither"},
		{"10 MiB", "b", "handler_error", "an answer of 10485760 bytes: limits.output_bytes allows 4194304"},
		{"over the frame", "o", "handler_error", "over the frame"},
		{"outside of the memory", "k", "handler_error", "an answer of 4294967295 bytes"},
		{"host function panics", "p", "handler_error", ""},
		{"host function refuses", "x", "source_not_allowed", "that source is not allowed"},
		{"the native side fails for good", "y", "handler_error", "the store is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := r.NewFormulation()
			if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: routed(c.id, "")}, res); err != nil {
				t.Fatal(err)
			}
			if len(res.Policies) != 3 {
				t.Fatalf("%d policies", len(res.Policies))
			}
			p := res.Policies[1]
			if p.Name != "bad" || p.Reason.String() != c.reason || !strings.Contains(string(p.Detail), c.detail) || p.Fuel == 0 && c.reason == "" || p.Generation != 1 {
				t.Errorf("%+v: %s", p, p.Detail)
			}
			want := "1 2"
			if c.reason == "" {
				want = "1 b 2"
			}
			if got := ids(t, string(res.Envelope)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestFormulateFailsOpen: an answer that is no frame takes nothing of the hints with it
// that were there; calls that trap take nothing of those on the other cores.
func TestFormulateFailsOpen(t *testing.T) {
	bad := policySpec(t, "bad", policyManifest, []byte("no envelope frame at all"))
	r := policyRuntime(t, runtime.Config{}, policyGuest(t, "steady", echo("1")), bad, policyGuest(t, "last", echo("2")))
	const hint = `"request_hint":{"protocol_version":"0.2","message_id":"m","actions":[{"action_type":"t","action_id":"q"}]}`
	policies, envelope := formulate(t, r, routed("a", hint))
	if policies != "steady:1 bad:0/handler_error last:1" || ids(t, envelope) != "q 1 2" {
		t.Errorf("%s: %s", policies, envelope)
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			res := r.NewFormulation()
			for i := range 100 {
				id, want := "a", "q 1 2"
				if (i+n)%8 == 0 {
					id, want = "t", "q 1"
				}
				err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: routed(id, hint)}, res)
				if got := ids(t, string(res.Envelope)); err != nil || got != want {
					t.Errorf("%v: %s: %s, want %s", err, told(res), got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestFormulateComposition(t *testing.T) {
	const none = "none"
	request := func(actions ...string) string {
		return `"request_hint":{"protocol_version":"0.9","message_id":"req","actions":[` + strings.Join(actions, ",") + `]}`
	}
	selection := func(actions ...string) string {
		return `"selection_hint":{"protocol_version":"0.8","message_id":"sel","actions":[` + strings.Join(actions, ",") + `]}`
	}
	many := func(n int, action func(id string) string) (out []string) {
		for i := range n {
			out = append(out, action(fmt.Sprintf("%d", i)))
		}
		return out
	}
	keep := func(id string) string { return retain(id, `{"priority":50}`) }
	for _, c := range []struct {
		name    string
		more    string
		policy  []string
		want    string // ids
		message string // version/message id
		dropped string
	}{
		{"nothing", "", nil, none, "", ""},
		{"a policy only", "", []string{echo("p")}, "p", "0.1/a", ""},
		{"order", request(echo("r")) + "," + selection(echo("s")), []string{echo("p"), echo("q")}, "r s p q", "0.9/req", ""},
		{"the selection's envelope", selection(echo("s")), []string{echo("p")}, "s p", "0.8/sel", ""},
		{"an empty envelope stays", request(), nil, "", "0.9/req", ""},
		{"an empty one of the selection", selection(), nil, "", "0.8/sel", ""},
		{"equal ids stay", request(echo("a")), []string{echo("a")}, "a a", "0.9/req", ""},
		{"ids that are missing", "", []string{strings.Replace(echo("x"), `"action_id":"x",`, "", 1), echo(""), echo("z")}, "policy-0 policy-1 z", "0.1/a", ""},
		{"a second fetch", request(fetchAction("r")), []string{fetchAction("p"), echo("q")}, "r q", "0.9/req", "p superseded"},
		{"a second fetch after the selection's", selection(fetchAction("s")), []string{fetchAction("p")}, "s", "0.8/sel", "p superseded"},
		{"two fetches of a policy", "", []string{fetchAction("p"), fetchAction("q")}, "p", "0.1/a", "q superseded"},
		{"two fetches that were there", request(fetchAction("r"), fetchAction("s")), nil, "r s", "0.9/req", ""},
		{"17 retains", "", many(17, keep), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "0.1/a", "16 limit_exceeded"},
		{"17 with the request's", request(many(16, keep)...), []string{keep("p"), echo("q")}, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 q", "0.9/req", "p limit_exceeded"},
		{"rising priority in one action", "", []string{retain("p", `{"start":0,"priority":10},{"start":64,"priority":90}`)}, none, "", "p invalid_payload"},
		{"rising across two actions", "", []string{retain("p", `{"start":0,"priority":10}`), retain("q", `{"start":64,"priority":90}`), retain("s", `{"start":64,"priority":10}`)}, "p s", "0.1/a", "q invalid_payload"},
		{"rising above the request's", request(retain("r", `{"priority":10}`)), []string{retain("p", `{"covers_output":true,"priority":11}`)}, "r", "0.9/req", "p invalid_payload"},
		{"a request that is wrong itself", request(retain("r", `{"priority":101}`)), []string{keep("p")}, "r p", "0.9/req", ""},
		{"unknown version", "", []string{strings.Replace(keep("p"), `"1.0"`, `"2.0"`, 1)}, none, "", "p unsupported_action_version"},
		{"a fetch that the engine would not take", "", []string{strings.Replace(fetchAction("p"), `[1]`, `[]`, 1)}, none, "", "p invalid_payload"},
		{"a bad action beside a good one", "", []string{retain("p", `{"priority":true}`), echo("q")}, "q", "0.1/a", "p invalid_payload"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := policyRuntime(t, runtime.Config{}, policyGuest(t, "policy", c.policy...))
			res := r.NewFormulation()
			for _, format := range []abi.Format{abi.FormatJSON, abi.FormatMsgpack} {
				body := routed("a", c.more)
				if format == abi.FormatMsgpack {
					base, root, err := hint.AppendTree(nil, abi.FormatJSON, body)
					if err != nil {
						t.Fatal(err)
					}
					if body, err = hint.AppendTreeMsgpack(nil, base, root); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: body, Output: abi.FormatJSON}, res); err != nil {
					t.Fatal(err)
				}
				envelope := string(res.Envelope)
				if got := ids(t, envelope); got != c.want {
					t.Errorf("%v: got %s, want %s", format, got, c.want)
				}
				if envelope != "" {
					e, err := hint.DecodeEnvelope(abi.FormatJSON, []byte(envelope))
					if got := e.ProtocolVersion + "/" + e.MessageID; err != nil || got != c.message {
						t.Errorf("%v: %s, %v", format, got, err)
					}
				}
				dropped := ""
				for _, d := range res.Policies[0].Dropped {
					dropped += fmt.Sprintf(" %s %s", d.ActionID, d.Reason)
				}
				if strings.TrimSpace(dropped) != c.dropped {
					t.Errorf("%v: dropped %s, want %s", format, dropped, c.dropped)
				}
			}
		})
	}
}

// TestFormulateNaN: a double that is no number does not get through, in any encoding.
func TestFormulateNaN(t *testing.T) {
	frame := actionsFrame(t, retain("p", `{"priority":1,"duration":12345.678}`), echo("q"))
	number := binary.LittleEndian.AppendUint64(nil, math.Float64bits(12345.678))
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		bad := bytes.Replace(frame, number, binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), 1)
		r := policyRuntime(t, runtime.Config{}, policySpec(t, "nan", policyManifest, bad))
		for _, output := range []abi.Format{abi.FormatJSON, abi.FormatMsgpack} {
			res := r.NewFormulation()
			if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: routed("a", ""), Output: output}, res); err != nil {
				t.Fatal(err)
			}
			if got := told(res); got != "nan:1 -p(invalid_payload)" || !strings.Contains(res.Policies[0].Dropped[0].Detail, "payload.directives[0].duration: NaN or infinite") {
				t.Errorf("%v: %s", v, got)
			}
		}
	}
}

// TestFormulateCapabilities: absent keeps every action, empty none, a list those it names;
// what was there before the policies is not touched.
func TestFormulateCapabilities(t *testing.T) {
	r := policyRuntime(t, runtime.Config{}, policyGuest(t, "policy", echo("p"), fetchAction("q")))
	for caps, want := range map[string]string{
		"": "r p q", `,"capabilities":null`: "r p q", `,"capabilities":[]`: "r", `,"capabilities":["kv.fetch"]`: "r q", `,"capabilities":["demo.echo","kv.fetch"]`: "r p q", `,"capabilities":["kv"]`: "r",
	} {
		_, envelope := formulate(t, r, []byte(`{"request_id":"a","selected":{"worker_id":7`+caps+`},"request_hint":{"actions":[`+echo("r")+`]}}`))
		if got := ids(t, envelope); got != want {
			t.Errorf("%s: %s, want %s", caps, got, want)
		}
	}
	asked := ""
	known := policyRuntime(t, runtime.Config{Capable: func(id hint.WorkerID, typ string) bool {
		asked += id.String() + " " + typ + " "
		return typ == "kv.fetch"
	}}, policyGuest(t, "policy", echo("p"), fetchAction("q")))
	for caps, want := range map[string]string{"": "q", `,"capabilities":[]`: "none", `,"capabilities":["demo.echo"]`: "p"} {
		if _, envelope := formulate(t, known, []byte(`{"request_id":"a","selected":{"worker_id":"w"`+caps+`}}`)); ids(t, envelope) != want {
			t.Errorf("%s, and a catalogue: %s, want %s", caps, ids(t, envelope), want)
		}
	}
	if asked != `"w" demo.echo "w" kv.fetch ` {
		t.Errorf("asked %s", asked)
	}
	res := r.NewFormulation()
	body := []byte(`{"request_id":"a","selected":{"worker_id":7,"capabilities":[]}}`)
	if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: body}, res); err != nil {
		t.Fatal(err)
	}
	if got := told(res); got != "policy:0 -p(unsupported_action_type) -q(unsupported_action_type)" || len(res.Envelope) != 0 {
		t.Errorf("%s, %s", got, res.Envelope)
	}
}

func TestFormulateTarget(t *testing.T) {
	blocks := `{"action_id":"b","action_type":"kv.retain","action_version":"1.0","payload":{"execute_at":"request_completion","include_current_request":true,"block_hashes":[],"priority":1,"ttl_seconds":2.5}}`
	for _, c := range []struct {
		target hint.Target
		want   string
	}{
		{hint.Target{}, "p b"}, {hint.Target{ManyFetches: true}, "p q b"}, {hint.Target{TokenRanges: true}, "p"},
	} {
		r := policyRuntime(t, runtime.Config{Target: c.target}, policyGuest(t, "policy", fetchAction("p"), fetchAction("q"), blocks))
		if _, envelope := formulate(t, r, routed("a", "")); ids(t, envelope) != c.want {
			t.Errorf("%+v: %s", c.target, envelope)
		}
	}
}

// TestFormulateExact: what was there is passed on byte for byte, whatever surrounds it.
func TestFormulateExact(t *testing.T) {
	r := policyRuntime(t, runtime.Config{}, policyGuest(t, "policy", echo("p")))
	_, envelope := formulate(t, r, routed("a", `"request_hint":{"x":1,"message_id":7,"actions":[ {"action_type":"t", "payload": {"b": 1e2, "a":[18446744073709551616, -0]}, "z":1} ]}`))
	const want = `{"protocol_version":"","message_id":"7","actions":[{"action_id":"","action_type":"t","action_version":"1.0","payload":{"b": 1e2, "a":[18446744073709551616, -0]}},` +
		`{"action_id":"p","action_type":"demo.echo","action_version":"1.0","payload":{"n":18446744073709551615}}]}`
	if envelope != want {
		t.Errorf("got  %s\nwant %s", envelope, want)
	}
	res := r.NewFormulation()
	err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: routed("a", `"request_hint":{"actions":[{"action_type":"t","payload":{"n":18446744073709551616}}]}`), Output: abi.FormatMsgpack}, res)
	var action *hint.ActionError
	if !errors.As(err, &action) || action.Index != 0 {
		t.Errorf("an encoding that cannot hold it: %v", err)
	}
}

func TestFormulateStrip(t *testing.T) {
	r := policyRuntime(t, runtime.Config{StripRequestHints: true}, policyGuest(t, "policy", fetchAction("p")))
	policies, envelope := formulate(t, r, routed("a", `"request_hint":{"message_id":"req","actions":[`+fetchAction("r")+`]},"selection_hint":{"message_id":"sel","actions":[`+echo("s")+`]}`))
	if policies != "policy:1" || ids(t, envelope) != "s p" || !strings.Contains(envelope, `"message_id":"sel"`) {
		t.Errorf("%s: %s", policies, envelope)
	}
}

// TestFormulateEffects: they take place when the answer is taken, and only then.
func TestFormulateEffects(t *testing.T) {
	host := &effects{}
	r := policyRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, policyGuest(t, "policy", echo("p")))
	for _, c := range []struct {
		id                 string
		committed, dropped int64
		want               string
	}{{"e", 1, 0, "policy:1"}, {"f", 0, 1, "policy:0/invalid_payload"}, {"g", 0, 1, "policy:0/handler_trap"}} {
		host.committed.Store(0)
		host.dropped.Store(0)
		if got, _ := formulate(t, r, routed(c.id, "")); got != c.want || host.committed.Load() != c.committed || host.dropped.Load() != c.dropped {
			t.Errorf("%s: %s, %d committed, %d dropped", c.id, got, host.committed.Load(), host.dropped.Load())
		}
	}
	host.refuseCommit.Store(true)
	if got, envelope := formulate(t, r, routed("e", "")); got != "policy:0/conflicting_source" || envelope != "" {
		t.Errorf("a commit that is refused: %s, %s", got, envelope)
	}
}

// TestFormulateErrors: a context that is none, a seed that fails, a runtime that is closed.
func TestFormulateErrors(t *testing.T) {
	r := policyRuntime(t, runtime.Config{}, policyGuest(t, "policy", echo("p")))
	res := r.NewFormulation()
	var bad *hint.MalformedError
	if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: []byte(`{"request_id":"r"}`)}, res); !errors.As(err, &bad) || len(res.Envelope) != 0 || len(res.Policies) != 0 {
		t.Errorf("%v", err)
	}
	seed := errors.New("the index is full")
	called := 0
	req := &runtime.FormulateRequest{Body: routed("a", `"events":[{"type":"cleared","worker_id":7}]`), Seed: func(c *hint.Context) error {
		called += c.Events()
		return seed
	}}
	if err := r.Formulate(context.Background(), req, res); !errors.Is(err, seed) || called != 1 {
		t.Errorf("%v, %d events", err, called)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Formulate(ctx, &runtime.FormulateRequest{Body: routed("a", `"request_hint":{"actions":[]}`)}, res); err != nil || told(res) != "policy:0/handler_unavailable" || ids(t, string(res.Envelope)) != "" {
		t.Errorf("a caller that is gone: %v, %s, %s", err, told(res), res.Envelope)
	}
}

func TestFormulateAllocs(t *testing.T) {
	r := policyRuntime(t, runtime.Config{}, policyGuest(t, "first", echo("1"), retain("", `{"priority":9},{"start":64,"priority":3,"duration":1.5}`)), policyGuest(t, "second", fetchAction("2")))
	res := r.NewFormulation()
	req := &runtime.FormulateRequest{Body: routed("a", `"block_hashes":[1,2,3],"request_hint":{"actions":[`+echo("r")+`]},"candidates":[{"worker_id":"w","capabilities":["a"]}]`)}
	if n := testing.AllocsPerRun(200, func() {
		if err := r.Formulate(context.Background(), req, res); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := ids(t, string(res.Envelope)); got != "r 1 first-1 2" {
		t.Error(got)
	}
}

// TestFormulateContext: a host function sees the routing context of the call it serves,
// and none in a handler's.
func TestFormulateContext(t *testing.T) {
	var tenant string
	var seen int
	host := &effects{look: func(c *runtime.Call) {
		if f := c.Context(); f != nil {
			tenant = string(f.Text(abi.OffContextFrameTenant))
			seen++
		}
	}}
	r := policyRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, policyGuest(t, "policy", echo("p")), scriptedGuest(t, '0'))
	formulate(t, r, routed("e", `"tenant":"t7"`))
	if tenant != "t7" || seen != 1 {
		t.Errorf("%q, seen %d times", tenant, seen)
	}
	if err := r.Dispatch(&runtime.Request{Body: envelope("e")}, r.NewResponse()); err != nil || seen != 1 {
		t.Errorf("%v, seen %d times", err, seen)
	}
}
