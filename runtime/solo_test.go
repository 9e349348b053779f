package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

func newSolo(t *testing.T, host *effects, spec runtime.GuestSpec) *runtime.Solo {
	t.Helper()
	s, err := runtime.NewSolo(context.Background(), runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{host}}, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func frameOf(t *testing.T, body []byte) []byte {
	t.Helper()
	var f hint.Frame
	if err := f.Decode(abi.FormatJSON, body, hint.Limits{}); err != nil {
		t.Fatal(err)
	}
	f.Finish(hint.Identity{RequestID: "r1"})
	return f.Bytes()
}

// TestSoloCall: a call by itself is judged as a dispatch judges it, and tells more.
func TestSoloCall(t *testing.T) {
	host := &effects{}
	spec := scriptedGuest(t, '0')
	s := newSolo(t, host, spec)
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, spec)
	res := r.NewResponse()
	for _, letter := range strings.Split("a d r u h b i o k e f g p x t l w v", " ") {
		body := envelope("a " + letter)
		if err := r.Dispatch(&runtime.Request{Body: body, Identity: hint.Identity{RequestID: "r1"}}, res); err != nil {
			t.Fatal(err)
		}
		want := res.Results[1]
		got, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: frameOf(t, body), Position: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != want.Status || got.Reason != want.Reason || got.Detail != string(want.Detail) || got.Fuel != want.Fuel {
			t.Errorf("%s: got %s/%s %q with %d fuel, want %s/%s %q with %d", letter, got.Status, got.Reason, got.Detail, got.Fuel, want.Status, want.Reason, want.Detail, want.Fuel)
		}
		if broken := strings.Contains("u h b i o k v", letter); (got.Broken != nil) != broken {
			t.Errorf("%s: broken %v", letter, got.Broken)
		}
		if trapped := strings.Contains("g p t l", letter); (got.Trap != nil) != trapped || (got.Memory == 0) != trapped {
			t.Errorf("%s: trap %v, %d bytes of memory", letter, got.Trap, got.Memory)
		}
		if (letter == "w") != (got.Body != nil) || got.Spoilt != -1 {
			t.Errorf("%s: a body of %d bytes, spoilt %d", letter, len(got.Body), got.Spoilt)
		}
	}
	if m, d := host.committed.Load(), host.dropped.Load(); m != 1 || d != 2 {
		t.Errorf("%d effects committed, %d dropped; want e, and f and g", m, d)
	}
	// y: the native side fails for good. The next call has another instance.
	var fatal *runtime.FatalError
	if _, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: frameOf(t, envelope("y"))}); !errors.As(err, &fatal) {
		t.Errorf("got %v, want a *FatalError", err)
	}
	if got, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: frameOf(t, envelope("a")), Dirty: true}); err != nil || got.Status != abi.StatusAccepted {
		t.Errorf("%v, %+v", err, got)
	}
}

// TestSoloParses: what a parser makes is checked as in a dispatch.
func TestSoloParses(t *testing.T) {
	s := newSolo(t, &effects{}, rawGuest(t))
	call := func(raw []byte) runtime.SoloResult {
		t.Helper()
		frame := abi.FinishParse(abi.BeginParse(nil, abi.FormatJSON, raw, "r1", "frame"), abi.Node{})
		res, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleParser, Frame: frame})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := call(frameOf(t, envelope("a b"))); res.Status != abi.StatusAccepted || abi.CheckEnvelope(res.Body) != nil || res.Broken != nil {
		t.Errorf("%+v", res)
	}
	if res := call([]byte("no frame")); res.Broken == nil || res.Reason != abi.ReasonHandlerError || res.Body != nil {
		t.Errorf("%+v", res)
	}
}

// TestSoloFeatures: of what a guest chooses, what the host offered counts.
func TestSoloFeatures(t *testing.T) {
	if start, err := newSolo(t, &effects{}, rawGuest(t)).Fresh(context.Background()); err != nil || start.Features != abi.FeatureRawPayload {
		t.Errorf("%v, %+v", err, start)
	}
}

func TestSoloArena(t *testing.T) {
	s := newSolo(t, &effects{}, scriptedGuest(t, '0'))
	start, err := s.Fresh(context.Background())
	if err != nil || start.Fuel == 0 || start.Memory != 2*65536 {
		t.Errorf("%v, %+v", err, start)
	}
	for _, c := range []struct {
		size uint32
		want abi.Span
	}{{4096, abi.Span{Off: 1024, Len: 64512}}, {64512, abi.Span{Off: 1024, Len: 64512}}, {64513, abi.Span{}}} {
		if ret, got, err := s.Arena(context.Background(), c.size); err != nil || got != c.want || (ret == 0) != (got == abi.Span{}) {
			t.Errorf("%d: %v, %v, returned %#x", c.size, err, got, ret)
		}
	}
	big := frameOf(t, sized(70_000))
	if res, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: big}); err != nil || !res.NoRoom || res.Reason != abi.ReasonLimitExceeded {
		t.Errorf("%v, %+v", err, res)
	}
}

// TestCheck names every rule that comes before compilation, and compiles nothing.
func TestCheck(t *testing.T) {
	good := scriptedGuest(t, '0')
	cfg := runtime.Config{Hosts: []runtime.HostModule{&effects{}}}
	if info, err := runtime.Check(cfg, good); err != nil || info.Manifest.Name != "scripted" {
		t.Errorf("%v", err)
	}
	rules := func(err error) (rules []string) {
		var refused *runtime.LoadError
		if errors.As(err, &refused) {
			for _, p := range refused.Problems {
				rules = append(rules, p.Rule)
			}
		}
		return rules
	}
	ungranted := good
	ungranted.Grants, ungranted.SHA256, ungranted.Name = nil, "00", "No Name"
	info, err := runtime.Check(cfg, ungranted)
	if got := rules(err); info == nil || !slices.Equal(got, []string{"spec/name", "spec/sha256", "capability/not-granted"}) {
		t.Errorf("%v: %v", info, got)
	}
	small := good
	small.Limits.Memory = 65536
	if _, err := runtime.Check(cfg, small); !slices.Equal(rules(err), []string{"limit/memory"}) {
		t.Errorf("%v", err)
	}
	// A body that does not validate is found beside other rules: i64.or becomes i32.add.
	bad := slices.Clone(withManifest(t, raw, rawManifest))
	bad[strings.LastIndex(string(bad), "\x84\x0b")] = 0x6a
	if _, err := runtime.Admit("bad", bad); !slices.Equal(rules(err), []string{"wasm/operand-type"}) {
		t.Errorf("%v", err)
	}
	if _, err := runtime.Check(cfg, runtime.GuestSpec{Name: "bad", Module: bad, SHA256: "00"}); !slices.Equal(rules(err), []string{"spec/sha256", "wasm/operand-type"}) {
		t.Errorf("%v", err)
	}
	if _, err := runtime.Check(cfg, runtime.GuestSpec{Name: "none"}); !slices.Equal(rules(err), []string{"wasm/magic"}) {
		t.Errorf("%v", err)
	}
}
