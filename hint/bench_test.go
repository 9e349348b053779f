package hint_test

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"testing"

	"github.com/kvrt/kvrt/hint"
)

// hashes returns n block hashes of 20 digits.
func hashes(n int) []uint64 {
	out := make([]uint64, n)
	v := uint64(0x9e3779b97f4a7c15)
	for i := range out {
		v = v*6364136223846793005 + 1442695040888963407
		out[i] = 1e19 + v%8e18
	}
	return out
}

// fetchJSON is a kv.fetch envelope with n hashes, as Python's json spells it when told
// to be compact, or not.
func fetchJSON(n int, comma string) []byte {
	b := []byte(`{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":"kv.fetch",` +
		`"action_version":"1.0","payload":{"source_control_endpoint":"tcp://10.0.0.9:23280","block_hashes":[`)
	for i, h := range hashes(n) {
		if i > 0 {
			b = append(b, comma...)
		}
		b = strconv.AppendUint(b, h, 10)
	}
	return append(b, `],"mode":"copy"}}]}`...)
}

func fetchMsgpack(tb testing.TB, n int) []byte {
	e, err := hint.DecodeEnvelope(hint.FormatJSON, fetchJSON(n, ","))
	if err != nil {
		tb.Fatal(err)
	}
	b, err := e.AppendMsgpack(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func benchDecode(b *testing.B, body []byte) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var f hint.Frame
	for b.Loop() {
		if err := f.Decode(hint.FormatUnknown, body, hint.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeJSON1(b *testing.B)          { benchDecode(b, fetchJSON(1, ",")) }
func BenchmarkDecodeJSON1024(b *testing.B)       { benchDecode(b, fetchJSON(1024, ",")) }
func BenchmarkDecodeJSONSpaces1024(b *testing.B) { benchDecode(b, fetchJSON(1024, ", ")) }
func BenchmarkDecodeJSONLines1024(b *testing.B)  { benchDecode(b, fetchJSON(1024, ",\n  ")) }
func BenchmarkDecodeMsgpack1(b *testing.B)       { benchDecode(b, fetchMsgpack(b, 1)) }
func BenchmarkDecodeMsgpack1024(b *testing.B)    { benchDecode(b, fetchMsgpack(b, 1024)) }

// BenchmarkFloorJSONScan1024 is what a loop over the hashes alone costs: digits eight
// at a time, one comma after each number, nothing else.
func BenchmarkFloorJSONScan1024(b *testing.B) {
	text, out := floorText(), make([]byte, 8*1024)
	for b.Loop() {
		floorJSON(out, text)
	}
	if binary.LittleEndian.Uint64(out[8*1023:]) != hashes(1024)[1023] {
		b.Fatal("wrong")
	}
}

func floorText() (text []byte) {
	for _, h := range hashes(1024) {
		text = append(strconv.AppendUint(text, h, 10), ',')
	}
	return append(text, "        "...)
}

func floorJSON(out, text []byte) {
	for len(text) >= 24 && len(out) >= 8 {
		a, n := floorDigits(binary.LittleEndian.Uint64(text))
		if n == 8 {
			b, m := floorDigits(binary.LittleEndian.Uint64(text[8:]))
			a, n = a*floorPow10[m]+b, n+m
			if m == 8 {
				b, m = floorDigits(binary.LittleEndian.Uint64(text[16:]))
				a, n = a*floorPow10[m]+b, n+m
			}
		}
		if text[n] != ',' {
			return
		}
		binary.LittleEndian.PutUint64(out, a)
		text, out = text[n+1:], out[8:]
	}
}

func floorDigits(w uint64) (uint64, int) {
	w ^= 0x3030303030303030
	k := bits.TrailingZeros64((w+0x7676767676767676|w)&0x8080808080808080) >> 3
	w <<= 64 - 8*k
	w = w*10 + w>>8
	return ((w&0xff000000ff)*0xf424000000064 + (w>>16&0xff000000ff)*0x271000000001) >> 32, k
}

var floorPow10 = [9]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// BenchmarkFloorMsgpackScan1024 is what a loop over the hashes alone costs.
func BenchmarkFloorMsgpackScan1024(b *testing.B) {
	src, out := floorBytes(), make([]byte, 8*1024)
	for b.Loop() {
		floorMsgpack(out, src)
	}
	if binary.LittleEndian.Uint64(out[8*1023:]) != hashes(1024)[1023] {
		b.Fatal("wrong")
	}
}

func floorBytes() (src []byte) {
	for _, h := range hashes(1024) {
		src = binary.BigEndian.AppendUint64(append(src, 0xcf), h)
	}
	return src
}

func floorMsgpack(out, src []byte) {
	for len(src) >= 9 && len(out) >= 8 && src[0] == 0xcf {
		binary.LittleEndian.PutUint64(out, binary.BigEndian.Uint64(src[1:]))
		src, out = src[9:], out[8:]
	}
}
