package server

import (
	"bytes"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/kvrt/kvrt/hint"
)

// heard writes down what it hears.
type heard struct{ lines chan string }

func (h heard) Dispatched(id hint.Identity, messageID []byte, results []hint.Result) {
	h.lines <- fmt.Sprintf("%s %q %s", id.RequestID, messageID, verdicts(results))
}

// counted counts what it hears.
type counted struct{ atomic.Uint64 }

func (c *counted) Dispatched(hint.Identity, []byte, []hint.Result) { c.Add(1) }

// TestDispatchedHeard: every envelope that handlers ran for is told of, whoever sent it
// and whether or not it is answered; what no handler saw is not.
func TestDispatchedHeard(t *testing.T) {
	h := heard{make(chan string, 16)}
	g := newRig(t, withHTTP(t), func(c *rigConfig) { c.Dispatched = h })
	body := envelope("a r")
	c := g.dial()
	submit := Submit{Identity: hint.Identity{RequestID: "one"}, Body: body}
	reply, err := c.Submit(t.Context(), submit)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := c.Submit(t.Context(), Submit{Body: []byte("{")}); err != nil || reply.Err == nil {
		t.Fatal(err)
	}
	submit.Identity.RequestID = "two"
	if err := c.SubmitOneWay(t.Context(), submit); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp, err := g.router().Post("http://kvrt/v1/dispatch?request_id=three", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	close(h.lines)
	var got, want []string
	for line := range h.lines {
		got = append(got, line)
	}
	for _, id := range []string{"one", "two", "three"} {
		want = append(want, fmt.Sprintf("%s %q %s", id, "m", verdicts(reply.Results)))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
