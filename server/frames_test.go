package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// stream makes frames of the given sizes; byte i of frame k is k+i.
func stream(sizes ...int) (all []byte, parts [][]byte) {
	for k, n := range sizes {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(k + i)
		}
		parts = append(parts, p)
		all = append(binary.BigEndian.AppendUint32(all, uint32(n)), p...)
	}
	return all, parts
}

func TestFramesAnyCut(t *testing.T) {
	all, want := stream(0, 1, 5, 300, firstBuffer-4, firstBuffer-3, firstBuffer+1, 3*keepBuffer, 0, 7, 7, 7, 2*firstBuffer)
	for name, src := range map[string]io.Reader{
		"all at once":     bytes.NewReader(all),
		"byte by byte":    iotest.OneByteReader(bytes.NewReader(all)),
		"halves":          iotest.HalfReader(bytes.NewReader(all)),
		"end with data":   iotest.DataErrReader(bytes.NewReader(all)),
		"random portions": &portions{rand.New(rand.NewPCG(1, 2)), all},
	} {
		b := &budget{limit: 1 << 20}
		f := frames{limit: 1 << 20, budget: b}
		var n int
		for {
			frame, ok, err := f.next()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if ok {
				if !bytes.Equal(frame, want[n]) {
					t.Fatalf("%s: frame %d of %d bytes differs", name, n, len(frame))
				}
				n++
				continue
			}
			if _, err := f.fill(src); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if n != len(want) || f.partial() {
			t.Errorf("%s: %d of %d frames, partial %t", name, n, len(want), f.partial())
		}
		if len(f.buf) > keepBuffer || b.used.Load() != 0 {
			t.Errorf("%s: after small frames the buffer is %d bytes, %d of the budget", name, len(f.buf), b.used.Load())
		}
	}
}

// portions reads random amounts.
type portions struct {
	rnd *rand.Rand
	b   []byte
}

func (p *portions) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+p.rnd.IntN(40000))], p.b)
	p.b = p.b[n:]
	return n, nil
}

// A length alone costs nothing: the buffer grows with what has come.
func TestFramesLiar(t *testing.T) {
	b := &budget{limit: 1 << 30}
	f := frames{limit: 1 << 30, budget: b}
	src := io.MultiReader(bytes.NewReader([]byte{0x3f, 0xff, 0xff, 0xff}), bytes.NewReader(make([]byte, 100_000)))
	for received := 0; ; {
		n, err := f.fill(src)
		received += n
		if err != nil {
			break
		}
		if _, ok, err := f.next(); ok || err != nil {
			t.Fatalf("next: %t %v", ok, err)
		}
		if len(f.buf) > max(firstBuffer, 2*received) {
			t.Fatalf("a buffer of %d bytes for %d that have come", len(f.buf), received)
		}
	}
	if over := int64(len(f.buf) - keepBuffer); b.used.Load() != over {
		t.Errorf("the budget says %d, the buffer is %d over", b.used.Load(), over)
	}
	f.release()
	if b.used.Load() != 0 {
		t.Errorf("%d bytes are left in the budget", b.used.Load())
	}
}

func TestFramesBounds(t *testing.T) {
	all, _ := stream(11)
	f := frames{limit: 10}
	f.fill(bytes.NewReader(all))
	var large *tooLarge
	if _, _, err := f.next(); !errors.As(err, &large) || large.size != 11 {
		t.Errorf("11 bytes where 10 are allowed: %v", err)
	}
	all, _ = stream(keepBuffer + 2000)
	f = frames{limit: 1 << 20, budget: &budget{limit: 1000}}
	src := bytes.NewReader(all)
	var err error
	for err == nil {
		_, err = f.fill(src)
	}
	if full := (errBudget{}); !errors.As(err, &full) || full.limit != 1000 {
		t.Errorf("a buffer beyond the budget: %v", err)
	}
}

func FuzzFrame(f *testing.F) {
	all, _ := stream(0, 3, 40)
	f.Add(all, uint8(1))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1}, uint8(3))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint8(255))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		const limit = 1 << 16
		b := &budget{limit: 1 << 20}
		fr := frames{limit: limit, budget: b}
		src := &steps{in, int(step) + 1}
		var got []byte
		for {
			frame, ok, err := fr.next()
			if err != nil {
				if n := binary.BigEndian.Uint32(in[len(got):]); n <= limit {
					t.Fatalf("a frame of %d bytes is refused: %v", n, err)
				}
				break
			}
			if ok {
				got = append(binary.BigEndian.AppendUint32(got, uint32(len(frame))), frame...)
				continue
			}
			if _, err := fr.fill(src); err != nil {
				break
			}
			if len(fr.buf) > max(firstBuffer, 2*len(in)) {
				t.Fatalf("a buffer of %d bytes for an input of %d", len(fr.buf), len(in))
			}
		}
		if !bytes.HasPrefix(in, got) {
			t.Fatalf("the frames are not what was sent: %x of %x", got, in)
		}
		if rest := in[len(got):]; len(rest) >= frameHead {
			if n := int(binary.BigEndian.Uint32(rest)); n <= limit && len(rest)-frameHead >= n {
				t.Fatalf("a frame of %d bytes was left behind", n)
			}
		}
	})
}

// steps reads a fixed number of bytes at a time.
type steps struct {
	b    []byte
	step int
}

func (s *steps) Read(b []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.step)], s.b)
	s.b = s.b[n:]
	return n, nil
}
