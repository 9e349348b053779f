package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// The example of the specification builds with the commands that it gives, and judges
// the envelope that it shows.
func TestSpecExample(t *testing.T) {
	for _, name := range []string{"clang-19", "wasm-ld-19", "python3", "sh"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s", name)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"handler.c", "handler.json", "manifest.py", "build.sh", "echo.json"} {
		copyFile(t, dir, "abi/testdata/"+name)
	}
	dir = filepath.Join(dir, "abi", "testdata")
	tool(t, dir, "sh", "-eu", "build.sh")
	module, err := os.ReadFile(filepath.Join(dir, "demo-echo.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(module))

	// The Python lines write what AppendManifest writes, but for white space.
	plain, err := os.ReadFile(filepath.Join(dir, "handler.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "handler.json"))
	if err != nil {
		t.Fatal(err)
	}
	one, err := abi.AppendManifest(plain, manifest)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := abi.AppendManifest(module, manifest); err != nil || !bytes.Equal(one, two) {
		t.Errorf("%v: the appended section differs", err)
	}

	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	if err := rt.Apply(context.Background(), []runtime.GuestSpec{{Name: "demo-echo", Module: module}}); err != nil {
		t.Fatal(err)
	}
	envelope, err := os.ReadFile(filepath.Join(dir, "echo.json"))
	if err != nil {
		t.Fatal(err)
	}
	res := rt.NewResponse()
	for range 3 {
		if err := rt.Dispatch(&runtime.Request{Body: envelope}, res); err != nil {
			t.Fatal(err)
		}
		if len(res.Results) != 2 {
			t.Fatalf("%+v", res.Results)
		}
		first, second := res.Results[0], res.Results[1]
		if first.Status != abi.StatusAccepted || second.Status != abi.StatusRejected || second.Reason != abi.ReasonInvalidPayload ||
			string(second.Detail) != "text: want a string" {
			t.Errorf("%+v\n%+v", first, second)
		}
	}

	// A frame that is too large for the arena is refused, and the next one is not.
	long, err := json.Marshal(map[string]any{"protocol_version": "0.1", "actions": []any{map[string]any{
		"action_id": "a", "action_type": "demo.echo", "action_version": "1.0", "payload": map[string]any{"text": string(bytes.Repeat([]byte("x"), 70000))}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Dispatch(&runtime.Request{Body: long}, res); err != nil || res.Results[0].Reason != abi.ReasonLimitExceeded {
		t.Errorf("%v: %+v", err, res.Results)
	}
	if err := rt.Dispatch(&runtime.Request{Body: envelope}, res); err != nil || res.Results[0].Status != abi.StatusAccepted {
		t.Errorf("%v: %+v", err, res.Results)
	}
}
