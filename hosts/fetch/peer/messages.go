package peer

import (
	"encoding/binary"
	"slices"
)

// A fetch asks for blocks.
type fetch struct {
	timeoutMS  uint32 // until the target gives up; at least 1
	blockBytes uint32 // length of every block; 0: any
	maxBytes   uint64 // the target's credit: no more is sent
	namespace  []byte // a view of the frame
	hashes     []uint64
}

func (m *fetch) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.timeoutMS)
	b = binary.LittleEndian.AppendUint32(b, m.blockBytes)
	b = binary.LittleEndian.AppendUint64(b, m.maxBytes)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.namespace)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.hashes)))
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = append(b, m.namespace...)
	for _, h := range m.hashes {
		b = binary.LittleEndian.AppendUint64(b, h)
	}
	return b
}

func (m *fetch) parse(b []byte) error {
	if len(b) < fetchBytes {
		return violation("a Fetch of %d bytes", len(b))
	}
	names, count := binary.LittleEndian.Uint32(b[16:]), binary.LittleEndian.Uint32(b[20:])
	m.timeoutMS, m.blockBytes, m.maxBytes = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])
	switch {
	case binary.LittleEndian.Uint64(b[24:]) != 0:
		return violation("bytes 24 to 31 of a Fetch are not 0")
	case m.timeoutMS == 0:
		return violation("a Fetch without time")
	case names > MaxNamespace || count == 0 || count > MaxBlocks:
		return violation("a Fetch with %d bytes of namespace and %d blocks", names, count)
	case uint64(len(b)) != fetchBytes+uint64(names)+8*uint64(count):
		return violation("a Fetch of %d bytes with %d bytes of namespace and %d blocks", len(b), names, count)
	case m.blockBytes > MaxBlock || m.maxBytes > 1<<62:
		return violation("a Fetch for blocks of %d bytes, %d in all", m.blockBytes, m.maxBytes)
	}
	m.namespace = b[fetchBytes : fetchBytes+names]
	m.hashes = slices.Grow(m.hashes[:0], int(count))
	for rest := b[fetchBytes+names:]; len(rest) > 0; rest = rest[8:] {
		m.hashes = append(m.hashes, binary.LittleEndian.Uint64(rest))
	}
	return nil
}

// Stop says why a source serves no more than it does.
type Stop uint32

const (
	StopNone    Stop = 0 // everything is served
	StopMissing Stop = 1 // the next block is not there
	StopDenied  Stop = 2 // the peer may not read this namespace, or there is none such
	StopCredit  Stop = 3 // the next block would be more bytes than the target, or the source, allows
	StopLength  Stop = 4 // the next block has another length than the target wants
	stops            = 5
)

func (s Stop) String() string {
	switch s {
	case StopNone:
		return "none"
	case StopMissing:
		return "missing"
	case StopDenied:
		return "denied"
	case StopCredit:
		return "credit"
	case StopLength:
		return "length"
	}
	return "unknown"
}

// A record announces one block.
type record struct {
	hash, generation, offset uint64
	length, crc              uint32
}

func (r *record) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.hash)
	b = binary.LittleEndian.AppendUint64(b, r.generation)
	b = binary.LittleEndian.AppendUint64(b, r.offset)
	b = binary.LittleEndian.AppendUint32(b, r.length)
	b = binary.LittleEndian.AppendUint32(b, r.crc)
	return binary.LittleEndian.AppendUint64(b, 0)
}

func (r *record) parse(b []byte) error {
	_ = b[recordBytes-1]
	r.hash, r.generation, r.offset = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	r.length, r.crc = binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[28:])
	if r.length == 0 || r.length > MaxBlock || binary.LittleEndian.Uint64(b[32:]) != 0 {
		return violation("a block of %d bytes", r.length)
	}
	return nil
}

// A begin announces what follows.
type begin struct {
	stop    Stop
	records []record
}

func (m *begin) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.records)))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.stop))
	for i := range m.records {
		b = m.records[i].append(b)
	}
	return b
}

func (m *begin) parse(b []byte) error {
	if len(b) < beginBytes {
		return violation("a Begin of %d bytes", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	m.stop = Stop(binary.LittleEndian.Uint32(b[4:]))
	if n > MaxBlocks || m.stop >= stops || len(b) != beginBytes+int(n)*recordBytes {
		return violation("a Begin of %d bytes with %d blocks, stopped by %d", len(b), n, m.stop)
	}
	m.records = slices.Grow(m.records[:0], int(n))[:n]
	for i := range m.records {
		if err := m.records[i].parse(b[beginBytes+i*recordBytes:][:recordBytes]); err != nil {
			return err
		}
	}
	return nil
}

// A trailer follows each block on the data stream. It says what the slot's generation
// is when the last byte has been handed over.
type trailer struct{ op, hash, generation uint64 }

func (t *trailer) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, t.op)
	b = binary.LittleEndian.AppendUint64(b, t.hash)
	return binary.LittleEndian.AppendUint64(b, t.generation)
}

func (t *trailer) parse(b []byte) error {
	if len(b) != trailerBytes {
		return violation("a trailer of %d bytes", len(b))
	}
	t.op, t.hash, t.generation = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	return nil
}

// An end closes an operation.
type end struct {
	served uint32 // blocks whose generation held to the end
	credit uint64 // bytes that the next request may ask for
}

func (m *end) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.served)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return binary.LittleEndian.AppendUint64(b, m.credit)
}

func (m *end) parse(b []byte) error {
	if len(b) != endBytes || binary.LittleEndian.Uint32(b[4:]) != 0 {
		return violation("that is no End")
	}
	m.served, m.credit = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[8:])
	return nil
}
