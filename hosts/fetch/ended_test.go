package fetch

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// TestEndedIsTold: of every end, whoever brought it about, once it has taken place; of
// nothing else.
func TestEndedIsTold(t *testing.T) {
	var told []string
	var s *Store
	s = New(Config{Ended: func(id hint.Identity) {
		if st := s.Status(id); st.State != abi.FetchStateFinished && len(id.RequestID) < 100 { // it could not be asked with a lock held
			t.Errorf("%s is told of and has not ended: %+v", id.RequestID, st)
		}
		told = append(told, fmt.Sprintf("%s/%.20s/%d/%d/%d", id.Engine, id.RequestID, id.DPRank, id.Leg, id.Attempt))
	}})
	whole := hint.Identity{Engine: "vllm", RequestID: "a", DPRank: 3, Leg: abi.LegDecode, Attempt: 2}
	submit(t, s, whole, "tcp://a:1", 1)
	submit(t, s, request("kept"), "tcp://a:1", 1)
	p, _, _ := s.PrepareFinish(whole, false)
	if len(told) != 0 {
		t.Errorf("told before the verdict: %q", told)
	}
	p.Commit()
	p, _, _ = s.PrepareDiscard(request("b"))
	p.Commit()
	p, _, _ = s.PrepareFinish(request("c"), true)
	p.Drop()
	p, _, _ = s.PrepareFinish(hint.Identity{Engine: "vllm"}, true)
	p.Commit()
	s.Finish(request("d"), false)
	s.Discard(request("e"))
	s.Discard(hint.Identity{})
	long := string(make([]byte, 1000))
	s.Finish(request(long), false) // no hint of it can be here, and its blocks can
	want := []string{"vllm/a/3/3/2", "vllm/b/0/0/0", "vllm/d/0/0/0", "vllm/e/0/0/0", "vllm/" + long[:20] + "/0/0/0"}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
	if st := s.Stats(); st.Prepared != 0 || st.Entries != 1 || st.Finished != 2 || st.Discarded != 2 {
		t.Errorf("%+v", st)
	}
	defer func() {
		if _, ok := recover().(*Fault); !ok {
			t.Error("a second commit is no fault")
		}
		s.Finish(request("d"), false) // nothing is locked
	}()
	p, _, _ = s.PrepareFinish(request("f"), false)
	p.Commit()
	p.Commit()
}

// TestEndedAllocatesNothing: a hint and its end.
func TestEndedAllocatesNothing(t *testing.T) {
	n := 0
	s := New(Config{Ended: func(id hint.Identity) { n += len(id.RequestID) }})
	id, hashes := request("r"), hashBytes(1, 2)
	once := func() {
		p, _, _ := s.Prepare(id, Source{}, hashes, false)
		p.Commit()
		p, _, _ = s.PrepareDiscard(id)
		p.Commit()
	}
	for range 100 {
		once()
	}
	if a := testing.AllocsPerRun(200, once); a != 0 || n == 0 {
		t.Errorf("%v allocations", a)
	}
}
