package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// waiting is a kvrt_fetch whose submit waits for something that does not come.
type waiting struct{ contexts chan context.Context }

func (*waiting) Name() string { return "kvrt_fetch" }

func (w *waiting) Functions() []runtime.HostFunction {
	return runtime.Functions("kvrt_fetch", map[string]func(*runtime.Call, []byte, []uint64){"submit": w.submit})
}

func (w *waiting) submit(c *runtime.Call, _ []byte, stack []uint64) {
	ctx := c.Patience()
	w.contexts <- ctx
	if uint32(stack[4]) == 0 { // an effect: it does not wait after all
		stack[0] = 0
		return
	}
	<-ctx.Done()
	stack[0] = uint64(uint32(c.Refuse(abi.ReasonUnavailable, "nobody answered in time")))
}

// TestPatience: a host function that waits as it should gives up in time, the action is
// rejected with its reason, and the instance goes on. Nothing outlives the call.
func TestPatience(t *testing.T) {
	w := &waiting{make(chan context.Context, 2)}
	r := newRuntime(t, runtime.Config{Hosts: []runtime.HostModule{w}, Patience: time.Millisecond}, scriptedGuest(t, '1'))
	res := r.NewResponse()
	if err := r.Dispatch(&runtime.Request{Body: envelope("x a")}, res); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(res.Results); got != "x=REJECTED/unavailable a=ACCEPTED" || string(res.Results[0].Detail) != "nobody answered in time" {
		t.Errorf("%s: %s", got, res.Results[0].Detail)
	}
	if ctx := <-w.contexts; !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("it gave up for %v", ctx.Err())
	}
	if s := statsOf(r, "scripted"); s.Traps != [runtime.NumTraps]uint64{} || s.Calls != 2 {
		t.Errorf("%+v", s)
	}
	if err := r.Dispatch(&runtime.Request{Body: envelope("e e")}, res); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if ctx := <-w.contexts; ctx.Err() == nil {
			t.Error("the patience of a call is not over with it")
		}
	}
}
