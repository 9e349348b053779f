package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// TestPolicyWasm: the guest of these tests is what its text says.
func TestPolicyWasm(t *testing.T) {
	wat2wasm, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed: run make tools")
	}
	out := filepath.Join(t.TempDir(), "policy.wasm")
	if msg, err := exec.Command(wat2wasm, "-o", out, "testdata/policy.wat").CombinedOutput(); err != nil {
		t.Fatalf("%s", msg)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, policyWasm) {
		t.Errorf("%v: policy.wasm is not what wat2wasm makes of policy.wat", err)
	}
}

// requiring is a policy whose manifest requires fields.
func requiring(t testing.TB, name string, fields ...string) runtime.GuestSpec {
	manifest := strings.Replace(policyManifest, `"abi":1`, `"abi":1,"requires":["`+strings.Join(fields, `","`)+`"]`, 1)
	return policySpec(t, name, manifest, actionsFrame(t, echo(name)))
}

// TestPolicyStart: what is wrong with a policy is refused before any request.
func TestPolicyStart(t *testing.T) {
	supply := func(p runtime.Partition, fields ...string) *runtime.PolicyUse {
		return &runtime.PolicyUse{Supplies: []runtime.Supply{{Partition: p, Fields: fields}}}
	}
	with := func(spec runtime.GuestSpec, u *runtime.PolicyUse) runtime.GuestSpec {
		spec.Policy = u
		return spec
	}
	decode := runtime.Partition{WorkerType: "decode"}
	needs := requiring(t, "needs", "session_id", "block_hashes", "selected")
	elsewhere := supply(decode)
	elsewhere.Partition.WorkerType = "prefill"
	params := policyGuest(t, "params")
	params.Parameters = []byte(`[1]`)
	handler := scriptedGuest(t, '0')
	handler.Policy = &runtime.PolicyUse{}
	for _, c := range []struct {
		name, want string
		specs      []runtime.GuestSpec
	}{
		{"two of a name", "spec/name", []runtime.GuestSpec{policyGuest(t, "p"), policyGuest(t, "p", echo("x"))}},
		{"no policy", "spec/policy: scripted: the guest is no policy: its roles are [handler]", []runtime.GuestSpec{handler}},
		{"parameters that are none", "parameters: want a JSON object", []runtime.GuestSpec{params}},
		{"nothing is supplied", "policy/requires: block_hashes, session_id: the policy requires it, and the router of partition worker_type decode does not supply it", []runtime.GuestSpec{with(needs, supply(decode))}},
		{"one thing is not", "policy/requires: session_id: the policy requires it, and the router of every partition does not", []runtime.GuestSpec{with(needs, supply(runtime.Partition{}, "block_hashes"))}},
		{"all is supplied", "", []runtime.GuestSpec{with(needs, supply(decode, "block_hashes", "session_id"))}},
		{"it runs elsewhere", "", []runtime.GuestSpec{with(needs, elsewhere)}},
		{"nobody says", "", []runtime.GuestSpec{needs}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := policyRuntime(t, runtime.Config{})
			err := r.Apply(context.Background(), c.specs)
			var refused *runtime.LoadError
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestPolicyRequires: a request without a field that a policy requires goes on without
// that policy, which is not called.
func TestPolicyRequires(t *testing.T) {
	r := policyRuntime(t, runtime.Config{}, requiring(t, "needs", "session_id"), policyGuest(t, "other", echo("o")))
	res := r.NewFormulation()
	if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: routed("a", "")}, res); err != nil {
		t.Fatal(err)
	}
	p := res.Policies[0]
	if told(res) != "needs:0/not_found other:1" || string(p.Detail) != "the context has no session_id, which the policy requires" || p.Fuel != 0 {
		t.Errorf("%s: %s", told(res), p.Detail)
	}
	if got, _ := formulate(t, r, routed("a", `"session":{"session_id":"s"}`)); got != "needs:1 other:1" {
		t.Error(got)
	}
	o := &observed{}
	r.Observe(o)
	if g := o.guests["needs"]; g.Calls != 1 || g.Skipped != 1 {
		t.Errorf("%d calls, %d skipped", g.Calls, g.Skipped)
	}
}

// TestPolicyPartitions: each partition has its own list, in order; one module may be in
// it twice.
func TestPolicyPartitions(t *testing.T) {
	in := func(name, model, group, typ string) runtime.GuestSpec {
		spec := policyGuest(t, name, echo(name))
		spec.Policy = &runtime.PolicyUse{Partition: runtime.Partition{Model: model, Group: group, WorkerType: typ}}
		return spec
	}
	idle := policyGuest(t, "idle", echo("idle")) // loaded, and chosen nowhere
	idle.Policy = nil
	r := policyRuntime(t, runtime.Config{}, in("all", "", "", ""), idle, in("m", "m", "", ""), in("m-decode", "m", "", "decode"), in("g", "", "g", ""), in("last", "", "", ""))
	for partition, want := range map[string]string{
		``:                                     "all last",
		`"partition":null`:                     "all last",
		`"partition":{"model":"m"}`:            "all m last",
		`"partition":{"model":"M"}`:            "all last",
		`"partition":{"worker_type":"decode"}`: "all last",
		`"partition":{"model":"m","group":"g","worker_type":"decode"}`: "all m m-decode g last",
	} {
		if _, envelope := formulate(t, r, routed("a", partition)); ids(t, envelope) != want {
			t.Errorf("%s: got %s, want %s", partition, ids(t, envelope), want)
		}
	}
}

// observed keeps what an Observer is told.
type observed struct {
	runtime runtime.RuntimeStats
	guests  map[string]runtime.GuestStats
}

func (o *observed) Runtime(s runtime.RuntimeStats) { o.runtime = s }
func (o *observed) Guest(s runtime.GuestStats) {
	if o.guests == nil {
		o.guests = map[string]runtime.GuestStats{}
	}
	o.guests[s.Name] = s
}

func TestPolicyStats(t *testing.T) {
	r := policyRuntime(t, runtime.Config{}, policyGuest(t, "policy", echo("1"), fetchAction("2"), fetchAction("3")))
	for _, id := range []string{"a", "a", "t", "r"} {
		formulate(t, r, routed(id, ""))
	}
	res := r.NewFormulation()
	if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: []byte(`{}`)}, res); err == nil {
		t.Error("no error")
	}
	o := &observed{}
	r.Observe(o)
	if o.runtime.Formulations != 5 || o.runtime.MalformedContexts != 1 || o.runtime.Dispatches != 0 {
		t.Errorf("%+v", o.runtime)
	}
	g := o.guests["policy"]
	if g.Calls != 4 || g.Accepted != 2 || g.Rejected[abi.ReasonHandlerTrap] != 1 || g.Rejected[abi.ReasonInvalidPayload] != 1 || g.Traps[runtime.TrapGuest] != 1 ||
		g.Emitted != 4 || g.Dropped[abi.ReasonSuperseded] != 2 || g.Fuel == 0 || g.Durations.SumNS == 0 {
		t.Errorf("%+v", g)
	}
}

// TestPolicyQuarantine: a policy that traps again and again is not called any more, and a
// good one in its place ends that.
func TestPolicyQuarantine(t *testing.T) {
	spec := policyGuest(t, "policy", echo("p"))
	spec.Limits.Instances = 1
	r := policyRuntime(t, runtime.Config{}, spec, policyGuest(t, "steady", echo("s")))
	res := r.NewFormulation()
	run := func(id string) string {
		if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: routed(id, "")}, res); err != nil {
			t.Fatal(err)
		}
		return told(res)
	}
	for i := 0; run("t") != "policy:0/handler_unavailable steady:1"; i++ {
		if i > 100 {
			t.Fatal("it is called for ever")
		}
	}
	if detail := string(res.Policies[0].Detail); !strings.Contains(detail, "quarantined") {
		t.Error(detail)
	}
	better := policyGuest(t, "policy", echo("q"))
	if err := r.Swap(context.Background(), better); err != nil {
		t.Fatal(err)
	}
	if got := run("a"); got != "policy:1 steady:1" {
		t.Error(got)
	}
}

// TestPolicySwap: under load every request is answered by a whole generation of each
// policy, in order, through swaps, a refused one, and a rollback.
func TestPolicySwap(t *testing.T) {
	version := func(v string) runtime.GuestSpec { return policyGuest(t, "policy", echo("p"+v), echo("p"+v)) }
	r := policyRuntime(t, runtime.Config{}, policyGuest(t, "first", echo("f")), version("0"), policyGuest(t, "last", echo("l")))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			res := r.NewFormulation()
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: routed("a", "")}, res)
				got := ids(t, string(res.Envelope))
				if err != nil || got != "f p0 p0 l" && got != "f p1 p1 l" && got != "f p2 p2 l" {
					t.Errorf("%v: %s: %s", err, told(res), got)
					return
				}
			}
		})
	}
	ctx := context.Background()
	bad := version("3")
	bad.Module = bad.Module[:len(bad.Module)/2]
	for range 5 {
		for _, v := range []string{"1", "2"} {
			if err := r.Swap(ctx, version(v)); err != nil {
				t.Error(err)
			}
			if err := r.Swap(ctx, bad); err == nil {
				t.Error("a broken policy was taken")
			}
		}
		if err := r.Rollback(ctx, "policy"); err != nil {
			t.Error(err)
		}
		if _, envelope := formulate(t, r, routed("a", "")); ids(t, envelope) != "f p1 p1 l" {
			t.Errorf("after a rollback: %s", envelope)
		}
	}
	close(stop)
	wg.Wait()
	if err := r.Unload(ctx, "policy"); err != nil {
		t.Fatal(err)
	}
	if got, envelope := formulate(t, r, routed("a", "")); ids(t, envelope) != "f l" {
		t.Errorf("%s: %s", got, envelope)
	}
	specs := r.Specs()
	specs[0], specs[1] = specs[1], specs[0]
	if err := r.Apply(ctx, specs); err != nil {
		t.Fatal(err)
	}
	if got, envelope := formulate(t, r, routed("a", "")); ids(t, envelope) != "l f" {
		t.Errorf("another order: %s: %s", got, envelope)
	}
	specs[0].Policy = &runtime.PolicyUse{Partition: runtime.Partition{Model: "m"}}
	if err := r.Apply(ctx, specs); err != nil {
		t.Fatal(err)
	}
	if _, envelope := formulate(t, r, routed("a", "")); ids(t, envelope) != "f" {
		t.Errorf("another partition: %s", envelope)
	}
}

// TestPolicyLimits: an answer with too many actions is dropped whole.
func TestPolicyLimits(t *testing.T) {
	many := policyGuest(t, "many", echo("1"), echo("2"), echo("3"))
	many.Limits.Actions = 2
	r := policyRuntime(t, runtime.Config{}, many, policyGuest(t, "good", echo("g")))
	res := r.NewFormulation()
	if err := r.Formulate(context.Background(), &runtime.FormulateRequest{Body: routed("a", "")}, res); err != nil {
		t.Fatal(err)
	}
	if res.Policies[0].Reason != abi.ReasonLimitExceeded || res.Policies[1].Reason != abi.ReasonNone || ids(t, string(res.Envelope)) != "g" {
		t.Errorf("%s: %s", told(res), res.Policies[0].Detail)
	}
}

// TestPolicyReplacedWhileWaiting: a call that waits for an instance of a policy that is
// unloaded meanwhile goes on without it.
func TestPolicyReplacedWhileWaiting(t *testing.T) {
	host := &effects{hold: make(chan struct{})}
	spec := policyGuest(t, "policy", echo("p"))
	spec.Limits.Instances = 1
	r := policyRuntime(t, runtime.Config{Hosts: []runtime.HostModule{host}, Wait: time.Minute}, spec)
	held, waited := make(chan string, 1), make(chan string, 1)
	go func() { held <- first(formulate(t, r, routed("e", ""))) }()
	<-host.hold // the only instance is in its commit
	go func() { waited <- first(formulate(t, r, routed("a", ""))) }()
	if err := r.Unload(context.Background(), "policy"); err != nil {
		t.Fatal(err)
	}
	// Whether it waited by then, or came too late to find the policy, it has an answer.
	if got := <-waited; got != "policy:0/handler_unavailable" && got != "" {
		t.Error(got)
	}
	host.hold <- struct{}{}
	if got := <-held; got != "policy:1" {
		t.Error(got)
	}
}

func first(a, _ string) string { return a }
