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
// at a time, 16 to 20 of them, a comma after each number, nothing else.
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
	const ones, tens = 0x0101010101010101, 0x000f424000000064
	for len(text) >= 24 && len(out) >= 8 {
		s := (*[24]byte)(text)
		a := binary.LittleEndian.Uint64(s[0:]) ^ '0'*ones
		b := binary.LittleEndian.Uint64(s[8:]) ^ '0'*ones
		c := binary.LittleEndian.Uint64(s[16:]) ^ '0'*ones
		k := bits.TrailingZeros64((c+0x76*ones|c)&(0x80*ones)) >> 3
		if (a+0x76*ones|a|(b+0x76*ones|b))&(0x80*ones) != 0 || k > 4 || s[16+k] != ',' {
			return
		}
		a, b, c = a*10+a>>8, b*10+b>>8, c<<(64-8*k)>>32
		c = c*10 + c>>8
		a = ((a&0xff000000ff)*tens + (a>>16&0xff000000ff)*0x271000000001) >> 32
		b = ((b&0xff000000ff)*tens + (b>>16&0xff000000ff)*0x271000000001) >> 32
		binary.LittleEndian.PutUint64(out, (a*1e8+b)*floorPow10[k]+c&0xff*100+c>>16&0xff)
		text, out = text[17+k:], out[8:]
	}
}

var floorPow10 = [5]uint64{1, 1e1, 1e2, 1e3, 1e4}

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
	for len(src) >= 72 && len(out) >= 64 {
		s, o := (*[72]byte)(src), (*[64]byte)(out)
		if s[0]&s[9]&s[18]&s[27]&s[36]&s[45]&s[54]&s[63] != 0xcf {
			return
		}
		binary.LittleEndian.PutUint64(o[0:], binary.BigEndian.Uint64(s[1:]))
		binary.LittleEndian.PutUint64(o[8:], binary.BigEndian.Uint64(s[10:]))
		binary.LittleEndian.PutUint64(o[16:], binary.BigEndian.Uint64(s[19:]))
		binary.LittleEndian.PutUint64(o[24:], binary.BigEndian.Uint64(s[28:]))
		binary.LittleEndian.PutUint64(o[32:], binary.BigEndian.Uint64(s[37:]))
		binary.LittleEndian.PutUint64(o[40:], binary.BigEndian.Uint64(s[46:]))
		binary.LittleEndian.PutUint64(o[48:], binary.BigEndian.Uint64(s[55:]))
		binary.LittleEndian.PutUint64(o[56:], binary.BigEndian.Uint64(s[64:]))
		src, out = src[72:], out[64:]
	}
}
