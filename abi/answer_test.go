package abi

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestAnswerRoundTrip(t *testing.T) {
	for _, a := range []Answer{
		{Status: StatusAccepted},
		{Status: StatusAccepted, Features: FeatureRawPayload},
		{Status: StatusAccepted, Body: []byte("12345678")},
		{Status: StatusRejected, Reason: ReasonInvalidPayload, Detail: []byte("é")},
		{Status: StatusRejected, Reason: ReasonNotFound, Detail: []byte{}},
	} {
		b := AppendAnswer(nil, a)
		got, err := CheckAnswer(b)
		if err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		if got.Status != a.Status || got.Reason != a.Reason || got.Features != a.Features ||
			!bytes.Equal(got.Detail, a.Detail) || (got.Detail == nil) != (a.Detail == nil) ||
			!bytes.Equal(got.Body, a.Body) || (got.Body == nil) != (a.Body == nil) {
			t.Errorf("got %+v, want %+v", got, a)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = CheckAnswer(b) }); n != 0 {
			t.Errorf("CheckAnswer allocates %v times", n)
		}
	}
}

func TestAnswerDetailIsCutBetweenCharacters(t *testing.T) {
	for long, want := range map[string]int{
		strings.Repeat("a", 600):         512,
		"a" + strings.Repeat("é", 300):   511,
		strings.Repeat("😀", 200):         512,
		"abc" + strings.Repeat("😀", 200): 511,
		strings.Repeat("a", 512):         512,
	} {
		a, err := CheckAnswer(AppendAnswer(nil, Answer{Status: StatusRejected, Reason: ReasonHandlerError, Detail: []byte(long)}))
		if err != nil || len(a.Detail) != want || string(a.Detail) != long[:want] {
			t.Errorf("%.8s: %d bytes, want %d (%v)", long, len(a.Detail), want, err)
		}
	}
}

func TestAnswerRefused(t *testing.T) {
	good := func() []byte {
		return AppendAnswer(nil, Answer{Status: StatusAccepted, Detail: []byte("ok"), Body: make([]byte, 64)})
	}
	for name, break_ := range map[string]func(b []byte) []byte{
		"short":               func(b []byte) []byte { return b[:SizeAnswer-1] },
		"status 0":            func(b []byte) []byte { PutU32(b, OffAnswerStatus, 0); return b },
		"status 3":            func(b []byte) []byte { PutU32(b, OffAnswerStatus, 3); return b },
		"accepted, reason":    func(b []byte) []byte { PutU32(b, OffAnswerReason, 1); return b },
		"rejected, no reason": func(b []byte) []byte { PutU32(b, OffAnswerStatus, 2); PutSpan(b, OffAnswerBody, Span{}); return b },
		"rejected, body": func(b []byte) []byte {
			PutU32(b, OffAnswerStatus, 2)
			PutU32(b, OffAnswerReason, uint32(ReasonInvalidPayload))
			return b
		},
		"a trap claimed": func(b []byte) []byte {
			return AppendAnswer(nil, Answer{Status: StatusRejected, Reason: ReasonHandlerTrap})
		},
		"unknown reason": func(b []byte) []byte {
			return AppendAnswer(nil, Answer{Status: StatusRejected, Reason: 1000})
		},
		"last field":      func(b []byte) []byte { b[OffAnswerZero] = 1; return b },
		"detail, header":  func(b []byte) []byte { PutSpan(b, OffAnswerDetail, Span{8, 2}); return b },
		"detail, outside": func(b []byte) []byte { PutSpan(b, OffAnswerDetail, Span{uint32(len(b)), 1}); return b },
		"detail, wraps":   func(b []byte) []byte { PutSpan(b, OffAnswerDetail, Span{math.MaxUint32, 2}); return b },
		"detail, 0":       func(b []byte) []byte { PutSpan(b, OffAnswerDetail, Span{0, 2}); return b },
		"detail, UTF-8":   func(b []byte) []byte { b[SizeAnswer+64] = 0xff; return b },
		"body, unaligned": func(b []byte) []byte { PutSpan(b, OffAnswerBody, Span{44, 8}); return b },
		"overlap":         func(b []byte) []byte { PutSpan(b, OffAnswerDetail, Span{SizeAnswer, 64}); return b },
	} {
		if _, err := CheckAnswer(break_(good())); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSplitResult(t *testing.T) {
	for _, c := range []struct {
		v    int64
		want Result
		ok   bool
	}{
		{0, Result{}, true},
		{-4, Result{Reason: ReasonInvalidPayload}, true},
		{-10, Result{}, false}, // a trap is not a guest's to claim
		{-99, Result{}, false},
		{math.MinInt64, Result{}, false},
		{math.MinInt64 + 1, Result{}, false},
		{1024<<32 | 40, Result{Off: 1024, Len: 40}, true},
		{1024<<32 | 39, Result{}, false},
		{1028<<32 | 40, Result{}, false},
		{40, Result{}, false}, // offset 0
		{0x7ffffff8<<32 | 0xffffffff, Result{Off: 0x7ffffff8, Len: math.MaxUint32}, true},
	} {
		got, ok := SplitResult(c.v)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%d: %+v %v, want %+v %v", c.v, got, ok, c.want, c.ok)
		}
	}
	frame := Span{4096, 512}
	for _, c := range []struct {
		r  Result
		ok bool
	}{
		{Result{Off: 8, Len: 40}, true},
		{Result{Off: 4056, Len: 40}, true},
		{Result{Off: 4056, Len: 41}, false},
		{Result{Off: 4600, Len: 40}, false},
		{Result{Off: 4608, Len: 40}, true},
		{Result{Off: 65496, Len: 40}, true},
		{Result{Off: 65496, Len: 41}, false},
		{Result{Off: 0x7ffffff8, Len: math.MaxUint32}, false},
	} {
		if got := c.r.Fits(65536, frame); got != c.ok {
			t.Errorf("%+v: %v", c.r, got)
		}
	}
}

func TestBeginInit(t *testing.T) {
	b := BeginInit(nil, FeatureRawPayload, "g")
	bb := Builder{buf: b}
	root := bb.Map(Entry{bb.String("k"), bb.Array(Uint(1), Uint(math.MaxUint64))})
	b = FinishInit(bb.Bytes(), root)
	p := GetNode(b, OffInitFrameParameters)
	v := Base(b).Lookup(p, "k")
	if v.Tag != TagU64s || Base(b).U64At(v, 1) != math.MaxUint64 || int(U32(b, OffInitFrameSize)) != len(b) {
		t.Errorf("%x", b)
	}
	if err := CheckTree(b, p); err != nil {
		t.Error(err)
	}
}
