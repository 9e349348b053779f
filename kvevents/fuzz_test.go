package kvevents

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// FuzzDecode has a batch read twice, by a decoder that has read another one before: no input
// makes it panic, read beyond its limits, or say something else the second time.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens {
		f.Add(unhex(f, g.hex))
	}
	f.Add(benchBatch(3))
	f.Add(benchBatch(20))
	limits := Limits{Bytes: 1 << 12, Events: 20, Hashes: 50, Text: 30}
	used := Decoder{Limits: limits}
	f.Fuzz(func(t *testing.T, src []byte) {
		fresh := Decoder{Limits: limits}
		a, errA := fresh.Decode(src)
		b, errB := used.Decode(src)
		if (errA == nil) != (errB == nil) {
			t.Fatalf("%v, then %v", errA, errB)
		}
		if errA != nil {
			if e := errA.(*DecodeError); e.Offset < 0 || e.Offset > len(src) {
				t.Fatalf("offset %d of %d", e.Offset, len(src))
			}
			return
		}
		if show(a) != show(b) {
			t.Fatalf("%s, then %s", show(a), show(b))
		}
		n := 0
		for _, e := range a.Events {
			n += len(e.Hashes)
			if len(e.SessionID) > limits.Text || len(e.Medium) > limits.Text {
				t.Fatal("a text over its limit")
			}
		}
		if len(a.Events)+a.Unknown+a.Malformed > limits.Events || n > limits.Hashes {
			t.Fatalf("%d events, %d hashes", len(a.Events), n)
		}
	})
}

// FuzzSkip compares passing over a value with another reader of msgpack.
func FuzzSkip(f *testing.F) {
	for _, g := range goldens {
		f.Add(unhex(f, g.hex))
	}
	f.Add(unhex(f, "98 c2 d4 00 00 d8 00 00000000000000000000000000000000 c7 01 05 00 d9 01 78 c5 0001 00 de 0001 01 02 cb 0000000000000000"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 1<<12 { // the other one recurses
			return
		}
		s := scanner{src: src}
		s.skip(1)
		r := bytes.NewReader(src)
		err := msgpack.NewDecoder(r).Skip()
		if (s.err == nil) != (err == nil) {
			t.Fatalf("%x: %v, the other says %v", src, s.err, err)
		}
		if s.err == nil && s.pos != len(src)-r.Len() {
			t.Fatalf("%x: ends at %d, the other at %d", src, s.pos, len(src)-r.Len())
		}
	})
}

// FuzzGuard has a stream of frames pass the guard whole and byte by byte: it judges the same,
// and lets through no message over its limit.
func FuzzGuard(f *testing.F) {
	f.Add([]byte("\x01\x02ab\x00\x01c"), uint16(10))
	f.Add([]byte("\x03\x00\x00\x00\x00\x00\x00\x00\x02ab\x00\x00"), uint16(1))
	f.Add([]byte(strings.Repeat("\x01\x00", 12)), uint16(10))
	f.Fuzz(func(t *testing.T, stream []byte, limit uint16) {
		whole := guard{limit: uint64(limit)}
		err := whole.watch(stream)
		split := guard{limit: uint64(limit)}
		var splitErr error
		for i := 0; i < len(stream) && splitErr == nil; i++ {
			splitErr = split.watch(stream[i : i+1])
		}
		if err != splitErr {
			t.Fatalf("%v, byte by byte %v", err, splitErr)
		}
		if want := overLimit(stream, uint64(limit)); (err != nil) != want {
			t.Fatalf("%v, want over the limit %v", err, want)
		}
	})
}

// overLimit reads frames plainly.
func overLimit(stream []byte, limit uint64) bool {
	var n, bytes uint64
	for len(stream) >= 2 {
		flags, size, head := stream[0], uint64(stream[1]), 2
		if flags&2 != 0 {
			if len(stream) < 9 {
				return false
			}
			size, head = binary.BigEndian.Uint64(stream[1:]), 9
		}
		n++
		if size > limit || bytes+size > limit || n > frames {
			return true
		}
		bytes += size
		if uint64(len(stream)) < uint64(head)+size {
			return false
		}
		stream = stream[uint64(head)+size:]
		if flags&1 == 0 {
			n, bytes = 0, 0
		}
	}
	return false
}
