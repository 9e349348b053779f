package kvrt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/hosts/wasi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/tck"
)

// soakEnv is how many calls the soak makes. It is short by default.
const soakEnv = "KVRT_SOAK_CALLS"

// built are the guests of this test binary, each built once: a stock Go guest is some
// 2 MB, and is never committed.
var built sync.Map

// build builds the guest in a folder.
func build(t testing.TB, dir string) []byte {
	t.Helper()
	once, _ := built.LoadOrStore(dir, sync.OnceValues(func() ([]byte, error) {
		tmp, err := os.MkdirTemp("", "kvrt")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(tmp)
		out := filepath.Join(tmp, "guest.wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "./"+dir)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
		if msg, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %s", err, msg)
		}
		wasm, err := os.ReadFile(out)
		if err != nil {
			return nil, err
		}
		manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
		if err != nil {
			return nil, err
		}
		return abi.AppendManifest(wasm, manifest)
	}))
	wasm, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestConformance judges the conformance guest by the kit.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles 2 MB")
	}
	kit := &tck.Kit{Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{log.Module{}, wasi.Module{}}}
	report, err := kit.Verify(context.Background(), runtime.GuestSpec{Name: "go", Module: build(t, "conformance"), Grants: []string{"kvrt_fetch"}}, os.DirFS("conformance/cases"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Error(p)
	}
	if report.Cases.Cases < 5 {
		t.Errorf("%d cases", report.Cases.Cases)
	}
	t.Logf("start %d fuel, %d bytes; %+v; notes %q", report.Start.Fuel, report.Start.Memory, report.Roles, report.Notes)
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
	allow, err := fetch.ParseAllowList(context.Background(), []string{"tcp://127.0.0.0/8"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := fetch.New(fetch.Config{MaxEntries: 64})
	r, err := runtime.New(runtime.Config{
		Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{fetch.NewHost(store, allow), wasi.Module{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	spec := runtime.GuestSpec{Name: "go", Module: build(t, "conformance/garbage"), Grants: []string{"kvrt_fetch"}, Limits: runtime.Limits{Instances: 2}}
	if err := r.Apply(context.Background(), []runtime.GuestSpec{spec}); err != nil {
		t.Fatal(err)
	}
	var memory uint64
	var fuel [3]struct{ least, most uint64 }
	bodies := bodies()
	res := r.NewResponse()
	for i := range calls {
		k := 0
		switch {
		case i%64 == 63:
			k = 1
		case i%8 == 7:
			k = 2
		}
		if err := r.Dispatch(&runtime.Request{Body: bodies[k], Identity: hint.Identity{RequestID: "r"}}, res); err != nil {
			t.Fatal(err)
		}
		out := &res.Results[0]
		want := abi.ReasonNone
		if k == 2 {
			want = abi.ReasonInvalidPayload
		}
		if out.Reason != want {
			t.Fatalf("call %d: %s: %s", i, out.Reason, out.Detail)
		}
		f := &fuel[k]
		if f.least == 0 || out.Fuel < f.least {
			f.least = out.Fuel
		}
		f.most = max(f.most, out.Fuel)
		if i == calls/10 || i == calls-1 {
			s := guestStats(r)
			if i == calls/10 {
				memory = s.MemoryBytes
			} else if s.MemoryBytes > memory {
				t.Errorf("%d bytes of memory after %d calls, %d at the end", memory, calls/10, s.MemoryBytes)
			}
			t.Logf("after %d calls: %d bytes, %d collections of %d fuel and %d us", i+1, s.MemoryBytes, s.Idle.Calls, s.Idle.Fuel/max(s.Idle.Calls, 1), s.Idle.NS/max(s.Idle.Calls, 1)/1000)
			if i == calls-1 && (s.Idle.Calls == 0 || s.Idle.Traps != [4]uint64{}) {
				t.Errorf("kvrt_idle: %+v", s.Idle)
			}
		}
	}
	for k, f := range fuel {
		t.Logf("%d: %d to %d fuel", k, f.least, f.most)
		if f.most > f.least+200_000 { // room for growing a stack or the heap; a collection takes eight times that
			t.Errorf("equal inputs cost %d to %d fuel", f.least, f.most)
		}
	}
}

// bodies are a small envelope, one with 1,024 hashes, and one that is refused.
func bodies() [][]byte {
	wrap := func(payload string) []byte {
		return []byte(`{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"a","action_type":"kv.fetch","action_version":"1.0","payload":` + payload + `}]}`)
	}
	var hashes bytes.Buffer
	for i := range 1024 {
		fmt.Fprintf(&hashes, "%d,", binary.LittleEndian.Uint64([]byte{byte(i), byte(i >> 8), 3, 4, 5, 6, 7, 8}))
	}
	hashes.Truncate(hashes.Len() - 1)
	return [][]byte{
		wrap(`{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[1,2,3]}`),
		wrap(`{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[` + hashes.String() + `]}`),
		wrap(`{"block_hashes":"none"}`),
	}
}

// observer keeps what a runtime says of its one guest.
type observer struct{ guest runtime.GuestStats }

func (*observer) Runtime(runtime.RuntimeStats) {}
func (o *observer) Guest(s runtime.GuestStats) { o.guest = s }

func guestStats(r *runtime.Runtime) runtime.GuestStats {
	var o observer
	r.Observe(&o)
	return o.guest
}
