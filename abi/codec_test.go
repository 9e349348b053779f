package abi_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
)

// vector returns a good vector, by name.
func vector(t testing.TB, file, name string) vectors.Vector {
	f, err := vectors.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range f.Vectors {
		if v.Name == name && v.Error == "" {
			return v
		}
	}
	t.Fatalf("%s has no vector %s", file, name)
	return vectors.Vector{}
}

// same holds what a record says against a vector's value.
func same(t *testing.T, record string, b []byte, want any) {
	t.Helper()
	r := vectors.Reader{Table: abi.Contract()}
	got, err := r.Value(record, b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

func TestContextIsBuilt(t *testing.T) {
	x := &abi.Context{
		Present: 255, RequestID: "r-1", Attempt: 1, Leg: abi.LegDecode, Model: "m", Group: "g", WorkerType: "decode", Tenant: "t", Namespace: "n",
		PromptTokens: 1<<53 + 1, ExpectedOutputTokens: math.MaxUint64, ToolsDeclared: true, HashKind: abi.HashKindEngine, BlockSize: 16,
		BlockHashes: []uint64{0, 1, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<63 - 1, 1 << 63, math.MaxUint64},
		Candidates: []abi.Worker{
			{ID: abi.Uint(7), Present: 63, DPRank: 1, Type: "prefill", SourceControlEndpoint: "tcp://a:1", Capabilities: []string{"kv.fetch@1.0", ""},
				GPU: 4, CPU: 3, Disk: 2, External: 1},
			{Name: "worker-b", Present: abi.WorkerHasCapabilities},
			{ID: abi.Int(-1)},
		},
		SessionID: "s", ParentSessionID: "p", SessionFinal: true, InputTrigger: abi.TriggerToolResult,
		Selected: &abi.Worker{ID: abi.Uint(7), Present: abi.WorkerHasDPRank, DPRank: 1},
	}
	build := func(buf []byte) []byte {
		frame := abi.BeginContext(buf, x)
		// Trees are appended by whoever decodes them; here by hand.
		key := uint64(len(frame))
		frame = abi.Align(append(frame, "actions"...))
		tree := func(val abi.Node) abi.Node {
			at := uint64(len(frame))
			frame = abi.AppendNode(frame, abi.Node{Tag: abi.TagString, Len: 7, Val: key})
			frame = abi.AppendNode(frame, val)
			return abi.Node{Tag: abi.TagMap, Len: 1, Val: at}
		}
		request := tree(abi.Node{Tag: abi.TagArray})
		selection := tree(abi.Null())
		return abi.FinishContext(frame, request, selection)
	}
	b := build(nil)
	want := vector(t, "context", "full")
	same(t, "ContextFrame", b, want.Value)
	// The key is shared by both trees, which the check may let pass or not; what the
	// builder itself wrote is checked without the trees.
	if err := abi.CheckContext(abi.FinishContext(abi.BeginContext(nil, x), abi.Node{}, abi.Node{})); err != nil {
		t.Error(err)
	}
	if n := testing.AllocsPerRun(50, func() { b = build(b) }); n != 0 {
		t.Errorf("building in a buffer of its size allocates %v times", n)
	}

	f := abi.ContextFrame(want.Hex)
	if f.Present() != 255 || f.Candidates() != 3 || f.BlockHashes() != 8 || f.BlockHash(7) != math.MaxUint64 ||
		string(f.Text(abi.OffContextFrameModel)) != "m" || f.U32(abi.OffContextFrameBlockSize) != 16 || f.U64(abi.OffContextFramePromptTokens) != 1<<53+1 {
		t.Error("a view reads other than what was written")
	}
	w := f.Candidate(0)
	if w.ID() != abi.Uint(7) || w.Present() != 63 || string(w.Capability(0)) != "kv.fetch@1.0" || w.U32(abi.OffWorkerMatchedGPU) != 4 ||
		string(w.Text(abi.OffWorkerWorkerType)) != "prefill" || f.Selected().ID() != abi.Uint(7) ||
		f.RequestHint().Tag != abi.TagMap || f.SelectionHint().Tag != abi.TagMap {
		t.Error("a worker's view reads other than what was written")
	}

	x.Present, x.Selected, x.Candidates = 0, nil, nil
	*x = abi.Context{Attempt: 9, ToolsDeclared: true, BlockHashes: []uint64{1}, SessionFinal: true} // no bit: not written
	b = abi.FinishContext(abi.BeginContext(b, x), abi.Node{}, abi.Node{})
	same(t, "ContextFrame", b, vector(t, "context", "empty").Value)
}

func TestParseIsBuilt(t *testing.T) {
	frame := abi.BeginParse(nil, abi.FormatUnknown, []byte{0, 0xff}, "", "acme")
	frame = abi.FinishParse(frame, abi.Node{})
	if err := abi.CheckParse(frame); err != nil {
		t.Fatal(err)
	}
	same(t, "ParseFrame", frame, vector(t, "parse", "bytes").Value)
	v := abi.ParseFrame(vector(t, "parse", "json").Hex)
	if v.Format() != abi.FormatJSON || string(v.Raw()) != `{"a":[1,-1]}` || string(v.RequestID()) != "r-1" || string(v.Dialect()) != "acme" ||
		v.Document().Tag != abi.TagMap {
		t.Error("a view reads other than what was written")
	}
}

func TestEnvelopeIsBuilt(t *testing.T) {
	b := abi.NewBuilder(nil)
	outer := b.Open(abi.SizeEnvelopeFrame)
	b.SetSpan(abi.OffEnvelopeFrameProtocolVersion, b.RunString("0.1"))
	b.SetSpan(abi.OffEnvelopeFrameMessageID, b.RunString("m-1"))
	b.SetSpan(abi.OffEnvelopeFrameRequestID, b.RunString("r-1"))
	b.SetSpan(abi.OffEnvelopeFrameEngine, b.RunString("vllm"))
	b.SetU32(abi.OffEnvelopeFrameTotal, 1)
	frame := b.Open(abi.SizeAction)
	b.SetSpan(abi.OffActionActionID, b.RunString("a-1"))
	b.SetSpan(abi.OffActionActionType, b.RunString("demo.echo"))
	b.SetSpan(abi.OffActionActionVersion, b.RunString("1.0"))
	b.SetNode(abi.OffActionPayload, b.Map(abi.Entry{Key: b.String("text"), Val: b.String("hello")}))
	at := b.CloseAction(frame)
	b.SetU32(abi.OffEnvelopeFrameActions, b.U32s([]uint32{at}))
	b.SetU32(abi.OffEnvelopeFrameCount, 1)
	b.CloseFrame(abi.KindEnvelope, outer)

	if err := abi.CheckEnvelope(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	v := vector(t, "envelope", "echo")
	same(t, "EnvelopeFrame", b.Bytes(), v.Value)
	f := abi.EnvelopeFrame(v.Hex)
	a := f.Action(0)
	text := abi.Base(a).Lookup(a.Payload(), "text")
	if f.Count() != 1 || f.Total() != 1 || string(f.Engine()) != "vllm" || string(f.RequestID()) != "r-1" || string(f.MessageID()) != "m-1" ||
		string(f.ProtocolVersion()) != "0.1" || f.Leg() != abi.LegAbsent || f.DPRank() != 0 || f.Attempt() != 0 ||
		string(a.ID()) != "a-1" || string(a.Type()) != "demo.echo" || string(a.Version()) != "1.0" || a.Index() != 0 ||
		string(abi.Base(a).Bytes(text)) != "hello" {
		t.Error("a view reads other than what was written")
	}
}

// Every kind of node comes back as it was built.
func TestTreeIsBuilt(t *testing.T) {
	b := abi.NewBuilder(nil)
	outer := b.Open(abi.SizeAction)
	root := b.Array(abi.Null(), abi.Bool(true), abi.Bool(false), abi.Int(-5), abi.Int(5), abi.Float(0.5), b.Number("1e400"), b.String(""),
		b.Blob([]byte{1}), b.Ext(5, []byte{2}), b.U64s([]uint64{1, 2}), b.U64s(nil), b.Array(), b.Array(abi.Uint(3)), b.Map())
	b.SetNode(abi.OffActionPayload, root)
	b.CloseAction(outer)
	if err := abi.CheckAction(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	r := vectors.Reader{Table: abi.Contract()}
	v, err := r.Value("Action", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(v.(map[string]any)["payload"])
	want := `{"array":[{"null":null},{"bool":true},{"bool":false},{"i64":"-5"},{"u64":"5"},{"f64":"3fe0000000000000"},{"number":"1e400"},{"string":""},` +
		`{"bytes":"01"},{"ext":["5","02"]},{"u64s":["1","2"]},{"array":[]},{"array":[]},{"u64s":["3"]},{"map":[]}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The checks of what a guest answers allocate nothing as long as nothing is wrong.
func TestChecksAllocateNothing(t *testing.T) {
	checks := map[string]func(b []byte) error{
		"action": abi.CheckAction, "envelope": abi.CheckEnvelope, "context": abi.CheckContext, "init": abi.CheckInit, "parse": abi.CheckParse,
		"answer": func(b []byte) error { _, err := abi.CheckAnswer(b); return err },
		"tree":   func(b []byte) error { return abi.CheckTree(b, abi.GetNode(b, 0)) },
	}
	for file, check := range checks {
		f, err := vectors.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range f.Vectors {
			if v.Error != "" {
				continue
			}
			if n := testing.AllocsPerRun(20, func() { _ = check(v.Hex) }); n != 0 {
				t.Errorf("%s/%s: %v allocations", file, v.Name, n)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "-0": true, "10": true, "1.5": true, "1e5": true, "1E+5": true, "1.0e-5": true, "0.0": true, "-1.5": true,
		"": false, "-": false, "+1": false, "01": false, "-01": false, "1.": false, ".5": false, "1e": false, "1e+": false,
		"1 ": false, "1x": false, "NaN": false, "1.5.5": false, "--1": false, "0x1": false,
	} {
		if abi.IsNumber([]byte(text)) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func BenchmarkCheckEnvelope(b *testing.B) {
	frame := []byte(vector(b, "envelope", "hashes").Hex)
	b.ReportAllocs()
	for b.Loop() {
		if err := abi.CheckEnvelope(frame); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckAnswer(b *testing.B) {
	answer := []byte(vector(b, "answer", "rejected").Hex)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := abi.CheckAnswer(answer); err != nil {
			b.Fatal(err)
		}
	}
}
