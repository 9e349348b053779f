package runtime_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Each test here is a mistake that was once made.

//go:embed testdata/arena.wasm
var arena []byte

func sized(n int) []byte {
	return []byte(`{"actions":[{"action_id":"a","action_type":"demo.echo","payload":{"text":"` + strings.Repeat("x", n) + `"}},{"action_id":"b","action_type":"demo.echo","payload":{}}]}`)
}

// TestArenaHasNoEffects: what kvrt_arena left behind is neither committed by the next
// call nor lost, and a failure of the native side in it is passed on.
func TestArenaHasNoEffects(t *testing.T) {
	host := &effects{}
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, runtime.GuestSpec{Name: "arena",
		Module: withManifest(t, arena, scriptedManifest), Grants: []string{"kvrt_fetch"}, Limits: runtime.Limits{Instances: 1}})
	res := r.NewResponse()
	for _, c := range []struct {
		size int
		want string
	}{{10_000, "a=REJECTED/limit_exceeded b=REJECTED/limit_exceeded"}, {100, "a=ACCEPTED b=ACCEPTED"}, {25_000, "a=REJECTED/handler_trap b=REJECTED/handler_trap"}, {100, "a=ACCEPTED b=ACCEPTED"}} {
		if err := r.Dispatch(&runtime.Request{Body: sized(c.size)}, res); err != nil {
			t.Fatal(err)
		}
		if got := verdicts(res.Results); got != c.want {
			t.Errorf("%d bytes: %s, want %s", c.size, got, c.want)
		}
	}
	if d, m, x := host.deferred.Load(), host.committed.Load(), host.dropped.Load(); d != 2 || m != 0 || x != 2 {
		t.Errorf("deferred %d, committed %d, dropped %d; kvrt_arena is asked once for an envelope", d, m, x)
	}
	var fatal *runtime.FatalError
	if err := r.Dispatch(&runtime.Request{Body: sized(40_000)}, res); !errors.As(err, &fatal) {
		t.Errorf("got %v, want a *FatalError", err)
	}
}

// TestSwapWakesWaiters: a dispatch that waits for an instance of a guest that is
// replaced meanwhile is answered by the new one.
func TestSwapWakesWaiters(t *testing.T) {
	host := &effects{hold: make(chan struct{})}
	spec := scriptedGuest(t, '0')
	spec.Limits.Instances = 1
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}, Wait: time.Minute}, spec)
	held, waited := make(chan string), make(chan string)
	dispatch := func(words string, to chan string) {
		res := r.NewResponse()
		if err := r.Dispatch(&runtime.Request{Body: envelope(words)}, res); err != nil {
			t.Error(err)
		}
		to <- fmt.Sprintf("%s of generation %d", verdicts(res.Results), res.Results[0].Generation)
	}
	go dispatch("e", held)
	<-host.hold
	go dispatch("d", waited)
	time.Sleep(10 * time.Millisecond) // so that it waits; without it the test proves less, and passes
	next := scriptedGuest(t, '1')
	if err := r.Swap(context.Background(), next); err != nil {
		t.Fatal(err)
	}
	if got := <-waited; got != "d=ACCEPTED of generation 2" {
		t.Error(got)
	}
	host.hold <- struct{}{}
	if got := <-held; got != "e=ACCEPTED of generation 1" {
		t.Error(got)
	}
}

// TestResponseIsEmptyAfterAnError: nothing of the request before can be taken for this one's.
func TestResponseIsEmptyAfterAnError(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	if err := r.Dispatch(&runtime.Request{Body: envelope("a a"), Forward: true}, res); err != nil {
		t.Fatal(err)
	}
	if err := r.Dispatch(&runtime.Request{Body: []byte("{")}, res); err == nil || len(res.Results) != 0 || len(res.Forward) != 0 {
		t.Fatalf("%v, %d results, forward %q", err, len(res.Results), res.Forward)
	}
}

func TestLimitsAreBounded(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}})
	for _, memory := range []uint64{5 << 30, 1 << 48, 1<<64 - 1} {
		spec := scriptedGuest(t, '0')
		spec.Limits.Memory = memory
		var refused *runtime.LoadError
		if err := r.Load(context.Background(), spec); !errors.As(err, &refused) || refused.Problems[0].Rule != "limit/memory" {
			t.Errorf("%d bytes of memory: %v", memory, err)
		}
	}
	for _, parameters := range []string{"5", "[1]", `"x"`} {
		spec := scriptedGuest(t, '0')
		spec.Parameters = []byte(parameters)
		var refused *runtime.LoadError
		if err := r.Load(context.Background(), spec); !errors.As(err, &refused) || refused.Problems[0].Rule != "parameters" {
			t.Errorf("parameters %s: %v", parameters, err)
		}
	}
}

// longRefusal refuses with a detail that is cut inside a character if it is cut by bytes.
type longRefusal struct{ effects }

func (h *longRefusal) Functions() []runtime.HostFunction {
	return runtime.Functions("kvrt_fetch", map[string]func(*runtime.Call, []byte, []uint64){"submit": func(c *runtime.Call, _ []byte, stack []uint64) {
		stack[0] = uint64(uint32(c.Refuse(abi.ReasonSourceNotAllowed, "a"+strings.Repeat("é", 300))))
	}})
}

func TestDetailsAreCutBetweenCharacters(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&longRefusal{}}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	if err := r.Dispatch(&runtime.Request{Body: envelope("x")}, res); err != nil {
		t.Fatal(err)
	}
	if d := res.Results[0].Detail; !utf8.Valid(d) || len(d) > abi.MaxDetail || len(d) < abi.MaxDetail-4 {
		t.Errorf("a detail of %d bytes: %q", len(d), d)
	}
}

// TestPanicInParse: an effect that panics while a parser's answer is committed does not
// keep the instance.
func TestPanicInParse(t *testing.T) {
	host := &effects{}
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}}, rawGuest(t))
	res := r.NewResponse()
	func() {
		defer func() { _ = recover() }()
		_ = r.Dispatch(&runtime.Request{Body: []byte("{"), Dialect: "frame", Format: 99}, res)
	}()
	var f hint.Frame
	if err := f.Decode(abi.FormatJSON, []byte(`{"actions":[]}`), hint.Limits{}); err != nil {
		t.Fatal(err)
	}
	f.Finish(hint.Identity{})
	if err := r.Dispatch(&runtime.Request{Body: f.Bytes(), Dialect: "frame", Format: abi.FormatJSON}, res); err != nil {
		t.Fatal(err)
	}
}

// TestUnmetered: without counters nothing is charged.
func TestUnmetered(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}, Unmetered: true}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	if err := r.Dispatch(&runtime.Request{Body: envelope("e a")}, res); err != nil || verdicts(res.Results) != "e=ACCEPTED a=ACCEPTED" || res.Results[0].Fuel != 0 {
		t.Fatalf("%v %s fuel %d", err, verdicts(res.Results), res.Results[0].Fuel)
	}
}

// TestFuelIsExact: the same call costs the same, and one instruction less is too little.
func TestFuelIsExact(t *testing.T) {
	fuel := func(limit uint64) (string, uint64) {
		spec := scriptedGuest(t, '0')
		spec.Limits.Fuel = limit
		r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, spec)
		res := r.NewResponse()
		if err := r.Dispatch(&runtime.Request{Body: envelope("e")}, res); err != nil {
			t.Fatal(err)
		}
		return verdicts(res.Results), res.Results[0].Fuel
	}
	verdict, n := fuel(0)
	if verdict != "e=ACCEPTED" || n < 200 || n > 400 { // submit alone costs 200
		t.Fatalf("%s with %d fuel", verdict, n)
	}
	if verdict, again := fuel(n); verdict != "e=ACCEPTED" || again != n {
		t.Errorf("%s with %d fuel, the first time %d", verdict, again, n)
	}
	if verdict, _ := fuel(n - 1); verdict != "e=REJECTED/handler_out_of_fuel" {
		t.Errorf("%s with one instruction less", verdict)
	}
}

// TestMadeUpTypesDoNotMuteGuests: a sender that uses up the set behind "warn once" does
// not silence the guests' own warnings.
func TestMadeUpTypesDoNotMuteGuests(t *testing.T) {
	var log strings.Builder
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&warner{}}, Log: slog.New(slog.NewTextHandler(&log, nil))}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	for i := range 1100 {
		if err := r.Dispatch(&runtime.Request{Body: envelope(fmt.Sprintf("made.up.%d:n", i))}, res); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := r.Dispatch(&runtime.Request{Body: envelope("e")}, res); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "from the guest"); n != 1 {
		t.Errorf("the guest's warning was written %d times", n)
	}
	if n := strings.Count(log.String(), "hint rejected"); n == 0 || n > 1024 {
		t.Errorf("%d warnings of rejections", n)
	}
}

// warner writes a warning in the guest's name.
type warner struct{ effects }

func (h *warner) Functions() []runtime.HostFunction {
	return runtime.Functions("kvrt_fetch", map[string]func(*runtime.Call, []byte, []uint64){"submit": func(c *runtime.Call, _ []byte, stack []uint64) {
		c.Log(abi.LevelWarn, []byte("from the guest"))
		stack[0] = 0
	}})
}

// TestIdentityIsChecked: what cannot stand in a frame is an error before anything runs.
func TestIdentityIsChecked(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	for _, id := range []hint.Identity{{RequestID: "\xff"}, {Engine: "\xc3"}, {Leg: 9}, {RequestID: strings.Repeat("r", 1000)}} {
		if err := r.Dispatch(&runtime.Request{Body: envelope("e"), Identity: id}, res); !errors.Is(err, runtime.ErrIdentity) {
			t.Errorf("%+v: %v", id, err)
		}
	}
}

// TestDialectsHaveTheSameLimits: the bound of a body holds for foreign documents too.
func TestDialectsHaveTheSameLimits(t *testing.T) {
	r := newRuntime(t, runtime.Config{Limits: hint.Limits{BodyBytes: 100}}, rawGuest(t))
	var malformed *hint.MalformedError
	if err := r.Dispatch(&runtime.Request{Body: make([]byte, 101), Dialect: "frame"}, r.NewResponse()); !errors.As(err, &malformed) {
		t.Errorf("got %v", err)
	}
}
