package tck_test

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hosts/clock"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

//go:embed testdata/faulty.wasm
var faulty []byte

const faultyManifest = `{"name":"faulty","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.echo"}],"capabilities":["kvrt_clock"]}`

func faultyGuest(t testing.TB, name, manifest string) runtime.GuestSpec {
	t.Helper()
	wasm, err := abi.AppendManifest(faulty, []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.GuestSpec{Name: name, Module: wasm, Grants: []string{"kvrt_clock"}}
}

// TestText holds the committed module to its text.
func TestText(t *testing.T) {
	wat2wasm, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed: run make tools")
	}
	out := filepath.Join(t.TempDir(), "out.wasm")
	if msg, err := exec.Command(wat2wasm, "-o", out, "testdata/faulty.wat").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, faulty) {
		t.Errorf("%v: testdata/faulty.wasm is not what wat2wasm makes of the text beside it", err)
	}
}

// ticking is a clock that differs from call to call, as the real one does and as that of
// the probes must not.
type ticking struct{ n *int64 }

func (ticking) Name() string { return abi.ModuleClock }

func (c ticking) Functions() []runtime.HostFunction {
	tick := func(_ *runtime.Call, _ []byte, stack []uint64) {
		*c.n++
		stack[0] = uint64(*c.n)
	}
	return runtime.Functions(abi.ModuleClock, map[string]func(*runtime.Call, []byte, []uint64){"now": tick, "monotonic": tick})
}

func rules(problems []runtime.Problem) (rules []string) {
	for _, p := range problems {
		if !slices.Contains(rules, p.Rule) {
			rules = append(rules, p.Rule)
		}
	}
	return rules
}

// TestProbes: each mistake is found, and none that is not there.
func TestProbes(t *testing.T) {
	ticks := int64(0)
	moving := kit()
	moving.Hosts = []runtime.HostModule{ticking{&ticks}}
	still := kit()
	still.Hosts = []runtime.HostModule{clock.Module{}}
	for _, c := range []struct {
		name string
		kit  *tck.Kit
		want string // the rules that are broken
		msg  string // what the first problem says
		note string // what a note says
	}{
		{"good", still, "", "", ""},
		{"days", still, "", "", ""},
		{"days", moving, tck.RuleDeterministic, "ACCEPTED, then REJECTED invalid_payload: ", ""},
		{"state", still, tck.RuleStateful, "on a fresh instance and after demo.echo: an empty object the answers differ", ""},
		{"costly", still, "", "", "fuel depends on earlier calls: 0 of "},
		{"kind", still, "", "", "kvrt_handle answered all 10 frames alike, for the same fuel"},
		{"write", still, tck.RuleFrameWritten, "the guest wrote to byte 60 of its frame", ""},
		{"noise", still, tck.RuleArenaUsed, "with noise in the arena", ""},
		{"trap", still, tck.RuleTrap, "unreachable: a role must not trap", ""},
		{"forever", still, tck.RuleFuel, "200000 of fuel do not do for a frame of ", ""},
		{"answer", still, tck.RuleAnswer, "over the frame", ""},
		{"question", still, tck.RuleAnswer, "neither 0, a reason of its own", ""},
		{"yes", still, tck.RuleActionType, "the manifest names it", ""},
		{"unaligned", still, tck.RuleArena, "at 1028: it is not 8-byte aligned", ""},
		{"mean", still, tck.RuleArena, "it is smaller than what was asked for", ""},
		{"xenon", still, tck.RuleArena, "it is outside the memory", ""},
		{"zero", still, tck.RuleArena, "it begins at 0", ""},
		{"early", still, tck.RuleArena, "unreachable: return 0", ""},
		{"busy", still, "", "", "kvrt_arena(32768) takes more than the 200000 of fuel"},
		{"refuse", still, tck.RuleArena, "it hands out nothing", ""},
	} {
		r, err := c.kit.Verify(context.Background(), faultyGuest(t, c.name, faultyManifest), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := strings.Join(rules(r.Problems), " "); got != c.want || r.OK() != (c.want == "") {
			t.Errorf("%s: broken are %q, want %q: %v", c.name, got, c.want, r.Problems)
		} else if c.want != "" && !strings.Contains(r.Problems[0].Msg, c.msg) {
			t.Errorf("%s: %s", c.name, r.Problems[0])
		}
		if c.note != "" && !strings.Contains(strings.Join(r.Notes, "\n"), c.note) {
			t.Errorf("%s: notes %q", c.name, r.Notes)
		} else if c.want == "" && c.note == "" && len(r.Notes) > 0 {
			t.Errorf("%s: notes %q", c.name, r.Notes)
		}
		if r.Start.Fuel == 0 || r.Memory != 65536 || r.Roles[0].Calls == 0 || r.LargestFrame < 16384 && c.want != tck.RuleArena {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// TestStatefulGuestsMay: a guest that says that it keeps state is not called after others.
func TestStatefulGuestsMay(t *testing.T) {
	r, err := kit().Verify(context.Background(), faultyGuest(t, "state", strings.Replace(faultyManifest, "{", `{"stateful":true,`, 1)), nil)
	if err != nil || !r.OK() {
		t.Errorf("%v, %v", err, r.Problems)
	}
}

// TestVerifyRefusals: what admission or the load refuses is all there is to say.
func TestVerifyRefusals(t *testing.T) {
	for _, c := range []struct {
		spec runtime.GuestSpec
		want string
	}{
		{runtime.GuestSpec{Name: "g"}, "wasm/magic"},
		{runtime.GuestSpec{Name: "g", Module: faulty}, "abi/manifest capability/not-granted"},
		{faultyGuest(t, "No", faultyManifest), "spec/name"},
		{faultyGuest(t, "g", strings.Replace(faultyManifest, `"kvrt_clock"`, "", 1)), "capability/undeclared"},
		{faultyGuest(t, "forever", strings.Replace(faultyManifest, `"abi":1`, `"abi":1,"limits":{"memory":1}`, 1)), tck.RuleFuel},
		{faultyGuest(t, "trap", strings.Replace(faultyManifest, "handler", "policy", 1)), "abi/role"},
	} {
		r, err := kit().Verify(context.Background(), c.spec, nil)
		if got := strings.Join(rules(r.Problems), " "); err != nil || got != c.want {
			t.Errorf("%v, broken are %q, want %q", err, got, c.want)
		}
	}
}

// TestVerifyCases: cases are read from a folder, give inputs to the probes and are run.
func TestVerifyCases(t *testing.T) {
	files := fstest.MapFS{
		"a.jsonl":       {Data: []byte(`{"name":"one","payload":{},"results":[{"status":"ACCEPTED"}]}` + "\n" + `{"name":"two","payload":{},"results":[{"status":"REJECTED","reason":"superseded"}]}`)},
		"b.jsonl":       {Data: []byte(`{"name":"one","surprise":1}`)},
		"notes.txt":     {Data: []byte("no cases")},
		"deeper/c.json": {Data: []byte("neither")},
	}
	r, err := kit().Verify(context.Background(), faultyGuest(t, "good", faultyManifest), files)
	if err != nil {
		t.Fatal(err)
	}
	want := `[case/file: b.jsonl: line 1: json: unknown field "surprise" case/failed: a.jsonl: two: json: action 0: got ACCEPTED "" (), want REJECTED "superseded" ` +
		`case/failed: a.jsonl: two: msgpack: action 0: got ACCEPTED "" (), want REJECTED "superseded"] {1 2 4 1}`
	if got := fmt.Sprint(r.Problems, r.Cases); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	without, err := kit().Verify(context.Background(), faultyGuest(t, "good", faultyManifest), nil)
	if err != nil || r.Roles[0].Calls != without.Roles[0].Calls+2 {
		t.Errorf("%v, %d calls with cases, %d without", err, r.Roles[0].Calls, without.Roles[0].Calls)
	}
}

// TestBuiltIn holds the guests that ship with kvrt to the kit, with their cases, and the
// figures of one of the engine's ways to those of the other.
func TestBuiltIn(t *testing.T) {
	for _, name := range policies.Guests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			figures := func(interpreter bool, cases fs.FS) string {
				k := &tck.Kit{Engine: compiled(t)}
				if interpreter {
					k.Engine = wazero.New(wazero.Config{Interpreter: true})
				}
				r, err := k.Verify(context.Background(), embedded(t, name), cases)
				if err != nil || !r.OK() || (r.Cases.Runs == 0) != (cases == nil) {
					t.Fatalf("%v, %v, %+v", err, r.Problems, r.Cases)
				}
				return fmt.Sprintf("%+v %+v %d %d %v", r.Start, r.Roles, r.Memory, r.LargestFrame, r.Notes)
			}
			figures(false, os.DirFS("../../policies/"+name+"/cases"))
			if compiled, interpreted := figures(false, nil), figures(true, nil); compiled != interpreted {
				t.Errorf("compiled: %s\ninterpreted: %s", compiled, interpreted)
			}
		})
	}
}
