package assemblyscript_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
	"github.com/kvrt/kvrt/hint"
)

//go:embed test/vectors.wasm
var speller []byte

func start(t *testing.T) api.Module {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	t.Cleanup(func() { rt.Close(ctx) })
	m, err := rt.InstantiateWithConfig(ctx, speller, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func call(t *testing.T, m api.Module, name string, args ...uint64) uint64 {
	t.Helper()
	out, err := m.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out[0]
}

// place writes bytes into the module's memory.
func place(t *testing.T, m api.Module, b []byte) uint64 {
	t.Helper()
	at := call(t, m, "room", uint64(len(b)))
	if !m.Memory().Write(uint32(at), b) {
		t.Fatal("no room")
	}
	return at
}

// run is what a returned place refers to.
func run(t *testing.T, m api.Module, ret uint64) []byte {
	t.Helper()
	b, ok := m.Memory().Read(uint32(ret>>32), uint32(ret))
	if !ok || int64(ret) <= 0 {
		t.Fatalf("a place of %x", ret)
	}
	return b
}

// TestVectors holds what the SDK reads against the ABI's vectors.
func TestVectors(t *testing.T) {
	for kind, name := range []string{"tree", "action", "envelope", "parse", "context"} {
		f, err := vectors.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		m := start(t)
		tried := 0
		for _, v := range f.Vectors {
			if v.Value == nil {
				continue // a host refuses these bytes
			}
			tried++
			var present uint64
			if name == "context" {
				present = abi.U64(v.Hex, abi.OffContextFramePresent)
			}
			text := run(t, m, call(t, m, "spell", uint64(kind), place(t, m, v.Hex), present))
			var got any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Errorf("%s/%s: %v: %s", name, v.Name, err, text)
			} else if !reflect.DeepEqual(got, v.Value) {
				t.Errorf("%s/%s:\ngot  %v\nwant %v", name, v.Name, got, v.Value)
			}
		}
		if tried < 3 {
			t.Errorf("%s: %d vectors", name, tried)
		}
	}
}

// TestWriter holds what the SDK writes to the checks of a host.
func TestWriter(t *testing.T) {
	m := start(t)
	const payload = `{"deep":[{"a":[1,-1,1e400,0.25]},{},[],null,true,"text"],"hashes":[1,18446744073709551615]}`
	b := abi.NewBuilder(nil)
	b.Open(abi.SizeAction)
	b.SetSpan(abi.OffActionActionID, b.RunString(""))
	b.SetSpan(abi.OffActionActionType, b.RunString("demo.évict"))
	record, tree, err := hint.AppendTree(b.Bytes(), abi.FormatJSON, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	record = abi.Align(record)
	abi.PutNode(record, abi.OffActionPayload, tree)
	abi.PutU32(record, abi.OffActionSize, uint32(len(record)))
	if err := abi.CheckAction(record); err != nil {
		t.Fatal(err)
	}
	a, err := abi.CheckAnswer(run(t, m, call(t, m, "copy", place(t, m, record))))
	if err == nil {
		err = abi.CheckAction(a.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	action := abi.Action(a.Body)
	got, err := hint.AppendTreeJSON(nil, abi.Base(action), action.Payload())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"was":` + payload + `,"rest":[null,true,-1,0.5,"é\n",[1,18446744073709551615],[7],[]]}`
	if string(got) != want || string(action.Type()) != "demo.évict" || action.ID() == nil || action.Version() != nil {
		t.Errorf("got  %q %q %q %s\nwant %s", action.ID(), action.Type(), action.Version(), got, want)
	}
	if a, err = abi.CheckAnswer(run(t, m, call(t, m, "write"))); err == nil {
		err = abi.CheckEnvelope(a.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	e := abi.EnvelopeFrame(a.Body)
	if e.Count() != 2 || string(e.Action(0).ID()) != "a" || e.Action(1).ID() != nil || e.Action(1).Payload().Len != 1 || string(e.MessageID()) != "m" {
		t.Errorf("an envelope of %d actions: %x", e.Count(), e)
	}
	// More values than are copied.
	list := []byte(`{"l":[` + strings.Repeat(`"x",`, 5000) + `"x"]}`)
	record = abi.Align(append(make([]byte, abi.SizeAction), 't'))
	abi.PutSpan(record, abi.OffActionActionType, abi.Span{Off: abi.SizeAction, Len: 1})
	if record, tree, err = hint.AppendTree(record, abi.FormatJSON, list); err != nil {
		t.Fatal(err)
	}
	record = abi.Align(record)
	abi.PutNode(record, abi.OffActionPayload, tree)
	abi.PutU32(record, abi.OffActionSize, uint32(len(record)))
	if a, err = abi.CheckAnswer(run(t, m, call(t, m, "copy", place(t, m, record)))); err != nil || a.Reason != abi.ReasonLimitExceeded {
		t.Errorf("a copy of 5,001 values: %+v, %v", a, err)
	}
}
