package server

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
)

// Replies, each a frame that begins [op, seq, code]. Those whose code is not 0 are
// [op, seq, code, text, offset].

// resultLength is the number of elements of a row of results.
const resultLength = 10

func beginReply(b []byte, o op, seq uint64, n int) []byte {
	return append(appendUint(append(appendArray(b, n), byte(o)), seq), byte(CodeOK))
}

func appendHelloReply(b []byte, seq uint64, version string, maxFrame int, generation uint64) []byte {
	b, at := beginFrame(b)
	b = beginReply(b, opHello, seq, 7)
	b = appendStr(appendUint(b, ProtocolVersion), version)
	b = appendUint(appendUint(b, uint64(maxFrame)), generation)
	return endFrame(b, at)
}

func appendPingReply(b []byte, seq, generation uint64, draining bool) []byte {
	b, at := beginFrame(b)
	b = beginReply(b, opPing, seq, 5)
	return endFrame(appendBool(appendUint(b, generation), draining), at)
}

// appendSubmitReply writes results, and the envelope to pass on when forward is set.
func appendSubmitReply(b []byte, seq uint64, results []hint.Result, forward bool, envelope []byte) []byte {
	b, at := beginFrame(b)
	b = beginReply(b, opSubmit, seq, 5)
	b = appendArray32(b, len(results))
	for i := range results {
		x := &results[i]
		b = appendArray(b, resultLength)
		b = appendText(appendText(appendText(b, x.ActionID), x.ActionType), x.ActionVersion)
		b = appendText(appendUint(append(b, byte(x.Status)), uint64(x.Reason)), x.Detail)
		b = appendStr(b, x.Guest)
		b = appendUint(appendUint(appendUint(b, x.Generation), x.Fuel), uint64(max(x.DurationNS, 0)))
	}
	if forward {
		b = appendBin(b, envelope)
	} else {
		b = appendNil(b)
	}
	return endFrame(b, at)
}

// appendDone writes the reply of finish and discard.
func appendDone(b []byte, o op, seq uint64) []byte {
	b, at := beginFrame(b)
	return endFrame(beginReply(b, o, seq, 3), at)
}

func appendStatusReply(b []byte, seq uint64, st *fetch.Status) []byte {
	b, at := beginFrame(b)
	b = beginReply(b, opStatus, seq, 10)
	b = appendUint(append(b, byte(st.State)), uint64(st.Cause))
	b = appendBool(appendBool(appendUint(b, uint64(st.Hashes)), st.HasSource), st.NoRetain)
	b = appendUint(appendUint(b, uint64(max(st.Submitted, 0))), uint64(max(st.Expires, 0)))
	return endFrame(b, at)
}

func appendErrorReply(b []byte, o op, seq uint64, code Code, msg string, offset int) []byte {
	b, at := beginFrame(b)
	b = append(appendUint(append(appendArray(b, 5), byte(o)), seq), byte(code))
	b = appendUint(appendText(b, []byte(msg[:min(len(msg), maxErrorText)])), uint64(max(offset, 0)))
	return endFrame(b, at)
}

// appendText writes a string that may have been cut within a character: readers want
// UTF-8.
func appendText(b, s []byte) []byte {
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("?"))
	}
	return appendStr(b, s)
}

// maxErrorText bounds the text of an error in bytes.
const maxErrorText = 4096

// replyLength is the lengths of the arrays that replies are.
var replyLength = [numOps]int{opHello: 7, opPing: 5, opSubmit: 5, opFinish: 3, opDiscard: 3, opStatus: 10, opFormulate: 5, opFormulateBatch: 4, opDescribe: 4, opOutcomes: 4, opFetch: 8, opPutBlock: 4, opGetBlock: 4, opFollow: 5}

// reply is one decoded reply, as the client sees it. What it holds are copies.
type reply struct {
	op         op
	seq        uint64
	err        *RemoteError // when the code is not 0
	version    uint64
	server     string
	maxFrame   int
	generation uint64
	draining   bool
	kept       bool // of describe
	results    []hint.Result
	forward    []byte
	status     fetch.Status
	outcomes   []outcome.Outcome
	dropped    uint64 // of follow
	fetched    Fetched
	block      []byte
	formulated []Formulated // of formulate one, of formulate_batch one per body
}

func (p *reply) decode(frame []byte) *frameError {
	*p = reply{}
	r := reader{b: frame}
	n := r.array("a reply")
	p.op = op(r.uint("the operation", math.MaxUint8))
	p.seq = r.uint("the sequence number", math.MaxUint64)
	code := Code(r.uint("the code", math.MaxUint8))
	want := replyLength[min(p.op, numOps-1)]
	if code != CodeOK {
		want = 5
	}
	if r.err == nil && n != want {
		r.fail(0, "a reply of %d elements, not %d", n, want)
	}
	if code != CodeOK {
		text := r.str("the text", maxErrorText)
		p.err = &RemoteError{Code: code, Text: string([]byte(text)), Offset: int(r.uint("the offset", math.MaxInt32))}
		r.end()
		return r.err
	}
	switch p.op {
	case opHello:
		p.version = r.uint("the protocol version", math.MaxUint32)
		p.server = string([]byte(r.str("the server's version", maxErrorText)))
		p.maxFrame = int(r.uint("the largest frame", math.MaxInt32))
		p.generation = r.uint("the generation", math.MaxUint64)
	case opPing:
		p.generation = r.uint("the generation", math.MaxUint64)
		p.draining = r.bool("draining")
	case opOutcomes:
		p.decodeOutcomes(&r)
	case opFollow:
		p.decodeFollow(&r)
	case opFetch:
		p.decodeFetch(&r)
	case opGetBlock:
		block, _ := r.body("the block")
		p.block = append([]byte(nil), block...)
	case opPutBlock:
		p.kept = r.bool("stored")
	case opDescribe:
		p.kept = r.bool("kept")
	case opSubmit:
		p.decodeResults(&r)
	case opFormulate:
		r.b = append([]byte(nil), r.b...)
		p.formulated = make([]Formulated, 1)
		p.formulated[0].decode(&r)
	case opFormulateBatch:
		p.decodeBatch(&r)
	case opStatus:
		st := &p.status
		st.State = abi.FetchState(r.uint("the state", math.MaxUint8))
		st.Cause = abi.Reason(r.uint("the cause", math.MaxUint32))
		st.Hashes = uint32(r.uint("the hashes", math.MaxUint32))
		st.HasSource, st.NoRetain = r.bool("has_source"), r.bool("no_retain")
		st.Submitted = int64(r.uint("submitted", math.MaxInt64))
		st.Expires = int64(r.uint("expires", math.MaxInt64))
	}
	r.end()
	return r.err
}

func (p *reply) decodeResults(r *reader) {
	r.b = append([]byte(nil), r.b...) // results are views of it
	n := r.array("the results")
	if n > len(r.b) {
		r.fail(r.pos, "%d results in a frame of %d bytes", n, len(r.b))
		return
	}
	p.results = make([]hint.Result, n)
	for i := range p.results {
		x := &p.results[i]
		if k := r.array("a result"); r.err == nil && k != resultLength {
			r.fail(r.pos, "a result of %d elements, not %d", k, resultLength)
		}
		x.Index = i
		x.ActionID = []byte(r.str("action_id", len(r.b)))
		x.ActionType = []byte(r.str("action_type", len(r.b)))
		x.ActionVersion = []byte(r.str("action_version", len(r.b)))
		x.Status = abi.Status(r.uint("the status", math.MaxUint8))
		x.Reason = abi.Reason(r.uint("the reason", math.MaxUint32))
		x.Detail = []byte(r.str("the detail", len(r.b)))
		x.Guest = r.str("the guest", len(r.b))
		x.Generation = r.uint("the generation", math.MaxUint64)
		x.Fuel = r.uint("the fuel", math.MaxUint64)
		x.DurationNS = int64(r.uint("the duration", math.MaxInt64))
		if r.err != nil {
			return
		}
	}
	p.forward, _ = r.body("the envelope to pass on")
}
