package hint_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func TestSubset(t *testing.T) {
	doc := obj{"actions", arr{
		fetch(obj{"n", 0, "block_hashes", arr{1, 2}}), 5, fetch(obj{"n", 2, "s", "text"}), obj{"action_type", "t"}, fetch(obj{"n", 4}),
	}, "message_id", "message", "protocol_version", "0.1"}
	var f hint.Frame
	for _, body := range [][]byte{js(doc), mp(doc)} {
		if err := decode(t, &f, 0, body, hint.Limits{}); err != nil {
			t.Fatal(err)
		}
		if e := abi.EnvelopeFrame(f.Bytes()); e.Count() != 4 || e.Total() != 5 || f.Listed() != 4 {
			t.Errorf("count %d, total %d, listed %d", e.Count(), e.Total(), f.Listed())
		}
		for _, pick := range [][]int32{{}, {0}, {4}, {0, 2}, {0, 2, 3, 4}, {4, 0}} {
			for _, withRaw := range []bool{false, true} {
				for _, before := range []string{"", "12345678"} {
					out := f.AppendSubset([]byte(before), pick, withRaw)
					if string(out[:len(before)]) != before {
						t.Fatal("dst was overwritten")
					}
					sub := out[len(before):]
					if err := abi.CheckEnvelope(sub); err != nil {
						t.Fatalf("%v: %v", pick, err)
					}
					checkSubset(t, &f, sub, pick, withRaw)
				}
			}
		}
	}
}

func checkSubset(t *testing.T, f *hint.Frame, sub []byte, pick []int32, withRaw bool) {
	t.Helper()
	e := abi.EnvelopeFrame(sub)
	if string(e.ProtocolVersion()) != "0.1" || string(e.MessageID()) != "message" || string(e.RequestID()) != "req-1" || string(e.Engine()) != "vllm" ||
		e.Leg() != abi.LegPrefill || e.DPRank() != 3 || e.Attempt() != 2 || e.Total() != 5 || e.Count() != len(pick) {
		t.Errorf("%v: header %x", pick, sub[:abi.SizeEnvelopeFrame])
	}
	for k, i := range pick {
		b, a := abi.Base(e.Action(k)), f.Action(int(i))
		if abi.U32(b, abi.OffActionIndex) != uint32(i) {
			t.Errorf("index %d, want %d", abi.U32(b, abi.OffActionIndex), i)
		}
		if got, want := show(b, abi.GetNode(b, abi.OffActionPayload)), showPayload(a); got != want {
			t.Errorf("%v: %s, want %s", pick, got, want)
		}
		payload := b.Run(abi.GetSpan(b, abi.OffActionRaw))
		if !withRaw && (payload != nil || !bytes.Equal(b, a.Base)) {
			t.Error("a block that should be as it was is not")
		}
		if withRaw && (!bytes.Equal(payload, a.RawPayload()) || payload != nil && hint.Format(abi.U32(b, abi.OffActionRawFormat)) != f.Format()) {
			t.Errorf("raw %q, want %q", payload, a.RawPayload())
		}
	}
}

func TestFinishAgain(t *testing.T) {
	f := mustDecode(t, 0, goldenBytes(t))
	want := bytes.Clone(f.Bytes())
	f.Finish(hint.Identity{RequestID: strings.Repeat("x", 1000)})
	if e := abi.EnvelopeFrame(f.Bytes()); len(e.RequestID()) != 1000 || e.Engine() != nil || e.Leg() != abi.LegAbsent || abi.CheckEnvelope(e) != nil {
		t.Error("another identity")
	}
	if f.Finish(testID); !bytes.Equal(f.Bytes(), want) {
		t.Error("the same identity gives another frame")
	}
	var zero hint.Frame
	zero.Finish(testID)
	if err := abi.CheckEnvelope(zero.Bytes()); err != nil || zero.Len() != 0 {
		t.Error(err)
	}
	f.Reset()
	if f.Len() != 0 || f.ProtocolVersion() != nil {
		t.Error("Reset left something")
	}
	if err := decode(t, f, 0, goldenBytes(t), hint.Limits{}); err != nil || !bytes.Equal(f.Bytes(), want) {
		t.Error("a frame that was reset gives another frame")
	}
}

// TestReuse: nothing of one envelope shows in the frame of the next.
func TestReuse(t *testing.T) {
	var used hint.Frame
	docs := []obj{
		envelope(fetch(obj{"secret", strings.Repeat("S", 500), "h", arr{1, 2, 3, 4, 5, 6, 7, 8, 9, uint64(0x5353535353535353)}}), fetch(obj{}), fetch(obj{})),
		{"actions", arr{obj{"action_type", "t", "payload", obj{"a", "b", "c", arr{1, -1, "x"}}}}},
		{"actions", arr{5, nil}}, {"actions", arr{}}, envelope(fetch(obj{"h", arr{1}})), {"x", obj{"y", "z"}, "actions", arr{obj{"q", "r", "action_type", "t", "action_id", 5}}},
	}
	for range 3 {
		for _, doc := range docs {
			for _, body := range [][]byte{js(doc), mp(doc)} {
				if err := decode(t, &used, 0, body, hint.Limits{}); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(used.Bytes(), mustDecode(t, 0, body).Bytes()) {
					t.Fatalf("%s: a used frame gives another frame than a new one", js(doc))
				}
			}
		}
	}
}

func TestLoad(t *testing.T) {
	doc := obj{"protocol_version", "", "actions", arr{
		fetch(obj{"b", arr{1, 2}, "a", obj{"x", arr{-1, "é"}, "y", arr{}}}), obj{"action_type", "t"}, obj{}, obj{"action_type", ""}, fetch(obj{}), obj{"action_id", "", "action_type", "t", "payload", obj{"f", 1.5}},
	}}
	src := mustDecode(t, hint.FormatJSON, js(doc))
	all := []int32{0, 1, 2, 3, 4, 5}
	answer := src.AppendSubset(nil, all, true)
	var f hint.Frame
	if err := f.Load(hint.FormatMsgpack, answer, hint.Limits{}); err != nil {
		t.Fatal(err)
	}
	for i := range answer {
		answer[i] = 0xff // Load has copied it
	}
	f.Finish(testID)
	if !bytes.Equal(f.Bytes(), src.Bytes()) {
		t.Errorf("loaded\n %x, decoded\n %x", f.Bytes(), src.Bytes())
	}
	if f.Format() != hint.FormatMsgpack || f.Len() != 6 || f.Action(0).RawPayload() != nil || f.Action(0).RawAction() != nil {
		t.Error("a loaded frame is not as it should be")
	}
	for i := range all {
		r1, d1 := src.Action(i).Fault()
		r2, d2 := f.Action(i).Fault()
		if r1 != r2 || d1 != d2 {
			t.Errorf("%d: %v %q, %v %q", i, r1, d1, r2, d2)
		}
	}
	answer = src.AppendSubset(nil, all, false)
	if err := f.Load(0, answer, hint.Limits{Actions: 2}); err != nil || f.Len() != 6 {
		t.Error(err)
	}
	if reason, _ := f.Action(2).Fault(); reason != abi.ReasonLimitExceeded {
		t.Error(reason)
	}
	err := f.Load(0, answer, hint.Limits{FrameBytes: 200})
	if !errors.Is(err, abi.ErrFrame) || !strings.Contains(err.Error(), "larger than 200 bytes") || f.Len() != 0 {
		t.Error(err)
	}
}

// TestLoadHandmade: what a guest may answer and no decoder makes.
func TestLoadHandmade(t *testing.T) {
	frame := func(typ string, root func(b []byte) ([]byte, abi.Node)) []byte {
		b := make([]byte, abi.SizeEnvelopeFrame+8+abi.SizeAction)
		at := uint32(abi.SizeEnvelopeFrame + 8)
		block := append(b[at:], typ...)
		block = abi.Align(block)
		block, n := root(block)
		block = abi.Align(block)
		abi.PutU32(block, abi.OffActionSize, uint32(len(block)))
		abi.PutSpan(block, abi.OffActionActionType, abi.Span{Off: abi.SizeAction, Len: uint32(len(typ))})
		abi.PutNode(block, abi.OffActionPayload, n)
		b = append(b[:at], block...)
		abi.PutU32(b, abi.OffEnvelopeFrameKind, uint32(abi.KindEnvelope))
		abi.PutU32(b, abi.OffEnvelopeFrameSize, uint32(len(b)))
		abi.PutU32(b, abi.OffEnvelopeFrameActions, abi.SizeEnvelopeFrame)
		abi.PutU32(b, abi.OffEnvelopeFrameCount, 1)
		abi.PutU32(b, abi.SizeEnvelopeFrame, at)
		if err := abi.CheckEnvelope(b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	scalar := func(n abi.Node) func([]byte) ([]byte, abi.Node) {
		return func(b []byte) ([]byte, abi.Node) { return b, n }
	}
	for _, test := range []struct {
		root   func([]byte) ([]byte, abi.Node)
		reason abi.Reason
		detail string
	}{
		{scalar(abi.Node{}), abi.ReasonNone, ""},
		{scalar(abi.Node{Tag: abi.TagNull}), abi.ReasonNone, ""},
		{scalar(abi.Node{Tag: abi.TagU64, Val: 1}), abi.ReasonMalformedAction, "payload must be a mapping, not a number"},
		{func(b []byte) ([]byte, abi.Node) {
			off := len(b)
			b = abi.AppendNode(b, abi.Node{Tag: abi.TagNull})
			b = abi.AppendNode(b, abi.Node{Tag: abi.TagF64, Val: math.Float64bits(math.NaN())})
			return b, abi.Node{Tag: abi.TagMap, Len: 1, Val: uint64(off)}
		}, abi.ReasonInvalidPayload, "payload[key null]: NaN or infinite"},
	} {
		var f hint.Frame
		if err := f.Load(0, frame("t", test.root), hint.Limits{}); err != nil {
			t.Fatal(err)
		}
		if reason, detail := f.Action(0).Fault(); reason != test.reason || detail != test.detail {
			t.Errorf("%v %q, want %v %q", reason, detail, test.reason, test.detail)
		}
		if reason, _ := f.Action(0).Fault(); reason == abi.ReasonNone && f.Action(0).Payload.Tag != abi.TagAbsent {
			t.Error("an absent payload is there")
		}
	}
	double := frame("t", func(b []byte) ([]byte, abi.Node) {
		off := len(b)
		for range 2 {
			b = abi.AppendNode(b, abi.Node{Tag: abi.TagU64, Val: 1})
			b = abi.AppendNode(b, abi.Node{Tag: abi.TagNull})
		}
		return b, abi.Node{Tag: abi.TagMap, Len: 2, Val: uint64(off)}
	})
	var f hint.Frame
	if err := f.Load(0, double, hint.Limits{}); !errors.Is(err, abi.ErrFrame) || !strings.Contains(err.Error(), "action 0: duplicate key") {
		t.Error(err)
	}
}

// TestBuffers: what one huge envelope blew up is let go of when small ones follow.
func TestBuffers(t *testing.T) {
	small, huge := goldenBytes(t), mp(envelope(fetch(obj{"x", arr{strings.Repeat("x", 3<<20), -1}})))
	var f hint.Frame
	for _, test := range []struct {
		body []byte
		big  bool
	}{{small, false}, {huge, true}, {huge, true}, {small, true}, {small, false}} {
		if err := decode(t, &f, 0, test.body, hint.Limits{}); err != nil {
			t.Fatal(err)
		}
		if big := cap(f.Bytes()) > 1<<20; big != test.big {
			t.Errorf("a buffer of %d bytes after a body of %d", cap(f.Bytes()), len(test.body))
		}
	}
}
