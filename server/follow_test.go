package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
)

// ledgerRig is a rig with outcomes.
func ledgerRig(t *testing.T) (*rig, *outcome.Ledger) {
	l := outcome.NewLedger(outcome.Config{Size: 4096})
	return newRig(t, func(c *rigConfig) { c.Outcomes = l }), l
}

// TestFollow: what ends from the first follow on is told, in order and once.
func TestFollow(t *testing.T) {
	g, l := ledgerRig(t)
	a, b := hint.Identity{Engine: "vllm", RequestID: "a"}, hint.Identity{Engine: "vllm", RequestID: "b"}
	end := func(id hint.Identity, message string) {
		l.Accept(id, []byte(message), 1, 2)
		l.Fail(id, abi.ReasonUnavailable)
	}
	end(a, "before")
	all, one := g.dial(), g.dial()
	follow := func(c *Client, f Follow, want ...string) {
		t.Helper()
		out, dropped, err := c.Follow(t.Context(), f)
		var got []string
		for _, o := range out {
			got = append(got, o.Identity.RequestID+" "+o.MessageID+" "+o.State.String()+" "+o.Reason.String())
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || dropped != 0 || err != nil {
			t.Errorf("%+v: %q, dropped %d, %v; want %q", f, got, dropped, err, want)
		}
	}
	follow(all, Follow{})
	follow(one, Follow{Identity: b, MessageID: "m2"})
	end(a, "m1")
	end(b, "m1")
	end(b, "m2")
	follow(all, Follow{Limit: 2, Wait: 10 * time.Second}, "a m1 failed unavailable", "b m1 failed unavailable")
	follow(all, Follow{Wait: 10 * time.Second}, "b m2 failed unavailable")
	follow(all, Follow{})
	follow(one, Follow{Identity: b, MessageID: "m2", Wait: 10 * time.Second}, "b m2 failed unavailable")

	// It waits for what has not ended yet.
	waiting := make(chan []outcome.Outcome)
	go func() {
		out, _, err := all.Follow(context.Background(), Follow{Wait: 10 * time.Second})
		if err != nil {
			t.Error(err)
		}
		waiting <- out
	}()
	end(a, "m3")
	if out := <-waiting; len(out) != 1 || out[0].MessageID != "m3" || out[0].Index != 1 || out[0].Ended == 0 {
		t.Errorf("%+v", out)
	}

	// Another filter begins anew; a wait that is over is no error.
	end(a, "m4")
	follow(all, Follow{Identity: a})
	follow(all, Follow{Identity: a, Wait: time.Millisecond})
	end(a, "m5")
	follow(all, Follow{Identity: a}, "a m5 failed unavailable")
}

// TestFollowIsBounded: in what waits for a connection, and in connections.
func TestFollowIsBounded(t *testing.T) {
	g, l := ledgerRig(t)
	c := g.dial()
	if _, _, err := c.Follow(t.Context(), Follow{}); err != nil {
		t.Fatal(err)
	}
	const n = followBuffer + 7
	for i := range n {
		id := hint.Identity{RequestID: fmt.Sprint(i)}
		l.Accept(id, nil, 0, 1)
		l.Complete(id)
	}
	out, dropped, err := c.Follow(t.Context(), Follow{})
	if len(out) != followBuffer || dropped != 7 || err != nil {
		t.Errorf("%d outcomes, %d dropped, %v", len(out), dropped, err)
	}
	followers := []*Client{c}
	for len(followers) < maxFollowers {
		f := g.dial()
		if _, _, err := f.Follow(t.Context(), Follow{}); err != nil {
			t.Fatal(len(followers), err)
		}
		followers = append(followers, f)
	}
	late := g.dial()
	var refused *RemoteError
	if _, _, err := late.Follow(t.Context(), Follow{}); !errors.As(err, &refused) || refused.Code != CodeTooManyFollowers {
		t.Error(err)
	}
	if _, _, err := c.Follow(t.Context(), Follow{MessageID: "another"}); err != nil { // it has its place already
		t.Error(err)
	}
	followers[1].Close()
	for {
		if _, _, err := late.Follow(t.Context(), Follow{}); err == nil { // once the daemon has seen the other one go
			break
		} else if !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
}

// TestFollowEndsWithTheServer: nobody who waits holds up its end.
func TestFollowEndsWithTheServer(t *testing.T) {
	g, l := ledgerRig(t)
	c := g.dial()
	if _, _, err := c.Follow(t.Context(), Follow{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, _, err := c.Follow(context.Background(), Follow{Wait: maxFollowWait * time.Millisecond})
		done <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := g.srv.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil && !errors.Is(err, ErrUnreachable) { // the request may have come too late
		t.Error(err)
	}
	l.Accept(hint.Identity{RequestID: "r"}, nil, 0, 1)
	l.Complete(hint.Identity{RequestID: "r"})
	if st := l.Stats(); st.Dropped != 0 {
		t.Errorf("a stream is left: %+v", st)
	}
}

func TestFollowIsRefused(t *testing.T) {
	g := newRig(t)
	r := g.raw()
	r.send(appendRequest(nil, &request{op: opFollow, seq: 1}))
	r.wantError(opFollow, CodeUnavailable, "no peers in its configuration")
	g, _ = ledgerRig(t)
	r = g.raw()
	r.send(appendRequest(nil, &request{op: opFollow, seq: 1, flags: flagOneway, waitMS: 10_000}))
	r.send(appendRequest(nil, &request{op: opPing, seq: 2}))
	if p := r.recv(); p.op != opPing {
		t.Errorf("a one-way follow was answered: %+v", p)
	}
}
