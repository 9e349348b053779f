package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func TestSubmit(t *testing.T) {
	g := newRig(t)
	c := g.dial()
	ctx := context.Background()
	reply, err := c.Submit(ctx, Submit{Body: envelope("a r t d"), Forward: true, Identity: hint.Identity{RequestID: "r1"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := verdicts(reply.Results), "a=ACCEPTED r=REJECTED/invalid_payload t=REJECTED/handler_trap d=ACCEPTED"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i, x := range reply.Results {
		if x.Index != i || string(x.ActionType) != "demo.echo" || string(x.ActionVersion) != "1.0" || x.Guest != "demo" || x.Generation != 1 {
			t.Errorf("result %d: %+v", i, x)
		}
	}
	if d := string(reply.Results[3].Detail); d != "version0" {
		t.Errorf("detail %q", d)
	}
	if got := string(reply.Forward); strings.Contains(got, `"r"`) || !strings.Contains(got, `"action_id":"d"`) {
		t.Errorf("the envelope to pass on: %s", got)
	}
	if c.ServerVersion() != "1.2.3" {
		t.Errorf("the daemon calls itself %q", c.ServerVersion())
	}
	if gen, draining, err := c.Ping(ctx); gen != 1 || draining || err != nil {
		t.Errorf("ping: %d %t %v", gen, draining, err)
	}
	// Nothing was asked for, so nothing comes.
	if reply, err = c.Submit(ctx, Submit{Body: envelope("a")}); err != nil || reply.Forward != nil {
		t.Errorf("%+v %v", reply, err)
	}
}

func TestSubmitMalformed(t *testing.T) {
	g := newRig(t)
	c := g.dial()
	_, want := func() (int, error) {
		var f hint.Frame
		return 0, f.Decode(abi.FormatUnknown, []byte(`{"actions":7}`), hint.Limits{})
	}()
	for range 2 { // and the connection stays
		reply, err := c.Submit(context.Background(), Submit{Body: []byte(`{"actions":7}`)})
		if err != nil {
			t.Fatal(err)
		}
		if reply.Err == nil || reply.Err.Error() != want.Error() || !strings.HasPrefix(reply.Err.Error(), "malformed envelope: ") || reply.Results != nil {
			t.Errorf("got %v, want %v", reply.Err, want)
		}
	}
	var refused *RemoteError
	if _, err := c.Submit(context.Background(), Submit{Dialect: "nobody", Body: []byte("x")}); !errors.As(err, &refused) || refused.Code != CodeUnknownDialect {
		t.Errorf("an unknown dialect: %v", err)
	}
}

func TestInlineBody(t *testing.T) {
	g := newRig(t)
	r := g.raw()
	frame, at := beginFrame(nil)
	frame = append(frame, 0x9b, byte(opSubmit), 9, 0, 0xa0, 0, 0, 0, 0xa1, 'r', 0, 0xa0)
	frame = append(frame, packed(t, map[string]any{"actions": []any{map[string]any{"action_id": "a", "action_type": "demo.echo", "action_version": "1.0", "payload": map[string]any{}}}})...)
	r.send(endFrame(frame, at))
	if p := r.recv(); p.seq != 9 || p.err != nil || verdicts(p.results) != "a=ACCEPTED" {
		t.Errorf("got %+v", p)
	}
}

func TestLifecycleOps(t *testing.T) {
	g := newRig(t, withKVFetch(t))
	c := g.dial()
	ctx := context.Background()
	id := hint.Identity{Engine: "vllm", DPRank: 1, Leg: abi.LegPrefill, Attempt: 2, RequestID: "r1"}
	reply, err := c.Submit(ctx, Submit{Identity: id, Body: benchBody(t, 3)})
	if err != nil || verdicts(reply.Results) != "a1=ACCEPTED" {
		t.Fatalf("%+v %v", reply, err)
	}
	st, err := c.Status(ctx, id)
	if err != nil || st != g.store.Status(id) || st.State != abi.FetchStateLive || st.Hashes != 3 {
		t.Errorf("status %+v %v", st, err)
	}
	other := id
	other.Leg = abi.LegDecode
	if st, err := c.Status(ctx, other); err != nil || st.State != abi.FetchStateNone {
		t.Errorf("another leg's status %+v %v", st, err)
	}
	if err := c.Finish(ctx, id, true); err != nil {
		t.Error(err)
	}
	if st, _ := c.Status(ctx, id); st.State != abi.FetchStateFinished {
		t.Errorf("after finish: %+v", st)
	}
	reply, err = c.Submit(ctx, Submit{Identity: id, Body: benchBody(t, 3)})
	if err != nil || verdicts(reply.Results) != "a1=REJECTED/request_finished" {
		t.Errorf("a late submit: %+v %v", reply, err)
	}
	if err := c.Discard(ctx, other); err != nil {
		t.Error(err)
	}
	if n := g.store.Stats(); n.Finished != 1 || n.Discarded != 1 {
		t.Errorf("%+v", n)
	}
}

func TestOneWay(t *testing.T) {
	g := newRig(t)
	r := g.raw()
	var out []byte
	for _, q := range []request{
		{op: opSubmit, flags: flagOneway, body: envelope("a")},
		{op: opSubmit, flags: flagOneway | flagForward, body: envelope("a")},
		{op: opSubmit, flags: flagOneway, body: []byte("nonsense")},
		{op: opSubmit, flags: flagOneway, dialect: "nobody", body: []byte("{}")},
		{op: opFinish, flags: flagOneway},
		{op: opDiscard, flags: flagOneway},
		{op: opStatus, flags: flagOneway},
	} {
		out = appendRequest(out, &q)
	}
	out = append(out, 0, 0, 0, 4, 0x93, 14, 1, 1) // an unknown operation, one-way too
	out = append(out, 0, 0, 0, 8, 0x98, byte(opDiscard), 1, 1, 0xa0, 0xff, 0, 0)
	r.send(appendRequest(out, &request{op: opPing, seq: 77}))
	if p := r.recv(); p.op != opPing || p.seq != 77 {
		t.Errorf("a one-way request was answered: %+v", p)
	}
	st := g.srv.Stats()
	if st.Oneway != 2 || st.Errors[CodeMalformed] != 1 || st.Errors[CodeUnknownDialect] != 1 || st.Errors[CodeUnknownOp] != 1 || st.Errors[CodeBadRequest] != 1 {
		t.Errorf("%+v", st)
	}
}

func TestPipelining(t *testing.T) {
	g := newRig(t)
	r := g.raw()
	const n = 3000
	var out []byte
	for i := range n {
		out = append(out, submitFrame(uint64(i+1), envelope("a r"))...)
	}
	go func() { r.conn.Write(out) }()
	for i := range n {
		if p := r.recv(); p.seq != uint64(i+1) || len(p.results) != 2 {
			t.Fatalf("reply %d is %+v", i, p)
		}
	}
}

func TestErrorsThatStay(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.Store = nil })
	r := g.raw()
	r.send([]byte("\x00\x00\x00\x00"))
	r.wantError(opError, CodeBadRequest, "malformed request: the frame ends where a request should stand at offset 0")
	r.send([]byte("\x00\x00\x00\x03foo"))
	r.wantError(opError, CodeBadRequest, "a request must be an array")
	r.send([]byte("\x00\x00\x00\x03\x93\x01\x05"))
	r.wantError(opPing, CodeBadRequest, "ping is an array of 2 elements, not 3 at offset 0")
	r.send([]byte("\x00\x00\x00\x03\x93\x0e\x07"))
	r.wantError(op(14), CodeUnknownOp, "does not know operation 14")
	r.send([]byte("\x00\x00\x00\x03\x92\x0e\x07"))
	r.wantError(op(14), CodeUnknownOp, "does not know operation 14")
	r.send(appendRequest(nil, &request{op: opFinish, seq: 3}))
	r.wantError(opFinish, CodeUnavailable, "keeps no hints")
	r.send(submitFrame(9, envelope("y")))
	r.wantError(opSubmit, CodeFatal, "the store is gone")
	r.send(submitFrame(10, envelope("a")))
	if p := r.recv(); p.seq != 10 || verdicts(p.results) != "a=ACCEPTED" {
		t.Errorf("after the errors: %+v", p)
	}
}

func TestReplyTooLarge(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.MaxFrame = 2000 })
	r := g.raw()
	r.send(submitFrame(1, []byte(`{"actions":[`+strings.Repeat("1,", 500)+`1]}`)))
	r.wantError(opSubmit, CodeReplyTooLarge, "was carried out")
	r.send(submitFrame(2, envelope("a")))
	if p := r.recv(); p.seq != 2 || p.err != nil {
		t.Errorf("afterwards: %+v", p)
	}
}

func TestManyActions(t *testing.T) {
	g := newRig(t)
	c := g.dial()
	body := []byte(`{"actions":[` + strings.TrimSuffix(strings.Repeat(`{"action_id":"x","action_type":"nobody","action_version":"1","payload":{}},`, 1000), ",") + `]}`)
	for range 3 {
		reply, err := c.Submit(context.Background(), Submit{Body: body})
		if err != nil || len(reply.Results) != 1000 || reply.Results[999].Index != 999 {
			t.Fatalf("%v: %d results", err, len(reply.Results))
		}
	}
	within(t, "nothing stays in the budget", func() bool { return g.srv.Stats().Buffered == 0 })
}

func TestConcurrentClients(t *testing.T) {
	g := newRig(t)
	shared := g.dial()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c := shared
			if i%2 == 0 {
				c = g.dial()
			}
			for n := range 100 {
				id := fmt.Sprintf("a%d-%d", i, n)
				reply, err := c.Submit(context.Background(), Submit{Body: envelope(id), Identity: hint.Identity{RequestID: id}})
				if err != nil || verdicts(reply.Results) != id+"=ACCEPTED" {
					t.Errorf("%d/%d: %v %+v", i, n, err, reply)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestClientContext(t *testing.T) {
	g := newRig(t)
	g.fake.entered, g.fake.leave = make(chan struct{}), make(chan struct{})
	c := g.dial()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-g.fake.entered; cancel() }()
	_, err := c.Submit(ctx, Submit{Body: envelope("e")})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("a call that was cancelled: %v", err)
	}
	close(g.fake.leave)
	if _, err := c.Submit(context.Background(), Submit{Body: envelope("a")}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the next call: %v", err)
	}
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := Dial(late, g.path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a dial that is late: %v", err)
	}
	if _, err := Dial(context.Background(), g.path+".none"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a dial to nobody: %v", err)
	}
}

// TestNoAllocations holds the path of a hint: a request of each kind that is on it, from
// the read to the write.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	told := new(counted)
	g := newRig(t, withKVFetch(t), func(c *rigConfig) { c.Dispatched = told })
	r := g.raw()
	id := hint.Identity{Engine: "vllm", RequestID: "r1"}
	body := benchBody(t, 64)
	var batch []byte
	for _, q := range []request{
		{op: opSubmit, identity: id, body: body},
		{op: opSubmit, identity: id, body: body, flags: flagForward},
		{op: opSubmit, identity: id, body: body, flags: flagOneway},
		{op: opStatus, identity: id},
		{op: opPing},
	} {
		batch = appendRequest(batch, &q)
	}
	round := func() { r.round(batch, 4) }
	for range 50 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n > 0.1 {
		t.Errorf("%v allocations for five requests", n)
	}
	if st := g.srv.Stats(); st.Oneway < 200 || st.Errors != [numCodes]uint64{} || told.Load() < 2*st.Oneway {
		t.Errorf("%+v, %d told of", st, told.Load())
	}
}
