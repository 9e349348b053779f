package fetch

import (
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func TestCoverAndFail(t *testing.T) {
	s := New(Config{})
	id, other := hint.Identity{RequestID: "r"}, hint.Identity{RequestID: "s"}
	src := source("tcp://a:1")
	submit := func() abi.Reason {
		p, reason, detail := s.Prepare(id, src, manyHashes(3), false)
		if p == nil {
			t.Fatal(reason, detail)
		}
		reason, _ = p.Commit()
		return reason
	}
	submit()
	hashes := s.AppendHashes(nil, id)
	blocks := []uint64{hashes[2], 1 << 63, hashes[0]}
	named := []bool{false, true, false}
	if got, ok := s.Cover(id, blocks, named); !ok || !got.Same(src) || !named[0] || named[1] || !named[2] {
		t.Errorf("%v %v %v", got, ok, named)
	}
	if _, ok := s.Cover(other, blocks, named); ok || named[0] || named[2] {
		t.Error("a request without a hint is covered")
	}
	if s.Fail(other, abi.ReasonUnavailable) {
		t.Error("a hint that is not there failed")
	}
	if !s.Fail(id, abi.ReasonUnavailable) || s.Fail(id, abi.ReasonUnavailable) {
		t.Error("a hint fails once")
	}
	if st := s.Status(id); st.State != abi.FetchStateFailed || st.Cause != abi.ReasonUnavailable {
		t.Errorf("%+v", st)
	}
	if _, ok := s.Cover(id, blocks, named); ok {
		t.Error("a failed hint covers")
	}
	if reason := submit(); reason != abi.ReasonNone {
		t.Errorf("the same source again: %v", reason)
	}
	if _, ok := s.Cover(id, blocks, named); !ok {
		t.Error("a later hint does not clear the failure")
	}
	if st := s.Stats(); st.Entries != 1 || st.Bytes == 0 {
		t.Errorf("%+v", st)
	}
	s.Discard(id)
	if s.Fail(id, abi.ReasonUnavailable) || s.Stats().Bytes != 0 {
		t.Error("an ended request failed")
	}
}
