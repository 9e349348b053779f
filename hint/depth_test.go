package hint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// chain is a mapping, n levels deep with itself, around v.
func chain(n int, v any) any {
	for i := range n {
		if i%2 == 0 || i == n-1 {
			v = obj{"a", v}
		} else {
			v = arr{v}
		}
	}
	return v
}

// TestDepth: every reader, the ABI's own check among them, draws the line at the same
// payloads; what lies around a payload does not count.
func TestDepth(t *testing.T) {
	for n := 28; n <= 34; n++ {
		for _, inner := range []any{nil, arr{}, obj{}, arr{1}, arr{1, 2, 3}, arr{-1}, arr{1, -1}, arr{arr{1}}, obj{"u", arr{1}}} {
			deepest := n // containers in each other
			switch fmt.Sprint(inner) {
			case "[]", "[-1]", "[1 -1]", "[[1]]", "[u [1]]":
				deepest++
			}
			good := deepest <= abi.MaxDepth
			p := chain(n, inner)
			for _, format := range []hint.Format{hint.FormatJSON, hint.FormatMsgpack} {
				write, read := js, hint.PayloadFromJSON
				if format == hint.FormatMsgpack {
					write, read = mp, hint.PayloadFromMsgpack
				}
				alone, err := read(write(p))
				if (err == nil) != good {
					t.Errorf("%d around %v, %v: the payload alone: %v", n, inner, format, err)
				}
				var f hint.Frame
				err = decode(t, &f, format, write(envelope(fetch(obj{}), fetch(p))), hint.Limits{})
				if format == hint.FormatJSON && (err == nil) != good {
					t.Errorf("%d around %v, %v: in an envelope: %v", n, inner, format, err)
				}
				if err == nil {
					if reason, detail := f.Action(1).Fault(); (reason == abi.ReasonNone) != good || !good && (reason != abi.ReasonInvalidPayload || detail != "payload is nested deeper than 32") {
						t.Errorf("%d around %v, %v: in an envelope: %v %q", n, inner, format, reason, detail)
					}
					if reason, detail := f.Action(0).Fault(); reason != abi.ReasonNone {
						t.Errorf("%d around %v: its neighbour: %v %q", n, inner, reason, detail)
					}
				}
				if !good {
					continue
				}
				// What was taken is taken again, by the ABI and in both encodings.
				if err := abi.CheckTree(alone.Base(), alone.Root()); err != nil {
					t.Errorf("%d around %v: %v", n, inner, err)
				}
				for _, to := range []hint.Format{hint.FormatJSON, hint.FormatMsgpack} {
					out, err := hint.AppendEnvelope(nil, to, &f, []hint.Forward{{Index: 1}, {Index: 0}})
					if err != nil {
						t.Fatalf("%d around %v: %v", n, inner, err)
					}
					if again := mustDecode(t, to, out); showPayload(again.Action(0)) != show(alone.Base(), alone.Root()) {
						t.Errorf("%d around %v: %s", n, inner, showPayload(again.Action(0)))
					}
					var loaded hint.Frame
					if err := loaded.Load(to, f.AppendSubset(nil, []int32{1}, false), hint.Limits{}); err != nil {
						t.Errorf("%d around %v: %v", n, inner, err)
					}
					if reason, detail := loaded.Action(0).Fault(); reason != abi.ReasonNone {
						t.Errorf("%d around %v: loaded: %v %q", n, inner, reason, detail)
					}
				}
			}
		}
	}
}

// many is n entries with different keys.
func many(key string, n int) (o obj) {
	for i := range n {
		o = append(o, fmt.Sprint(key, i), nil)
	}
	return o
}

// TestDepthElsewhere: what is no payload counts from its own root.
func TestDepthElsewhere(t *testing.T) {
	for _, test := range []struct {
		levels int
		doc    func(v any) any
	}{
		{32, func(v any) any { return obj{"x", v, "actions", arr{}} }},
		{32, func(v any) any { return obj{"message_id", v, "actions", arr{}} }},
		{32, func(v any) any { return obj{"actions", arr{v}} }},
		{32, func(v any) any { return obj{"actions", arr{obj{"action_type", "t", "x", v}}} }},
		{32, func(v any) any { return obj{"actions", arr{obj{"action_type", "t", "action_id", v, "payload", v}}} }},
		{32, func(v any) any {
			return obj{"actions", arr{5, obj{"payload", v, "action_type", "beyond the limit"}, v}}
		}},
	} {
		for n := test.levels - 1; n <= test.levels+1; n++ {
			v := any(nil)
			for range n {
				v = arr{v}
			}
			var f hint.Frame
			err := decode(t, &f, 0, js(test.doc(v)), hint.Limits{Actions: 1})
			var bad *hint.MalformedError
			if n <= test.levels && err != nil || n > test.levels && (!errors.As(err, &bad) || bad.Msg != "nested deeper than 32") {
				t.Errorf("%.60s, %d levels: %v", js(test.doc(nil)), n, err)
			}
			if err := decode(t, &f, 0, mp(test.doc(v)), hint.Limits{Actions: 1}); err != nil {
				t.Errorf("%.60s, %d levels, msgpack: %v", js(test.doc(nil)), n, err)
			}
		}
	}
	// Two deep keys are not the same key.
	list := strings.Repeat("\x91", 33) + "\xc0"
	for _, keys := range []obj{{raw(list), 1, raw(list), 2}, {raw("\x90"), 1, raw("\x90"), 2}, {raw("\x80"), 1, raw("\x80"), 2}, {raw("\x91\xff"), 1, raw("\x91\xff"), 2}, {raw("\x90"), 1, nil, 2}} {
		both := []obj{keys, append(many("k", 20), keys...)}
		for _, keys := range both { // compared one by one, and by hash
			for n := range 34 {
				f := mustDecode(t, hint.FormatMsgpack, mp(envelope(fetch(chain(n+1, keys)), fetch(obj{}))))
				if reason, _ := f.Action(0).Fault(); reason != abi.ReasonNone && reason != abi.ReasonInvalidPayload {
					t.Errorf("%.50v, %d levels: %v", keys, n, reason)
				}
				if reason, _ := f.Action(1).Fault(); reason != abi.ReasonNone {
					t.Errorf("%.50v, %d levels: its neighbour: %v", keys, n, reason)
				}
			}
		}
	}
	// A deep value does not weigh on what comes after it.
	deep := raw(strings.Repeat("\x91", 300) + "\x01")
	f := mustDecode(t, hint.FormatMsgpack, mp(obj{"x", deep, "actions", arr{deep, obj{"x", deep, "action_type", "t", "payload", chain(32, 1)}, fetch(chain(32, 1))}}))
	for i := 1; i < 3; i++ {
		if reason, detail := f.Action(i).Fault(); reason != abi.ReasonNone {
			t.Errorf("%d: %v %q", i, reason, detail)
		}
	}
}
