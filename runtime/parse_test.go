package runtime_test

import (
	_ "embed"
	"errors"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

//go:embed testdata/raw.wasm
var raw []byte

const rawManifest = `{"name":"raw","version":"1.0.0","abi":1,"roles":["handler","parser"],"action_types":[{"type":"demo.raw"}],"dialects":["frame"]}`

func rawGuest(t testing.TB) runtime.GuestSpec {
	return runtime.GuestSpec{Name: "raw", Module: withManifest(t, raw, rawManifest), Limits: runtime.Limits{Instances: 1}}
}

func TestRawPayloadFeature(t *testing.T) {
	r := newRuntime(t, runtime.Config{}, rawGuest(t))
	res := r.NewResponse()
	body := []byte(`{"actions":[{"action_type":"demo.raw","payload":{ "b" : 1.50, "a":[ 18446744073709551615 ] }},{"action_type":"other","payload":{}},{"action_type":"demo.raw","payload":{}}]}`)
	if err := r.Dispatch(&runtime.Request{Body: body}, res); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{0: `{ "b" : 1.50, "a":[ 18446744073709551615 ] }`, 2: `{}`} {
		if got := string(res.Results[i].Detail); got != want || res.Results[i].Status != abi.StatusAccepted {
			t.Errorf("action %d: %s, detail %q, want %q", i, res.Results[i].Status, got, want)
		}
	}
}

// TestParser feeds the parser documents that it answers as they are, so that its
// answer is an envelope frame or hostile bytes as the test chooses.
func TestParser(t *testing.T) {
	r := newRuntime(t, runtime.Config{}, rawGuest(t))
	res := r.NewResponse()
	var f hint.Frame
	if err := f.Decode(abi.FormatJSON, []byte(`{"message_id":"m","actions":[{"action_id":"a","action_type":"demo.raw","payload":{"n":1}},{"action_type":"other"}]}`), hint.Limits{}); err != nil {
		t.Fatal(err)
	}
	f.Finish(hint.Identity{})
	good := f.Bytes()
	req := runtime.Request{Body: good, Format: abi.FormatJSON, Dialect: "frame", Forward: true}
	if err := r.Dispatch(&req, res); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(res.Results); got != "a=ACCEPTED =REJECTED/unsupported_action_type" {
		t.Error(got)
	}
	if want := `{"protocol_version":"","message_id":"m","actions":[{"action_id":"a","action_type":"demo.raw","action_version":"1.0","payload":{"n":1}},{"action_id":"","action_type":"other","action_version":"1.0","payload":{}}]}`; string(res.Forward) != want {
		t.Errorf("forward %s\nwant    %s", res.Forward, want)
	}
	var refused *runtime.ParseError
	for cut := 0; cut < len(good); cut += 3 {
		req.Body = good[:cut]
		if err := r.Dispatch(&req, res); !errors.As(err, &refused) || refused.Reason != abi.ReasonHandlerError {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	req.Dialect = "unheard-of"
	if err := r.Dispatch(&req, res); !errors.Is(err, runtime.ErrUnknownDialect) {
		t.Error(err)
	}
}
