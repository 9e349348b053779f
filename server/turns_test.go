package server

import (
	"bytes"
	"context"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

// TestTurns: while large requests have all turns, another large one waits, by HTTP and on
// the data socket, and small ones do not.
func TestTurns(t *testing.T) {
	g := newRig(t, withPolicies(t, "one"), withHTTP(t))
	small := routed("a")
	large := append(bytes.Repeat([]byte(" "), 2*keepBuffer), small...)
	for range cap(g.srv.turns) {
		g.srv.turns <- struct{}{}
	}
	h, d := g.router(), g.dial()
	done := make(chan string, 2)
	go func() {
		_, answer := post(t, h, "", large)
		done <- told(t, []byte(answer))
	}()
	go func() {
		f, err := d.Formulate(context.Background(), Formulate{Bodies: [][]byte{large}, Format: abi.FormatJSON, Output: abi.FormatJSON})
		if err != nil {
			done <- err.Error()
			return
		}
		done <- spell(t, f[0])
	}()
	within(t, "both are there", func() bool { return g.srv.Stats().Buffered >= 2*keepBuffer })
	for range 20 {
		if status, answer := post(t, h, "", small); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	select {
	case answer := <-done:
		t.Fatalf("a large one did not wait: %s", answer)
	default:
	}
	for range cap(g.srv.turns) {
		<-g.srv.turns
	}
	if one, other := <-done, <-done; one != other {
		t.Errorf("%s, %s", one, other)
	}
	if n := len(g.srv.turns); n > 0 {
		t.Errorf("%d turns are taken", n)
	}
}
