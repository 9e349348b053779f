package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// A host function can tell which action it is called for.
func TestCallNamesItsAction(t *testing.T) {
	var seen []string
	host := &effects{look: func(c *runtime.Call) {
		message, index := c.Action()
		seen = append(seen, fmt.Sprint(string(message), index))
	}}
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	for _, words := range []string{"nobody:z r x", "x x"} {
		if err := r.Dispatch(&runtime.Request{Body: envelope(words)}, res); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"m2", "m0", "m1"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	if message, index := runtime.NewCall(runtime.CallConfig{}).Action(); message != nil || index != -1 {
		t.Errorf("%q %d for a call that judges none", message, index)
	}
}

func TestDispatchVerdicts(t *testing.T) {
	host := &effects{}
	spec := scriptedGuest(t, '0')
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, spec)
	res := r.NewResponse()
	for _, c := range []struct {
		name, in, want string
		detail         string // of the last action
	}{
		{"accept", "a", "a=ACCEPTED", ""},
		{"order", "a r nobody:z d a", "a=ACCEPTED r=REJECTED/invalid_payload z=REJECTED/unsupported_action_type d=ACCEPTED a=ACCEPTED", ""},
		{"trap rejects its own action only", "a t a", "a=ACCEPTED t=REJECTED/handler_trap a=ACCEPTED", ""},
		{"every instance trapped", "t t t t t a", "t=REJECTED/handler_trap t=REJECTED/handler_trap t=REJECTED/handler_trap t=REJECTED/handler_trap t=REJECTED/handler_trap a=ACCEPTED", ""},
		{"endless loop", "l a", "l=REJECTED/handler_out_of_fuel a=ACCEPTED", ""},
		{"unknown reason", "u", "u=REJECTED/handler_error", "the guest returned what is neither 0, a reason of its own, nor the place of an answer"},
		{"host's own reason", "h", "h=REJECTED/handler_error", "the guest returned what is neither 0, a reason of its own, nor the place of an answer"},
		{"detail", "d", "d=ACCEPTED", "version0"},
		{"out of bounds", "b", "b=REJECTED/handler_error", "an answer of 40 bytes at 131056: it is outside 131072 bytes of memory, or over the frame of 200 bytes at 1024"},
		{"at 2^31", "i", "i=REJECTED/handler_error", "an answer of 4294967295 bytes: limits.output_bytes allows 4194304"},
		{"over the frame", "o", "o=REJECTED/handler_error", "an answer of 64 bytes at 1024: it is outside 131072 bytes of memory, or over the frame of 200 bytes at 1024"},
		{"short", "k", "k=REJECTED/handler_error", "the guest returned what is neither 0, a reason of its own, nor the place of an answer"},
		{"host function panics", "p a", "p=REJECTED/handler_error a=ACCEPTED", ""},
		{"host function refuses", "x", "x=REJECTED/source_not_allowed", "that source is not allowed"},
		{"rewritten under another id", "v", "v=REJECTED/handler_error", "the rewritten action has another id or type: a handler may change version and payload"},
		{"two types, one guest", "a demo.other:r a", "a=ACCEPTED r=REJECTED/invalid_payload a=ACCEPTED", ""},
		{"none", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := r.Dispatch(&runtime.Request{Body: envelope(c.in)}, res); err != nil {
				t.Fatal(err)
			}
			if got := verdicts(res.Results); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			for i, x := range res.Results {
				if x.Index != i || x.Generation != 1 || (x.Guest == "") != (x.Reason == abi.ReasonUnsupportedActionType) {
					t.Errorf("result %d: index %d, generation %d, guest %q", i, x.Index, x.Generation, x.Guest)
				}
			}
			if c.detail != "" && string(res.Results[len(res.Results)-1].Detail) != c.detail {
				t.Errorf("detail %q, want %q", res.Results[len(res.Results)-1].Detail, c.detail)
			}
		})
	}
}

func TestEffectsCommitLate(t *testing.T) {
	for _, c := range []struct {
		in                           string
		refuse                       bool
		want                         string
		deferred, committed, dropped int64
	}{
		{"e", false, "e=ACCEPTED", 1, 1, 0},
		{"f", false, "f=REJECTED/invalid_payload", 1, 0, 1},
		{"g", false, "g=REJECTED/handler_trap", 1, 0, 1},
		{"e", true, "e=REJECTED/conflicting_source", 1, 0, 1},
		{"e f g e", false, "e=ACCEPTED f=REJECTED/invalid_payload g=REJECTED/handler_trap e=ACCEPTED", 4, 2, 2},
	} {
		host := &effects{}
		host.refuseCommit.Store(c.refuse)
		r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, scriptedGuest(t, '0'))
		res := r.NewResponse()
		if err := r.Dispatch(&runtime.Request{Body: envelope(c.in)}, res); err != nil {
			t.Fatal(err)
		}
		if got := verdicts(res.Results); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
		if d, m, x := host.deferred.Load(), host.committed.Load(), host.dropped.Load(); d != c.deferred || m != c.committed || x != c.dropped {
			t.Errorf("%s: deferred %d committed %d dropped %d, want %d %d %d", c.in, d, m, x, c.deferred, c.committed, c.dropped)
		}
	}
}

func TestMalformedRunsNoHandler(t *testing.T) {
	host := &effects{}
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	body := envelope("e e e")
	for cut := range body {
		err := r.Dispatch(&runtime.Request{Body: body[:cut], Format: abi.FormatJSON}, res)
		var malformed *hint.MalformedError
		if !errors.As(err, &malformed) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	if n := host.deferred.Load(); n != 0 {
		t.Fatalf("%d effects of malformed envelopes", n)
	}
}

func TestFatalFailurePropagates(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	var fatal *runtime.FatalError
	if err := r.Dispatch(&runtime.Request{Body: envelope("a y a")}, res); !errors.As(err, &fatal) || fatal.Guest != "scripted" {
		t.Fatalf("got %v, want a *FatalError of the guest", err)
	}
	if err := r.Dispatch(&runtime.Request{Body: envelope("a")}, res); err != nil {
		t.Fatalf("the next dispatch: %v", err)
	}
}

func TestForward(t *testing.T) {
	for _, c := range []struct {
		in   string
		drop bool
		want string
	}{
		{"a r b:n a", false, `[{"action_id":"a","action_type":"demo.echo","action_version":"1.0","payload":{"n":0}},{"action_id":"n","action_type":"b","action_version":"1.0","payload":{"n":2}},{"action_id":"a","action_type":"demo.echo","action_version":"1.0","payload":{"n":3}}]`},
		{"a r b:n", true, `[{"action_id":"a","action_type":"demo.echo","action_version":"1.0","payload":{"n":0}}]`},
		{"r t", false, `[]`},
		{"a w", false, `[{"action_id":"a","action_type":"demo.echo","action_version":"1.0","payload":{"n":0}},{"action_id":"w","action_type":"demo.echo","action_version":"1.0","payload":{}}]`},
	} {
		r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}, DropUnknown: c.drop}, scriptedGuest(t, '0'))
		res := r.NewResponse()
		if err := r.Dispatch(&runtime.Request{Body: envelope(c.in), Forward: true}, res); err != nil {
			t.Fatal(err)
		}
		want := `{"protocol_version":"0.1","message_id":"m","actions":` + c.want + `}`
		if string(res.Forward) != want {
			t.Errorf("%s\ngot  %s\nwant %s", c.in, res.Forward, want)
		}
	}
}

func TestFrameTooLargeForGuest(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	body := []byte(`{"actions":[{"action_id":"a","action_type":"demo.echo","payload":{"text":"` + strings.Repeat("x", 70_000) + `"}}]}`)
	if err := r.Dispatch(&runtime.Request{Body: body}, res); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(res.Results); got != "a=REJECTED/limit_exceeded" {
		t.Fatal(got)
	}
	if err := r.Dispatch(&runtime.Request{Body: envelope("a")}, res); err != nil || verdicts(res.Results) != "a=ACCEPTED" {
		t.Fatalf("afterwards: %v %s", err, verdicts(res.Results))
	}
}

// TestDispatchAllocatesNothing holds the hot path. With wazero's own deadline on, what
// is allocated is its watchdog's.
func TestDispatchAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		name     string
		deadline time.Duration
		body     string
		max      float64
	}{
		{"one", 0, "a", 0}, {"sixteen", 0, "a a a a a a a a a a a a a a a a", 0}, {"unknown", 0, "no:a a", 0}, {"rejected", 0, "r", 0}, {"detail", 0, "d", 0},
		{"effect", 0, "e", 0}, {"one, engine's deadline on", time.Minute, "a", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRuntime(t, runtime.Config{Engine: wazero.New(wazero.Config{Deadline: c.deadline}), Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
			res := r.NewResponse()
			req := runtime.Request{Body: envelope(c.body), Forward: true}
			if err := r.Dispatch(&req, res); err != nil {
				t.Fatal(err)
			}
			if n := testing.AllocsPerRun(200, func() {
				if err := r.Dispatch(&req, res); err != nil {
					t.Fatal(err)
				}
			}); n > c.max {
				t.Errorf("%v allocations, at most %v", n, c.max)
			}
		})
	}
}

func TestClosed(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := r.Dispatch(&runtime.Request{Body: envelope("a")}, r.NewResponse()); !errors.Is(err, runtime.ErrClosed) {
		t.Fatal(err)
	}
	if err := r.Load(context.Background(), scriptedGuest(t, '1')); !errors.Is(err, runtime.ErrClosed) {
		t.Fatal(err)
	}
}

// TestUnavailable holds the only instance: another dispatch waits once, not once per
// action, and goes on when the instance is free again.
func TestUnavailable(t *testing.T) {
	spec := scriptedGuest(t, '0')
	spec.Limits.Instances = 1
	host := &effects{hold: make(chan struct{})}
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}, Wait: time.Millisecond}, spec)
	ended := make(chan string)
	go func() {
		res := r.NewResponse()
		_ = r.Dispatch(&runtime.Request{Body: envelope("e")}, res)
		ended <- verdicts(res.Results)
	}()
	<-host.hold
	res := r.NewResponse()
	if err := r.Dispatch(&runtime.Request{Body: envelope("a a nobody:n")}, res); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(res.Results); got != "a=REJECTED/handler_unavailable a=REJECTED/handler_unavailable n=REJECTED/unsupported_action_type" {
		t.Error(got)
	}
	var st stats
	if r.Observe(&st); st.guests[0].Unavailable != 1 {
		t.Errorf("%d waits in vain, want 1 for the whole envelope", st.guests[0].Unavailable)
	}
	host.hold <- struct{}{}
	if got := <-ended; got != "e=ACCEPTED" {
		t.Fatal(got)
	}
	if err := r.Dispatch(&runtime.Request{Body: envelope("a")}, res); err != nil || verdicts(res.Results) != "a=ACCEPTED" {
		t.Fatalf("%v %s", err, verdicts(res.Results))
	}
}

// TestPanicOfTheNativeSide: a commit that panics goes through to the caller, and the
// instance is not lost to the pool.
func TestPanicOfTheNativeSide(t *testing.T) {
	host := &effects{}
	host.panicCommit.Store(true)
	spec := scriptedGuest(t, '0')
	spec.Limits.Instances = 1
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}, Wait: 10 * time.Second}, spec)
	res := r.NewResponse()
	func() {
		defer func() {
			if p := recover(); p != "the store is broken" {
				t.Errorf("recovered %v", p)
			}
		}()
		_ = r.Dispatch(&runtime.Request{Body: envelope("e")}, res)
	}()
	host.panicCommit.Store(false)
	if err := r.Dispatch(&runtime.Request{Body: envelope("e")}, res); err != nil || verdicts(res.Results) != "e=ACCEPTED" {
		t.Fatalf("%v %s", err, verdicts(res.Results))
	}
}

// TestDispatchStrip: what a client sent is judged by nobody and not passed on, where the
// operator says so, and what a router made is.
func TestDispatchStrip(t *testing.T) {
	for _, strip := range []bool{true, false} {
		host := &effects{}
		r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}, StripRequestHints: strip}, scriptedGuest(t, '0'))
		res := r.NewResponse()
		for _, client := range []bool{true, false} {
			if err := r.Dispatch(&runtime.Request{Body: envelope("a e nobody:z"), FromClient: client, Forward: true}, res); err != nil {
				t.Fatal(err)
			}
			want, forward := "a=ACCEPTED e=ACCEPTED z=REJECTED/unsupported_action_type", 3
			if strip && client {
				want, forward = "a=REJECTED/stripped e=REJECTED/stripped z=REJECTED/stripped", 0
			}
			e, err := hint.DecodeEnvelope(abi.FormatJSON, res.Forward)
			if got := verdicts(res.Results); got != want || err != nil || len(e.Actions) != forward || e.MessageID != "m" {
				t.Errorf("strip %v, client %v: %s, %s, %v", strip, client, got, res.Forward, err)
			}
		}
		if want := map[bool]int64{true: 1, false: 2}[strip]; host.committed.Load() != want {
			t.Errorf("strip %v: %d effects", strip, host.committed.Load())
		}
		o := &observed{}
		r.Observe(o)
		if want := map[bool]uint64{true: 3}[strip]; o.runtime.Unrouted[abi.ReasonStripped] != want {
			t.Errorf("strip %v: %d counted", strip, o.runtime.Unrouted[abi.ReasonStripped])
		}
	}
}
