package kvrt

import (
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

// Answer is the verdict of a role. The zero Answer is that of [Accept].
type Answer struct {
	reason abi.Reason
	told   bool // detail is the guest's own; else a host function's, which goes with the reason
	detail string
	body   []byte
	err    string // why the body could not be written
}

// Accept takes the action, which is passed on as it came. A policy that answers it has
// no actions.
func Accept() Answer { return Answer{} }

// Reject does not take the action. The detail is for people; abi.MaxDetail bytes of it
// are kept.
func Reject(reason abi.Reason, detail string) Answer {
	return Answer{reason: reason, told: true, detail: detail}
}

// Accepted tells whether the action is taken.
func (a Answer) Accepted() bool { return a.reason == abi.ReasonNone && a.err == "" }

// Reason is why the action is not taken.
func (a Answer) Reason() abi.Reason {
	if a.err != "" {
		return abi.ReasonLimitExceeded
	}
	return a.reason
}

// verdict is what a host function said, whose own detail goes with the answer.
func verdict(code int32) Answer { return Answer{reason: abi.Reason(-code)} }

// Result lays the answer out. It returns what a role returns when that is a number, and
// else the record Answer, whose place is then returned. buf is used when it is large
// enough.
func (a Answer) Result(buf []byte) (number int64, record []byte) {
	var x abi.Answer
	switch {
	case a.err != "":
		x = rejected(abi.ReasonLimitExceeded, a.err)
	case a.reason != abi.ReasonNone && !a.told:
		return -int64(a.reason), nil
	case a.reason != abi.ReasonNone:
		x = rejected(a.reason, a.detail)
	case a.body == nil:
		return 0, nil
	default: // written behind room for the record, see Writer
		abi.PutU32(a.body, abi.OffAnswerStatus, uint32(abi.StatusAccepted))
		abi.PutSpan(a.body, abi.OffAnswerBody, abi.Span{Off: abi.SizeAnswer, Len: uint32(len(a.body) - abi.SizeAnswer)})
		return 0, a.body
	}
	return 0, abi.AppendAnswer(buf[:0], x)
}

func rejected(reason abi.Reason, detail string) abi.Answer {
	detail = abi.Cut(detail)
	return abi.Answer{Status: abi.StatusRejected, Reason: reason, Detail: unsafe.Slice(unsafe.StringData(detail), len(detail))}
}
