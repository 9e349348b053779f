package kvrt_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

// soakEnv is how many calls the soak makes. It is short by default.
const soakEnv = "KVRT_SOAK_CALLS"

// built is what the tests build, each once: a stock Go guest is some 2 MB, and is never
// committed.
var built struct {
	sync.Mutex
	dir    string
	guests map[string][]byte
	engine *wazero.Engine
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// gobuild builds what is in a folder.
func gobuild(t testing.TB, name, dir string, env []string, command ...string) string {
	t.Helper()
	if built.dir == "" {
		var err error
		if built.dir, err = os.MkdirTemp("", "kvrt"); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(built.dir, name)
	cmd := exec.Command("go", append(command, "-trimpath", "-buildvcs=false", "-o", out, "./"+dir)...)
	cmd.Env = append(os.Environ(), append(env, "CGO_ENABLED=0", "GOFLAGS=")...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	return out
}

// guest builds the guest in a folder.
func guest(t testing.TB, dir string) []byte {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.guests == nil {
		built.guests = map[string][]byte{}
	}
	if built.guests[dir] == nil {
		out := gobuild(t, filepath.Base(dir)+".wasm", dir, []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-buildmode=c-shared", "-ldflags=-s -w")
		wasm, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		if built.guests[dir], err = abi.AppendManifest(wasm, manifest); err != nil {
			t.Fatal(err)
		}
	}
	return built.guests[dir]
}

// engine compiles in a child that the race detector does not slow, and keeps what it made.
func engine(t testing.TB) *wazero.Engine {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.engine == nil {
		program := gobuild(t, "child", "testdata/child", nil, "test", "-c")
		built.engine = wazero.New(wazero.Config{Compiler: &wazero.Compiler{Program: program, Dir: filepath.Join(built.dir, "cache"), Wall: 5 * time.Minute, CPU: 5 * time.Minute}})
	}
	return built.engine
}

// TestConformance judges the conformance guest by the kit.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles 2 MB")
	}
	kit := &tck.Kit{Engine: engine(t)}
	report, err := kit.Verify(context.Background(), runtime.GuestSpec{Name: "go", Module: guest(t, "conformance"), Grants: []string{"kvrt_fetch", "kvrt_store", "kvrt_gpu"}}, os.DirFS("conformance/cases"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Error(p)
	}
	if report.Cases.Cases < 5 {
		t.Errorf("%d cases", report.Cases.Cases)
	}
	if report.Start.Memory > 4<<20 {
		t.Errorf("it starts with %d bytes of memory, want 4 MiB to do", report.Start.Memory)
	}
	t.Logf("start %d fuel, %d bytes; %+v; notes %q", report.Start.Fuel, report.Start.Memory, report.Roles, report.Notes)
}

// TestOrdinaryGo calls a guest that does what Go programs do.
func TestOrdinaryGo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles 2 MB")
	}
	rec := &tck.Recorder{}
	kit := &tck.Kit{Engine: engine(t)}
	s, err := runtime.NewSolo(context.Background(), kit.Config(rec), runtime.GuestSpec{Name: "go", Module: guest(t, "conformance/garbage"), Grants: []string{"kvrt_fetch"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct{ do, want, log string }{
		{"", ": ", ""},
		{"print", ": ", "info: a has 1 actions|info: and more"},
		{"sleep", ": ", "info: slept for 1h0m0s"},
		{"panic", "handler_trap: unreachable", "warn: panic: as it was told|warn: |warn: goroutine "},
		{"nest", ": ", "info: nested 200"},
		{"fall", "handler_out_of_fuel: the call's fuel is used up", ""},
		{"spin", "handler_out_of_fuel: the call's fuel is used up", ""},
		{"hog", "handler_out_of_fuel: the call's fuel is used up", "warn: runtime: out of memory: cannot allocate "},
		{"exit", "handler_trap: the guest exited with code 3", "info: bye"},
		{"block", "handler_trap: unreachable", "warn: fatal error: all goroutines are asleep - deadlock!"},
		{"", ": ", ""},
	} {
		rec.Reset(tck.Answers{})
		var f hint.Frame
		if err := f.Decode(abi.FormatJSON, []byte(`{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"a","action_type":"kv.fetch","payload":{"block_hashes":[1],"do":"`+c.do+`"}}]}`), hint.Limits{}); err != nil {
			t.Fatal(err)
		}
		f.Finish(hint.Identity{})
		res, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: f.Bytes()})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Reason.String() + ": " + res.Detail; got != c.want {
			t.Errorf("%q: %s, want %s", c.do, got, c.want)
		}
		if log := strings.Join(rec.Lines, "|"); !strings.HasPrefix(log, c.log) || c.log == "" && log != "" || len(rec.Lines) > abi.MaxLogLines {
			t.Errorf("%q: log %q", c.do, log)
		}
	}
}

// TestSoak calls a stock Go guest again and again. Each call makes garbage; the
// collector runs between calls only, so memory does not grow and no call pays for it.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles 2 MB")
	}
	calls := 20_000
	if s := os.Getenv(soakEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		calls = n
	}
	kit := &tck.Kit{Engine: engine(t)}
	spec := runtime.GuestSpec{Name: "go", Module: guest(t, "conformance/garbage"), Grants: []string{"kvrt_fetch"}, Limits: runtime.Limits{Instances: 2}}
	s, err := kit.Soak(context.Background(), spec, bodies(), calls)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls in %s; %d bytes in the first tenth of them, %d after it; fuel %d to %d; kvrt_idle %+v", s.Calls, s.Elapsed, s.Early, s.Late, s.LeastFuel, s.MostFuel, s.Idle)
	if s.Late > s.Early {
		t.Errorf("memory grew from %d to %d bytes", s.Early, s.Late)
	}
	if s.Idle.Calls == 0 || s.Idle.Traps != (runtime.IdleStats{}).Traps {
		t.Errorf("kvrt_idle: %+v", s.Idle)
	}
	for i := range s.MostFuel {
		// Room for growing a stack or the heap; a collection takes eight times that.
		if s.MostFuel[i] > s.LeastFuel[i]+200_000 {
			t.Errorf("body %d took %d to %d fuel", i, s.LeastFuel[i], s.MostFuel[i])
		}
	}
}

// bodies are small envelopes, one that is refused, and one with 1,024 hashes.
func bodies() [][]byte {
	wrap := func(payload string) []byte {
		return []byte(`{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"a","action_type":"kv.fetch","action_version":"1.0","payload":` + payload + `}]}`)
	}
	hashes := strings.Repeat("578437695752307201,", 1023) + "1"
	var out [][]byte
	for i := range 32 {
		out = append(out, wrap(`{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[1,2,`+strconv.Itoa(i)+`]}`))
	}
	return append(out, wrap(`{"block_hashes":"none"}`), wrap(`{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[`+hashes+`]}`))
}
