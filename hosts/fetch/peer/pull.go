package peer

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/kvrt/kvrt/internal/crc32c"
)

// puller is one link of a client. One pull at a time uses it.
type puller struct {
	client   *Client
	frames   frames
	slab     []byte // the source's, mapped; nil without
	op       uint64
	credit   uint64
	max      int
	since    time.Time // when it became idle
	kept     bool      // it has served a pull before
	answered bool      // the source has said something to this pull

	begin    begin
	slots    []Slot
	trailers []byte
	scratch  []byte // for blocks that the sink does not want
}

// RefusedError is why a source does not talk to us.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return "the peer refused the link: " + e.Text }

func (p *puller) close() {
	p.frames.link.Close()
	if p.slab != nil {
		unmapSlab(p.slab)
		p.slab = nil
	}
}

// bound makes the link's reads and writes end with ctx, or when the client is closed.
// The function that it returns undoes that.
func (p *puller) bound(ctx context.Context, deadline time.Time) (undo func()) {
	link := p.frames.link
	link.setDeadline(deadline)
	a := context.AfterFunc(ctx, link.Close)
	b := context.AfterFunc(p.client.ctx, link.Close)
	return func() { a(); b() }
}

// greet says Hello and reads the answer.
func (p *puller) greet(ctx context.Context) error {
	f := &p.frames
	deadline, _ := ctx.Deadline()
	defer p.bound(ctx, deadline)()
	m := hello{}
	if f.link.ReceiveFile != nil && !p.client.cfg.NoSlab {
		m.features = featureSlab
	}
	if err := f.send(frameHello, 0, m.append(f.body())); err != nil {
		return err
	}
	h, b, err := f.receive(0, frameWelcome, frameRefuse)
	if err != nil {
		return err
	}
	f.peer = h.from
	if h.kind == frameRefuse {
		return &RefusedError{string(b)}
	}
	var w welcome
	if err := w.parse(b); err != nil {
		return err
	}
	p.credit, p.max = w.credit, int(w.maxBlocks)
	if w.features&^m.features != 0 {
		return violation("features %#x that nobody asked for", w.features)
	}
	if w.features&featureSlab == 0 {
		return nil
	}
	file, err := f.link.ReceiveFile()
	if err != nil {
		return err
	}
	defer file.Close()
	p.slab, err = mapSlab(file, w.slabSize)
	return err
}

// pull runs one operation. After an error the link is not used any more.
func (p *puller) pull(ctx context.Context, deadline time.Time, req *Request, status []Status) (Result, error) {
	defer p.bound(ctx, deadline)()
	f := &p.frames
	p.answered = false
	p.op++
	left := time.Until(deadline).Milliseconds()
	m := fetch{
		timeoutMS: uint32(min(max(left, 1), math.MaxUint32)), blockBytes: uint32(req.BlockBytes),
		// Without credit the question is still asked, since the answer renews it.
		maxBytes:  min(uint64(req.MaxBytes), max(p.credit, 1)),
		namespace: req.Namespace, hashes: req.Hashes[:min(len(req.Hashes), p.max)],
	}
	if err := f.send(frameFetch, p.op, m.append(f.body())); err != nil {
		return Result{}, err
	}
	_, b, err := f.receive(p.op, frameBegin, frameBegin)
	if err != nil {
		return Result{}, err
	}
	p.answered = true
	res := Result{Source: f.peer}
	if err := p.begin.parse(b); err != nil {
		return res, err
	}
	if err := p.check(&m); err != nil {
		return res, err
	}
	if res.Stop = p.begin.stop; res.Stop == StopNone && len(m.hashes) < len(req.Hashes) {
		res.Stop = StopCredit
	}
	if p.slab != nil {
		err = p.copyAll(req, status, &res)
	} else {
		err = p.readAll(req, status, &res)
	}
	p.client.stats.blocks.Add(uint64(res.Blocks))
	p.client.stats.bytes.Add(uint64(res.Bytes))
	return res, err
}

// check holds what was announced against what was asked for.
func (p *puller) check(m *fetch) error {
	records := p.begin.records
	if len(records) > len(m.hashes) {
		return violation("%d blocks, and %d were asked for", len(records), len(m.hashes))
	}
	if p.begin.stop == StopNone && len(records) < len(m.hashes) {
		return violation("%d blocks of %d, and no reason", len(records), len(m.hashes))
	}
	var total uint64
	for i := range records {
		r := &records[i]
		total += uint64(r.length)
		switch {
		case r.hash != m.hashes[i]:
			return violation("block %d is another than was asked for", i)
		case m.blockBytes != 0 && r.length != m.blockBytes:
			return violation("block %d has %d bytes, and %d were asked for", i, r.length, m.blockBytes)
		case int(r.length) > p.client.cfg.MaxBlock:
			return violation("block %d has %d bytes, and %d are allowed", i, r.length, p.client.cfg.MaxBlock)
		case total > m.maxBytes:
			return violation("more than the %d bytes that were asked for", m.maxBytes)
		case p.slab != nil && (r.offset > uint64(len(p.slab)) || uint64(r.length) > uint64(len(p.slab))-r.offset):
			return violation("block %d lies outside the slab", i)
		}
	}
	return nil
}

// reserve takes a slot for each record, as far as the sink gives any. A slot without
// Data is one that the sink does not want, since it has the block.
func (p *puller) reserve(req *Request, records []record) error {
	p.slots = p.slots[:0]
	for i := range records {
		s, err := p.client.sink.Reserve(req.Namespace, records[i].hash, int(records[i].length))
		switch {
		case err == nil && len(s.Data) != int(records[i].length):
			p.client.sink.Abort(s)
			return fmt.Errorf("the store reserved %d bytes in place of %d", len(s.Data), records[i].length)
		case err == nil:
		case err == ErrPresent:
			s = Slot{}
		default:
			return err
		}
		p.slots = append(p.slots, s)
	}
	return nil
}

// abort gives the slots from i on back.
func (p *puller) abort(i int) {
	for ; i < len(p.slots); i++ {
		if p.slots[i].Data != nil {
			p.client.sink.Abort(p.slots[i])
		}
	}
	p.slots = p.slots[:0]
}

// commit makes the first n blocks of a run visible and gives the others back.
func (p *puller) commit(at, n int, status []Status, res *Result) {
	for i := range n {
		s := p.slots[i]
		status[at+i] = Dropped
		if s.Data != nil && p.client.sink.Commit(s, p.begin.records[at+i].crc) {
			status[at+i] = Success
		}
		res.Blocks++
		res.Bytes += int64(p.begin.records[at+i].length)
	}
	p.abort(n)
}

// readAll takes the blocks off the data stream, run by run.
func (p *puller) readAll(req *Request, status []Status, res *Result) error {
	records := p.begin.records
	for at, n := 0, 0; at < len(records); at += n {
		n = runOf(records[at:])
		if err := p.readRun(req, at, n, status, res); err != nil {
			return err
		}
	}
	return p.finish(len(records))
}

func (p *puller) readRun(req *Request, at, n int, status []Status, res *Result) error {
	run := p.begin.records[at : at+n]
	defer p.abort(0) // what is not committed
	if err := p.reserve(req, run); err != nil {
		return err
	}
	good := 0
	var bad error
	for i := range run {
		crc, err := p.read(p.slots[i].Data, int(run[i].length))
		if err != nil {
			return err // the trailers are missing: nothing of this run counts
		}
		if bad == nil && crc != run[i].crc {
			bad = violation("block %d has the wrong checksum", at+i)
		}
		if bad == nil {
			good++
		}
	}
	p.trailers = append(p.trailers[:0], make([]byte, n*trailerBytes)...)
	if _, err := io.ReadFull(p.frames.link.Data, p.trailers); err != nil {
		return err
	}
	for i := range good {
		var t trailer
		if err := t.parse(p.trailers[i*trailerBytes:][:trailerBytes]); err != nil {
			return err
		}
		if t.op != p.op || t.hash != run[i].hash || t.generation != run[i].generation {
			bad, good = violation("block %d changed while it was sent", at+i), i
			break
		}
	}
	p.commit(at, good, status, res)
	return bad
}

// skipChunk is how much of a block that is not wanted is read at once.
const skipChunk = 64 << 10

// read fills dst, or skips n bytes without one, and sums them up while they are in the cache.
func (p *puller) read(dst []byte, n int) (crc uint32, err error) {
	if dst == nil && p.scratch == nil {
		p.scratch = make([]byte, skipChunk)
	}
	for at := 0; at < n; {
		to := p.scratch[:min(n-at, len(p.scratch))]
		if dst != nil {
			to = dst[at:]
		}
		k, err := p.frames.link.Data.Read(to)
		crc = crc32c.Update(crc, to[:k])
		at += k
		if err != nil && at < n {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}
	return crc, nil
}

// finish reads the End of an operation with n blocks.
func (p *puller) finish(n int) error {
	_, b, err := p.frames.receive(p.op, frameEnd, frameEnd)
	if err != nil {
		return err
	}
	var m end
	if err := m.parse(b); err != nil {
		return err
	}
	if int(m.served) != n {
		return violation("%d blocks held to the end, of %d", m.served, n)
	}
	p.credit = m.credit
	return nil
}
