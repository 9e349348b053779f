package kvevents

import (
	"encoding/binary"
	"testing"
)

// benchBatch is one BlockStored of n blocks of 16 tokens, as vLLM writes it.
func benchBatch(n int) []byte {
	text := func(b []byte, s string) []byte { return append(append(b, 0xa0|byte(len(s))), s...) }
	list := func(b []byte, n int) []byte { return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n)) }
	b := append([]byte{0x93, 0xcb}, make([]byte, 8)...)
	b = append(b, 0x91, 0x8a)
	b = text(text(b, "type"), "BlockStored")
	b = list(text(b, "block_hashes"), n)
	h := uint64(0x9e3779b97f4a7c15)
	for range n {
		h = h*6364136223846793005 + 1442695040888963407
		b = binary.BigEndian.AppendUint64(append(b, 0xcf), h|1<<63)
	}
	b = append(text(b, "parent_block_hash"), 0xc0)
	b = list(text(b, "token_ids"), 16*n)
	for range 16 * n {
		h = h*6364136223846793005 + 1442695040888963407
		switch token := h >> 47; { // vocabularies have 2^17 entries
		case token < 1<<7:
			b = append(b, byte(token))
		case token < 1<<16:
			b = binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(token))
		default:
			b = binary.BigEndian.AppendUint32(append(b, 0xce), uint32(token))
		}
	}
	b = append(text(b, "block_size"), 16)
	b = append(text(b, "lora_id"), 0xc0)
	b = text(text(b, "medium"), "GPU")
	b = append(text(b, "lora_name"), 0xc0)
	b = append(text(b, "group_idx"), 0)
	b = text(text(b, "session_id"), "session-1")
	return append(b, 0)
}

func BenchmarkDecode1024(b *testing.B) {
	batch := benchBatch(1024)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	var d Decoder
	for b.Loop() {
		if got, err := d.Decode(batch); err != nil || len(got.Events[0].Hashes) != 1024 {
			b.Fatal(err)
		}
	}
}

// BenchmarkFloorScan1024 is a bare walk over the same bytes, from one lead byte to the
// next, that keeps the hashes and nothing else.
func BenchmarkFloorScan1024(b *testing.B) {
	batch := benchBatch(1024)
	b.SetBytes(int64(len(batch)))
	out := make([]uint64, 0, 1024)
	for b.Loop() {
		out = out[:0]
		for pos := 0; pos < len(batch); {
			switch c := batch[pos]; c {
			case 0xcf:
				out = append(out, binary.BigEndian.Uint64(batch[pos+1:]))
				pos += 9
			case 0xcd, 0xdc:
				pos += 3
			case 0xce:
				pos += 5
			case 0xcb:
				pos += 9
			default:
				if c >= 0xa0 && c < 0xc0 {
					pos += int(c & 31)
				}
				pos++
			}
		}
		if len(out) != 1024 {
			b.Fatal(len(out))
		}
	}
}
