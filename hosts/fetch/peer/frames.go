package peer

import (
	"io"
	"math/rand/v2"
	"slices"

	"github.com/kvrt/kvrt/internal/crc32c"
)

// NewIncarnation makes a random number that stands for one start of a process.
func NewIncarnation() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

// Checksum is the CRC32C of a block.
func Checksum(b []byte) uint32 { return crc32c.Checksum(b) }

// frames reads and writes the frames of one link. Its buffers are reused: what
// receive returns holds until the next call.
type frames struct {
	link       *Link
	self, peer uint64 // incarnations; peer is 0 until it is known
	head       [headerBytes]byte
	in, out    []byte
}

// body is where the next frame's body is appended to.
func (f *frames) body() []byte { return append(f.out[:0], make([]byte, headerBytes)...) }

// send writes a frame whose body was appended to body().
func (f *frames) send(kind frameType, op uint64, b []byte) error {
	h := header{length: uint32(len(b) - headerBytes), kind: kind, op: op, from: f.self, to: f.peer}
	h.put(b)
	f.out = b
	_, err := f.link.Control.Write(b)
	return err
}

// receive reads a frame of one of two kinds that belongs to op, unless that is 0.
func (f *frames) receive(op uint64, want, or frameType) (header, []byte, error) {
	if _, err := io.ReadFull(f.link.Control, f.head[:]); err != nil {
		return header{}, nil, err
	}
	h, err := parseHeader(f.head[:])
	switch {
	case err != nil:
		return h, nil, err
	case h.kind != want && h.kind != or:
		return h, nil, violation("a frame of type %d where %d was due", h.kind, want)
	case f.peer != 0 && h.from != f.peer:
		return h, nil, violation("a frame of another incarnation than the link's")
	case h.kind != frameHello && h.to != f.self:
		return h, nil, violation("a frame for another incarnation than this")
	case op != 0 && h.op != op:
		return h, nil, violation("a frame of operation %d during %d", h.op, op)
	}
	f.in = slices.Grow(f.in[:0], int(h.length))[:h.length]
	if _, err := io.ReadFull(f.link.Control, f.in); err != nil {
		return h, nil, err
	}
	return h, f.in, nil
}
