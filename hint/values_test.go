package hint_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// The tests write a document once, as one of these values, in both encodings.
type (
	obj []any  // a map: key, value, key, value, ...
	arr []any  // a list
	num string // a number as JSON spells it; msgpack cannot write it
	ext struct {
		kind int8
		data string
	}
	raw string // bytes that go into the document as they are
)

// js writes v as JSON.
func js(v any) []byte {
	switch v := v.(type) {
	case obj:
		var s []string
		for i := 0; i < len(v); i += 2 {
			s = append(s, string(js(v[i]))+":"+string(js(v[i+1])))
		}
		return []byte("{" + strings.Join(s, ",") + "}")
	case arr:
		var s []string
		for _, e := range v {
			s = append(s, string(js(e)))
		}
		return []byte("[" + strings.Join(s, ",") + "]")
	case num:
		return []byte(v)
	case raw:
		return []byte(v)
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return []byte(s)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// mp writes v as msgpack.
func mp(v any) []byte {
	length := func(fix, fixMax, b8, b16 int, n int) []byte {
		switch {
		case n <= fixMax:
			return []byte{byte(fix | n)}
		case b8 != 0 && n < 256:
			return []byte{byte(b8), byte(n)}
		case n < 1<<16:
			return binary.BigEndian.AppendUint16([]byte{byte(b16)}, uint16(n))
		}
		return binary.BigEndian.AppendUint32([]byte{byte(b16 + 1)}, uint32(n))
	}
	switch v := v.(type) {
	case nil:
		return []byte{0xc0}
	case bool:
		if v {
			return []byte{0xc3}
		}
		return []byte{0xc2}
	case int:
		switch {
		case v >= -32 && v < 128:
			return []byte{byte(v)}
		case v < 0:
			return binary.BigEndian.AppendUint64([]byte{0xd3}, uint64(v))
		}
		return binary.BigEndian.AppendUint64([]byte{0xcf}, uint64(v))
	case uint64:
		return binary.BigEndian.AppendUint64([]byte{0xcf}, v)
	case float64:
		return binary.BigEndian.AppendUint64([]byte{0xcb}, math.Float64bits(v))
	case float32:
		return binary.BigEndian.AppendUint32([]byte{0xca}, math.Float32bits(v))
	case string:
		return append(length(0xa0, 31, 0xd9, 0xda, len(v)), v...)
	case []byte:
		return append(length(0, -1, 0xc4, 0xc5, len(v)), v...)
	case ext:
		return append([]byte{0xc7, byte(len(v.data)), byte(v.kind)}, v.data...)
	case arr:
		b := length(0x90, 15, 0, 0xdc, len(v))
		for _, e := range v {
			b = append(b, mp(e)...)
		}
		return b
	case obj:
		b := length(0x80, 15, 0, 0xde, len(v)/2)
		for _, e := range v {
			b = append(b, mp(e)...)
		}
		return b
	case raw:
		return []byte(v)
	}
	panic(fmt.Sprintf("mp: %T", v))
}

// fetch is an action of type kv.fetch with a payload.
func fetch(payload any) obj {
	return obj{"action_id", "a1", "action_type", "kv.fetch", "action_version", "1.0", "payload", payload}
}

// envelope holds the given actions.
func envelope(actions ...any) obj {
	return obj{"protocol_version", "0.1", "message_id", "m1", "actions", arr(actions)}
}

var testID = hint.Identity{Engine: "vllm", RequestID: "req-1", DPRank: 3, Attempt: 2, Leg: abi.LegPrefill}

// decode fills f and finishes it, and checks that the frame is one that the ABI allows.
func decode(tb testing.TB, f *hint.Frame, format hint.Format, body []byte, lim hint.Limits) error {
	tb.Helper()
	err := f.Decode(format, body, lim)
	f.Finish(testID)
	if e := abi.CheckEnvelope(f.Bytes()); e != nil {
		tb.Fatalf("decoding %q: %v", body, e)
	}
	for i := range f.Len() {
		if b := f.Action(i).Base; b != nil {
			if e := abi.CheckAction(b); e != nil {
				tb.Fatalf("decoding %q: action %d: %v", body, i, e)
			}
		}
	}
	return err
}

func mustDecode(tb testing.TB, format hint.Format, body []byte) *hint.Frame {
	tb.Helper()
	f := new(hint.Frame)
	if err := decode(tb, f, format, body, hint.Limits{}); err != nil {
		tb.Fatalf("decoding %q: %v", body, err)
	}
	return f
}

// wide writes v as msgpack with the longest heads there are.
func wide(v any) []byte {
	long := func(lead byte, n int) []byte { return binary.BigEndian.AppendUint32([]byte{lead}, uint32(n)) }
	switch v := v.(type) {
	case int:
		return binary.BigEndian.AppendUint64([]byte{0xd3}, uint64(v))
	case string:
		return append(long(0xdb, len(v)), v...)
	case arr:
		b := long(0xdd, len(v))
		for _, e := range v {
			b = append(b, wide(e)...)
		}
		return b
	case obj:
		b := long(0xdf, len(v)/2)
		for _, e := range v {
			b = append(b, wide(e)...)
		}
		return b
	}
	return mp(v)
}

// both runs a test on the document in both encodings, and holds that its frame is the
// same byte for byte however it is written.
func both(t *testing.T, doc any, check func(t *testing.T, f *hint.Frame)) {
	t.Helper()
	text := js(doc)
	a, b := mustDecode(t, hint.FormatUnknown, text), mustDecode(t, hint.FormatUnknown, mp(doc))
	if a.Format() != hint.FormatJSON || b.Format() != hint.FormatMsgpack {
		t.Fatalf("detected as %v and %v", a.Format(), b.Format())
	}
	var lines bytes.Buffer
	if err := json.Indent(&lines, text, "\r", "\t"); err != nil {
		t.Fatal(err)
	}
	spaced := strings.NewReplacer("\r", "", "\t", "", ",\n", ", ", "\n", "").Replace(lines.String()) // as Python's json writes it
	for name, other := range map[string]*hint.Frame{"msgpack": b, "msgpack, long": mustDecode(t, 0, wide(doc)), "lines": mustDecode(t, 0, lines.Bytes()), "spaces": mustDecode(t, 0, []byte(spaced))} {
		if !bytes.Equal(a.Bytes(), other.Bytes()) {
			t.Errorf("%s: the frames differ\n json %x\n %s %x", text, a.Bytes(), name, other.Bytes())
		}
	}
	check(t, a)
	check(t, b)
}

// show spells a tree with every tag visible.
func show(base abi.Base, n abi.Node) string {
	switch n.Tag {
	case abi.TagNull, abi.TagAbsent:
		return n.Tag.String()
	case abi.TagBool:
		return strconv.FormatBool(n.Bool())
	case abi.TagU64:
		return "u" + strconv.FormatUint(n.Val, 10)
	case abi.TagI64:
		return "i" + strconv.FormatInt(n.I64(), 10)
	case abi.TagF64:
		return "f" + strconv.FormatFloat(n.F64(), 'g', -1, 64)
	case abi.TagNumber:
		return "n" + string(base.Bytes(n))
	case abi.TagString:
		return strconv.Quote(string(base.Bytes(n)))
	case abi.TagBytes:
		return fmt.Sprintf("b%x", base.Bytes(n))
	case abi.TagExt:
		return fmt.Sprintf("e%d:%x", int8(n.Ext), base.Bytes(n))
	case abi.TagU64s:
		var s []string
		for i := range n.Len {
			s = append(s, strconv.FormatUint(base.U64At(n, i), 10))
		}
		return "u[" + strings.Join(s, " ") + "]"
	case abi.TagArray:
		var s []string
		for i := range n.Len {
			s = append(s, show(base, base.Elem(n, i)))
		}
		return "[" + strings.Join(s, " ") + "]"
	case abi.TagMap:
		var s []string
		for i := range n.Len {
			k, v := base.Entry(n, i)
			s = append(s, show(base, k)+":"+show(base, v))
		}
		return "{" + strings.Join(s, " ") + "}"
	}
	return fmt.Sprintf("tag %d", n.Tag)
}

func showPayload(a hint.ActionView) string { return show(a.Base, a.Payload) }
