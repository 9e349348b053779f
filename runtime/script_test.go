package runtime_test

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

//go:embed testdata/scripted.wasm
var scripted []byte

const scriptedManifest = `{"name":"scripted","version":"1.0.0","abi":1,"roles":["handler"],
"action_types":[{"type":"demo.echo"},{"type":"demo.other"}],"capabilities":["kvrt_fetch"]}`

// withManifest appends the manifest section.
func withManifest(t testing.TB, wasm []byte, manifest string) []byte {
	t.Helper()
	out, err := abi.AppendManifest(wasm, []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// scriptedGuest is the scripted handler. Its version is what its detail says.
func scriptedGuest(t testing.TB, version byte) runtime.GuestSpec {
	return runtime.GuestSpec{Name: "scripted", Module: withManifest(t, bytes.Replace(scripted, []byte("version0"), []byte("version"+string(version)), 1), scriptedManifest),
		Grants: []string{"kvrt_fetch"}, Limits: runtime.Limits{Instances: 2}}
}

// effects is a fake kvrt_fetch that counts what becomes of its effects.
type effects struct {
	committed, dropped, deferred atomic.Int64
	refuseCommit, panicCommit    atomic.Bool
	hold                         chan struct{} // when set, a commit waits in it
	look                         func(*runtime.Call)
}

func (e *effects) Name() string { return "kvrt_fetch" }

func (e *effects) Functions() []runtime.HostFunction {
	return runtime.Functions("kvrt_fetch", map[string]func(*runtime.Call, []byte, []uint64){"submit": e.submit})
}

func (e *effects) submit(c *runtime.Call, _ []byte, stack []uint64) {
	if e.look != nil {
		e.look(c)
	}
	switch uint32(stack[4]) {
	case 1:
		panic("the host function's own mistake")
	case 2:
		stack[0] = uint64(uint32(c.Refuse(abi.ReasonSourceNotAllowed, "that source is not allowed")))
		return
	case 4:
		c.Fail(errors.New("the store is gone"))
	default:
		e.deferred.Add(1)
		if !c.Defer(effect{e}) {
			panic("a second effect")
		}
	}
	stack[0] = 0
}

type effect struct{ e *effects }

func (f effect) Commit() (abi.Reason, string) {
	if f.e.hold != nil {
		f.e.hold <- struct{}{} // held
		<-f.e.hold             // and let go
	}
	if f.e.panicCommit.Load() {
		panic("the store is broken")
	}
	if f.e.refuseCommit.Load() {
		f.e.dropped.Add(1)
		return abi.ReasonConflictingSource, "taken meanwhile"
	}
	f.e.committed.Add(1)
	return 0, ""
}
func (f effect) Drop() { f.e.dropped.Add(1) }

func newRuntime(t testing.TB, cfg runtime.Config, specs ...runtime.GuestSpec) *runtime.Runtime {
	t.Helper()
	if cfg.Engine == nil {
		cfg.Engine = wazero.New(wazero.Config{})
	}
	if cfg.Wait == 0 {
		cfg.Wait = 10 * time.Second // a busy machine is no finding
	}
	r, err := runtime.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(context.Background(), specs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// envelope makes a JSON envelope with one action per "type:id" word; a word without a
// type is a demo.echo.
func envelope(words string) []byte {
	var b strings.Builder
	b.WriteString(`{"protocol_version":"0.1","message_id":"m","actions":[`)
	for i, w := range strings.Fields(words) {
		typ, id, ok := strings.Cut(w, ":")
		if !ok {
			typ, id = "demo.echo", w
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"action_id":%q,"action_type":%q,"action_version":"1.0","payload":{"n":%d}}`, id, typ, i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// verdicts renders results as "id=STATUS/reason" words.
func verdicts(results []hint.Result) string {
	words := make([]string, len(results))
	for i, x := range results {
		words[i] = string(x.ActionID) + "=" + x.Status.String()
		if x.Reason != 0 {
			words[i] += "/" + x.Reason.String()
		}
	}
	return strings.Join(words, " ")
}
