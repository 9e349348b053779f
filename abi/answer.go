package abi

import "unicode/utf8"

// Answer is what a role says, as record Answer lays it out.
type Answer struct {
	Status   Status
	Reason   Reason  // none unless rejected
	Detail   []byte  // text for people; nil when absent
	Body     []byte  // an Action or an EnvelopeFrame by itself, not yet checked; nil when absent
	Features Feature // chosen by kvrt_init
}

// CheckAnswer verifies an Answer record that begins b, and returns it. Detail is cut
// to [MaxDetail] bytes. Detail and Body share b. The body is the caller's to check,
// with [CheckAction] or [CheckEnvelope], since its form depends on the role.
func CheckAnswer(b []byte) (Answer, error) {
	var none Answer
	if len(b) < SizeAnswer || uint64(len(b)) > maxBase {
		return none, bad("an answer of %d bytes", len(b))
	}
	a := Answer{
		Status:   Status(U32(b, OffAnswerStatus)),
		Reason:   Reason(U32(b, OffAnswerReason)),
		Features: Feature(U64(b, OffAnswerFeatures)),
	}
	detail, body := GetSpan(b, OffAnswerDetail), GetSpan(b, OffAnswerBody)
	switch {
	case a.Status == StatusAccepted && a.Reason != ReasonNone:
		return none, bad("accepted with reason %d", uint32(a.Reason))
	case a.Status == StatusRejected && !a.Reason.FromGuest():
		return none, bad("rejected with reason %d, which is not a guest's to give", uint32(a.Reason))
	case a.Status == StatusRejected && body != Span{}:
		return none, bad("rejected with a body")
	case a.Status != StatusAccepted && a.Status != StatusRejected:
		return none, bad("status %d", uint32(a.Status))
	case U64(b, OffAnswerZero) != 0:
		return none, bad("an answer whose last field is not 0")
	}
	c := newChecker(b, SizeAnswer)
	if err := c.span(detail, "detail"); err != nil {
		return none, err
	}
	if err := c.raw(body, 8, "body"); err != nil {
		return none, err
	}
	a.Detail, a.Body = Cut(Base(b).Run(detail)), Base(b).Run(body)
	return a, nil
}

// Cut shortens UTF-8 text to MaxDetail bytes without splitting a character.
func Cut[T ~string | ~[]byte](text T) T {
	if len(text) <= MaxDetail {
		return text
	}
	n := MaxDetail
	for n > MaxDetail-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// AppendAnswer appends an Answer record, 8-byte aligned in b, with detail and body.
func AppendAnswer(b []byte, a Answer) []byte {
	b = Align(b)
	at := len(b)
	b = zeros(b, SizeAnswer)
	var detail, body Span
	if a.Body != nil {
		body = Span{SizeAnswer, uint32(len(a.Body))}
		b = append(b, a.Body...)
	}
	if a.Detail != nil {
		detail = Span{uint32(len(b) - at), uint32(len(a.Detail))}
		b = append(b, a.Detail...)
	}
	r := b[at:]
	PutU32(r, OffAnswerStatus, uint32(a.Status))
	PutU32(r, OffAnswerReason, uint32(a.Reason))
	PutSpan(r, OffAnswerDetail, detail)
	PutSpan(r, OffAnswerBody, body)
	PutU64(r, OffAnswerFeatures, uint64(a.Features))
	return Align(b)
}

// FromGuest tells whether a guest may give r as its reason to reject. What only the
// host can know (a trap, no fuel, no instance, a deadline) is not a guest's to claim.
func (r Reason) FromGuest() bool {
	switch r {
	case ReasonNone, ReasonHandlerTrap, ReasonHandlerOutOfFuel, ReasonHandlerUnavailable, ReasonHandlerTimeout, ReasonStripped:
		return false
	}
	return r.known()
}

func (r Reason) known() bool { return r <= lastReason }

const lastReason = ReasonStripped

// Result is a role's return value, taken apart.
type Result struct {
	Off, Len uint32 // of the Answer in guest memory; Len 0: there is none
	Reason   Reason // none: accepted, or look at the Answer
}

// SplitResult takes a role's return value apart: 0 is accepted unchanged, a negative
// value is a negated Reason, a positive one is offset << 32 | length of an Answer.
// It is false for a value that the ABI does not allow. The caller still holds the run
// against the memory's size and the frame, with [Result.Fits].
func SplitResult(v int64) (r Result, ok bool) {
	switch {
	case v == 0:
		return r, true
	case v < 0:
		// -v is positive here except for the smallest value, whose uint64 is large.
		if u := uint64(-v); u <= uint64(lastReason) && Reason(u).FromGuest() {
			return Result{Reason: Reason(u)}, true
		}
		return r, false
	}
	r = Result{Off: uint32(uint64(v) >> 32), Len: uint32(v)}
	return r, r.Off%8 == 0 && r.Off != 0 && r.Len >= SizeAnswer
}

// Fits tells whether the answer lies in a memory of size bytes and outside the frame.
func (r Result) Fits(size uint64, frame Span) bool {
	off, end := uint64(r.Off), uint64(r.Off)+uint64(r.Len)
	return end <= size && (end <= uint64(frame.Off) || off >= uint64(frame.Off)+uint64(frame.Len))
}

// ArenaResult takes the return value of kvrt_arena apart, which was asked for a size
// and has a memory of mem bytes. It is false when the guest refuses, or returns what
// the ABI does not allow, which counts as a refusal.
func ArenaResult(v int64, asked uint32, mem uint64) (off, size uint32, ok bool) {
	off, size = uint32(uint64(v)>>32), uint32(v)
	ok = v > 0 && off != 0 && off%8 == 0 && size >= asked && uint64(off)+uint64(size) <= mem
	return off, size, ok
}
