package hint_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

type build func(b *abi.Builder) abi.Node

// buildAction appends an Action record with the given payload and no version.
func buildAction(b *abi.Builder, payload build) uint32 {
	outer := b.Open(abi.SizeAction)
	b.SetSpan(abi.OffActionActionID, b.RunString("a1"))
	b.SetSpan(abi.OffActionActionType, b.RunString("t"))
	b.SetNode(abi.OffActionPayload, payload(b))
	return b.CloseAction(outer)
}

// builtAction is an Action record as a handler answers it.
func builtAction(t *testing.T, payload build) []byte {
	t.Helper()
	b := abi.NewBuilder(nil)
	buildAction(&b, payload)
	if err := abi.CheckAction(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// builtEnvelope is an EnvelopeFrame as a parser answers it.
func builtEnvelope(t *testing.T, payloads ...build) []byte {
	t.Helper()
	b := abi.NewBuilder(nil)
	outer := b.Open(abi.SizeEnvelopeFrame)
	var table []uint32
	for _, p := range payloads {
		table = append(table, buildAction(&b, p))
	}
	b.SetU32(abi.OffEnvelopeFrameActions, b.U32s(table))
	b.SetU32(abi.OffEnvelopeFrameCount, uint32(len(table)))
	b.CloseFrame(abi.KindEnvelope, outer)
	if err := abi.CheckEnvelope(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// at puts a value into a map: {"k": {"x": true, "v": value}}.
func at(value build) build {
	return func(b *abi.Builder) abi.Node {
		inner := b.Map(abi.Entry{Key: b.String("x"), Val: abi.Bool(true)}, abi.Entry{Key: b.String("v"), Val: value(b)})
		return b.Map(abi.Entry{Key: b.String("k"), Val: inner})
	}
}

func node(n abi.Node) build { return func(*abi.Builder) abi.Node { return n } }

// entries is a map with n keys and then the given entry.
func entries(n int, last func(b *abi.Builder) abi.Entry) build {
	return func(b *abi.Builder) abi.Node {
		var all []abi.Entry
		for i := range n {
			all = append(all, abi.Entry{Key: b.String(fmt.Sprint("key", i)), Val: abi.Uint(uint64(i))})
		}
		return b.Map(append(all, last(b))...)
	}
}

// TestGuestPayloads: what a guest made is held against the rules of what is decoded, so
// that it can be passed on in the encoding that the request came in.
func TestGuestPayloads(t *testing.T) {
	const beyond = "18446744073709551616"
	deep := func(n int, inner build) build {
		return func(b *abi.Builder) abi.Node {
			v := inner(b)
			for range n {
				v = b.Map(abi.Entry{Key: b.String("a"), Val: v})
			}
			return v
		}
	}
	for _, test := range []struct {
		name          string
		payload       build
		json, msgpack string // the fault, without the payload's name
	}{
		{"scalars", at(func(b *abi.Builder) abi.Node { return b.Array(abi.Null(), abi.Int(-1), abi.Float(1.5), b.String("é")) }), "", ""},
		{"hashes", at(func(b *abi.Builder) abi.Node { return b.U64s([]uint64{1, 2, math.MaxUint64}) }), "", ""},
		{"empty", func(b *abi.Builder) abi.Node { return b.Map() }, "", ""},
		{"absent", node(abi.Node{}), "", ""},
		{"many keys", entries(100, func(b *abi.Builder) abi.Entry { return abi.Entry{Key: b.String("key100"), Val: abi.Null()} }), "", ""},
		{"deepest", deep(31, func(b *abi.Builder) abi.Node { return b.Map() }), "", ""},
		{"deepest hashes", deep(32, func(b *abi.Builder) abi.Node { return b.U64s([]uint64{1}) }), "", ""},
		{"list", func(b *abi.Builder) abi.Node { return b.Array(abi.Null()) }, " must be a mapping, not a list", " must be a mapping, not a list"},
		{"string", func(b *abi.Builder) abi.Node { return b.String("x") }, " must be a mapping, not a string", " must be a mapping, not a string"},
		{"NaN", at(node(abi.Float(math.NaN()))), ".k.v: NaN or infinite", ".k.v: NaN or infinite"},
		{"infinite", at(node(abi.Float(math.Inf(-1)))), ".k.v: NaN or infinite", ".k.v: NaN or infinite"},
		{"bytes", at(func(b *abi.Builder) abi.Node { return b.Blob([]byte("x")) }), ".k.v: bytes cannot be written as JSON", ""},
		{"extension", at(func(b *abi.Builder) abi.Node { return b.Array(b.Ext(5, []byte("x")), b.U64s([]uint64{1})) }), ".k.v[0]: an extension cannot be written as JSON", ""},
		{"key", at(func(b *abi.Builder) abi.Node { return b.Map(abi.Entry{Key: abi.Uint(5), Val: abi.Null()}) }), ".k.v[key 5]: a key that is a number cannot be written as JSON", ""},
		{"NaN as a key", at(func(b *abi.Builder) abi.Node { return b.Map(abi.Entry{Key: abi.Float(math.NaN()), Val: abi.Null()}) }), ".k.v key 0: NaN or infinite", ".k.v key 0: NaN or infinite"},
		{"number", at(func(b *abi.Builder) abi.Node { return b.Number(beyond) }), "", ".k.v: a number beyond 64 bits cannot be written as msgpack"},
		{"number as a key", entries(20, func(b *abi.Builder) abi.Entry { return abi.Entry{Key: b.Number(beyond), Val: abi.Null()} }), "[key a number]: a key that is a number cannot be written as JSON", "[key a number]: a number beyond 64 bits cannot be written as msgpack"},
	} {
		for _, format := range []hint.Format{hint.FormatUnknown, hint.FormatJSON, hint.FormatMsgpack} {
			want, reason := test.json, abi.ReasonInvalidPayload
			if format == hint.FormatMsgpack {
				want = test.msgpack
			}
			if strings.Contains(want, "mapping") {
				reason = abi.ReasonMalformedAction
			}
			if want == "" {
				reason = abi.ReasonNone
			} else {
				want = "payload" + want
			}
			var f hint.Frame
			if err := f.Load(format, builtEnvelope(t, node(abi.Node{}), test.payload, at(node(abi.Null()))), hint.Limits{}); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if got, detail := f.Action(1).Fault(); got != reason || detail != want {
				t.Errorf("%s, %v: %v %q, want %v %q", test.name, format, got, detail, reason, want)
			}
			for _, i := range []int{0, 2} {
				if got, detail := f.Action(i).Fault(); got != abi.ReasonNone {
					t.Errorf("%s, %v: its neighbour: %v %q", test.name, format, got, detail)
				}
			}

			block := builtAction(t, test.payload)
			got, detail := f.CheckForward(block)
			if want != "" {
				want, reason = "the rewritten "+want, abi.ReasonHandlerError
			}
			if got != reason || detail != want {
				t.Errorf("%s, %v: rewritten: %v %q, want %v %q", test.name, format, got, detail, reason, want)
			}
			if got == abi.ReasonNone {
				passedOn(t, &f, []hint.Forward{{Index: 1}, {Index: 1, Block: block}})
			}
		}
	}
	twice := func(n int) build {
		return at(entries(n, func(b *abi.Builder) abi.Entry { return abi.Entry{Key: b.String("key0"), Val: abi.Null()} }))
	}
	for _, n := range []int{1, 100} {
		var f hint.Frame
		if reason, detail := f.CheckForward(builtAction(t, twice(n))); reason != abi.ReasonHandlerError || detail != "the rewritten payload.k.v: duplicate key" {
			t.Errorf("%v %q", reason, detail)
		}
		if err := f.Load(0, builtEnvelope(t, twice(n)), hint.Limits{}); !errors.Is(err, abi.ErrFrame) || !strings.Contains(err.Error(), "duplicate key") {
			t.Error(err)
		}
		base := abi.Base(builtAction(t, twice(n)))
		if _, err := hint.PayloadFromBase(base, abi.GetNode(base, abi.OffActionPayload)); err == nil {
			t.Error("a payload with a duplicate key was taken")
		}
	}
	var f hint.Frame
	if reason, detail := f.CheckForward(builtAction(t, node(abi.Null()))); reason != abi.ReasonHandlerError || detail != "the rewritten payload must be a mapping, not null" {
		t.Errorf("%v %q", reason, detail)
	}
}

// passedOn holds that actions are passed on in the frame's encoding and taken again.
func passedOn(t *testing.T, f *hint.Frame, actions []hint.Forward) {
	t.Helper()
	out, err := hint.AppendEnvelope(nil, f.Format(), f, actions)
	if err != nil {
		t.Fatal(err)
	}
	again := mustDecode(t, f.Format(), out)
	for i, fw := range actions {
		a, b := again.Action(i), f.Action(fw.Index)
		if reason, detail := a.Fault(); reason != abi.ReasonNone {
			t.Fatalf("%s: %v %q", out, reason, detail)
		}
		base, root := b.Base, b.Payload
		if fw.Block != nil {
			base, root = fw.Block, abi.GetNode(fw.Block, abi.OffActionPayload)
		}
		want := show(base, root)
		if root.Tag == abi.TagAbsent {
			want = "{}"
		}
		if showPayload(a) != want {
			t.Fatalf("%s: %s, want %s", out, showPayload(a), want)
		}
	}
}

// FuzzLoad: what an envelope frame of a guest holds is at fault or can be passed on.
// adopted holds Adopt against what Load came to: it takes an envelope in which nothing is
// wrong, with the same actions, and no other.
func adopted(t *testing.T, format hint.Format, answer []byte, loaded *hint.Frame, refused error) {
	t.Helper()
	before := bytes.Clone(answer)
	var f hint.Frame
	sound := refused == nil
	for i := range loaded.Len() {
		reason, _ := loaded.Action(i).Fault()
		sound = sound && reason == abi.ReasonNone && abi.GetNode(abi.EnvelopeFrame(answer).Action(i), abi.OffActionPayload).Tag != abi.TagNull
	}
	if f.Adopt(format, answer, hint.Limits{Actions: 50}) != sound {
		t.Fatalf("adopted: %v, sound: %v", !sound, sound)
	}
	if !sound {
		if f.Len() != 0 || !bytes.Equal(answer, before) {
			t.Fatal("not adopted, and not left alone")
		}
		return
	}
	for _, fr := range []*hint.Frame{&f, loaded} {
		fr.Finish(testID)
		if err := abi.CheckEnvelope(fr.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	want, err := loaded.Envelope()
	got, err2 := f.Envelope()
	if err != nil || err2 != nil || !reflect.DeepEqual(got, want) || f.Format() != loaded.Format() {
		t.Fatalf("%v, want %v (%v, %v)", got, want, err2, err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range append(jsonSeeds(), msgpackSeeds()...) {
		var fr hint.Frame
		if fr.Decode(0, seed, hint.Limits{}) == nil {
			fr.Finish(testID)
			f.Add(bytes.Clone(fr.Bytes()))
		}
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if abi.CheckEnvelope(answer) != nil {
			return
		}
		before := bytes.Clone(answer)
		for _, format := range []hint.Format{hint.FormatUnknown, hint.FormatJSON, hint.FormatMsgpack} {
			var fr hint.Frame
			err := fr.Load(format, answer, hint.Limits{Actions: 50})
			adopted(t, format, bytes.Clone(answer), &fr, err)
			if err != nil {
				if !errors.Is(err, abi.ErrFrame) {
					t.Fatal(err)
				}
				continue
			}
			fr.Finish(testID)
			if err := abi.CheckEnvelope(fr.Bytes()); err != nil {
				t.Fatal(err)
			}
			var sound []hint.Forward
			for i := range fr.Len() {
				reason, detail := fr.Action(i).Fault()
				if (reason == abi.ReasonNone) != (detail == "") {
					t.Fatalf("%v %q", reason, detail)
				}
				if reason == abi.ReasonNone {
					sound = append(sound, hint.Forward{Index: i})
				}
				if i >= 50 {
					continue
				}
				block := abi.EnvelopeFrame(answer).Action(i)
				if reason, _ := fr.CheckForward(block); reason == abi.ReasonNone {
					if _, err := hint.AppendEnvelope(nil, fr.Format(), &fr, []hint.Forward{{Index: i, Block: block}}); err != nil {
						t.Fatal(err)
					}
				} else if fault, detail := fr.Action(i).Fault(); fault == abi.ReasonNone && abi.GetNode(block, abi.OffActionPayload).Tag != abi.TagNull {
					t.Fatalf("not at fault and not to be passed on: %v %s", fault, detail)
				}
			}
			passedOn(t, &fr, sound)
		}
		if !bytes.Equal(before, answer) {
			t.Fatal("the answer was changed")
		}
	})
}
