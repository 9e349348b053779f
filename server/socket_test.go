package server

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// another makes a server at the same socket as a rig.
func (g *rig) another() *Server {
	g.t.Helper()
	s, err := New(Config{Runtime: g.rt, Socket: g.path, NotifySocket: "-"})
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

func TestSocketFile(t *testing.T) {
	g := newRig(t)
	info, err := os.Lstat(g.path)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	if err := g.another().Start(context.Background()); err == nil || !strings.Contains(err.Error(), "another daemon is listening") {
		t.Errorf("beside a live daemon: %v", err)
	}
	g.dial() // which still has its socket
	g.srv.Close(context.Background())
	if _, err := os.Lstat(g.path); !os.IsNotExist(err) {
		t.Errorf("after the close the socket is still there: %v", err)
	}
}

func TestSocketOptions(t *testing.T) {
	g := newRig(t, func(c *rigConfig) {
		c.SocketMode = 0o660
		c.Socket = filepath.Join(filepath.Dir(c.Socket), "a", "b", "s.sock")
	})
	path := g.srv.SocketPath()
	if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o660 {
		t.Errorf("%v %v", info, err)
	}
	if info, err := os.Lstat(filepath.Dir(path)); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v %v", info, err)
	}
}

func TestStaleSocket(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.unbuilt = true })
	ln, err := net.Listen("unix", g.path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close() // as a daemon that was killed leaves it
	if err := g.srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	g.dial()
}

// A daemon does not remove a socket that another has made in its place.
func TestSocketOfAnother(t *testing.T) {
	g := newRig(t)
	if err := os.Remove(g.path); err != nil {
		t.Fatal(err)
	}
	second := g.another()
	if err := second.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	g.srv.Close(context.Background())
	g.dial()
	second.Close(context.Background())
}

func TestSocketRefusals(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.unbuilt = true })
	os.WriteFile(g.path, []byte("precious"), 0o600)
	if err := g.srv.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "no socket is in the way") {
		t.Errorf("over a file: %v", err)
	}
	if b, _ := os.ReadFile(g.path); string(b) != "precious" {
		t.Errorf("the file is now %q", b)
	}
	for path, want := range map[string]string{
		"@abstract":                       "no permissions",
		"/" + strings.Repeat("x", 200):    "invalid argument",
		filepath.Join(g.path, "sub", "s"): "not a directory",
	} {
		s, err := New(Config{Runtime: g.rt, Socket: path, NotifySocket: "-"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Of many daemons that start at once over a stale socket, one gets it.
func TestSocketRace(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.unbuilt = true })
	ln, err := net.Listen("unix", g.path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	const n = 8
	errs := make(chan error, n)
	var servers []*Server
	for range n {
		s := g.another()
		servers = append(servers, s)
		go func() { errs <- s.Start(context.Background()) }()
	}
	won := 0
	for range n {
		if err := <-errs; err == nil {
			won++
		} else if !strings.Contains(err.Error(), "another daemon is listening") {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d daemons listen at one socket", won)
	}
	g.dial()
	for _, s := range servers {
		if s.socket.ln != nil {
			s.Close(context.Background())
		}
	}
}

func TestRun(t *testing.T) {
	g := newRig(t, func(c *rigConfig) { c.unbuilt = true; c.Admin = "127.0.0.1:0" })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.srv.Run(ctx) }()
	within(t, "it listens", func() bool { _, err := os.Lstat(g.path); return err == nil })
	c := g.dial()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, _, err := c.Ping(context.Background()); err == nil || !strings.Contains(err.Error(), "going away") {
		t.Errorf("a client of a daemon that has stopped is told: %v", err)
	}
}

// What a client has sent before the daemon is told to stop is carried out and answered.
func TestCloseFinishesFrames(t *testing.T) {
	g := newRig(t)
	g.fake.entered, g.fake.leave = make(chan struct{}), make(chan struct{})
	busy, half, idle := g.raw(), g.raw(), g.raw()
	frame := submitFrame(1, envelope("e"))
	busy.send(append(frame, submitFrame(2, envelope("a"))...))
	<-g.fake.entered // so everything that busy has sent is read
	before := g.srv.Stats().BytesIn
	half.send(submitFrame(5, envelope("a"))[:20])
	within(t, "the half frame is read", func() bool { return g.srv.Stats().BytesIn == before+20 })
	closed := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		closed <- g.srv.Close(ctx)
	}()
	idle.wantError(opError, CodeDraining, "going away")
	idle.wantClosed()
	half.send(submitFrame(5, envelope("a"))[20:])
	if p := half.recv(); p.seq != 5 || p.err != nil {
		t.Errorf("the half frame: %+v", p)
	}
	select {
	case err := <-closed:
		t.Errorf("closed although a call is in flight: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(g.fake.leave)
	for seq := range uint64(2) {
		if p := busy.recv(); p.seq != seq+1 || p.err != nil {
			t.Errorf("the busy connection: %+v", p)
		}
	}
	busy.wantError(opError, CodeDraining, "going away")
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// When the time is over, nobody is waited for.
func TestCloseCutsOff(t *testing.T) {
	g := newRig(t)
	half := g.raw()
	before := g.srv.Stats().BytesIn
	half.send([]byte{0, 0, 1, 0, 1})
	within(t, "the half frame is read", func() bool { return g.srv.Stats().BytesIn == before+5 })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	g.srv.Close(ctx)
	if _, err := half.tryRecv(); err != nil {
		t.Log(err) // told or cut off, as it happens
	}
	half.wantClosed()
}

func TestDrain(t *testing.T) {
	g := newRig(t)
	c := g.dial()
	g.srv.Drain()
	if _, err := c.Submit(context.Background(), Submit{Body: envelope("a")}); err != nil {
		t.Errorf("an open connection while draining: %v", err)
	}
	if _, draining, err := c.Ping(context.Background()); !draining || err != nil {
		t.Errorf("ping while draining: %t %v", draining, err)
	}
	r := g.mute()
	r.wantError(opError, CodeDraining, "takes no new connections")
	r.wantClosed()
}

// systemd is told of start, reload and stop.
func TestNotify(t *testing.T) {
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "notify")
	pc, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	next := func() string {
		b := make([]byte, 200)
		pc.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, _, err := pc.ReadFrom(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	g := newRig(t, func(c *rigConfig) {
		c.unbuilt, c.NotifySocket = true, path
		c.Reload = func(context.Context) error { return nil }
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.srv.Run(ctx) }()
	if got := next(); got != "READY=1" {
		t.Errorf("at the start: %q", got)
	}
	g.srv.Reload(ctx)
	if got := next(); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("at a reload: %q", got)
	}
	if got := next(); got != "READY=1" {
		t.Errorf("after a reload: %q", got)
	}
	cancel()
	if got := next(); got != "STOPPING=1" {
		t.Errorf("at the end: %q", got)
	}
	<-done
}
