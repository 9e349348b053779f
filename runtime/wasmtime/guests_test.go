//go:build wasmtime && amd64

package wasmtime

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/wasi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/assemblyscript"
	"github.com/kvrt/kvrt/sdk/tck"
)

// TestCollectors judges guests with a collector on both engines: they agree on every
// call, fuel included.
func TestCollectors(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "guest.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "../../sdk/go/conformance")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	stock, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("../../sdk/go/conformance/manifest.json")
	if err == nil {
		stock, err = abi.AppendManifest(stock, manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	kit := &tck.Kit{Engine: wazero.New(wazero.Config{}), Second: New()}
	for name, wasm := range map[string][]byte{"assemblyscript": assemblyscript.Conformance(), "go": stock} {
		report, err := kit.Verify(context.Background(), runtime.GuestSpec{Name: name, Module: wasm, Grants: []string{"kvrt_fetch", "kvrt_store", "kvrt_gpu"}}, os.DirFS("../../sdk/"+name+"/conformance/cases"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Problems {
			t.Errorf("%s: %v", name, p)
		}
		if len(report.Roles) == 0 || report.Roles[0].Calls < 10 || report.Compared < 10 {
			t.Errorf("%s: %+v", name, report.Roles)
		}
	}
}

// TestProgram calls a guest that is written as a program, exits included, on both.
func TestProgram(t *testing.T) {
	wasm, err := os.ReadFile("../../hosts/wasi/testdata/program.wasm")
	if err == nil {
		wasm, err = abi.AppendManifest(wasm, []byte(`{"name":"program","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.echo"}]}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	var f hint.Frame
	const a = `{"action_type":"demo.echo","payload":{}}`
	if err := f.Decode(abi.FormatJSON, []byte(`{"protocol_version":"0.1","message_id":"m","actions":[`+a+","+a+","+a+","+a+","+a+","+a+","+a+`]}`), hint.Limits{}); err != nil {
		t.Fatal(err)
	}
	f.Finish(hint.Identity{})
	var results [2][]runtime.SoloResult
	for i, engine := range []runtime.Engine{wazero.New(wazero.Config{}), New()} {
		s, err := runtime.NewSolo(context.Background(), runtime.Config{Engine: engine, Hosts: []runtime.HostModule{wasi.Module{}}, Log: slog.New(slog.DiscardHandler)}, runtime.GuestSpec{Name: "program", Module: wasm})
		if err != nil {
			t.Fatal(err)
		}
		for position := range uint32(f.Len()) {
			res, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: f.Bytes(), Position: position, Wall: 1e18, Monotonic: 5})
			if err != nil {
				t.Fatal(err)
			}
			results[i] = append(results[i], res)
		}
		s.Close()
	}
	for i, a := range results[0] {
		b := results[1][i]
		if a.Reason != b.Reason || a.Detail != b.Detail || a.Trap == nil && a.Fuel != b.Fuel || a.LogDropped != b.LogDropped {
			t.Errorf("position %d: %+v and %+v", i, a, b)
		}
	}
}
