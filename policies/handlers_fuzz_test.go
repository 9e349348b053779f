package policies_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/sdk/tck"
)

// FuzzHandlers: whatever envelope somebody sends, the built-in handlers answer each action
// with a verdict of their own or their host's: they do not trap, do not run out of fuel, and
// an action that is rejected has no effect.
func FuzzHandlers(f *testing.F) {
	types := []string{"kv.fetch", "kv.retain", "kv.evict", "kv.prefetch"}
	files, err := filepath.Glob("kv-*/cases/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatal(err, files)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var c struct{ Payload, Input json.RawMessage }
			if json.Unmarshal(lines.Bytes(), &c) != nil {
				continue
			}
			for _, typ := range types {
				if c.Payload != nil && bytes.Contains([]byte(file), []byte(typ[3:])) {
					f.Add([]byte(envelope(typ, string(c.Payload))))
				}
			}
			if c.Input != nil {
				f.Add([]byte(c.Input))
			}
		}
	}
	rec := &tck.Recorder{}
	rt, err := runtime.New(kit().Config(rec))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { rt.Close(context.Background()) })
	var specs []runtime.GuestSpec
	for _, name := range []string{"kv-fetch", "kv-retain", "kv-evict", "kv-prefetch"} {
		specs = append(specs, newHosts(f, name).spec(nil))
	}
	if err := rt.Apply(context.Background(), specs); err != nil {
		f.Fatal(err)
	}
	res := rt.NewResponse()
	f.Fuzz(func(t *testing.T, body []byte) {
		rec.Reset(tck.Answers{Request: []uint64{1, 2, 3}})
		if rt.Dispatch(&runtime.Request{Body: body, Identity: hint.Identity{RequestID: "r1"}, Forward: true}, res) != nil {
			return
		}
		accepted, done := 0, 0
		for _, r := range res.Results {
			switch r.Reason {
			case abi.ReasonNone:
				accepted++
			case abi.ReasonHandlerError, abi.ReasonHandlerTrap, abi.ReasonHandlerOutOfFuel, abi.ReasonHandlerUnavailable, abi.ReasonHandlerTimeout:
				t.Errorf("%s: %s %s", r.ActionType, r.Reason, r.Detail)
			}
		}
		for _, e := range rec.Effects {
			if e.Taken {
				done++
			}
		}
		if done > accepted {
			t.Errorf("%d effects of %d accepted actions: %v", done, accepted, rec.Effects)
		}
	})
}
