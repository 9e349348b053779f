package kvevents

import (
	"math"
	"unicode/utf8"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
)

// Limits bound what a batch may hold; the zero value means the defaults.
type Limits struct {
	Bytes  int // of one batch, 16 MiB
	Events int // in one batch, 65,536
	Hashes int // in one batch, 1 Mi
	Text   int // bytes of a name or an id, hint.MaxIdentity
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.Bytes, 16<<20)
	def(&l.Events, 1<<16)
	def(&l.Hashes, 1<<20)
	def(&l.Text, hint.MaxIdentity)
	return l
}

// A Decoder reads batches as vLLM, SGLang and TensorRT-LLM write them. The batch and
// each of its events may be a positional array or a map, mixed at will; fields and
// elements that are not known are passed over. It allocates while batches grow, for
// one that is far larger than serving engines make them, and for an error. The zero
// value is ready.
type Decoder struct {
	Limits Limits

	lim    Limits
	s      scanner
	batch  Batch
	hashes []uint64
}

// keepHashes and keepEvents are how much room a decoder keeps for the next batch: together
// about 1 MiB.
const (
	keepHashes = 1 << 16
	keepEvents = 1 << 11
)

const (
	msgBatch  = "a batch is an array of at least two elements, or a map with events"
	msgTime   = "ts is a number"
	msgEvents = "events is an array"
	msgRank   = "data_parallel_rank is nil or an integer from 0 to 2147483647"
	msgAfter  = "bytes after the batch"
	msgBytes  = "the batch has more bytes than the limit"
	msgMany   = "the batch has more events than the limit"
	msgHashes = "the batch has more hashes than the limit"
	msgKey    = "a batch's keys are strings"
)

// Decode reads one batch. What it returns is valid until the next call, and as long as
// src is not written to. The error is a *DecodeError.
func (d *Decoder) Decode(src []byte) (*Batch, error) {
	d.lim = d.Limits.withDefaults()
	d.s = scanner{src: src}
	if cap(d.hashes) > keepHashes || cap(d.batch.Events) > keepEvents {
		d.hashes, d.batch.Events = nil, nil
	}
	d.hashes = d.hashes[:0]
	d.batch = Batch{Rank: NoRank, Events: d.batch.Events[:0]}
	if len(src) > d.lim.Bytes {
		d.s.fail(msgBytes)
		return nil, d.s.err
	}
	switch v := d.s.next(); {
	case v.kind == kindArray && v.n >= 2:
		d.time()
		d.events()
		if v.n > 2 {
			d.rank()
			d.s.skip(v.n - 3)
		}
	case v.kind == kindMap:
		d.batchMap(v.n)
	default:
		d.s.fail(msgBatch)
	}
	if d.s.err == nil && d.s.pos != len(src) {
		d.s.fail(msgAfter)
	}
	if d.s.err != nil {
		return nil, d.s.err
	}
	return &d.batch, nil
}

func (d *Decoder) batchMap(n uint64) {
	haveEvents := false
	for range n {
		key := d.s.next()
		if key.kind != kindStr {
			d.s.fail(msgKey)
			return
		}
		switch string(key.b) {
		case "ts":
			d.time()
		case "events":
			d.events()
			haveEvents = true
		case "data_parallel_rank":
			d.rank()
		default:
			d.s.skip(1)
		}
	}
	if !haveEvents {
		d.s.fail(msgBatch)
	}
}

func (d *Decoder) time() {
	switch v := d.s.next(); v.kind {
	case kindFloat:
		d.batch.Time = math.Float64frombits(v.n)
	case kindInt:
		d.batch.Time = float64(v.n)
		if v.neg {
			d.batch.Time = float64(int64(v.n))
		}
	case kindNil:
	default:
		d.s.fail(msgTime)
	}
}

func (d *Decoder) rank() {
	switch v := d.s.next(); {
	case v.kind == kindNil:
		d.batch.Rank = NoRank
	case v.kind == kindInt && v.n <= math.MaxInt32:
		d.batch.Rank = Rank(v.n)
	default:
		d.s.fail(msgRank)
	}
}

func (d *Decoder) events() {
	v := d.s.next()
	if v.kind != kindArray {
		d.s.fail(msgEvents)
		return
	}
	if v.n > uint64(d.lim.Events) {
		d.s.fail(msgMany)
		return
	}
	// A key that comes twice counts as it was written last.
	d.batch.Events, d.hashes = d.batch.Events[:0], d.hashes[:0]
	d.batch.Unknown, d.batch.Malformed, d.batch.Lossy = 0, 0, false
	for i := uint64(0); i < v.n && d.s.err == nil; i++ {
		d.event()
	}
}

// tag says which event it is.
func tag(v value) Kind {
	if v.kind != kindStr {
		return 0
	}
	switch string(v.b) {
	case "BlockStored":
		return BlockStored
	case "BlockRemoved":
		return BlockRemoved
	case "AllBlocksCleared":
		return AllBlocksCleared
	}
	return 0
}

// event reads one event and keeps it if its tag is known and its fields are sound.
// Only bytes that are no msgpack fail the batch.
func (d *Decoder) event() {
	mark := len(d.hashes)
	e := fields{Event: Event{Group: NoGroup}}
	switch v := d.s.next(); v.kind {
	case kindMap:
		d.eventMap(&e, v.n)
	case kindArray:
		d.eventArray(&e, v.n)
	default:
		d.s.drop(v)
	}
	switch {
	case d.s.err != nil:
		return
	case e.Kind == 0:
		d.batch.Unknown++
	case e.Kind != AllBlocksCleared && (e.bad || !e.haveHashes):
		d.batch.Malformed++
		d.batch.Lossy = d.batch.Lossy || e.Kind == BlockRemoved
	default:
		if e.Kind == AllBlocksCleared {
			e.Event = Event{Kind: AllBlocksCleared, Group: NoGroup}
			d.hashes = d.hashes[:mark]
		}
		if string(e.Locality) == "REMOTE" {
			e.Tier = session.TierExternal
		}
		d.batch.Events = append(d.batch.Events, e.Event)
		return
	}
	d.hashes = d.hashes[:mark]
}

// fields are those of an event as they are read: of any kind, for a map may name its
// type last.
type fields struct {
	Event
	haveHashes bool
	bad        bool // a field that places blocks is of the wrong type
}

func (d *Decoder) eventMap(e *fields, n uint64) {
	for range n {
		key := d.s.next()
		if key.kind != kindStr {
			if key.kind == kindNone {
				return
			}
			d.s.drop(key)
			d.s.skip(1)
			continue
		}
		if string(key.b) == "type" {
			v := d.s.next()
			d.s.drop(v)
			e.Kind = tag(v)
			continue
		}
		d.field(e, fieldNamed(key.b))
	}
}

// field reads one value into e.
func (d *Decoder) field(e *fields, f field) {
	switch f {
	case fieldHashes:
		d.hashList(e)
	case fieldParent:
		d.parent(e)
	case fieldTokens:
		d.tokens(e)
	case fieldBlockSize:
		e.BlockSize = d.count()
	case fieldMedium:
		e.Medium = d.text(e, true)
		e.Tier = tierOf(e.Medium)
	case fieldGroup:
		d.group(e)
	case fieldSpecKind:
		e.SpecKind = d.text(e, true)
	case fieldWindow:
		e.SlidingWindow = d.count()
	case fieldLocality:
		e.Locality = d.text(e, true)
	case fieldSession:
		e.SessionID = d.text(e, false)
	case fieldLora:
		e.LoraName = d.text(e, false)
	case fieldSalt:
		e.CacheSalt = d.text(e, false)
	default:
		d.s.skip(1)
	}
}

// count reads a number of something. One of another type counts as none: no block is
// placed by it.
func (d *Decoder) count() uint32 {
	v := d.s.next()
	d.s.drop(v)
	if v.kind != kindInt || v.neg {
		return 0
	}
	return clampU32(v.n)
}

func (d *Decoder) group(e *fields) {
	v := d.s.next()
	d.s.drop(v)
	switch {
	case v.kind == kindInt && v.n <= math.MaxInt32:
		e.Group = int32(v.n)
	case v.kind != kindNil && !(v.neg && v.n == math.MaxUint64): // -1 is none as well
		e.bad = true
	}
}

// text reads a name, nil for none. strict names place blocks: one that is no text within
// the limit makes the event malformed; any other is left out.
func (d *Decoder) text(e *fields, strict bool) []byte {
	v := d.s.next()
	d.s.drop(v)
	switch {
	case v.kind == kindStr && len(v.b) <= d.lim.Text && utf8.Valid(v.b):
		return v.b
	case v.kind != kindNil && strict:
		e.bad = true
	}
	return nil
}

func (d *Decoder) tokens(e *fields) {
	v := d.s.next()
	if v.kind != kindArray {
		d.s.drop(v)
		return
	}
	e.Tokens = clampU32(v.n)
	if v.n == 0 {
		return
	}
	if d.s.pos < len(d.s.src) {
		c := d.s.src[d.s.pos]
		e.Eagle = c&0xf0 == 0x90 || c == 0xdc || c == 0xdd
	}
	d.s.skip(v.n)
}
