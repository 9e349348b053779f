package session

import (
	"fmt"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

// TestExclusiveIsCharged: a session beside whose path many others branch off is dear to
// look at, and one beside few is as dear as the price says.
func TestExclusiveIsCharged(t *testing.T) {
	for others, allowed := range map[int]bool{freeLooks / 2: true, 16 * freeLooks: false} {
		var set Set
		x := set.Add("", Config{Grace: -1})
		w := hint.Worker{ID: hint.UintWorker(1)}
		store := func(session string, parent uint64, hashes ...uint64) {
			if _, err := x.Apply(&Event{Op: OpStored, Worker: w, Session: session, Parent: parent, HasParent: parent != 0, Hashes: hashes}); err != nil {
				t.Fatal(err)
			}
		}
		store("s", 0, 1, 2, 3, 4)
		for i := range others {
			store(fmt.Sprint("other-", i), 2, uint64(100+i))
		}
		mem := make([]byte, 4096)
		mem[0] = 's'
		abi.PutNode(mem, 16, abi.Uint(1))
		c := runtime.NewCall(runtime.CallConfig{Limits: runtime.Limits{HostBytes: 4096}})
		stack := []uint64{0, 1, 16, uint64(^uint32(0)), 64, 1024}
		hosttest.Function(t, NewHost(&set, nil), "exclusive").Call(c, mem, stack)
		switch got := int64(stack[0]); {
		case allowed && got != abi.SizeLineage+abi.SizePath+2*8:
			t.Errorf("beside %d sessions: %d", others, got)
		case !allowed && got != -int64(abi.ReasonLimitExceeded):
			t.Errorf("beside %d sessions, where 4 KiB may be looked at: %d", others, got)
		}
	}
}
