package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	hostlog "github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(benchClientEnv); path != "" {
		benchClient(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// demoGuest is a handler of demo.echo and demo.other. The first letter of an action's
// id says what it does: a accepts, r rejects, t traps, l loops for ever, y makes the
// native side fail, p makes a host function panic, d answers with its version.
func demoGuest(t testing.TB, version byte) runtime.GuestSpec {
	t.Helper()
	wasm, err := os.ReadFile("../runtime/testdata/scripted.wasm")
	if err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf(`{"name":"demo","version":"1.0.%c","abi":1,"roles":["handler"],
"action_types":[{"type":"demo.echo"},{"type":"demo.other"}],"capabilities":["kvrt_fetch"]}`, version)
	section := append([]byte{byte(len(abi.ManifestSection))}, abi.ManifestSection+manifest...)
	wasm = append(binary.AppendUvarint(append(bytes.Replace(wasm, []byte("version0"), []byte("version"+string(version)), 1), 0), uint64(len(section))), section...)
	return runtime.GuestSpec{Name: "demo", Module: wasm, Grants: []string{"kvrt_fetch"}, Limits: runtime.Limits{Instances: 4}}
}

// fakeFetch is a kvrt_fetch whose behaviour the demo guest chooses.
type fakeFetch struct {
	entered chan struct{} // when set: the function says that it runs,
	leave   chan struct{} // and waits
	calls   atomic.Int64
}

func (f *fakeFetch) Name() string { return "kvrt_fetch" }
func (f *fakeFetch) Functions() []runtime.HostFunction {
	i := abi.I32
	return []runtime.HostFunction{{Name: "submit", Params: []abi.ValType{i, i, i, i, i}, Results: []abi.ValType{i}, Call: f.submit}}
}

func (f *fakeFetch) submit(c *runtime.Call, _ []byte, stack []uint64) {
	f.calls.Add(1)
	switch uint32(stack[4]) {
	case 1:
		panic("a mistake of the host function")
	case 4:
		c.Fail(errors.New("the store is gone"))
	}
	if f.entered != nil {
		f.entered <- struct{}{}
		<-f.leave
	}
	stack[0] = 0
}

// rig is a server with what it serves.
type rig struct {
	t     testing.TB
	rt    *runtime.Runtime
	store *fetch.Store
	fake  *fakeFetch
	srv   *Server
	path  string
}

// rigOption changes what a rig is made of.
type rigOption func(*rigConfig)

type rigConfig struct {
	Config
	engine  runtime.Engine
	guests  []runtime.GuestSpec
	kvFetch bool             // the real capability in place of the fake
	unbuilt bool             // do not start the server
	runtime *runtime.Runtime // in place of one with the guests
}

func newRig(t testing.TB, opts ...rigOption) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "kvrt") // a test's own folder has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	g := &rig{t: t, store: fetch.New(fetch.Config{}), fake: &fakeFetch{}, path: filepath.Join(dir, "kvrt.sock")}
	cfg := rigConfig{Config: Config{Store: g.store, Socket: g.path, Version: "1.2.3", NotifySocket: "-"}, engine: wazero.New(wazero.Config{})}
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.guests == nil {
		cfg.guests = []runtime.GuestSpec{demoGuest(t, '0')}
	}
	hosts := []runtime.HostModule{hostlog.Module{}, g.fake}
	if cfg.kvFetch {
		allow, err := fetch.ParseAllowList(context.Background(), fetch.DefaultAllowedSources(), nil)
		if err != nil {
			t.Fatal(err)
		}
		hosts[1] = fetch.NewHost(g.store, allow)
	}
	if g.rt = cfg.runtime; g.rt == nil {
		if g.rt, err = runtime.New(runtime.Config{Engine: cfg.engine, Hosts: hosts, Wait: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if err := g.rt.Apply(context.Background(), cfg.guests); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Runtime = g.rt
	if g.srv, err = New(cfg.Config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.srv.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := g.rt.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := g.srv.Stats(); n.Connections != 0 || n.Buffered != 0 {
			t.Errorf("after the close: %d connections, %d bytes of buffers", n.Connections, n.Buffered)
		}
	})
	if !cfg.unbuilt {
		if err := g.srv.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func withKVFetch(t testing.TB) rigOption {
	wasm, err := os.ReadFile("../policies/kv-fetch/kv-fetch.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return func(c *rigConfig) {
		c.kvFetch = true
		c.guests = []runtime.GuestSpec{{Name: "kv-fetch", Module: wasm, Grants: []string{"kvrt_fetch", "kvrt_log"}, Limits: runtime.Limits{Instances: 4}}}
	}
}

func (g *rig) dial() *Client {
	g.t.Helper()
	c, err := Dial(context.Background(), g.path)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	return c
}

// raw is a connection without a client's manners.
type raw struct {
	t    testing.TB
	conn net.Conn
	in   frames
}

// raw connects and says hello.
func (g *rig) raw() *raw {
	g.t.Helper()
	r := g.mute()
	r.send(appendRequest(nil, &request{op: opHello, seq: 1, version: ProtocolVersion, client: "raw"}))
	if p := r.recv(); p.op != opHello || p.seq != 1 || p.err != nil {
		g.t.Fatalf("hello answered %+v", p)
	}
	return r
}

// mute connects and says nothing.
func (g *rig) mute() *raw {
	g.t.Helper()
	conn, err := net.Dial("unix", g.path)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	return &raw{g.t, conn, frames{limit: 64 << 20}}
}

func (r *raw) send(b []byte) {
	r.t.Helper()
	if _, err := r.conn.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) recv() reply {
	r.t.Helper()
	p, err := r.tryRecv()
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *raw) tryRecv() (p reply, err error) {
	for {
		frame, ok, err := r.in.next()
		if err != nil {
			return p, err
		}
		if ok {
			if bad := p.decode(frame); bad != nil {
				return p, fmt.Errorf("reply %x: %w", frame, bad)
			}
			return p, nil
		}
		if _, err := r.in.fill(r.conn); err != nil {
			return p, err
		}
	}
}

// round writes frames and takes so many replies, without allocating.
func (r *raw) round(frames []byte, replies int) {
	r.conn.Write(frames)
	for replies > 0 {
		if _, ok, err := r.in.next(); err != nil {
			r.t.Fatal(err)
		} else if ok {
			replies--
		} else if _, err := r.in.fill(r.conn); err != nil {
			r.t.Fatal(err)
		}
	}
}

// wantError reads an error, and the end of the connection when it is one that closes.
func (r *raw) wantError(o op, code Code, text string) {
	r.t.Helper()
	p := r.recv()
	if p.op != o || p.err == nil || p.err.Code != code || !strings.Contains(p.err.Text, text) {
		r.t.Fatalf("got %s %+v, want %s %s with %q", p.op, p.err, o, code, text)
	}
}

func (r *raw) wantClosed() {
	r.t.Helper()
	p, err := r.tryRecv()
	if err == nil {
		r.t.Fatalf("got %+v, want the end of the connection", p)
	}
	// Either way the daemon has closed; unread bytes make it a reset.
	if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		r.t.Fatalf("got %v, want the end of the connection", err)
	}
}

// envelope makes a JSON envelope with a demo.echo per word, whose id the word is.
func envelope(words string) []byte {
	var b strings.Builder
	b.WriteString(`{"protocol_version":"0.1","message_id":"m","actions":[`)
	for i, id := range strings.Fields(words) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"action_id":%q,"action_type":"demo.echo","action_version":"1.0","payload":{"n":%d}}`, id, i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// submitFrame is a frame that submits an envelope.
func submitFrame(seq uint64, body []byte) []byte {
	return appendRequest(nil, &request{op: opSubmit, seq: seq, body: body, identity: hint.Identity{Engine: "vllm", RequestID: "r1"}})
}

// verdicts renders results as "id=STATUS/reason" words.
func verdicts(results []hint.Result) string {
	var words []string
	for _, r := range results {
		w := string(r.ActionID) + "=" + r.Status.String()
		if r.Reason != 0 {
			w += "/" + r.Reason.String()
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// witness submits on a connection of its own until stopped, and wants every answer.
func (g *rig) witness() (stop func()) {
	c := g.dial()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			reply, err := c.Submit(context.Background(), Submit{Body: envelope("a r")})
			if err != nil || verdicts(reply.Results) != "a=ACCEPTED r=REJECTED/invalid_payload" {
				g.t.Errorf("the witness's submit %d: %v %+v", n, err, reply)
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
