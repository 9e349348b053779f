package hint

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

// TestDigits holds the digits that are computed in words against strconv's.
func TestDigits(t *testing.T) {
	for v := range uint32(10_000) {
		want := []byte{byte(v / 1000), byte(v / 100 % 10), byte(v / 10 % 10), byte(v % 10)}
		if got := binary.LittleEndian.AppendUint32(nil, fourDigits(v)); !bytes.Equal(got, want) {
			t.Fatalf("%d: %v", v, got)
		}
		for _, w := range []uint32{v, v * 10_000, v*10_000 + 9999 - v} {
			got := binary.LittleEndian.AppendUint64(nil, eightDigits(w)|'0'*ones)
			if n, err := strconv.ParseUint(string(got), 10, 64); err != nil || n != uint64(w) {
				t.Fatalf("%d: %s", w, got)
			}
		}
	}
}

// someNumbers are those next to every power of 2 and of 10, and others of every length.
func someNumbers() []uint64 {
	out := []uint64{0, math.MaxUint64}
	for p := uint64(1); p != 0; p *= 2 {
		out = append(out, p-1, p, p+1)
	}
	for p := uint64(1); p <= 1e19; p *= 10 {
		if out = append(out, p-1, p, p+1); p == 1e19 {
			break
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		out = append(out, rnd.Uint64()>>(rnd.Uint32()%64))
	}
	return out
}

// TestEncodeU64s holds runs of integers against the same integers one by one, with small
// ones in every place, and buffers that have just enough room.
func TestEncodeU64s(t *testing.T) {
	check := func(values []uint64) {
		t.Helper()
		var run, packed []byte
		text := []byte{'['}
		for i, v := range values {
			if run = binary.LittleEndian.AppendUint64(run, v); i > 0 {
				text = append(text, ',')
			}
			text = strconv.AppendUint(text, v, 10)
			packed = appendMsgpackUint(packed, v)
		}
		text = append(text, ']')
		for room := range 3 {
			got := appendJSONU64s(append(make([]byte, 0, len(text)+room), '!'), run)
			if string(got) != "!"+string(text) {
				t.Fatalf("%d: %s, want %s", values, got, text)
			}
			if got := appendMsgpackU64s(append(make([]byte, 0, len(packed)+room), '!'), run); string(got) != "!"+string(packed) {
				t.Fatalf("%d: %x, want %x", values, got, packed)
			}
		}
	}
	check(nil)
	for _, v := range someNumbers() {
		check([]uint64{v})
	}
	for n := 1; n < 24; n++ {
		values := make([]uint64, n)
		for i := range values {
			values[i] = math.MaxUint64 - uint64(i)
		}
		check(values)
		for i, was := range values {
			for _, small := range []uint64{0, 127, 128, 1 << 16, math.MaxUint32, math.MaxUint32 + 1} {
				values[i] = small
				check(values)
			}
			values[i] = was
		}
	}
	check(someNumbers())
}

// BenchmarkEncodeU64s1024 writes a run of 1,024 block hashes.
func BenchmarkEncodeU64s1024(b *testing.B) {
	var run []byte
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1024 {
		run = binary.LittleEndian.AppendUint64(run, rnd.Uint64())
	}
	n := abi.Node{Tag: abi.TagU64s, Len: 1024}
	for _, c := range []struct {
		name  string
		write func([]byte, abi.Base, abi.Node) ([]byte, error)
	}{{"json", AppendTreeJSON}, {"msgpack", AppendTreeMsgpack}} {
		b.Run(c.name, func(b *testing.B) {
			var out []byte
			var err error
			for b.Loop() {
				if out, err = c.write(out[:0], run, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
