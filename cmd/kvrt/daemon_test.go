package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/server"
)

// testDaemon is a daemon in this process.
type testDaemon struct {
	t   *testing.T
	dir string
	d   *daemon
	srv *server.Server
}

const daemonConfig = `
guests: []
kv_hint_policy: {type: retain-session, parameters: {variant: blocks, hashes: integer}}
compile: {cache: "off"}
workers:
  - id: 7
    ranks: [{dp_rank: 0, events: "ipc://DIR/e", replay: "ipc://DIR/r"}]
listen: {socket: DIR/s, http: DIR/h, admin: "127.0.0.1:0"}
`

func newTestDaemon(t *testing.T) *testDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "kvrt") // a test's own folder has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	x := &testDaemon{t: t, dir: dir}
	x.write(daemonConfig)
	cfg, err := loadConfig(filepath.Join(dir, "kvrt.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := wireDaemon(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	x.d = &daemon{stack: s, file: filepath.Join(dir, "kvrt.yaml"), flags: &serveFlags{}, started: cfg}
	if x.srv, err = x.d.server(); err != nil {
		t.Fatal(err)
	}
	if err := x.srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.d.stop(x.srv, 10*time.Second); err != nil {
			t.Error(err)
		}
		s.fleet.Close()
	})
	return x
}

func (x *testDaemon) write(config string) {
	x.t.Helper()
	if err := os.WriteFile(filepath.Join(x.dir, "kvrt.yaml"), []byte(strings.ReplaceAll(config, "DIR", x.dir)), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

func routedContext(more string) string {
	return `{"request_id":"r","selected":{"worker_id":7,"dp_rank":0},"session":{"session_id":"s"}` + more + `}`
}

// retained asks through the socket what a session has on worker 7: its blocks, or none.
func (x *testDaemon) retained(text string) string {
	x.t.Helper()
	c, err := server.Dial(x.t.Context(), x.srv.SocketPath())
	if err != nil {
		x.t.Error(err)
		return ""
	}
	defer c.Close()
	got, err := c.Formulate(x.t.Context(), server.Formulate{Bodies: [][]byte{[]byte(text)}})
	if err != nil || len(got) != 1 || got[0].Err != nil {
		x.t.Error(got, err)
		return ""
	}
	return blocks(x.t, hint.AppendFormulatedJSON(nil, got[0].Envelope, got[0].Policies))
}

// blocks are the hashes in the first action of an answer, or none.
func blocks(t *testing.T, answer []byte) string {
	t.Helper()
	var a struct {
		Envelope *struct {
			Actions []struct {
				Payload struct {
					Hashes json.RawMessage `json:"block_hashes"`
				}
			}
		}
		Policies []struct{ Error string }
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Errorf("%v in %s", err, answer)
		return ""
	}
	if a.Envelope != nil && len(a.Envelope.Actions) == 1 {
		return string(a.Envelope.Actions[0].Payload.Hashes)
	}
	return "none" + a.Policies[0].Error
}

func (x *testDaemon) until(want string) {
	x.t.Helper()
	got := ""
	for range 6000 {
		if got = x.retained(routedContext("")); got == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	x.t.Fatalf("got %s, want %s", got, want)
}

// TestDaemonEvents: what an engine publishes is in the next envelope, through every way in,
// until it is removed, the engine restarts, or the worker goes.
func TestDaemonEvents(t *testing.T) {
	x := newTestDaemon(t)
	p := newPublisher(t)
	place := m{"events": "ipc://" + x.dir + "/e", "replay": "ipc://" + x.dir + "/r"}
	if got := x.retained(routedContext("")); got != "none" {
		t.Error(got)
	}
	p.Do("bind", place)
	p.Do("publish", m{"batches": []m{{"events": []m{storedEvent(nil, 1, 2)}, "data_parallel_rank": 0}}}) // before anybody listens: replayed
	x.until("[1,2]")
	p.publish(storedEvent(2, 3))
	x.until("[1,2,3]")

	if got := x.http(routedContext("")); got != "[1,2,3]" {
		t.Errorf("over HTTP: %s", got)
	}
	file := filepath.Join(x.dir, "context.json")
	if err := os.WriteFile(file, []byte(routedContext("")), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := invoke("formulate", "--socket", x.srv.SocketPath(), file); code != exitOK || blocks(t, []byte(out)) != "[1,2,3]" {
		t.Errorf("kvrt formulate: %d %s%s", code, out, errs)
	}
	if code, out, errs := invoke("workers", "list", "--admin", x.srv.AdminAddr()); code != exitOK || !strings.Contains(out, " live ") || !strings.Contains(out, "config") {
		t.Errorf("kvrt workers list: %d %s%s", code, out, errs)
	}
	if code, out, _ := invoke("status", "--admin", x.srv.AdminAddr()); code != exitOK || !strings.Contains(out, "1 of 1 live") || !strings.Contains(out, "1 sessions, 3 blocks") {
		t.Errorf("kvrt status: %d %s", code, out)
	}

	// What a router says of stored blocks is left out; what it matched is taken.
	if got := x.retained(routedContext(`,"events":[{"type":"cleared","worker_id":7,"dp_rank":0},{"type":"stored","session_id":"s","worker_id":7,"dp_rank":0,"parent_block_hash":3,"block_hashes":[4]}]`)); got != "[1,2,3]" {
		t.Error(got)
	}
	if got := x.retained(`{"request_id":"r","selected":{"worker_id":7,"dp_rank":0},"session":{"session_id":"other"},"events":[{"type":"match","session_id":"other","worker_id":7,"dp_rank":0,"block_hash":2}]}`); got != "[1,2]" {
		t.Error(got)
	}

	p.Do("send", m{"frames": []string{"", "00", "ff"}}) // garbage
	p.Do("send", m{"frames": []string{""}})
	p.publish(m{"type": "removed", "block_hashes": []uint64{3}, "medium": "GPU"})
	x.until("[1,2]")
	p.Do("close", m{"restart": true})
	p.Do("bind", place)
	x.until("none")
	p.publish(storedEvent(nil, 5))
	x.until("[5]")

	// The first tenant that asks owns the session.
	if got := x.retained(routedContext(`,"tenant":"t"`)); got != "[5]" {
		t.Error(got)
	}
	for _, other := range []string{"", `,"tenant":"u"`} {
		if got := x.retained(routedContext(other)); got != "none" {
			t.Errorf("%q sees %s", other, got)
		}
	}

	if code, out, errs := invoke("workers", "remove", "7", "--admin", x.srv.AdminAddr()); code != exitOK || out != "removed worker 7\n" {
		t.Errorf("kvrt workers remove: %d %s%s", code, out, errs)
	}
	if got := x.retained(routedContext(`,"tenant":"t"`)); got != "none" || x.d.fleet.Sessions().Index("") != nil {
		t.Error(got)
	}
	x.reloads(p)
}

// reloads: a reload brings back what its file has changed, and nothing else.
func (x *testDaemon) reloads(p *publisher) {
	x.t.Helper()
	step := func(config, want string) {
		x.t.Helper()
		x.write(config)
		if err := x.srv.Reload(x.t.Context()); err != nil {
			x.t.Fatal(err)
		}
		var words []string
		for _, w := range x.d.fleet.Workers() {
			words = append(words, w.ID.String()+" "+string(w.Origin))
		}
		if got := strings.Join(words, ", "); got != want {
			x.t.Errorf("got %s, want %s", got, want)
		}
	}
	if code, _, errs := invoke("workers", "set", "eight", `{"namespace":"n"}`, "--admin", x.srv.AdminAddr()); code != exitOK {
		x.t.Error(errs)
	}
	step(daemonConfig, `"eight" api`)
	step(strings.Replace(daemonConfig, "id: 7", "id: 7\n    block_size: 16", 1), `7 config, "eight" api`)
	x.until("[5]") // replayed
	x.write(strings.Replace(daemonConfig, "id: 7", "id: 9\n    ranks: [{events: 'ipc://DIR/e'}]\n  - id: 7\n    block_size: 32", 1))
	err := x.srv.Reload(x.t.Context())
	if err == nil || !strings.Contains(err.Error(), "workers[0].ranks[0].events: worker 7 rank 0 publishes at ") {
		x.t.Error(err)
	}
	x.write(strings.Replace(daemonConfig, "retain-session", "no-such-policy", 1))
	err = x.srv.Reload(x.t.Context())
	if err == nil || !strings.Contains(err.Error(), `unknown policy type "no-such-policy"; known types: `) || !strings.Contains(err.Error(), "retain-session") {
		x.t.Error(err)
	}
	if got := x.retained(routedContext("")); got != "[5]" {
		x.t.Errorf("after reloads that were refused: %s", got)
	}
}

// http asks over the HTTP socket.
func (x *testDaemon) http(body string) string {
	x.t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", x.srv.HTTPPath())
	}}
	resp, err := (&http.Client{Transport: tr}).Post("http://kvrt/v1/formulate", "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		x.t.Fatal(resp.Status, string(b), err)
	}
	return blocks(x.t, b)
}

// TestDaemonReloadsUnderLoad: while contexts and events stream, policies are rebuilt and
// workers come and go; every context is answered by the policy of one generation or the
// next, with the lineage that there is.
func TestDaemonReloadsUnderLoad(t *testing.T) {
	x := newTestDaemon(t)
	p := newPublisher(t)
	p.Do("bind", m{"events": "ipc://" + x.dir + "/e", "replay": "ipc://" + x.dir + "/r"})
	p.publish(storedEvent(nil, 1, 2))
	x.until("[1,2]")
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var answered atomic.Int64
	for range 3 {
		load.Go(func() {
			for ctx.Err() == nil {
				if got := x.retained(routedContext("")); got != "[1,2]" {
					t.Errorf("got %s", got)
					return
				}
				answered.Add(1)
			}
		})
	}
	for i := range 6 {
		config := strings.Replace(daemonConfig, "variant: blocks", fmt.Sprintf("variant: blocks, priority: %d", 1+i), 1)
		if i%2 == 0 {
			config = strings.Replace(config, "listen:", "  - {id: 8, namespace: n, ranks: [{events: 'ipc://DIR/other'}]}\nlisten:", 1)
		}
		x.write(config)
		if err := x.srv.Reload(t.Context()); err != nil {
			t.Error(err)
		}
		p.publish(m{"type": "stored", "parent_block_hash": 2, "block_hashes": []uint64{9}, "medium": "GPU", "session_id": "another"})
		p.publish(m{"type": "removed", "block_hashes": []uint64{9}, "medium": "GPU"})
		for before := answered.Load(); answered.Load() < before+10 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	cancel()
	load.Wait()
	if n := x.d.runtime.Generation(); n != 7 {
		t.Errorf("generation %d", n)
	}
}

// TestServeFailsClosed: a policy that is not there, or that is given what it does not
// take, keeps the daemon from starting.
func TestServeFailsClosed(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{"kv_hint_policy: {type: nobody}", `unknown policy type "nobody"; known types: `},
		{"kv_hint_policy: {type: retain-session, parameters: {ttl_seconds: x}}", "ttl_seconds"},
		{"kv_hint_policy: [{type: retain-session}, {type: retain-session}]", "retain-session"},
		{"kv_hint_policy: {type: retain-session}\nformulate: {partitions: [{supplies: [block_hashes]}]}", "session_id"},
		{"workers: [{id: 1, ranks: [{events: 'tcp://*:1'}]}]", "kvrt.yaml:1:36: workers[0].ranks[0].events: "},
	} {
		file := filepath.Join(t.TempDir(), "kvrt.yaml")
		if err := os.WriteFile(file, []byte(c.config+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := invoke("serve", "-c", file, "--socket", filepath.Join(t.TempDir(), "s"), "--admin", "127.0.0.1:0")
		if code == exitOK || !strings.Contains(errs, c.want) {
			t.Errorf("%s: %d %s", c.config, code, errs)
		}
	}
}
