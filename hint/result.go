package hint

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/kvrt/kvrt/abi"
)

// Result is what became of one action. Its byte fields are views of buffers that
// belong to whoever made it and hold until those are used again: copy what must live
// longer.
type Result struct {
	Index         int // position in the envelope
	ActionID      []byte
	ActionType    []byte
	ActionVersion []byte
	Status        abi.Status
	Reason        abi.Reason // ReasonNone when accepted
	Detail        []byte     // text for people, UTF-8
	Guest         string     // who judged it; empty when it reached no guest
	Generation    uint64
	Fuel          uint64
	DurationNS    int64
}

// AppendJSON appends the result as one JSON object, without a line break.
func (r *Result) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(r.Index), 10)
	dst = appendJSONString(append(dst, `,"action_id":`...), r.ActionID)
	dst = appendJSONString(append(dst, `,"action_type":`...), r.ActionType)
	dst = appendJSONString(append(dst, `,"action_version":`...), r.ActionVersion)
	dst = append(append(dst, `,"status":"`...), r.Status.String()...)
	dst = append(append(dst, `","reason":"`...), r.Reason.String()...)
	dst = append(dst, '"')
	dst = appendJSONString(append(dst, `,"detail":`...), validUTF8(r.Detail))
	dst = appendJSONString(append(dst, `,"guest":`...), r.Guest)
	dst = strconv.AppendUint(append(dst, `,"generation":`...), r.Generation, 10)
	dst = strconv.AppendUint(append(dst, `,"fuel":`...), r.Fuel, 10)
	dst = strconv.AppendInt(append(dst, `,"duration_ns":`...), r.DurationNS, 10)
	return append(dst, '}')
}

// AppendMsgpack appends the result as a msgpack map with the same keys.
func (r *Result) AppendMsgpack(dst []byte) []byte {
	dst = appendMsgpackMapHead(dst, 11)
	dst = appendMsgpackInt(append(dst, "\xa5index"...), int64(r.Index))
	dst = appendMsgpackString(append(dst, "\xa9action_id"...), r.ActionID)
	dst = appendMsgpackString(append(dst, "\xabaction_type"...), r.ActionType)
	dst = appendMsgpackString(append(dst, "\xaeaction_version"...), r.ActionVersion)
	dst = appendMsgpackString(append(dst, "\xa6status"...), r.Status.String())
	dst = appendMsgpackString(append(dst, "\xa6reason"...), r.Reason.String())
	dst = appendMsgpackString(append(dst, "\xa6detail"...), validUTF8(r.Detail))
	dst = appendMsgpackString(append(dst, "\xa5guest"...), r.Guest)
	dst = appendMsgpackUint(append(dst, "\xaageneration"...), r.Generation)
	dst = appendMsgpackUint(append(dst, "\xa4fuel"...), r.Fuel)
	return appendMsgpackInt(append(dst, "\xabduration_ns"...), r.DurationNS)
}

// validUTF8 mends a text that was cut within a character.
func validUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\ufffd"))
}
