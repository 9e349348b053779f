package runtime_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

//go:embed testdata/broken.wasm
var broken []byte

// TestCloseLate: a runtime without calls in flight is closed also when there is no time left.
func TestCloseLate(t *testing.T) {
	late, cancel := context.WithCancel(context.Background())
	cancel()
	for range 16 {
		if err := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0')).Close(late); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const brokenManifest = `{"name":"broken","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.broken"}]}`

// refusedSpecs are guests that must not be loaded, each with the rule it breaks.
func refusedSpecs(t testing.TB) map[string]runtime.GuestSpec {
	good := scriptedGuest(t, '9')
	with := func(change func(*runtime.GuestSpec)) runtime.GuestSpec {
		s := good
		change(&s)
		return s
	}
	named := func(name string) runtime.GuestSpec {
		return runtime.GuestSpec{Name: name, Module: withManifest(t, broken, brokenManifest), Limits: runtime.Limits{Instances: 1}}
	}
	return map[string]runtime.GuestSpec{
		"wasm/magic":        with(func(s *runtime.GuestSpec) { s.Module = []byte("not a module at all") }),
		"wasm/section-size": with(func(s *runtime.GuestSpec) { s.Module = s.Module[:len(s.Module)/2] }),
		"wasm/component":    with(func(s *runtime.GuestSpec) { s.Module = []byte("\x00asm\x0d\x00\x01\x00") }),
		"abi/manifest":      with(func(s *runtime.GuestSpec) { s.Module = scripted }),
		"abi/role": with(func(s *runtime.GuestSpec) {
			s.Module = withManifest(t, scripted, strings.Replace(scriptedManifest, `["handler"]`, `["handler","policy"]`, 1))
		}),
		"capability/undeclared": with(func(s *runtime.GuestSpec) {
			s.Module = withManifest(t, scripted, strings.Replace(scriptedManifest, `["kvrt_fetch"]`, `[]`, 1))
		}),
		"capability/not-granted": with(func(s *runtime.GuestSpec) { s.Grants = nil }),
		"spec/sha256":            with(func(s *runtime.GuestSpec) { s.SHA256 = strings.Repeat("0", 64) }),
		"limit/memory":           with(func(s *runtime.GuestSpec) { s.Limits.Memory = 64 << 10 }),
		"parameters":             with(func(s *runtime.GuestSpec) { s.Parameters = []byte(`{"a":`) }),
		"guest/init":             named("init-refuses"),
		"guest/init ":            named("traps-at-init"),
		"guest/smoke":            named("smoke-traps"),
		"guest/smoke ":           named("out-of-bounds"),
		"guest/smoke  ":          named("loops"),
	}
}

func TestRefusedGuestChangesNothing(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	for rule, spec := range refusedSpecs(t) {
		err := r.Apply(context.Background(), []runtime.GuestSpec{spec})
		var refused *runtime.LoadError
		if !errors.As(err, &refused) {
			t.Errorf("%s: got %v", rule, err)
			continue
		}
		found := false
		for _, p := range refused.Problems {
			found = found || p.Rule == strings.TrimSpace(rule)
		}
		if !found {
			t.Errorf("want the rule %s, got %v", rule, refused)
		}
		if r.Generation() != 1 {
			t.Fatalf("%s: generation %d", rule, r.Generation())
		}
		if err := r.Dispatch(&runtime.Request{Body: envelope("d")}, res); err != nil || string(res.Results[0].Detail) != "version0" {
			t.Fatalf("%s: %v %s", rule, err, res.Results[0].Detail)
		}
	}
}

func TestRoutesAreUnique(t *testing.T) {
	twin := scriptedGuest(t, '1')
	twin.Name = "twin"
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	var refused *runtime.LoadError
	if err := r.Load(context.Background(), twin); !errors.As(err, &refused) || refused.Problems[0].Rule != "route/action-type" {
		t.Fatalf("two handlers for one type: %v", err)
	}
	if err := r.Load(context.Background(), scriptedGuest(t, '1')); !errors.As(err, &refused) || refused.Problems[0].Rule != "spec/name" {
		t.Fatalf("two guests of one name: %v", err)
	}
}

func TestSwapAndRollback(t *testing.T) {
	ctx := context.Background()
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	says := func(want string) {
		t.Helper()
		if err := r.Dispatch(&runtime.Request{Body: envelope("d")}, res); err != nil || string(res.Results[0].Detail) != want || res.Results[0].Generation != r.Generation() {
			t.Fatalf("%v, detail %q of generation %d, want %q of %d", err, res.Results[0].Detail, res.Results[0].Generation, want, r.Generation())
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Rollback(ctx, "scripted"); !errors.Is(err, runtime.ErrNoHistory) {
		t.Fatal(err)
	}
	do(r.Swap(ctx, scriptedGuest(t, '1')))
	says("version1")
	do(r.Swap(ctx, scriptedGuest(t, '2')))
	says("version2")
	if err := r.Swap(ctx, refusedSpecs(t)["wasm/section-size"]); err == nil {
		t.Fatal("a truncated module was swapped in")
	}
	do(r.Rollback(ctx, "scripted"))
	says("version1")
	do(r.Rollback(ctx, "scripted"))
	says("version0")
	if err := r.Rollback(ctx, "scripted"); !errors.Is(err, runtime.ErrNoHistory) {
		t.Fatal(err)
	}
	if err := r.Swap(ctx, runtime.GuestSpec{Name: "nobody"}); !errors.Is(err, runtime.ErrUnknownGuest) {
		t.Fatal(err)
	}
	before := r.Generation()
	do(r.Apply(ctx, r.Specs()))
	if r.Generation() != before {
		t.Fatalf("applying what is loaded made generation %d of %d", r.Generation(), before)
	}
	do(r.Unload(ctx, "scripted"))
	do(r.Dispatch(&runtime.Request{Body: envelope("d")}, res))
	if got := verdicts(res.Results); got != "d=REJECTED/unsupported_action_type" {
		t.Fatal(got)
	}
}

// TestSwapUnderLoad swaps 200 times while every core dispatches, a third of the
// replacements broken. No hint is lost or doubled, and each result names the
// generation that answered it.
func TestSwapUnderLoad(t *testing.T) {
	ctx := context.Background()
	host := &effects{}
	r := newRuntime(t, runtime.Config{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{host}, Wait: 10 * time.Second}, scriptedGuest(t, '0'))
	var versions sync.Map // generation -> version
	versions.Store(uint64(1), byte('0'))

	var stop atomic.Bool
	var sent, accepted atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			res, req := r.NewResponse(), runtime.Request{Body: envelope("d e nobody:n d"), Forward: true}
			for !stop.Load() {
				if err := r.Dispatch(&req, res); err != nil {
					t.Error(err)
					return
				}
				sent.Add(1)
				if got := verdicts(res.Results); got != "d=ACCEPTED e=ACCEPTED n=REJECTED/unsupported_action_type d=ACCEPTED" {
					t.Error(got)
					return
				}
				accepted.Add(1)
				for _, i := range []int{0, 3} {
					for { // the swapper stores the version just after the swap
						if v, ok := versions.Load(res.Results[i].Generation); ok {
							if want := fmt.Sprintf("version%c", v); string(res.Results[i].Detail) != want {
								t.Errorf("generation %d answered %s, want %s", res.Results[i].Generation, res.Results[i].Detail, want)
							}
							break
						}
					}
				}
			}
		}()
	}
	bad := refusedSpecs(t)
	rules := make([]string, 0, len(bad))
	for rule := range bad {
		rules = append(rules, rule)
	}
	for i := range 200 {
		before := r.Generation()
		if i%3 == 2 {
			spec := bad[rules[i%len(rules)]]
			spec.Name = "scripted"
			if rules[i%len(rules)][0] == 'g' {
				spec = bad[rules[i%len(rules)]] // these break by their name
				if err := r.Load(ctx, spec); err == nil {
					t.Fatalf("broken guest %s was loaded", spec.Name)
				}
			} else if err := r.Swap(ctx, spec); err == nil {
				t.Fatalf("broken guest (%s) was swapped in", rules[i%len(rules)])
			}
			if r.Generation() != before {
				t.Fatal("a refused guest changed the generation")
			}
			continue
		}
		version := byte('0' + i%10)
		if err := r.Swap(ctx, scriptedGuest(t, version)); err != nil {
			t.Fatal(err)
		}
		if r.Generation() != before { // an equal module is no change
			versions.Store(r.Generation(), version)
		}
	}
	stop.Store(true)
	wg.Wait()
	if sent.Load() != accepted.Load() || host.committed.Load() != accepted.Load() || host.dropped.Load() != 0 {
		t.Fatalf("sent %d, answered %d, committed %d, dropped %d", sent.Load(), accepted.Load(), host.committed.Load(), host.dropped.Load())
	}
	if sent.Load() < 200 {
		t.Fatalf("only %d dispatches ran beside 200 swaps", sent.Load())
	}
	var st stats
	r.Observe(&st)
	if st.runtime.Generation != r.Generation() || len(st.guests) != 1 {
		t.Fatalf("observed %+v", st.runtime)
	}
}

type stats struct {
	runtime runtime.RuntimeStats
	guests  []runtime.GuestStats
}

func (s *stats) Runtime(r runtime.RuntimeStats) { s.runtime = r }
func (s *stats) Guest(g runtime.GuestStats)     { s.guests = append(s.guests, g) }

func TestStatsCount(t *testing.T) {
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{&effects{}}}, scriptedGuest(t, '0'))
	res := r.NewResponse()
	for range 10 {
		if err := r.Dispatch(&runtime.Request{Body: envelope("a r t nobody:n")}, res); err != nil {
			t.Fatal(err)
		}
	}
	_ = r.Dispatch(&runtime.Request{Body: []byte("[]")}, res)
	var st stats
	deadline := time.Now().Add(10 * time.Second)
	for { // instances that trapped are replaced in the background
		st = stats{}
		if r.Observe(&st); st.guests[0].Vacant == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	g := st.guests[0]
	var observed uint64
	for _, n := range g.Durations.Buckets {
		observed += n
	}
	if g.Calls != 30 || g.Accepted != 10 || g.Rejected[abi.ReasonInvalidPayload] != 10 || g.Rejected[abi.ReasonHandlerTrap] != 10 || g.Traps[runtime.TrapGuest] != 10 || observed != 30 || g.Vacant != 0 {
		t.Errorf("guest stats %+v", g)
	}
	if s := st.runtime; s.Dispatches != 11 || s.Malformed != 1 || s.Unrouted[abi.ReasonUnsupportedActionType] != 10 || s.Guests != 1 {
		t.Errorf("runtime stats %+v", s)
	}
}
