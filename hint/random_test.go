package hint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// random makes a tree that both encodings can hold.
func random(r *rand.Rand, depth int) any {
	kinds := 12
	if depth <= 0 {
		kinds = 8
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return r.Uint64() >> r.IntN(64)
	case 3:
		return -1 - int(r.Int64()>>r.IntN(63))
	case 4:
		for {
			if f := math.Float64frombits(r.Uint64()); f-f == 0 {
				return f
			}
		}
	case 5:
		return float64(r.IntN(2000)-1000) / 8
	case 6, 7:
		return randomText(r)
	case 8:
		list := make(arr, r.IntN(40))
		for i := range list {
			list[i] = r.Uint64() >> r.IntN(64)
		}
		return list
	case 9, 10:
		list := make(arr, r.IntN(6))
		for i := range list {
			list[i] = random(r, depth-1)
		}
		return list
	}
	return randomMap(r, depth)
}

func randomMap(r *rand.Rand, depth int) (o obj) {
	for i := range r.IntN(6) * (1 + 4*r.IntN(2)) {
		o = append(o, randomText(r)+strconv.Itoa(i), random(r, depth-1))
	}
	return o
}

func randomText(r *rand.Rand) string {
	alphabets := [][]rune{[]rune("abcdefghij_"), []rune("aé日😀\"\\\n\t\x00\x7f/ "), []rune("x")}
	text := make([]rune, r.IntN(1+r.IntN(60)))
	letters := alphabets[r.IntN(len(alphabets))]
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return string(text)
}

// plain turns a tree into what a generic decoder makes of it.
func plain(base abi.Base, n abi.Node) any {
	switch n.Tag {
	case abi.TagBool:
		return n.Bool()
	case abi.TagU64:
		return n.U64()
	case abi.TagI64:
		return n.I64()
	case abi.TagF64:
		return n.F64()
	case abi.TagNumber:
		return json.Number(base.Bytes(n))
	case abi.TagString:
		return string(base.Bytes(n))
	case abi.TagBytes:
		return bytes.Clone(base.Bytes(n))
	case abi.TagU64s, abi.TagArray:
		list := []any{}
		for i := range n.Len {
			if n.Tag == abi.TagU64s {
				list = append(list, base.U64At(n, i))
			} else {
				list = append(list, plain(base, base.Elem(n, i)))
			}
		}
		return list
	case abi.TagMap:
		m := map[string]any{}
		for i := range n.Len {
			k, v := base.Entry(n, i)
			m[string(base.Bytes(k))] = plain(base, v)
		}
		return m
	}
	return nil
}

// normal brings what another decoder made to the types of plain.
func normal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if u, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return u
		}
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			if i >= 0 { // -0
				return uint64(i)
			}
			return i
		}
		if bytes.ContainsAny([]byte(v), ".eE") {
			if f, err := strconv.ParseFloat(string(v), 64); err == nil {
				return f
			}
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
	case int8, int16, int32, int64:
		if i := reflect.ValueOf(v).Int(); i < 0 {
			return i
		} else {
			return uint64(i)
		}
	case uint8, uint16, uint32, uint64:
		return reflect.ValueOf(v).Uint()
	case float32:
		return float64(v)
	}
	return v
}

func genericJSON(src []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	err = d.Decode(&v)
	return normal(v), err
}

func tree(tb testing.TB, format hint.Format, src []byte) (abi.Base, abi.Node) {
	tb.Helper()
	base, n, err := hint.AppendTree(nil, format, src)
	if err != nil {
		tb.Fatalf("%q: %v", src, err)
	}
	if err := abi.CheckTree(base, n); err != nil {
		tb.Fatalf("%q: %v", src, err)
	}
	return base, n
}

// TestRandom: random trees through both encodings and back, with encoding/json and
// another msgpack library as second opinions.
func TestRandom(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		doc := randomMap(r, 5)
		both(t, envelope(fetch(doc), fetch(randomMap(r, 2))), func(t *testing.T, f *hint.Frame) {
			if reason, detail := f.Action(0).Fault(); reason != abi.ReasonNone {
				t.Error(reason, detail)
			}
		})
		text, packed := js(doc), mp(doc)
		base, n := tree(t, hint.FormatJSON, text)
		want := plain(base, n)
		if base2, n2 := tree(t, hint.FormatMsgpack, packed); !bytes.Equal(base, base2) || n != n2 {
			t.Fatalf("seed %d: two encodings, two trees: %s", seed, text)
		}
		if got, err := genericJSON(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: encoding/json reads %v, here %v, %v", seed, got, want, err)
		}

		outText, err := hint.AppendTreeJSON(nil, base, n)
		if err != nil {
			t.Fatal(err)
		}
		if base2, n2 := tree(t, hint.FormatJSON, outText); !bytes.Equal(base, base2) || n != n2 {
			t.Fatalf("seed %d: not the same after JSON: %s, %s", seed, text, outText)
		}
		outPacked, err := hint.AppendTreeMsgpack(nil, base, n)
		if err != nil {
			t.Fatal(err)
		}
		if base2, n2 := tree(t, hint.FormatMsgpack, outPacked); !bytes.Equal(base, base2) || n != n2 {
			t.Fatalf("seed %d: not the same after msgpack: %x", seed, outPacked)
		}
		var got any
		if err := msgpack.Unmarshal(outPacked, &got); err != nil || !reflect.DeepEqual(normal(got), want) {
			t.Fatalf("seed %d: msgpack reads %v, here %v, %v", seed, normal(got), want, err)
		}
		theirs, err := msgpack.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if base2, n2 := tree(t, hint.FormatMsgpack, theirs); !reflect.DeepEqual(plain(base2, n2), want) {
			t.Fatalf("seed %d: of their msgpack: %v, want %v", seed, plain(base2, n2), want)
		}
	}
}

// TestFloats: floats come out as Python's repr spells them, and as themselves.
func TestFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		f := math.Float64frombits(r.Uint64())
		if f-f != 0 {
			continue
		}
		base, n := tree(t, hint.FormatMsgpack, mp(f))
		text, err := hint.AppendTreeJSON(nil, base, n)
		if err != nil {
			t.Fatal(err)
		}
		back, n := tree(t, hint.FormatJSON, text)
		if n.Tag != abi.TagF64 || n.Val != math.Float64bits(f) {
			t.Fatalf("%v is written as %s and read as %s", f, text, show(back, n))
		}
	}
}

// TestIntegers: integers around every power of two and ten are exact, alone and in lists.
func TestIntegers(t *testing.T) {
	var all []uint64
	for i := range 64 {
		p := uint64(1) << i
		all = append(all, p-1, p, p+1)
	}
	for p := uint64(10); p < 1e19; p *= 10 {
		all = append(all, p-1, p, p+1)
	}
	all = append(all, math.MaxUint64-1, math.MaxUint64, 1e19, 1e19-1, 1e19+1, 12345678901234567890)
	for _, format := range []hint.Format{hint.FormatJSON, hint.FormatMsgpack} {
		write := js
		if format == hint.FormatMsgpack {
			write = mp
		}
		list := arr{}
		for _, v := range all {
			list = append(list, v)
			if base, n := tree(t, format, write(v)); show(base, n) != fmt.Sprint("u", v) {
				t.Errorf("%d: %s", v, show(base, n))
			}
			if v <= 1<<63 && v > 0 {
				if base, n := tree(t, format, write(int(-v))); show(base, n) != fmt.Sprint("i", int64(-v)) {
					t.Errorf("-%d: %s", v, show(base, n))
				}
			}
		}
		base, n := tree(t, format, write(list))
		if n.Tag != abi.TagU64s || int(n.Len) != len(all) {
			t.Fatal(show(base, n))
		}
		for i, v := range all {
			if got := base.U64At(n, uint32(i)); got != v {
				t.Errorf("element %d: %d, want %d", i, got, v)
			}
		}
	}
}
