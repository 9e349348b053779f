package peer

import (
	"errors"
	"net"
	"time"
)

// session is one link of a server. One goroutine runs it.
type session struct {
	server *Server
	use    *peerUse
	reader *readerCounters // since the first request
	frames frames
	mapped bool // the peer has the slab

	fetch    fetch
	begin    begin
	lease    Lease
	trailers []byte
	base     net.Buffers
	iovecs   net.Buffers
}

var errStale = errors.New("the peer has to authenticate anew")

// greet answers a Hello.
func (ss *session) greet() error {
	s, f := ss.server, &ss.frames
	h, b, err := f.receive(0, frameHello, frameHello)
	if err != nil {
		return err
	}
	var in hello
	if err := in.parse(b); err != nil {
		return err
	}
	f.peer = h.from
	out := welcome{maxBlocks: uint32(s.cfg.MaxBlocks), credit: s.credit(ss.use)}
	var slab Slab
	if in.features&featureSlab != 0 && f.link.SendFile != nil && s.cfg.Auth.MayMap(f.link.Peer) {
		if slab, ss.mapped = s.cfg.Source.Slab(); ss.mapped {
			out.features, out.slabSize = featureSlab, uint64(slab.Size)
		}
	}
	if err := f.send(frameWelcome, 0, out.append(f.body())); err != nil || !ss.mapped {
		return err
	}
	return f.link.SendFile(slab.FD)
}

// refuse answers a Hello with why there is no Welcome.
func (ss *session) refuse(why string) {
	f := &ss.frames
	h, _, err := f.receive(0, frameHello, frameHello)
	if err != nil {
		return
	}
	f.peer = h.from
	f.send(frameRefuse, 0, append(f.body(), why...)) // its failure is the link's, which ends here
}

// serve answers one request. After an error the link is closed.
func (ss *session) serve() error {
	s, f := ss.server, &ss.frames
	f.link.setDeadline(time.Now().Add(s.cfg.IdleTimeout))
	h, b, err := f.receive(0, frameFetch, frameFetch)
	if err != nil {
		return err
	}
	if err := ss.fetch.parse(b); err != nil {
		return err
	}
	if f.link.stale() || ss.mapped && !s.cfg.Auth.MayMap(f.link.Peer) {
		return errStale // the target notices before it has an answer, and dials again
	}
	s.stats.requests.Add(1)
	if ss.reader == nil {
		ss.reader = s.readers.of(f.link.Peer)
	}
	ss.reader.requests.Add(1)
	timeout := min(time.Duration(ss.fetch.timeoutMS)*time.Millisecond, s.cfg.OpTimeout)
	f.link.setDeadline(time.Now().Add(timeout))

	bytes := ss.take()
	defer func() {
		if len(ss.lease.Blocks) > 0 {
			s.cfg.Source.Release(&ss.lease)
		}
		ss.use.leased.Add(-bytes)
	}()
	if err := f.send(frameBegin, h.op, ss.begin.append(f.body())); err != nil {
		s.stats.cut.Add(1)
		return err
	}
	if ss.mapped {
		_, _, err = f.receive(h.op, frameDone, frameDone)
	} else {
		err = ss.payload(h.op)
	}
	if err != nil {
		s.stats.cut.Add(1)
		return err
	}
	out := end{served: ss.held()}
	s.stats.blocks.Add(uint64(out.served))
	s.stats.bytes.Add(uint64(bytes))
	ss.reader.blocks.Add(uint64(out.served))
	ss.reader.bytes.Add(uint64(bytes))
	// What this request holds is given back before the next one is read.
	out.credit = s.credit(ss.use) + uint64(bytes)
	return f.send(frameEnd, h.op, out.append(f.body()))
}

// take leases what can be served and announces it in ss.begin. It returns the bytes
// that it counted for the peer.
func (ss *session) take() int64 {
	s, m := ss.server, &ss.fetch
	ss.begin.records, ss.begin.stop = ss.begin.records[:0], StopNone
	ss.lease.Blocks, ss.lease.Full = ss.lease.Blocks[:0], false
	if !s.cfg.Auth.MayRead(ss.frames.link.Peer, m.namespace) {
		s.stats.denied.Add(1)
		ss.reader.denied.Add(1)
		ss.begin.stop = StopDenied
		return 0
	}
	hashes := m.hashes[:min(len(m.hashes), s.cfg.MaxBlocks)]
	want := int64(min(m.maxBytes, s.credit(ss.use)))
	s.cfg.Source.Lease(m.namespace, hashes, want, &ss.lease)
	var bytes int64
	for i := range ss.lease.Blocks {
		b := &ss.lease.Blocks[i]
		if m.blockBytes != 0 && len(b.Data) != int(m.blockBytes) {
			ss.begin.stop = StopLength
			break
		}
		if bytes+int64(len(b.Data)) > want {
			break
		}
		bytes += int64(len(b.Data))
		ss.begin.records = append(ss.begin.records, record{
			hash: b.Hash, generation: b.Generation, offset: uint64(b.Offset), length: uint32(len(b.Data)), crc: b.CRC,
		})
	}
	// Other links of the peer may have asked meanwhile: the last block gives way.
	for over := ss.use.leased.Add(bytes) > s.cfg.MaxBytesPerPeer; over && bytes > 0; {
		last := len(ss.begin.records) - 1
		less := int64(ss.begin.records[last].length)
		ss.begin.records, ss.begin.stop, bytes = ss.begin.records[:last], StopCredit, bytes-less
		over = ss.use.leased.Add(-less) > s.cfg.MaxBytesPerPeer
	}
	if n := len(ss.begin.records); ss.begin.stop == StopNone && n < len(m.hashes) {
		ss.begin.stop = StopMissing
		if n < len(ss.lease.Blocks) || n == len(hashes) || ss.lease.Full {
			ss.begin.stop = StopCredit
		}
	}
	return bytes
}

// A run is the blocks that share one stretch of trailers behind their bytes: small
// blocks cost no system call each, and a trailer speaks of a moment after its block
// was handed over.
const (
	runBlocks = 64
	runBytes  = 1 << 20
)

// runOf is how many of the records, one at least, make a run.
func runOf(records []record) int {
	n, bytes := 1, int(records[0].length)
	for n < min(len(records), runBlocks) && bytes+int(records[n].length) <= runBytes {
		bytes += int(records[n].length)
		n++
	}
	return n
}

// payload sends the leased blocks, run by run.
func (ss *session) payload(op uint64) error {
	ss.trailers = ss.trailers[:0]
	for at, n := 0, 0; at < len(ss.begin.records); at += n {
		n = runOf(ss.begin.records[at:])
		ss.iovecs = append(ss.base[:0], ss.trailers)
		for i := at; i < at+n; i++ {
			ss.iovecs = append(ss.iovecs, ss.lease.Blocks[i].Data)
		}
		if err := ss.write(); err != nil {
			return err
		}
		ss.trailers = ss.trailers[:0]
		for i := at; i < at+n; i++ {
			t := trailer{op: op, hash: ss.begin.records[i].hash, generation: ss.server.cfg.Source.Current(&ss.lease, i)}
			ss.trailers = t.append(ss.trailers)
		}
	}
	ss.iovecs = append(ss.base[:0], ss.trailers)
	return ss.write()
}

func (ss *session) write() error {
	ss.base = ss.iovecs // WriteTo consumes the slice that it is called on
	_, err := ss.iovecs.WriteTo(ss.frames.link.Data)
	return err
}

// held counts the blocks of the answer whose slots still have their generations.
func (ss *session) held() (n uint32) {
	for i := range ss.begin.records {
		if ss.server.cfg.Source.Current(&ss.lease, i) != ss.begin.records[i].generation {
			break
		}
		n++
	}
	return n
}
