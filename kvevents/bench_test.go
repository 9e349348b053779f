package kvevents

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/hosts/session"
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

// BenchmarkFloorScan1024 is a bare walk over the same bytes, value by value, that keeps the
// hashes and nothing else.
func BenchmarkFloorScan1024(b *testing.B) {
	batch := benchBatch(1024)
	b.SetBytes(int64(len(batch)))
	var sizes [256]int // of a value by its lead byte, or of a container's head
	for c := range sizes {
		sizes[c] = 1
		if c >= 0xa0 && c < 0xc0 {
			sizes[c] = c&31 + 1
		}
	}
	sizes[0xcb], sizes[0xcd], sizes[0xce], sizes[0xcf], sizes[0xdc] = 9, 3, 5, 9, 3
	out := make([]uint64, 0, 1024)
	for b.Loop() {
		out = out[:0]
		for pos := 0; pos < len(batch); {
			if batch[pos] == 0xcf {
				out = append(out, binary.BigEndian.Uint64(batch[pos+1:]))
			}
			pos += sizes[batch[pos]]
		}
		if len(out) != 1024 {
			b.Fatal(len(out))
		}
	}
}

// A counter is a sink that tells when it has seen enough.
type counter struct {
	left int
	done chan struct{}
}

func (c *counter) Apply(*session.Event) (bool, error) {
	if c.left--; c.left == 0 {
		close(c.done)
	}
	return true, nil
}

// serve sends n messages to the first who connects, in writes of up to 64 KiB; with zmtp it
// greets as a publisher first.
func serve(b *testing.B, n int, payload []byte, zmtp bool) string {
	where := filepath.Join(b.TempDir(), "events")
	l, err := net.Listen("unix", where)
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		defer l.Close()
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if zmtp {
			c.Write(greeting())
			c.Write(ready(isPub))
			io.ReadFull(c, make([]byte, 64)) // its greeting; what follows may wait
		}
		var out []byte
		for seq := range n {
			out = append(out, 1, 0, 1, 8)
			out = binary.BigEndian.AppendUint64(out, uint64(seq))
			out = append(out, long(2, uint64(len(payload)))...)
			if out = append(out, payload...); len(out) >= 64<<10 || seq == n-1 {
				if _, err := c.Write(out); err != nil {
					return
				}
				out = out[:0]
			}
		}
		io.Copy(io.Discard, c)
	}()
	return where
}

// eventBatch is a batch of one event with 8 blocks, which is about what a request's
// progress makes.
func eventBatch() []byte { return benchBatch(8) }

// BenchmarkFeed is a batch from the socket to the sink.
func BenchmarkFeed(b *testing.B) {
	b.ReportAllocs()
	batch, sink := eventBatch(), &counter{left: b.N, done: make(chan struct{})}
	b.SetBytes(int64(len(batch)))
	man := New(Config{QueueBatches: b.N + 1, QueueBytes: 1 << 40, QueueTotal: 1 << 40})
	defer man.Close()
	where := serve(b, b.N, batch, true)
	b.ResetTimer()
	if err := man.Set(rank0, Endpoints{Events: "ipc://" + where}, sink); err != nil {
		b.Fatal(err)
	}
	<-sink.done
}

// BenchmarkFloorSocket reads the same bytes through the same socket.
func BenchmarkFloorSocket(b *testing.B) {
	batch := eventBatch()
	b.SetBytes(int64(len(batch)))
	where := serve(b, b.N, batch, false)
	b.ResetTimer()
	c, err := net.Dial("unix", where)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if _, err := io.CopyN(io.Discard, struct{ io.Reader }{c}, int64(b.N*(len(batch)+21))); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPublisher is the same from a publisher in Python with libzmq, which sets the pace.
func BenchmarkPublisher(b *testing.B) {
	p, l := newPublisher(b), newLog()
	e := bound(p, Endpoints{Events: place(b).Events}, m{"hwm": 0})
	sink := &counter{left: b.N, done: make(chan struct{})}
	cfg := quick(l)
	cfg.QueueBatches = b.N + 1
	man := New(cfg)
	defer man.Close()
	if err := man.Set(rank0, e, sink); err != nil {
		b.Fatal(err)
	}
	p.Do("subscribed", nil)
	b.ResetTimer()
	p.Do("publish", m{"times": b.N, "batches": []m{{"raw": hex.EncodeToString(eventBatch())}}})
	<-sink.done
}
