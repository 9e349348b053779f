package hint

import (
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// PolicyResult is what became of one policy's answer. Like a [Result] it holds views.
type PolicyResult struct {
	Name       string
	Actions    int // that went into the envelope
	Dropped    []DroppedAction
	Reason     abi.Reason // ReasonNone: the answer was taken
	Detail     []byte     // of Reason
	Generation uint64     // that loaded the policy
	Fuel       uint64
	DurationNS int64
}

// DroppedAction is an action of a policy that did not go into the envelope.
type DroppedAction struct {
	ActionID   []byte
	ActionType []byte
	Reason     abi.Reason
	Detail     string
}

// AppendFormulatedJSON appends what a formulation came to, as one JSON object without a
// line break. envelope is JSON, or empty for none.
func AppendFormulatedJSON(dst, envelope []byte, policies []PolicyResult) []byte {
	dst = append(dst, `{"envelope":`...)
	if len(envelope) == 0 {
		envelope = []byte("null")
	}
	dst = append(append(dst, envelope...), `,"policies":[`...)
	for i := range policies {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = policies[i].AppendJSON(dst)
	}
	return append(dst, "]}"...)
}

// AppendFormulatedMsgpack is AppendFormulatedJSON as a msgpack map with the same keys;
// envelope is msgpack.
func AppendFormulatedMsgpack(dst, envelope []byte, policies []PolicyResult) []byte {
	dst = append(appendMsgpackMapHead(dst, 2), "\xa8envelope"...)
	if len(envelope) == 0 {
		dst = append(dst, mpNil)
	}
	dst = append(append(dst, envelope...), "\xa8policies"...)
	dst = appendMsgpackArrayHead(dst, uint32(len(policies)))
	for i := range policies {
		dst = policies[i].AppendMsgpack(dst)
	}
	return dst
}

// AppendJSON appends the result as one JSON object. error is empty, or the reason's code
// with the detail behind it.
func (p *PolicyResult) AppendJSON(dst []byte) []byte {
	dst = appendJSONString(append(dst, `{"name":`...), []byte(p.Name))
	dst = strconv.AppendInt(append(dst, `,"actions":`...), int64(p.Actions), 10)
	dst = append(dst, `,"dropped":[`...)
	for i := range p.Dropped {
		d := &p.Dropped[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(append(dst, `{"action_id":`...), d.ActionID)
		dst = appendJSONString(append(dst, `,"action_type":`...), d.ActionType)
		dst = append(append(append(dst, `,"reason":"`...), d.Reason.String()...), '"')
		dst = append(appendJSONString(append(dst, `,"detail":`...), []byte(d.Detail)), '}')
	}
	var buf [128]byte
	dst = appendJSONString(append(dst, `],"error":`...), p.appendError(buf[:0]))
	dst = strconv.AppendUint(append(dst, `,"fuel":`...), p.Fuel, 10)
	dst = strconv.AppendInt(append(dst, `,"duration_ns":`...), p.DurationNS, 10)
	return append(dst, '}')
}

// AppendMsgpack appends the result as a msgpack map with the same keys.
func (p *PolicyResult) AppendMsgpack(dst []byte) []byte {
	dst = append(appendMsgpackMapHead(dst, 6), "\xa4name"...)
	dst = appendMsgpackInt(append(appendMsgpackString(dst, p.Name), "\xa7actions"...), int64(p.Actions))
	dst = appendMsgpackArrayHead(append(dst, "\xa7dropped"...), uint32(len(p.Dropped)))
	for i := range p.Dropped {
		d := &p.Dropped[i]
		dst = append(appendMsgpackMapHead(dst, 4), "\xa9action_id"...)
		dst = append(appendMsgpackString(dst, d.ActionID), "\xabaction_type"...)
		dst = append(appendMsgpackString(dst, d.ActionType), "\xa6reason"...)
		dst = append(appendMsgpackString(dst, d.Reason.String()), "\xa6detail"...)
		dst = appendMsgpackString(dst, d.Detail)
	}
	var buf [128]byte
	dst = appendMsgpackString(append(dst, "\xa5error"...), p.appendError(buf[:0]))
	dst = appendMsgpackUint(append(dst, "\xa4fuel"...), p.Fuel)
	return appendMsgpackInt(append(dst, "\xabduration_ns"...), p.DurationNS)
}

func (p *PolicyResult) appendError(dst []byte) []byte {
	if p.Reason == abi.ReasonNone {
		return dst
	}
	dst = append(dst, p.Reason.String()...)
	if len(p.Detail) > 0 {
		dst = append(append(dst, ": "...), validUTF8(p.Detail)...)
	}
	return dst
}
