package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version of the protocol. A frame of another version ends the link.
const Version = 1

// Bounds of the protocol, whatever either side is configured to.
const (
	MaxBlocks    = 16384   // in one request
	MaxNamespace = 1024    // bytes
	MaxBlock     = 1 << 30 // bytes
	maxText      = 256     // bytes of a refusal's reason
)

// Sizes on the wire. All integers are little-endian.
const (
	headerBytes  = 32
	helloBytes   = 16
	welcomeBytes = 32
	fetchBytes   = 32 // then the namespace, then the hashes
	beginBytes   = 8  // then a record per block
	recordBytes  = 40
	trailerBytes = 24 // behind each block on the data stream
	endBytes     = 16
	doneBytes    = 0
	maxFrame     = fetchBytes + MaxNamespace + MaxBlocks*recordBytes
)

type frameType uint8

const (
	frameHello   frameType = 1 // target to source, first
	frameWelcome frameType = 2 // the answer
	frameRefuse  frameType = 3 // the other answer; the link is closed behind it
	frameFetch   frameType = 4 // target to source
	frameBegin   frameType = 5 // what will be sent, or lies in the slab
	frameEnd     frameType = 6 // it has been sent, or was under lease until Done came
	frameDone    frameType = 7 // target to source: all that was of interest is copied
)

// magic opens a Hello, so that a stranger's bytes are told from a peer's.
const magic = 0x315245455054564b // "KVTPEER1"

// Features, of which a Welcome takes some of those in the Hello.
const featureSlab uint32 = 1

// ErrProtocol is in every error for something that the other side must not have sent.
var ErrProtocol = errors.New("the peer broke the protocol")

func violation(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// A header opens every frame. From and to are the incarnations of both ends: a random
// number per process start, so that a peer that restarted is a new one.
type header struct {
	length uint32 // of what follows
	kind   frameType
	op     uint64 // 0 in the handshake
	from   uint64
	to     uint64 // 0 in a Hello
}

func (h *header) put(b []byte) {
	_ = b[headerBytes-1]
	binary.LittleEndian.PutUint32(b, h.length)
	b[4], b[5], b[6], b[7] = byte(h.kind), Version, 0, 0
	binary.LittleEndian.PutUint64(b[8:], h.op)
	binary.LittleEndian.PutUint64(b[16:], h.from)
	binary.LittleEndian.PutUint64(b[24:], h.to)
}

func parseHeader(b []byte) (header, error) {
	if len(b) != headerBytes {
		return header{}, violation("a header of %d bytes", len(b))
	}
	h := header{
		length: binary.LittleEndian.Uint32(b),
		kind:   frameType(b[4]),
		op:     binary.LittleEndian.Uint64(b[8:]),
		from:   binary.LittleEndian.Uint64(b[16:]),
		to:     binary.LittleEndian.Uint64(b[24:]),
	}
	switch {
	case b[5] != Version:
		return h, violation("version %d, and this is version %d", b[5], Version)
	case b[6] != 0 || b[7] != 0:
		return h, violation("bytes 6 and 7 of a header are not 0")
	case h.kind < frameHello || h.kind > frameDone:
		return h, violation("frame type %d", h.kind)
	case h.from == 0:
		return h, violation("an incarnation of 0")
	case h.length > h.kind.limit():
		return h, violation("a frame of type %d and %d bytes", h.kind, h.length)
	}
	return h, nil
}

// limit is how long a frame's body may be.
func (t frameType) limit() uint32 {
	switch t {
	case frameHello:
		return helloBytes
	case frameWelcome:
		return welcomeBytes
	case frameRefuse:
		return maxText
	case frameFetch:
		return fetchBytes + MaxNamespace + 8*MaxBlocks
	case frameBegin:
		return beginBytes + recordBytes*MaxBlocks
	case frameEnd:
		return endBytes
	}
	return doneBytes
}

type hello struct{ features uint32 }

func (m *hello) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, magic)
	b = binary.LittleEndian.AppendUint32(b, m.features)
	return binary.LittleEndian.AppendUint32(b, 0)
}

func (m *hello) parse(b []byte) error {
	if len(b) != helloBytes || binary.LittleEndian.Uint64(b) != magic || binary.LittleEndian.Uint32(b[12:]) != 0 {
		return violation("that is no Hello")
	}
	m.features = binary.LittleEndian.Uint32(b[8:])
	return nil
}

type welcome struct {
	features  uint32
	maxBlocks uint32 // in one request
	credit    uint64 // bytes that the next request may ask for
	slabSize  uint64 // 0 without the feature
}

func (m *welcome) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.features)
	b = binary.LittleEndian.AppendUint32(b, m.maxBlocks)
	b = binary.LittleEndian.AppendUint64(b, m.credit)
	b = binary.LittleEndian.AppendUint64(b, m.slabSize)
	return binary.LittleEndian.AppendUint64(b, 0)
}

func (m *welcome) parse(b []byte) error {
	if len(b) != welcomeBytes || binary.LittleEndian.Uint64(b[24:]) != 0 {
		return violation("that is no Welcome")
	}
	m.features = binary.LittleEndian.Uint32(b)
	m.maxBlocks = binary.LittleEndian.Uint32(b[4:])
	m.credit = binary.LittleEndian.Uint64(b[8:])
	m.slabSize = binary.LittleEndian.Uint64(b[16:])
	switch {
	case m.features&^featureSlab != 0:
		return violation("features %#x that nobody asked for", m.features)
	case m.maxBlocks == 0 || m.maxBlocks > MaxBlocks:
		return violation("a limit of %d blocks", m.maxBlocks)
	case (m.features&featureSlab != 0) != (m.slabSize != 0) || m.slabSize > 1<<62:
		return violation("a slab of %d bytes with features %#x", m.slabSize, m.features)
	}
	return nil
}
