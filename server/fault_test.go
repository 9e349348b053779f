package server

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// Each of these clients does something wrong, and harms only itself: a witness goes on
// beside it, and afterwards nothing of it is left.

// quick makes the timeouts short.
func quick(c *rigConfig) {
	c.FrameTimeout = 150 * time.Millisecond
	c.WriteTimeout = 300 * time.Millisecond
}

// within waits for a condition.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}

func (g *rig) connections(n int) func() bool {
	return func() bool { return g.srv.Stats().Connections == n }
}

func TestStallWithinFrame(t *testing.T) {
	g := newRig(t, quick)
	defer g.witness()()
	frame := submitFrame(1, envelope("a"))
	for name, b := range map[string][]byte{
		"a length cut short": frame[:2],
		"a length":           frame[:4],
		"most of a frame":    frame[:len(frame)-1],
		"a frame and a bit":  append(bytes.Clone(frame), 0),
	} {
		r := g.raw()
		r.send(b)
		if len(b) > len(frame) {
			r.recv()
		}
		r.wantError(opError, CodeFrameTimeout, "did not come within 150ms")
		r.wantClosed()
		_ = name
	}
	// Bytes that trickle in do not make a frame live longer.
	r := g.raw()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for _, b := range frame[:len(frame)-1] {
			if _, err := r.conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	r.wantError(opError, CodeFrameTimeout, "did not come within")
	r.conn.Close()
	<-stop
}

// A frame that takes long in pieces, but not too long, and idle time between frames,
// are nobody's fault.
func TestSlowButFine(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.FrameTimeout = time.Second })
	r := g.raw()
	frame := submitFrame(1, envelope("a"))
	for range 2 {
		for _, part := range [][]byte{frame[:3], frame[3:20], frame[20:]} {
			r.send(part)
			time.Sleep(50 * time.Millisecond)
		}
		if p := r.recv(); p.err != nil || len(p.results) != 1 {
			t.Fatalf("%+v", p)
		}
		time.Sleep(1200 * time.Millisecond) // longer than a frame may take
	}
}

func TestNoHello(t *testing.T) {
	g := newRig(t, quick)
	defer g.witness()()
	r := g.mute()
	r.wantError(opError, CodeFrameTimeout, "no hello came within 150ms")
	r.wantClosed()
	r = g.mute()
	r.send(submitFrame(1, envelope("a")))
	r.wantError(opError, CodeHelloExpected, "first frame must be a hello")
	r.wantClosed()
	r = g.mute()
	r.send(appendRequest(nil, &request{op: opHello, version: 2}))
	r.wantError(opError, CodeUnsupportedVersion, "protocol version 2 is not spoken here: version 1 is")
	r.wantClosed()
}

func TestRepliesUnread(t *testing.T) {
	g := newRig(t, quick)
	defer g.witness()()
	r := g.raw()
	frame := bytes.Repeat(submitFrame(1, envelope("a a a a a a a a")), 200)
	for {
		if _, err := r.conn.Write(frame); err != nil {
			break // cut off
		}
	}
	within(t, "only the witness is connected", g.connections(1))
}

func TestLengthLies(t *testing.T) {
	g := newRig(t, quick)
	defer g.witness()()
	for _, head := range []string{"\xff\xff\xff\xff", "\x00\x80\x00\x01", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
		r := g.raw()
		r.send([]byte(head))
		r.wantError(opError, CodeFrameTooLarge, "8388608 are allowed")
		r.wantClosed()
	}
	// The largest length that is allowed, and nothing behind it.
	r := g.raw()
	r.send([]byte("\x00\x80\x00\x00abc"))
	r.wantError(opError, CodeFrameTimeout, "did not come")
	r.wantClosed()
}

func TestGarbageBetweenFrames(t *testing.T) {
	g := newRig(t)
	defer g.witness()()
	r := g.raw()
	for i, garbage := range [][]byte{nil, []byte("garbage"), bytes.Repeat([]byte{0xc1}, 1000), bytes.Repeat([]byte{0x91}, 100_000), []byte("\xdd\xff\xff\xff\xff")} {
		b, at := beginFrame(nil)
		r.send(endFrame(append(b, garbage...), at))
		r.wantError(opError, CodeBadRequest, "malformed request: ")
		r.send(submitFrame(uint64(i), envelope("a")))
		if p := r.recv(); p.seq != uint64(i) || p.err != nil {
			t.Fatalf("after garbage %d: %+v", i, p)
		}
	}
}

func TestDisconnects(t *testing.T) {
	g := newRig(t)
	defer g.witness()()
	frame := submitFrame(1, envelope("a"))
	for _, b := range [][]byte{nil, frame[:1], frame[:len(frame)/2], frame, append(bytes.Clone(frame), frame[:7]...)} {
		g.mute().conn.Close()
		r := g.raw()
		r.send(b)
		r.conn.Close()
		half := g.raw() // says that it sends nothing more, and still reads
		half.send(b)
		half.conn.(*net.UnixConn).CloseWrite()
		if len(b) >= len(frame) {
			if p := half.recv(); p.err != nil || len(p.results) != 1 {
				t.Errorf("%+v", p)
			}
		}
		half.wantClosed()
	}
	within(t, "only the witness is connected", g.connections(1))
}

func TestTooManyConnections(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.MaxConnections = 5 })
	defer g.witness()()
	var open []*raw
	for range 4 {
		open = append(open, g.raw())
	}
	for range 10 {
		r := g.mute()
		r.wantError(opError, CodeTooManyConnections, "5 connections are open")
		r.wantClosed()
	}
	if _, err := Dial(t.Context(), g.path); err == nil || !strings.Contains(err.Error(), "5 connections are open") {
		t.Errorf("the client says %v", err)
	}
	open[0].conn.Close()
	within(t, "there is room again", g.connections(4))
	open[0] = g.raw()
	for i, r := range open {
		r.send(submitFrame(uint64(i), envelope("a")))
		if p := r.recv(); p.err != nil {
			t.Errorf("connection %d: %v", i, p.err)
		}
	}
	if st := g.srv.Stats(); st.Refused != 11 || st.Errors[CodeTooManyConnections] != 11 {
		t.Errorf("%+v", st)
	}
}

// Large frames share a budget. Who finds it used up is refused; small frames need none.
func TestBufferBudget(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.MaxBuffered = 1 << 20 })
	defer g.witness()()
	hog := g.raw()
	hog.send(append([]byte{0, 0x0c, 0, 0}, make([]byte, 700_000)...)) // and the rest never comes
	within(t, "the hog has its buffer", func() bool { return g.srv.Stats().Buffered > 600_000 })
	r := g.raw()
	go r.conn.Write(append([]byte{0, 0x0c, 0, 0}, make([]byte, 0xc0000)...))
	r.wantError(opError, CodeOverloaded, "more than 1048576 bytes")
	r.conn.Close()
	hog.conn.Close()
	within(t, "the budget is free", func() bool { return g.srv.Stats().Buffered == 0 })
	// Now the same frame has room. It is no request, which is all right.
	r = g.raw()
	r.send(append([]byte{0, 0x0c, 0, 0}, make([]byte, 0xc0000)...))
	r.wantError(opError, CodeBadRequest, "a request must be an array")
	r.send(submitFrame(1, envelope("a")))
	r.recv()
	within(t, "nothing stays in the budget", func() bool { return g.srv.Stats().Buffered == 0 })
}

// A panic below a connection, as a store that is broken throws, ends that connection.
func TestPanicBelow(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.Store = brokenStore{c.Store} })
	defer g.witness()()
	r := g.raw()
	r.send(appendRequest(nil, &request{op: opFinish, seq: 4}))
	r.wantError(opError, CodeFatal, "the daemon failed under this connection")
	r.wantClosed()
}

type brokenStore struct{ Store }

func (brokenStore) Finish(hint.Identity, bool) { panic("broken") }

// A guest that loops takes its own caller's time, nobody else's.
func TestSlowGuest(t *testing.T) {
	spec := demoGuest(t, '0')
	spec.Limits.Fuel = 30_000_000
	g := newRig(t, func(c *rigConfig) { c.guests = []runtime.GuestSpec{spec} })
	defer g.witness()()
	r := g.raw()
	r.send(submitFrame(1, envelope("l a t a")))
	if p := r.recv(); verdicts(p.results) != "l=REJECTED/handler_out_of_fuel a=ACCEPTED t=REJECTED/handler_trap a=ACCEPTED" {
		t.Errorf("got %s", verdicts(p.results))
	}
}
