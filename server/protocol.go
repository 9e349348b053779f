package server

import (
	"math"
	"strconv"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// ProtocolVersion is the version of the data socket's protocol that this package
// speaks. PROTOCOL.md describes it.
const ProtocolVersion = 1

// DefaultMaxFrame bounds a frame in bytes, its length not counted.
const DefaultMaxFrame = 8 << 20

// op says what a frame is. Number 14 is for a later operation.
type op uint8

const (
	opHello          op = 0
	opPing           op = 1
	opSubmit         op = 2
	opFinish         op = 3
	opDiscard        op = 4
	opStatus         op = 5
	opFormulate      op = 6
	opFormulateBatch op = 7
	opDescribe       op = 8
	opOutcomes       op = 9
	opFetch          op = 10
	opPutBlock       op = 11
	opGetBlock       op = 12
	opFollow         op = 13
	opError          op = 15 // from the server only: about the connection, not a request
	numOps              = 16
)

// The flags of a request. Others must be 0.
const (
	flagOneway  = 1 << iota // no reply, not even an error
	flagForward             // reply with the envelope to pass on
	knownFlags  = flagOneway | flagForward
)

// Code says why a request, or a connection, was refused. Append-only.
type Code uint8

// The codes of error frames.
const (
	CodeOK                 Code = 0
	CodeMalformed          Code = 1  // the envelope is malformed; no handler ran
	CodeBadRequest         Code = 2  // the frame is not a request of this protocol
	CodeUnknownOp          Code = 3  // this daemon does not know the operation
	CodeFrameTooLarge      Code = 4  // closes the connection
	CodeFrameTimeout       Code = 5  // a frame, or the hello, did not come in time; closes
	CodeTooManyConnections Code = 6  // closes
	CodeDraining           Code = 7  // the daemon takes no new connections, or is going away; closes
	CodeUnsupportedVersion Code = 8  // the text names the versions that are spoken; closes
	CodeHelloExpected      Code = 9  // the first frame was no hello; closes
	CodeUnknownDialect     Code = 10 // no loaded parser reads the dialect
	CodeUnavailable        Code = 11 // the daemon has no such subsystem, or is closing
	CodeFatal              Code = 12 // the native side failed; the daemon's log says more
	CodeReplyTooLarge      Code = 13 // the request was carried out and its reply does not fit a frame
	CodeOverloaded         Code = 14 // no memory for a frame of this size now; closes
	CodeUnencodable        Code = 15 // the output's encoding cannot hold the composed envelope
	CodeNotStored          Code = 16 // the block store has no room for the block, or takes none of this size
	CodeTooManyFollowers   Code = 17 // as many connections follow outcomes as may
	numCodes                    = 18
)

func (c Code) String() string {
	names := [numCodes]string{"ok", "malformed", "bad_request", "unknown_op", "frame_too_large", "frame_timeout",
		"too_many_connections", "draining", "unsupported_version", "hello_expected", "unknown_dialect", "unavailable",
		"fatal", "reply_too_large", "overloaded", "unencodable", "not_stored", "too_many_followers"}
	if int(c) < len(names) {
		return names[c]
	}
	return "code " + strconv.Itoa(int(c))
}

// The bounds of what a request may name, in bytes.
const (
	maxClientName = 128
	maxEngine     = 256
	maxRequestID  = 512
	maxDialect    = 64
	maxNamespace  = 512 // of a tenant too
)

// maxBatch bounds the contexts of one formulate_batch.
const maxBatch = 1024

// request is one decoded request. Its strings and its body are views of the frame.
type request struct {
	op       op
	seq      uint64
	flags    uint64
	identity hint.Identity
	format   abi.Format
	dialect  string
	body     []byte
	output   abi.Format // of formulate
	batch    batch
	aborted  bool

	// What describe says; the hashes are the body.
	tenant, namespace string
	blockSize         int

	// What outcomes, follow, fetch, put_block and get_block say besides; hashes and blocks are the body.
	messageID  string
	limit      int
	waitMS     int
	blockBytes int
	hash       uint64

	version uint64
	client  string

	named bool // op and seq are read, so that an error can be about this request
}

func (q *request) oneway() bool { return q.flags&flagOneway != 0 }

// The lengths of the arrays that requests are.
var requestLength = [numOps]int{opHello: 4, opPing: 2, opSubmit: 11, opFinish: 9, opDiscard: 8, opStatus: 8, opFormulate: 6, opFormulateBatch: 6, opDescribe: 12, opOutcomes: 10, opFetch: 12, opPutBlock: 7, opGetBlock: 6, opFollow: 11}

// batch is the bodies of a formulate_batch, as they lie in the frame.
type batch struct {
	raw   []byte
	count int
}

// decode reads a request. One of an unknown operation is read up to its flags.
func (q *request) decode(frame []byte) *frameError {
	*q = request{}
	r := reader{b: frame}
	n := r.array("a request")
	q.op = op(r.uint("the operation", math.MaxUint8))
	q.seq = r.uint("the sequence number", math.MaxUint64)
	if r.err != nil {
		return r.err
	}
	q.named = true
	if !q.op.known() {
		if n > 2 { // the flags stand third in every later operation
			q.flags = r.uint("the flags", math.MaxUint32)
		}
		return nil
	}
	if n != requestLength[q.op] {
		r.fail(0, "%s is an array of %d elements, not %d", q.op, requestLength[q.op], n)
		return r.err
	}
	switch q.op {
	case opHello:
		q.version = r.uint("the protocol version", math.MaxUint32)
		q.client = r.str("the client's name", maxClientName)
	case opSubmit:
		q.head(&r)
		q.format = abi.Format(r.uint("the format", uint64(abi.FormatMsgpack)))
		q.dialect = r.str("the dialect", maxDialect)
		body, inline := r.body("the body")
		q.inline(&r, inline)
		q.body = body
	case opFormulate, opFormulateBatch:
		q.readFlags(&r)
		q.format = abi.Format(r.uint("the format", uint64(abi.FormatMsgpack)))
		q.output = abi.Format(r.uint("the output", uint64(abi.FormatMsgpack)))
		if q.op == opFormulateBatch {
			q.batch = r.batch()
			break
		}
		body, inline := r.body("the body")
		q.inline(&r, inline)
		q.body = body
	case opFinish:
		q.head(&r)
		q.aborted = r.bool("aborted")
	case opDiscard, opStatus:
		q.head(&r)
	case opDescribe:
		q.describe(&r)
	case opOutcomes:
		q.readOutcomes(&r)
	case opFollow:
		q.readFollow(&r)
	case opFetch:
		q.readFetch(&r)
	case opPutBlock, opGetBlock:
		q.readBlock(&r)
	}
	r.end()
	return r.err
}

// inline takes note of a body that is a map itself.
func (q *request) inline(r *reader, inline bool) {
	if inline && q.format == abi.FormatUnknown {
		q.format = abi.FormatMsgpack
	} else if inline && q.format != abi.FormatMsgpack {
		r.fail(r.pos, "a body that is a map is msgpack, and the format says otherwise")
	}
}

func (q *request) readFlags(r *reader) {
	at := r.pos
	q.flags = r.uint("the flags", math.MaxUint32)
	if q.flags&^knownFlags != 0 {
		r.fail(at, "unknown flags %#x", q.flags&^knownFlags)
	}
}

// head reads flags and identity.
func (q *request) head(r *reader) {
	q.readFlags(r)
	id := &q.identity
	id.Engine = r.str("the engine", maxEngine)
	id.DPRank = uint32(r.uint("the DP rank", math.MaxUint32))
	id.Leg = abi.Leg(r.uint("the leg", uint64(abi.LegDecode)))
	id.Attempt = uint32(r.uint("the attempt", math.MaxUint32))
	id.RequestID = r.str("the request id", maxRequestID)
}

func (o op) known() bool { return o < numOps && requestLength[o] > 0 }

func (o op) String() string {
	switch o {
	case opHello:
		return "hello"
	case opPing:
		return "ping"
	case opSubmit:
		return "submit"
	case opFinish:
		return "finish"
	case opDiscard:
		return "discard"
	case opStatus:
		return "status"
	case opFormulate:
		return "formulate"
	case opFormulateBatch:
		return "formulate_batch"
	case opDescribe:
		return "describe"
	case opOutcomes:
		return "outcomes"
	case opFetch:
		return "fetch"
	case opPutBlock:
		return "put_block"
	case opGetBlock:
		return "get_block"
	case opFollow:
		return "follow"
	case opError:
		return "error"
	}
	return "operation " + strconv.Itoa(int(o))
}

// appendRequest writes a request as a frame.
func appendRequest(b []byte, q *request) []byte {
	b, at := beginFrame(b)
	b = appendArray(b, requestLength[q.op])
	b = appendUint(appendUint(b, uint64(q.op)), q.seq)
	switch q.op {
	case opHello:
		b = appendStr(appendUint(b, q.version), q.client)
		return endFrame(b, at)
	case opPing:
		return endFrame(b, at)
	}
	b = appendUint(b, q.flags)
	switch q.op {
	case opFormulate:
		b = appendUint(appendUint(b, uint64(q.format)), uint64(q.output))
		return endFrame(appendBin(b, q.body), at)
	case opFormulateBatch:
		b = appendUint(appendUint(b, uint64(q.format)), uint64(q.output))
		return endFrame(append(appendArray32(b, q.batch.count), q.batch.raw...), at)
	case opOutcomes, opFollow, opFetch, opPutBlock, opGetBlock:
		return endFrame(q.appendPeers(b), at)
	}
	b = q.appendIdentity(b)
	switch q.op {
	case opSubmit:
		b = appendBin(appendStr(appendUint(b, uint64(q.format)), q.dialect), q.body)
	case opFinish:
		b = appendBool(b, q.aborted)
	case opDescribe:
		b = appendUint(appendStr(appendStr(b, q.tenant), q.namespace), uint64(q.blockSize))
		b = appendBin(b, q.body)
	}
	return endFrame(b, at)
}

func (q *request) appendIdentity(b []byte) []byte {
	id := &q.identity
	b = appendStr(b, id.Engine)
	b = appendUint(appendUint(appendUint(b, uint64(id.DPRank)), uint64(id.Leg)), uint64(id.Attempt))
	return appendStr(b, id.RequestID)
}
